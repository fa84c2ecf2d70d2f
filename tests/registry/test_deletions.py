"""Deletions: marks, grace, preconditions, propagation, collections."""

from __future__ import annotations

import pytest
from registry_worlds import ANNA, CONTROLLERS, KUBELET, clique, config_map, namespace, pod, story

from spinney.meta.errors import Conflict, Forbidden, NotFound
from spinney.registry.requests import DeleteOptions, Request


@story
async def test_what_nobody_holds_goes_at_once(world):
    made = (await world.create(config_map("a"))).document
    outcome = await world.delete("configmaps", "a")
    assert outcome.gone
    assert outcome.document["metadata"]["uid"] == made["metadata"]["uid"]
    assert not world.has("configmaps", "a")
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await world.delete("configmaps", "a")


@story
async def test_what_somebody_holds_is_marked_and_goes_with_the_last_finalizer(world):
    await world.create(clique("a", finalizers=["example.com/a", "example.com/b"]))
    outcome = await world.delete("podcliques", "a")
    assert not outcome.gone
    metadata = outcome.document["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["generation"] == 2
    version = world.store.version
    again = await world.delete("podcliques", "a")
    assert not again.gone
    assert world.store.version == version, "marked twice is marked once"
    await world.patch("podcliques", "a", {"metadata": {"finalizers": ["example.com/a"]}})
    assert world.has("podcliques", "a")
    outcome = await world.patch("podcliques", "a", {"metadata": {"finalizers": None}})
    assert outcome.gone
    assert not world.has("podcliques", "a")


@story
async def test_preconditions_of_a_deletion(world):
    made = (await world.create(config_map("a"))).document["metadata"]
    with pytest.raises(Conflict) as refused:
        await world.delete("configmaps", "a", uid="other")
    assert refused.value.message == (
        'Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in '
        f"precondition: other, UID in object meta: {made['uid']}"
    )
    with pytest.raises(Conflict) as refused:
        await world.delete("configmaps", "a", version="1")
    assert refused.value.message == (
        'Operation cannot be fulfilled on configmaps "a": Precondition failed: ResourceVersion in '
        f"precondition: 1, ResourceVersion in object meta: {made['resourceVersion']}"
    )
    await world.delete("configmaps", "a", uid=made["uid"], version=made["resourceVersion"])


@story
async def test_a_dry_run_of_a_deletion_deletes_nothing(world):
    await world.create(config_map("a"))
    outcome = await world.delete("configmaps", "a", dry_run=True)
    assert outcome.gone
    assert world.has("configmaps", "a")
    await world.create(config_map("b", finalizers=["example.com/a"]))
    assert not (await world.delete("configmaps", "b", dry_run=True)).gone
    assert "deletionTimestamp" not in world.get("configmaps", "b")["metadata"]


# Pods


@pytest.mark.parametrize(
    ("node", "phase", "waits"),
    [
        ("", "Pending", False),
        ("one", "Pending", True),
        ("one", "Running", True),
        ("one", "Succeeded", False),
        ("one", "Failed", False),
    ],
)
@story
async def test_only_pods_that_may_run_wait_for_their_node(world, node, phase, waits):
    await world.create(pod(spec={"nodeName": node} if node else None))
    await world.status("pods", "web", {"phase": phase}, who=KUBELET)
    outcome = await world.delete("pods", "web")
    assert outcome.gone is not waits
    if waits:
        metadata = world.get("pods", "web")["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == 30
        assert metadata["deletionTimestamp"] == "2026-01-01T00:00:30Z"


@story
async def test_grace_is_the_pods_or_the_callers_and_can_only_shrink(world):
    await world.create(pod(spec={"nodeName": "one", "terminationGracePeriodSeconds": 60}))
    await world.delete("pods", "web", grace=40)
    metadata = world.get("pods", "web")["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:40Z"
    version = world.store.version
    await world.delete("pods", "web")
    await world.delete("pods", "web", grace=50)
    await world.delete("pods", "web", propagation="Foreground")
    assert world.store.version == version, "no longer grace, and no finalizer on a second thought"
    await world.sleep(seconds=7)
    await world.delete("pods", "web", grace=10)
    metadata = world.get("pods", "web")["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-01T00:00:10Z"
    assert metadata["deletionGracePeriodSeconds"] == 10


@story
async def test_the_node_or_force_ends_a_waiting_pod(world):
    """`kubectl delete --force --grace-period=0`, and what a node agent does when it is done."""
    for waited_for in (KUBELET, ANNA):
        await world.create(pod(spec={"nodeName": "one"}))
        await world.delete("pods", "web")
        assert (await world.delete("pods", "web", grace=0, who=waited_for)).gone
    await world.create(pod(spec={"nodeName": "one"}))
    assert (await world.delete("pods", "web", grace=0)).gone


@story
async def test_a_finalizer_holds_a_pod_beyond_its_grace(world):
    await world.create(pod(spec={"nodeName": "one"}, finalizers=["spinney.dev/outcome"]))
    await world.delete("pods", "web")
    await world.patch("pods", "web", {"metadata": {"finalizers": None}}, who=CONTROLLERS)
    assert world.has("pods", "web"), "its node has not said that it ended"
    assert (await world.delete("pods", "web", grace=0)).gone
    await world.create(pod(spec={"nodeName": "one"}, finalizers=["spinney.dev/outcome"]))
    assert not (await world.delete("pods", "web", grace=0)).gone
    outcome = await world.patch("pods", "web", {"metadata": {"finalizers": None}}, who=CONTROLLERS)
    assert outcome.gone


@story
async def test_a_negative_grace_is_one_second(world):
    await world.create(pod(spec={"nodeName": "one"}))
    await world.delete("pods", "web", grace=-5)
    assert world.get("pods", "web")["metadata"]["deletionGracePeriodSeconds"] == 1


# Propagation


@pytest.mark.parametrize(
    ("before", "propagation", "after"),
    [
        ([], "Foreground", ["foregroundDeletion"]),
        ([], "Orphan", ["orphan"]),
        (["example.com/a"], "Foreground", ["example.com/a", "foregroundDeletion"]),
        (["orphan", "example.com/a"], "Background", ["example.com/a"]),
        (["orphan"], "", ["orphan"]),
        (["orphan"], "Foreground", ["foregroundDeletion"]),
    ],
)
@story
async def test_propagation_is_written_down_as_a_finalizer(world, before, propagation, after):
    await world.create(config_map("a", finalizers=before))
    outcome = await world.delete("configmaps", "a", propagation=propagation)
    assert outcome.document["metadata"].get("finalizers", []) == after


@story
async def test_a_second_deletion_may_change_its_mind(world):
    await world.create(config_map("a", finalizers=["example.com/a"]))
    await world.delete("configmaps", "a", propagation="Foreground")
    again = await world.delete("configmaps", "a", propagation="Foreground")
    assert again.document["metadata"]["finalizers"] == ["example.com/a", "foregroundDeletion"]
    await world.delete("configmaps", "a", propagation="Background")
    assert world.get("configmaps", "a")["metadata"]["finalizers"] == ["example.com/a"]


# Collections


@story
async def test_a_collection_is_deleted_by_its_selection(world):
    for number in range(150):
        colour = "red" if number % 3 else "blue"
        await world.create(config_map(f"c{number:03}", labels={"colour": colour}))
    found = world.select("configmaps", "colour=red", "default")
    outcomes = await _delete_all(world, found, dry_run=True)
    assert len(outcomes) == 100
    assert len(world.names("configmaps")) == 150
    outcomes = await _delete_all(world, found)
    assert all(outcome.gone for outcome in outcomes)
    assert len(world.names("configmaps")) == 50


@story
async def test_a_collection_passes_over_what_is_gone_or_is_another(world):
    await world.create(config_map("a"))
    await world.create(config_map("b"))
    found = world.select("configmaps", namespace="default")
    await world.delete("configmaps", "a")
    await world.delete("configmaps", "b")
    await world.create(config_map("b"))
    assert await _delete_all(world, found) == ()
    assert world.names("configmaps") == ["b"]


async def _delete_all(world, found, **options):
    return await world.registry.delete_all(
        world.kind("configmaps"), found, DeleteOptions(), Request(who=ANNA, **options)
    )


# Namespaces


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
@story
async def test_some_namespaces_are_for_ever(world, name):
    with pytest.raises(Forbidden) as refused:
        await world.delete("namespaces", name, namespace="")
    assert refused.value.message == (
        f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    )


@story
async def test_a_namespace_goes_with_all_that_lies_in_it(world):
    await world.create(namespace("old"))
    await world.settle()
    assert world.names("serviceaccounts", "old") == ["default"]
    owner = (await world.create(config_map("a", "old"))).document
    for number in range(100):
        await world.create(config_map(f"c{number}", "old"))
    await world.create(clique("q", namespace="old"))
    await world.create(config_map("a", "default"))
    outcome = await world.delete("namespaces", "old", namespace="")
    assert outcome.document["status"]["phase"] == "Terminating"
    assert owner["metadata"]["uid"]
    await world.settle()
    assert not world.has("namespaces", "old", "")
    assert world.names("configmaps", "old") == []
    assert world.names("configmaps") == ["a"]
    await world.create(namespace("old"))
    await world.settle()
    assert world.names("serviceaccounts", "old") == ["default"]


@story
async def test_a_namespace_that_cannot_go_says_why(world):
    await world.create(namespace("old"))
    await world.create(config_map("a", "old", finalizers=["example.com/hold"]))
    await world.create(pod("web", "old", spec={"nodeName": "one"}))
    await world.delete("namespaces", "old", namespace="")
    await world.settle()
    found = _conditions(world.get("namespaces", "old", ""))
    assert found["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource "
        "instances",
    )
    assert found["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource "
        "instances",
    )
    assert found["NamespaceDeletionContentFailure"][0] == "False"
    version = world.store.version
    await world.settle()
    assert world.store.version == version, "nothing is written while nothing changes"
    await world.delete("pods", "web", namespace="old", grace=0, who=KUBELET)
    await world.settle()
    assert world.has("namespaces", "old", "")
    await world.patch("configmaps", "a", {"metadata": {"finalizers": None}}, namespace="old")
    await world.settle()
    assert not world.has("namespaces", "old", "")


def _conditions(document):
    return {
        item["type"]: (item["status"], item["reason"], item["message"])
        for item in document["status"]["conditions"]
    }


@story
async def test_a_namespace_keeps_its_finalizers_but_through_finalize(world):
    await world.create(namespace("old"))
    await world.patch("namespaces", "old", {"spec": {"finalizers": []}}, namespace="")
    found = world.get("namespaces", "old", "")
    assert found["spec"]["finalizers"] == ["kubernetes"]
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == "old"
    await world.patch(
        "namespaces",
        "old",
        {"spec": {"finalizers": ["kubernetes", "example.com/more"]}},
        namespace="",
        subresource="finalize",
    )
    await world.delete("namespaces", "old", namespace="")
    await world.settle()
    assert world.get("namespaces", "old", "")["spec"]["finalizers"] == ["example.com/more"]
    outcome = await world.update(
        {**world.get("namespaces", "old", ""), "spec": {}}, subresource="finalize"
    )
    assert outcome.gone


@story
async def test_a_service_account_that_is_deleted_comes_back(world):
    await world.delete("serviceaccounts", "default")
    await world.settle()
    assert world.names("serviceaccounts") == ["default"]
