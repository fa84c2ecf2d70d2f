"""What every Writer does. The engine relies on each of these; a new Writer is added to WRITERS.

The same cases run over each way there is to write: in the process of the store, and through what
the engine puts before it.
"""

from __future__ import annotations

import pytest

from spinney.engine.elector import FencedWriter
from spinney.meta.errors import AlreadyExists, Conflict, Invalid, NotFound
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.testing.networks import Network
from tests.engine.worlds import (
    ENGINE,
    child,
    child_ref,
    clique,
    clique_ref,
    in_world,
)

POD = GroupKind(group="", kind="Pod")

WRITERS = {
    "registry": lambda bench: bench.world.writer(ENGINE),
    "fenced": lambda bench: FencedWriter(bench.world.writer(ENGINE), lambda: True),
    "network of the tests": lambda bench: Network(bench.world.writer(ENGINE), bench.clock),
}


@pytest.fixture(params=WRITERS)
def told(request):
    """Run a story with a bench and the writer in question."""

    def run(story):
        async def with_writer(bench):
            return await story(bench, WRITERS[request.param](bench))

        return in_world(with_writer)

    return run


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
