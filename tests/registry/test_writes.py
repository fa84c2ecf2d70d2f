"""Creates, updates and patches, as kubectl and client-go depend on them."""

from __future__ import annotations

import asyncio

import pytest
from registry_worlds import (
    ANNA,
    CONTROLLERS,
    cause,
    clique,
    config_map,
    event,
    namespace,
    owner_of,
    pod,
    story,
)

from spinney.meta.errors import (
    AlreadyExists,
    ApplyConflict,
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    UnsupportedMediaType,
)
from spinney.meta.references import Precondition
from spinney.registry import patching
from spinney.registry.requests import Request
from spinney.testing import build

# Creating


@story
async def test_a_new_object_gets_what_the_server_gives(world):
    given = config_map(
        "a",
        uid="mine",
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds=5,
        generation=7,
    )
    outcome = await world.create(given)
    metadata = outcome.document["metadata"]
    assert outcome.created
    assert metadata["uid"] not in ("", "mine")
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "deletionTimestamp" not in metadata
    assert "deletionGracePeriodSeconds" not in metadata
    assert "generation" not in metadata, "Kubernetes counts no generations of config maps"
    assert metadata["resourceVersion"] == str(world.store.version)
    assert world.get("configmaps", "a") == outcome.document


@story
async def test_generation_begins_at_one_where_it_counts(world):
    made = await world.create(build.podcliqueset("chat").with_clique("a").document())
    assert made.document["metadata"]["generation"] == 1
    made = await world.create(pod())
    assert made.document["metadata"]["generation"] == 1


@story
async def test_a_name_that_is_taken_is_refused(world):
    await world.create(config_map("a"))
    with pytest.raises(AlreadyExists) as refused:
        await world.create(config_map("a"))
    assert refused.value.message == 'configmaps "a" already exists'
    assert refused.value.details == {"name": "a", "kind": "configmaps"}


@story
async def test_a_name_that_is_being_deleted_is_refused_saying_so(world):
    await world.create(config_map("a", finalizers=["example.com/hold"]))
    await world.delete("configmaps", "a")
    with pytest.raises(AlreadyExists) as refused:
        await world.create(config_map("a"))
    assert refused.value.message == 'object is being deleted: configmaps "a" already exists'


@story
async def test_a_name_is_generated_from_a_prefix(world):
    document = config_map("x")
    del document["metadata"]["name"]
    document["metadata"]["generateName"] = "p" * 80
    outcome = await world.create(document)
    name = outcome.document["metadata"]["name"]
    assert name.startswith("p" * 58)
    assert len(name) == 63


@story
async def test_no_name_at_all_is_invalid(world):
    document = config_map("x")
    del document["metadata"]["name"]
    with pytest.raises(Invalid) as refused:
        await world.create(document)
    assert refused.value.message == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


class _OneSuffix:
    def __init__(self, entropy):
        self._entropy = entropy
        self.asked = 0

    def suffix(self, _length):
        self.asked += 1
        return "aaaaa"

    def __getattr__(self, name):
        return getattr(self._entropy, name)


@story
async def test_generating_gives_up_after_eight_names_that_are_taken(world):
    births = world.registry._births
    births._entropy = entropy = _OneSuffix(births._entropy)
    document = config_map("x", generateName="p-")
    del document["metadata"]["name"]
    await world.create(document)
    entropy.asked = 0
    with pytest.raises(AlreadyExists) as refused:
        await world.create(document)
    assert entropy.asked == 8
    assert refused.value.message == (
        'configmaps "p-aaaaa" already exists, the server was not able to generate a unique name '
        "for the object"
    )


@story
async def test_a_version_given_on_creation_is_refused(world):
    with pytest.raises(BadRequest) as refused:
        await world.create(config_map("a", resourceVersion="3"))
    assert "resourceVersion should not be set on objects to be created" in refused.value.message


@story
async def test_a_namespace_that_is_not_there_is_named(world):
    with pytest.raises(NotFound) as refused:
        await world.create(config_map("a", "elsewhere"))
    assert refused.value.message == 'namespaces "elsewhere" not found'
    assert refused.value.to_status()["details"] == {"name": "elsewhere", "kind": "namespaces"}


@story
async def test_a_namespace_that_is_going_takes_nothing_new(world):
    await world.create(namespace("old"))
    await world.delete("namespaces", "old", namespace="")
    with pytest.raises(Forbidden) as refused:
        await world.create(config_map("a", "old"))
    assert refused.value.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace old because it is '
        "being terminated"
    )
    assert refused.value.details["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace old is being terminated",
            "field": "metadata.namespace",
        }
    ]


