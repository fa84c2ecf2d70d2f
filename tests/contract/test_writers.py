"""What every Writer does. The engine relies on each of these; a new Writer is added to WRITERS.

The same cases run over each way there is to write: in the process of the store, through what the
engine puts before it, and over HTTP to our own server.
"""

from __future__ import annotations

import pytest

from spinney.engine.elector import FencedWriter
from spinney.kube.writer import HttpWriter
from spinney.meta.errors import (
    AlreadyExists,
    ApplyConflict,
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    TooManyRequests,
)
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from spinney.testing.clock import ManualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.networks import Network
from tests.engine.worlds import (
    ENGINE,
    READ,
    Bench,
    child,
    child_ref,
    clique,
    clique_ref,
    in_world,
)
from tests.kube import over_http

POD = GroupKind(group="", kind="Pod")


def told_in_process(make):
    """Have stories told in virtual time, of a writer made for a bench."""

    def tell(story):
        return in_world(lambda bench: story(bench, make(bench)))

    return tell


def told_over_http(story):
    """Have a story told in real time, of a writer whose requests cross a socket."""

    async def main():
        clock = ManualClock()
        store = await Store.open(MemoryJournal(), clock)
        try:
            entropy = SeededEntropy(1)
            bench = Bench(await open_world(store, clock, entropy.stream("world")), clock, entropy)
            async with over_http.served(bench.world, clock) as transport:
                await story(bench, HttpWriter(transport, READ, ENGINE.manager))
        finally:
            await store.close()

    over_http.run(main())


WRITERS = {
    "registry": told_in_process(lambda bench: bench.world.writer(ENGINE)),
    "fenced": told_in_process(lambda bench: FencedWriter(bench.world.writer(ENGINE), lambda: True)),
    "network of the tests": told_in_process(
        lambda bench: Network(bench.world.writer(ENGINE), bench.clock)
    ),
    "http": told_over_http,
}


@pytest.fixture(params=WRITERS)
def told(request):
    """Tell a story with a bench and the writer in question."""
    return WRITERS[request.param]


def pod(name="p"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }


def pod_ref(name="p"):
    return Ref(kind=POD, namespace="default", name=name)


def version_of(bench, ref):
    return bench.document(ref)["metadata"]["resourceVersion"]


def test_create_says_what_it_left_behind(told):
    async def story(bench, writer):
        written = await writer.create(child("a"))
        metadata = bench.document(child_ref("a"))["metadata"]
        assert written.ref == child_ref("a")
        assert (written.uid, written.resource_version) == (
            metadata["uid"],
            metadata["resourceVersion"],
        )

    told(story)


def test_create_of_what_is_there_changes_nothing(told):
    async def story(bench, writer):
        await writer.create(child("a", size="1"))
        version = bench.store.version
        with pytest.raises(AlreadyExists):
            await writer.create(child("a", size="2"))
        assert bench.store.version == version

    told(story)


def test_create_of_what_breaks_rules_is_refused_with_the_fields(told):
    async def story(bench, writer):
        with pytest.raises(Invalid, match=r"metadata\.name"):
            await writer.create(child("Not A Name"))

    told(story)


def test_apply_makes_and_changes_and_a_second_one_changes_nothing(told):
    async def story(bench, writer):
        first = await writer.apply(child("a", size="1"), force=True)
        again = await writer.apply(child("a", size="1"), force=True)
        assert again.resource_version == first.resource_version
        changed = await writer.apply(child("a", size="2"), force=True)
        assert int(changed.resource_version) > int(first.resource_version)
        assert bench.document(child_ref("a"))["data"] == {"size": "2"}

    told(story)


LABEL = {"metadata": {"labels": {"x": "y"}}}


