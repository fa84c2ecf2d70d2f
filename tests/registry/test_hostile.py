"""Whatever it is given, the registry answers with an ApiError or does what it was asked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from registry_worlds import (
    CONTROLLERS,
    POD_KIND,
    clique,
    config_map,
    event,
    opened,
    pod,
    service,
    story,
)

from spinney.meta.errors import ApiError, BadRequest, TooLarge
from spinney.meta.patches import apply as server_side_apply
from spinney.registry import patching
from spinney.registry.claiming import Claimer, _tracked
from spinney.registry.requests import Request
from spinney.testing import loop
from spinney.testing.clock import START
from tests.api import samples
from tests.meta.values import ANY_JSON

DOCUMENTS = (
    clique("c", labels={"a": "b"}),
    pod("web", labels={"a": "b"}, finalizers=["example.com/x"]),
    config_map("a", data={"x": "1"}, ownerReferences=[]),
    service("web"),
    event("e", reason="x"),
    samples.ALL[0],
)
METADATA = (
    "name",
    "namespace",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "generateName",
)


async def tried(coroutine):
    """Return what became of a write, None where it was refused as it should be."""
    try:
        return await coroutine
    except ApiError as error:
        told = error.to_status()
    assert told["code"] < 500
    assert told["message"]
    return None


@pytest.mark.law
@given(st.sampled_from(DOCUMENTS).flatmap(samples.mutated), st.sampled_from(["Strict", "Ignore"]))
def test_mutated_objects_are_made_or_refused(document, strictness):
    async def tell():
        world = await opened()
        kind = world.world.catalog.kind_of(document)
        if kind is not None:
            before = world.store.version
            request = Request(who=CONTROLLERS, field_validation=strictness)
            outcome = await tried(world.registry.create(kind, document, request))
            if outcome is None:
                assert world.store.version == before
            else:
                found = outcome.document
                assert await world.registry.update(kind, found, request)
                await world.settle()
        await world.store.close()

    loop.run(tell())


@pytest.mark.law
@given(st.sampled_from(METADATA), ANY_JSON, st.sampled_from([pod, clique, config_map]))
def test_metadata_of_any_sort_is_taken_or_refused(field, value, make):
    async def tell():
        world = await opened()
        document = make("web")
        document["metadata"] = {**document["metadata"], field: value}
        await tried(world.create(document))
        await tried(world.update({**make("web"), "metadata": value}))
        await world.settle()
        await world.store.close()

    loop.run(tell())


@pytest.mark.law
@given(
    st.lists(
        st.tuples(
            st.sampled_from([patching.MERGE_PATCH, patching.STRATEGIC_PATCH, patching.APPLY_PATCH]),
            ANY_JSON
            | st.dictionaries(
                st.sampled_from(["metadata", "spec", "status", "kind", "apiVersion"]), ANY_JSON
            ).map(lambda body: {"apiVersion": "v1", "kind": "Pod", **body}),
            st.sampled_from(["", "status"]),
        ),
        max_size=4,
    )
)
def test_patches_of_any_sort_are_carried_out_or_refused(patches):
    async def tell():
        world = await opened()
        await world.create(pod(labels={"a": "b"}))
        for kind, body, subresource in patches:
            await tried(
                world.patch(
                    "pods",
                    "web",
                    body,
                    type=kind,
                    subresource=subresource,
                    force=True,
                    field_validation="Ignore",
                )
            )
            if world.has("pods", "web"):
                found = world.get("pods", "web")
                version = world.store.version
                await world.update(found, field_validation="Ignore")
                assert world.store.version == version
        await world.settle()
        await world.store.close()

    loop.run(tell())


@story
async def test_an_object_cannot_grow_without_bound(world):
    await world.create(event("a"))
    half = "x" * (2 * 2**20)
    await world.patch("events", "a", {"message": half})
    with pytest.raises(TooLarge, match="the limit is 3145728"):
        await world.patch("events", "a", {"action": half})
    with pytest.raises(TooLarge):
        await world.create(event("b", message=half, action=half))


@story
async def test_what_no_json_can_hold_is_refused(world):
    with pytest.raises(BadRequest, match="cannot be written as JSON"):
        await world.create(config_map("a") | {"free": "\ud800"}, field_validation="Ignore")


# The short ways by which fields are claimed


@pytest.mark.law
@given(
    st.sampled_from([document for document in DOCUMENTS if document["kind"] == "Pod"]).flatmap(
        samples.mutated
    )
)
def test_a_new_objects_claims_are_what_tracking_finds(document):
    if not isinstance(document.get("metadata"), dict):
        return
    document["metadata"].pop("managedFields", None)
    short = Claimer().of_new(POD_KIND, document, "kubectl", START)
    assert short == _tracked(POD_KIND, {}, document, "kubectl", START, "")


@pytest.mark.law
@given(
    st.lists(
        st.sampled_from([document for document in DOCUMENTS if document["kind"] == "Pod"]).flatmap(
            samples.mutated
        ),
        min_size=2,
        max_size=5,
    )
)
def test_claims_of_one_object_do_not_colour_those_of_the_next(documents):
    """What a claimer remembers of lists it saw is told only of lists that claim the same."""
    claimer = Claimer()
    for document in documents:
        if not isinstance(document.get("metadata"), dict):
            continue
        document["metadata"].pop("managedFields", None)
        found = claimer.of_new(POD_KIND, document, "kubectl", START)
        assert found == _tracked(POD_KIND, {}, document, "kubectl", START, "")


@pytest.mark.parametrize(
    "second",
    [
        {},
        {"name": "a", "value": ""},
        {"name": "a", "value": None},
        {"name": "a"},
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "c", "value": "1"},
        {"name": "b", "value": "1"},
    ],
)
@pytest.mark.parametrize("port", [80, 81, True, None])
def test_lists_nearly_alike_claim_what_is_theirs(second, port):
    """Two pods of nearly one template: one variable or one port is another."""
    claimer = Claimer()

    def template(variable, number):
        container = {
            "name": "main",
            "args": ["x"] * (2 if number == 81 else 1),
            "env": [{"name": "a", "value": "1"} | variable, {"name": "b", "value": "2"}],
            "ports": [{"containerPort": number, "protocol": "TCP"}],
        }
        return pod() | {"spec": {"containers": [container, {"name": "other"}]}}

    claimer.of_new(POD_KIND, template({}, 80), "kubectl", START)
    claimer.of_new(POD_KIND, template({}, 1), "kubectl", START)
    document = template(second, port)
    found = claimer.of_new(POD_KIND, document, "kubectl", START)
    assert found == _tracked(POD_KIND, {}, document, "kubectl", START, "")


_WRITES = st.lists(
    st.tuples(
        st.sampled_from([f"m{number}" for number in range(12)]),
        st.sampled_from(["status", "metadata", "spec", "both"]),
        st.dictionaries(
            st.sampled_from(["phase", "podIP", "message", "hostname", "nodeName"]),
            st.sampled_from(["a", "b"]),
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=16,
)


_CROWD = [(f"m{number}", "status", {"phase": "ab"[number % 2]}, False) for number in range(12)]
_OTHERS = [
    (f"m{number}", "metadata", {"phase": "ab"[number % 2], "podIP": "a"}, False)
    for number in range(6)
]


@pytest.mark.law
@given(_WRITES)
@example(_CROWD + _OTHERS)
@example([entry for pair in zip(_CROWD, _OTHERS * 2, strict=True) for entry in pair])
def test_a_changes_claims_are_what_tracking_finds(writes):
    claimer = Claimer()
    found = claimer.of_new(POD_KIND, pod(labels={"a": "b"}), "kubectl", START)
    found = {**found, "metadata": {**found["metadata"], "uid": "u"}}
    now = START
    for manager, part, content, applies in writes:
        now += timedelta(seconds=1)
        if applies:
            wanted = {"apiVersion": "v1", "metadata": {"labels": content}}
            found = server_side_apply.apply(
                POD_KIND.schema, found, wanted, manager, force=True, api_version="v1", now=now
            )
            continue
        after = found
        if part == "status":
            after = {**after, "status": {**after.get("status", {}), manager: "x", **content}}
        if part in ("metadata", "both"):
            labels = {**content, manager: "x"}
            after = {**after, "metadata": {**after["metadata"], "labels": labels}}
        if part in ("spec", "both"):
            after = {**after, "spec": {**pod()["spec"], **content}}
        subresource = part if part == "status" else ""
        short = claimer.of_changed(POD_KIND, found, after, manager, now, subresource)
        assert short == _tracked(POD_KIND, found, after, manager, now, subresource)
        found = short


_CONTAINER = {
    "name": "main",
    "image": "main:1",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
}
_RUNNING = pod("web", labels={"a": "b"}, finalizers=["example.com/x"], uid="u") | {
    "spec": {"containers": [_CONTAINER, {"name": "proxy"}], "nodeSelector": {"zone": "a"}},
    "status": {
        "phase": "Running",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "x"},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [{"name": "main", "ready": True}],
    },
}


@pytest.mark.law
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", ""]),
            st.sampled_from(["", "status"]),
            st.one_of(st.just(_RUNNING), samples.mutated(_RUNNING)),
        ),
        min_size=1,
        max_size=5,
    )
)
@example([("a", "", _RUNNING | {"status": {"phase": None, "conditions": []}}), ("b", "", _RUNNING)])
@example([("a", "status", _RUNNING | {"status": {"conditions": {}}}), ("a", "status", _RUNNING)])
@example([("a", "status", _RUNNING | {"status": "gone"}), ("b", "", _RUNNING)])
def test_whatever_changes_claims_are_what_tracking_finds(writes):
    """Fields come, change their value or their shape, and go; twins and odd keys among them."""
    claimer = Claimer()
    found = claimer.of_new(POD_KIND, _RUNNING, "maker", START)
    now = START
    for manager, subresource, wanted in writes:
        now += timedelta(seconds=1)
        metadata = wanted.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("uid"):
            continue
        held = found["metadata"].get("managedFields")
        managed = {} if held is None else {"managedFields": held}
        after = {**wanted, "metadata": {**metadata, **managed}}
        short = claimer.of_changed(POD_KIND, found, after, manager, now, subresource)
        assert short == _tracked(POD_KIND, found, after, manager, now, subresource)
        found = short