@story
async def test_a_status_is_not_taken_on_creation_but_from_nodes(world):
    made = await world.create(pod() | {"status": {"phase": "Running"}})
    assert made.document["status"]["phase"] == "Pending"
    assert made.document["status"]["qosClass"] == "BestEffort"
    managed = made.document["metadata"]["managedFields"]
    assert [set(entry["fieldsV1"]) for entry in managed] == [{"f:spec"}]
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one"},
        "status": {"capacity": {"cpu": "4"}},
    }
    made = await world.create(node)
    assert made.document["status"]["allocatable"] == {"cpu": "4"}


@story
async def test_a_dry_run_stores_nothing(world):
    version = world.store.version
    outcome = await world.create(config_map("a"), dry_run=True)
    assert outcome.created
    assert outcome.document["metadata"]["uid"]
    assert "resourceVersion" not in outcome.document["metadata"]
    await world.settle()
    assert world.store.version == version
    await world.create(config_map("a"))
    with pytest.raises(AlreadyExists):
        await world.create(config_map("a"), dry_run=True)


@story
async def test_owner_references_that_say_the_same_are_one(world):
    owner = (await world.create(config_map("o"))).document
    given = config_map("a", ownerReferences=[owner_of(owner), owner_of(owner)])
    outcome = await world.create(given)
    assert len(outcome.document["metadata"]["ownerReferences"]) == 1
    assert "duplicate entries" in outcome.warnings[0]
    assert owner["metadata"]["uid"] in outcome.warnings[0]


# Strictness


@story
async def test_unknown_and_duplicate_fields_are_refused_when_strict(world):
    twice = FieldError(path="data", reason="DuplicateField", message="")
    with pytest.raises(BadRequest) as refused:
        await world.create(config_map("a") | {"nope": 1}, duplicates=(twice,))
    assert refused.value.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data", unknown field "nope"'
    )
    assert refused.value.code == 400


@story
async def test_unknown_fields_are_warned_of_or_passed_over(world):
    outcome = await world.create(config_map("a") | {"nope": 1}, field_validation="Warn")
    assert outcome.warnings == ('unknown field "nope"',)
    outcome = await world.create(config_map("b") | {"nope": 1}, field_validation="Ignore")
    assert outcome.warnings == ()


@story
async def test_a_field_that_stands_already_is_nobodys_fault(world):
    """A newer version wrote a field; a strict patch of something else must not trip over it."""
    await world.create(config_map("a") | {"newer": 1}, field_validation="Ignore")
    outcome = await world.patch("configmaps", "a", {"data": {"k": "v"}})
    assert outcome.document["newer"] == 1
    with pytest.raises(BadRequest, match='unknown field "newest"'):
        await world.patch("configmaps", "a", {"newest": 1})


@story
async def test_all_faults_are_told_at_once(world):
    bad = pod(labels={"bad key": "x"}, spec={"containers": [{"name": "A B"}]})
    with pytest.raises(Invalid) as refused:
        await world.create(bad)
    assert [field for field, _ in cause(refused.value)] == [
        "metadata.labels",
        "spec.containers[0].image",
        "spec.containers[0].name",
    ]


# Updating


@story
async def test_an_update_replaces_all_but_what_the_server_keeps(world):
    before = (await world.create(config_map("a", data={"x": "1"}, labels={"l": "1"}))).document
    after = (await world.update(config_map("a", data={"y": "2"}))).document
    assert after["data"] == {"y": "2"}
    assert "labels" not in after["metadata"]
    for field in ("uid", "creationTimestamp"):
        assert after["metadata"][field] == before["metadata"][field]
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


@story
async def test_an_update_of_what_is_not_there_is_not_found(world):
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await world.update(config_map("a"))


@story
async def test_leases_and_services_are_made_by_their_update(world):
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"holderIdentity": "me"},
    }
    assert (await world.update(lease)).created


@story
async def test_a_stale_update_is_a_conflict(world):
    before = (await world.create(config_map("a"))).document
    await world.patch("configmaps", "a", {"data": {"x": "1"}})
    with pytest.raises(Conflict) as refused:
        await world.update(before)
    assert refused.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )


@story
async def test_kinds_that_are_not_kubernetes_own_are_replaced_by_version_only(world):
    document = build.podcliqueset("chat").with_clique("a").document()
    stored = (await world.create(document)).document
    with pytest.raises(Invalid) as refused:
        await world.update(document)
    assert cause(refused.value)[0][0] == "metadata.resourceVersion"
    assert "must be specified for an update" in refused.value.message
    more = {**stored, "spec": {**stored["spec"], "replicas": 2}}
    assert (await world.update(more)).document["metadata"]["generation"] == 2