def test_patch_merges_and_one_that_changes_nothing_returns_the_version_that_stands(told):
    async def story(bench, writer):
        await writer.create(child("a", size="1"))
        first = await writer.patch(child_ref("a"), LABEL, Precondition())
        assert bench.document(child_ref("a"))["data"] == {"size": "1"}
        again = await writer.patch(child_ref("a"), LABEL, Precondition())
        assert again.resource_version == first.resource_version

    told(story)


@pytest.mark.parametrize("stale", [{"uid": "another"}, {"resource_version": "1"}])
def test_patch_and_delete_keep_to_their_precondition(told, stale):
    async def story(bench, writer):
        await writer.create(child("a"))
        version = bench.store.version
        with pytest.raises(Conflict):
            await writer.patch(child_ref("a"), LABEL, Precondition(**stale))
        with pytest.raises(Conflict):
            await writer.delete(
                child_ref("a"),
                Precondition(**stale),
                grace_seconds=None,
                propagation="Background",
            )
        assert bench.store.version == version
        metadata = bench.document(child_ref("a"))["metadata"]
        now = Precondition(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        await writer.patch(child_ref("a"), LABEL, now)
        await writer.delete(
            child_ref("a"),
            Precondition(uid=metadata["uid"]),
            grace_seconds=None,
            propagation="Background",
        )
        assert bench.document(child_ref("a")) is None

    told(story)


def test_what_is_not_there_is_not_found(told):
    async def story(bench, writer):
        gone = child_ref("gone")
        for call in (
            writer.patch(gone, LABEL, Precondition()),
            writer.delete(gone, Precondition(), grace_seconds=None, propagation="Background"),
            writer.put_status(clique_ref("gone"), {"replicas": 1}, "1"),
            writer.evict(pod_ref("gone"), Precondition()),
            writer.bind(pod_ref("gone"), "one", Precondition()),
        ):
            with pytest.raises(NotFound):
                await call

    told(story)


def test_a_status_is_put_whole_under_one_version_only(told):
    async def story(bench, writer):
        await writer.create(clique())
        version = version_of(bench, clique_ref())
        written = await writer.put_status(clique_ref(), {"replicas": 3}, version)
        with pytest.raises(Conflict):
            await writer.put_status(clique_ref(), {"replicas": 4}, version)
        await writer.put_status(clique_ref(), {"readyReplicas": 2}, written.resource_version)
        status = bench.document(clique_ref())["status"]
        assert status.get("readyReplicas") == 2
        assert not status.get("replicas")
        assert bench.document(clique_ref())["spec"]["replicas"] == 1

    told(story)


def test_a_pod_is_bound_once(told):
    async def story(bench, writer):
        await writer.create(pod())
        await writer.bind(pod_ref(), "one", Precondition())
        assert bench.document(pod_ref())["spec"]["nodeName"] == "one"
        with pytest.raises(Conflict):
            await writer.bind(pod_ref(), "two", Precondition())

    told(story)


def test_a_pod_is_evicted(told):
    async def story(bench, writer):
        await writer.create(pod())
        uid = bench.document(pod_ref())["metadata"]["uid"]
        with pytest.raises(Conflict):
            await writer.evict(pod_ref(), Precondition(uid="another"))
        await writer.evict(pod_ref(), Precondition(uid=uid))
        left = bench.document(pod_ref())
        assert left is None or left["metadata"]["deletionTimestamp"]

    told(story)


def test_an_eviction_that_a_budget_forbids_is_for_later(told):
    async def story(bench, writer):
        document = pod()
        document["metadata"]["labels"] = {"app": "chat"}
        await writer.create(document)
        version = version_of(bench, pod_ref())
        await bench.user.put_status(pod_ref(), RUNNING, version)
        await bench.user.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "chat", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "chat"}}},
            }
        )
        with pytest.raises(TooManyRequests):
            await writer.evict(pod_ref(), Precondition())
        assert not bench.document(pod_ref())["metadata"].get("deletionTimestamp")

    told(story)


RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def test_a_status_takes_nothing_else_with_it(told):
    """Whoever puts the status of a pod leaves its labels and annotations to others."""

    async def story(bench, writer):
        document = pod()
        document["metadata"] |= {"labels": {"app": "chat"}, "annotations": {"note": "kept"}}
        await writer.create(document)
        await writer.put_status(pod_ref(), RUNNING, version_of(bench, pod_ref()))
        left = bench.document(pod_ref())
        assert left["status"]["phase"] == "Running"
        assert left["metadata"]["labels"] == {"app": "chat"}
        assert left["metadata"]["annotations"] == {"note": "kept"}

    told(story)


def test_apply_takes_fields_of_others_only_by_force(told):
    async def story(bench, writer):
        await bench.user.apply(child("a", size="1"), force=False)
        with pytest.raises(ApplyConflict) as caught:
            await writer.apply(child("a", size="2"), force=False)
        assert caught.value.managers == ("kubectl",)
        await writer.apply(child("a", size="2"), force=True)
        assert bench.document(child_ref("a"))["data"] == {"size": "2"}

    told(story)


@pytest.mark.parametrize("stale", [{"uid": "another"}, {"resource_version": "1"}])
def test_scaling_keeps_to_its_precondition(told, stale):
    async def story(bench, writer):
        await writer.create(clique())
        version = bench.store.version
        more = {"spec": {"replicas": 3}}
        with pytest.raises(Conflict):
            await writer.patch(clique_ref(), more, Precondition(**stale), "scale")
        assert bench.store.version == version
        metadata = bench.document(clique_ref())["metadata"]
        now = Precondition(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        written = await writer.patch(clique_ref(), more, now, "scale")
        assert bench.document(clique_ref())["spec"]["replicas"] == 3
        assert written.ref == clique_ref()
        assert written.resource_version == version_of(bench, clique_ref())

    told(story)


@pytest.mark.parametrize("stale", [{"uid": "another"}, {"resource_version": "1"}])
def test_a_pod_is_bound_under_its_precondition(told, stale):
    async def story(bench, writer):
        await writer.create(pod())
        with pytest.raises(Conflict):
            await writer.bind(pod_ref(), "one", Precondition(**stale))
        assert not bench.document(pod_ref())["spec"].get("nodeName")

    told(story)


def test_what_has_no_namespace_is_written_too(told):
    async def story(bench, writer):
        role = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
        written = await writer.create(role)
        assert written.ref.namespace == ""
        await writer.delete(
            written.ref,
            Precondition(uid=written.uid),
            grace_seconds=None,
            propagation="Background",
        )
        assert bench.document(written.ref) is None

    told(story)


def test_a_kind_that_is_not_known_is_refused(told):
    async def story(bench, writer):
        version = bench.store.version
        for strange in ({"kind": "Unheard"}, {"apiVersion": "v9"}):
            document = {**child("a"), **strange}
            with pytest.raises(BadRequest, match="is registered for version"):
                await writer.create(document)
            with pytest.raises(BadRequest, match="is registered for version"):
                await writer.apply(document, force=True)
        unheard = Ref(kind=GroupKind(group="", kind="Unheard"), namespace="default", name="a")
        with pytest.raises(NotFound):
            await writer.patch(unheard, LABEL, Precondition())
        assert bench.store.version == version

    told(story)


def test_what_is_written_is_recorded_under_the_manager(told):
    async def story(bench, writer):
        await writer.create(child("a", size="1"))
        await writer.apply(child("b", size="1"), force=True)
        await writer.create(clique())
        await writer.patch(clique_ref(), LABEL, Precondition())
        await writer.put_status(clique_ref(), {"replicas": 3}, version_of(bench, clique_ref()))
        for target in (child_ref("a"), child_ref("b"), clique_ref()):
            entries = bench.document(target)["metadata"]["managedFields"]
            assert {entry["manager"] for entry in entries} == {ENGINE.manager}

    told(story)