@story
async def test_an_update_of_another_object_of_the_name_is_a_conflict(world):
    await world.create(config_map("a"))
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        await world.update(config_map("a", uid="other"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uid", "other"),
        ("creationTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionTimestamp", "2001-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 7),
    ],
)
@story
async def test_metadata_the_server_gives_cannot_be_changed(world, field, value):
    await world.create(config_map("a"))
    with pytest.raises(Invalid) as refused:
        await world.patch("configmaps", "a", {"metadata": {field: value}})
    assert refused.value.code == 422
    assert [place for place, _ in cause(refused.value)] == [f"metadata.{field}"]
    assert "field is immutable" in refused.value.message


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (
            {"metadata": {"name": "b"}},
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            {"metadata": {"namespace": "b"}},
            "the namespace of the object (b) does not match the namespace on the request (default)",
        ),
        (
            {"apiVersion": "v2"},
            "the API version in the data (v2) does not match the expected API version (v1)",
        ),
        (
            {"kind": "Secret"},
            "the kind in the data (Secret) does not match the expected kind (ConfigMap)",
        ),
        ({"metadata": []}, "metadata: must be an object, found []"),
    ],
)
@story
async def test_a_patch_cannot_make_another_object(world, patch, text):
    await world.create(config_map("a"))
    with pytest.raises(BadRequest) as refused:
        await world.patch("configmaps", "a", patch)
    assert refused.value.message == text


@story
async def test_absent_server_fields_stay_and_generation_cannot_be_set(world):
    before = (await world.create(clique("c"))).document
    patch = {"metadata": {"generation": 9, "uid": None, "creationTimestamp": None}}
    after = (await world.patch("podcliques", "c", patch)).document
    assert after == before


@story
async def test_a_change_that_changes_nothing_writes_nothing(world):
    await world.create(config_map("a", data={"x": "1"}))
    version = world.store.version
    await world.sleep(seconds=90)
    outcome = await world.patch("configmaps", "a", {"data": {"x": "1"}})
    assert outcome.document["metadata"]["resourceVersion"] == str(version)
    await world.update(config_map("a", data={"x": "1"}))
    assert world.store.version == version


@story
async def test_a_dry_run_of_a_change_tells_and_stores_nothing(world):
    await world.create(config_map("a"))
    version = world.store.version
    outcome = await world.patch("configmaps", "a", {"data": {"x": "1"}}, dry_run=True)
    assert outcome.document["data"] == {"x": "1"}
    assert world.store.version == version
    assert world.get("configmaps", "a")["data"] == {}


# Generation and status


@story
async def test_generation_counts_changes_of_what_is_wanted_alone(world):
    await world.create(clique("c"))
    await world.patch("podcliques", "c", {"metadata": {"labels": {"a": "b"}}})
    await world.status("podcliques", "c", {"replicas": 1})
    assert world.get("podcliques", "c")["metadata"]["generation"] == 1
    await world.patch("podcliques", "c", {"spec": {"replicas": 4}})
    assert world.get("podcliques", "c")["metadata"]["generation"] == 2
    await world.scale("podcliques", "c", 5)
    assert world.get("podcliques", "c")["metadata"]["generation"] == 3


@story
async def test_status_and_the_rest_are_written_apart(world):
    await world.create(clique("c"))
    await world.status("podcliques", "c", {"replicas": 2})
    await world.patch("podcliques", "c", {"spec": {"replicas": 4}, "status": {"replicas": 9}})
    found = world.get("podcliques", "c")
    assert found["status"]["replicas"] == 2
    patch = {"spec": {"replicas": 5}, "status": {"replicas": 3}, "metadata": {"labels": {"x": "y"}}}
    await world.patch("podcliques", "c", patch, subresource="status")
    found = world.get("podcliques", "c")
    assert found["status"]["replicas"] == 3
    assert found["spec"]["replicas"] == 4
    assert "labels" not in found["metadata"] or "x" not in found["metadata"]["labels"]


@story
async def test_a_kind_without_a_status_has_none_to_write(world):
    await world.create(config_map("a"))
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        await world.patch("configmaps", "a", {"status": {}}, subresource="status")


@story
async def test_a_status_is_judged_by_itself(world):
    """What breaks a newer rule elsewhere does not keep a controller from telling what it sees."""
    await world.create(clique("c"))

    def broken(document):
        return {**document, "spec": {**document["spec"], "replicas": "some"}}

    await world.registry.amend(
        world.kind("podcliques"), "default", "c", broken, Request(who=CONTROLLERS)
    )
    await world.status("podcliques", "c", {"replicas": 1})
    with pytest.raises(Invalid) as refused:
        await world.status("podcliques", "c", {"replicas": "many"})
    assert [field for field, _ in cause(refused.value)] == ["status.replicas"]


# Patches


@story
async def test_four_sorts_of_patch(world):
    await world.create(pod(labels={"a": "1"}))
    json_patch = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "add", "path": "/metadata/labels/b", "value": "2"},
    ]
    await world.patch("pods", "web", json_patch, type=patching.JSON_PATCH)
    await world.patch("pods", "web", {"metadata": {"labels": {"a": None}}})
    image = {"spec": {"containers": [{"name": "main", "image": "example/web:2"}]}}
    await world.patch("pods", "web", image, type=patching.STRATEGIC_PATCH)
    found = world.get("pods", "web")
    assert found["metadata"]["labels"] == {"b": "2"}
    assert found["spec"]["containers"][0]["image"] == "example/web:2"
    assert found["spec"]["containers"][0]["terminationMessagePath"], "the rest stays"


@story
async def test_a_strategic_patch_is_for_kubernetes_own_kinds(world):
    await world.create(clique("c"))
    with pytest.raises(UnsupportedMediaType) as refused:
        await world.patch("podcliques", "c", {"spec": {}}, type=patching.STRATEGIC_PATCH)
    assert refused.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (patching.MERGE_PATCH, []),
        (patching.STRATEGIC_PATCH, 3),
        (patching.APPLY_PATCH, "text"),
        (patching.JSON_PATCH, {}),
    ],
)
@story
async def test_a_patch_of_no_sense_is_a_bad_request(world, kind, body):
    await world.create(pod())
    with pytest.raises(BadRequest):
        await world.patch("pods", "web", body, type=kind)


@story
async def test_a_patch_that_says_a_version_holds_for_that_version(world):
    stored = (await world.create(config_map("a"))).document
    version = stored["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"x": "1"}}
    await world.patch("configmaps", "a", body)
    with pytest.raises(Conflict, match="the object has been modified"):
        await world.patch("configmaps", "a", body | {"data": {"x": "2"}})


@story
async def test_preconditions_of_a_patch_are_conflicts(world):
    await world.create(config_map("a"))
    for only_if in (Precondition(uid="other"), Precondition(resource_version="1")):
        with pytest.raises(Conflict, match="Precondition failed"):
            await world.patch("configmaps", "a", {"data": {"x": "1"}}, only_if=only_if)


@story
async def test_patches_at_once_lose_nothing(world):
    """None said a version, so none may fail, and each must see those before it."""
    await world.create(config_map("a"))
    patches = [
        world.patch("configmaps", "a", {"data": {f"k{number}": "v"}}) for number in range(50)
    ]
    await asyncio.gather(*patches)
    assert len(world.get("configmaps", "a")["data"]) == 50


# Server-side apply


@story
async def test_applying_again_writes_nothing(world):
    wanted = config_map("a", data={"x": "1"})
    assert (await world.apply(wanted)).created
    version = world.store.version
    await world.sleep(seconds=5)
    outcome = await world.apply(wanted)
    assert not outcome.created
    assert world.store.version == version


@story
async def test_a_field_given_up_goes_and_one_held_conflicts(world):
    other = ANNA.__class__(user="bert", manager="bert")
    await world.apply(config_map("a", data={"x": "1", "y": "1"}))
    await world.apply(config_map("a", data={"x": "1"}))
    assert world.get("configmaps", "a")["data"] == {"x": "1"}
    with pytest.raises(ApplyConflict) as refused:
        await world.apply(config_map("a", data={"x": "2"}), who=other)
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "kubectl": .data.x'
    await world.apply(config_map("a", data={"x": "2"}), who=other, force=True)
    assert world.get("configmaps", "a")["data"] == {"x": "2"}


@story
async def test_an_apply_needs_a_manager_and_no_managed_fields(world):
    nobody = ANNA.__class__(user="anna")
    with pytest.raises(Invalid) as refused:
        await world.apply(config_map("a"), who=nobody)
    assert "fieldManager: Required value: is required for apply patch" in refused.value.message
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        await world.apply(config_map("a", managedFields=[]))


@story
async def test_an_apply_that_means_what_is_not_there_is_a_conflict(world):
    with pytest.raises(Conflict, match="uid mismatch: the provided object specified uid u"):
        await world.apply(config_map("a", uid="u"))
    with pytest.raises(Conflict, match="the object has been modified"):
        await world.apply(config_map("a", resourceVersion="3"))
    await world.apply(config_map("a"))
    with pytest.raises(Conflict, match="the object has been modified"):
        await world.apply(config_map("a", resourceVersion="1"))


@story
async def test_an_applied_status_belongs_to_its_subresource(world):
    await world.create(clique("c"))
    wanted = clique("c") | {"status": {"replicas": 2}}
    await world.apply(wanted, who=CONTROLLERS, subresource="status")
    found = world.get("podcliques", "c")
    assert found["status"]["replicas"] == 2
    entry = next(
        item for item in found["metadata"]["managedFields"] if item.get("subresource") == "status"
    )
    assert entry["operation"] == "Apply"
    assert set(entry["fieldsV1"]) == {"f:status"}
    await world.apply(clique("c", replicas=4) | {"status": {"replicas": 9}}, force=True)
    assert world.get("podcliques", "c")["status"]["replicas"] == 2


@story
async def test_kubectl_can_move_what_it_applied_before(world):
    """`kubectl apply --server-side` after a client-side one rewrites managedFields itself."""
    stored = (await world.create(config_map("a", data={"x": "1"}))).document
    entries = [
        {**entry, "manager": "kubectl", "operation": "Apply"}
        for entry in stored["metadata"]["managedFields"]
    ]
    version = stored["metadata"]["resourceVersion"]
    body = [
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]
    moved = (await world.patch("configmaps", "a", body, type=patching.JSON_PATCH)).document
    assert [item["operation"] for item in moved["metadata"]["managedFields"]] == ["Apply"]
    await world.apply(config_map("a"))
    assert world.get("configmaps", "a").get("data", {}) == {}, "what it gives up goes"


@story
async def test_managers_are_told_by_operation_and_subresource(world):
    await world.create(clique("c"))
    await world.status("podcliques", "c", {"replicas": 1})
    await world.scale("podcliques", "c", 4)
    found = world.get("podcliques", "c")["metadata"]["managedFields"]
    assert [
        (item["manager"], item["operation"], item.get("subresource", "")) for item in found
    ] == [
        ("kubectl", "Update", ""),
        ("kubectl", "Update", "scale"),
        ("spinney", "Update", "status"),
    ]


# Finalizers


@story
async def test_nothing_new_holds_what_is_being_deleted(world):
    await world.create(config_map("a", finalizers=["example.com/a"]))
    await world.delete("configmaps", "a")
    with pytest.raises(Invalid) as refused:
        await world.patch(
            "configmaps", "a", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
        )
    assert cause(refused.value) == [
        (
            "metadata.finalizers",
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            'finalizers []string{"example.com/b"}',
        )
    ]


@pytest.mark.parametrize(
    ("finalizers", "text"),
    [
        (["short"], "name is neither a standard finalizer name nor is it fully qualified"),
        (
            ["orphan", "foregroundDeletion"],
            "finalizer orphan and foregroundDeletion cannot be both set",
        ),
    ],
)
@story
async def test_finalizers_must_be_somebodys(world, finalizers, text):
    with pytest.raises(Invalid) as refused:
        await world.create(config_map("a", finalizers=finalizers))
    assert text in refused.value.message


@story
async def test_a_short_finalizer_of_a_users_kind_is_warned_of(world):
    outcome = await world.create(clique("c", finalizers=["short"]))
    assert 'metadata.finalizers: "short": prefer a domain-qualified' in outcome.warnings[0]


# Events


@story
async def test_an_event_is_one_object_in_both_groups(world):
    await world.create(event("e", reason="Pulled", message="image there", type="Normal"))
    newer = world.world.catalog.resource("events.k8s.io", "v1", "events")
    stored = world.registry.get(newer, "default", "e")
    assert newer.from_stored(stored.document())["note"] == "image there"
    made = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "f", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
        "note": "told anew",
        "reason": "Told",
        "action": "Tell",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/teller",
        "reportingInstance": "one",
    }
    outcome = await world.create(made)
    assert outcome.document["note"] == "told anew"
    assert outcome.document["apiVersion"] == "events.k8s.io/v1"
    assert world.get("events", "f")["message"] == "told anew"
    assert world.names("events") == ["e", "f"]
    patch = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"}}
    outcome = await world.registry.patch(
        newer,
        "default",
        "f",
        patching.Patch(type=patching.MERGE_PATCH, body=patch),
        Request(who=ANNA),
    )
    assert outcome.document["series"]["count"] == 2
    assert world.get("events", "f")["series"]["count"] == 2
