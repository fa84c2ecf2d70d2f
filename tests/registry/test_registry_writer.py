"""The writer controllers have in this process, and what many of them at once do."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_worlds import (
    CONTROLLERS,
    POD,
    TestWorld,
    clique,
    config_map,
    opened,
    owner_of,
    pod,
    story,
)

from spinney.meta.errors import ApiError, BadRequest, Conflict, NotFound, StorageFull
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.registry.world import open_world
from spinney.testing import loop
from spinney.testing.entropy import SeededEntropy
from tests.api import samples

CLIQUE = GroupKind(group="grove.io", kind="PodClique")
WEB = Ref(kind=POD, namespace="default", name="web")
WORKER = Ref(kind=CLIQUE, namespace="default", name="c")


@story
async def test_a_writer_does_all_that_decisions_ask(world):
    writer = world.world.writer(CONTROLLERS)
    made = await writer.create(clique("c"))
    assert made.ref == WORKER
    again = await writer.apply(clique("c", replicas=4), force=True)
    assert again.uid == made.uid
    assert int(again.resource_version) > int(made.resource_version)
    patched = await writer.patch(
        WORKER, {"metadata": {"labels": {"a": "b"}}}, Precondition(uid=made.uid)
    )
    told = await writer.put_status(WORKER, {"replicas": 1}, patched.resource_version)
    with pytest.raises(Conflict):
        await writer.put_status(WORKER, {"replicas": 2}, patched.resource_version)
    same = await writer.put_status(WORKER, {"replicas": 1}, told.resource_version)
    assert same == told
    await writer.create(pod())
    await writer.bind(WEB, "one", Precondition())
    assert world.get("pods", "web")["spec"]["nodeName"] == "one"
    await writer.delete(WEB, Precondition(), grace_seconds=5, propagation="Background")
    assert world.get("pods", "web")["metadata"]["deletionGracePeriodSeconds"] == 5
    await writer.evict(WEB, Precondition())
    await writer.delete(WORKER, Precondition(uid=made.uid), grace_seconds=None, propagation="")
    assert not world.has("podcliques", "c")


@story
async def test_what_no_longer_holds_is_a_conflict(world):
    writer = world.world.writer(CONTROLLERS)
    await writer.create(pod())
    other = Precondition(uid="other")
    for attempt in (
        writer.patch(WEB, {"metadata": {"labels": {"a": "b"}}}, other),
        writer.delete(WEB, other, grace_seconds=None, propagation=""),
        writer.evict(WEB, other),
        writer.bind(WEB, "one", other),
    ):
        with pytest.raises(Conflict):
            await attempt
    with pytest.raises(NotFound):
        await writer.patch(WORKER, {}, Precondition())


@story
async def test_a_kind_nobody_serves_is_refused(world):
    writer = world.world.writer(CONTROLLERS)
    with pytest.raises(BadRequest) as refused:
        await writer.create({"apiVersion": "v9", "kind": "Pod", "metadata": {"name": "x"}})
    assert refused.value.message == 'no kind "Pod" is registered for version "v9"'
    thing = Ref(kind=GroupKind(group="x", kind="Thing"), namespace="default", name="x")
    with pytest.raises(NotFound):
        await writer.patch(thing, {}, Precondition())


@story
async def test_of_two_who_say_the_same_version_one_wins(world):
    writer = world.world.writer(CONTROLLERS)
    made = await writer.create(clique("c"))
    attempts = [
        writer.put_status(WORKER, {"replicas": number}, made.resource_version)
        for number in range(1, 6)
    ]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(not isinstance(result, Conflict) for result in results) == 1


@story
async def test_a_world_that_was_there_opens_without_a_write(world):
    await world.create(config_map("a"))
    store, version = world.store, world.store.version
    await store.close()
    from spinney.store.store import Store
    from spinney.testing.executors import InlineExecutor

    again = await Store.open(store._journal, world.clock, executor=InlineExecutor())
    later = TestWorld(await open_world(again, world.clock, SeededEntropy(2)), world.clock)
    await later.settle()
    assert again.version == version
    await again.close()


@story
async def test_a_full_disk_is_waited_out(world):
    """The collector meets a full disk, waits longer each time, and does its work after."""
    top = (await world.create(config_map("top"))).document
    await world.create(config_map("below", ownerReferences=[owner_of(top)]))
    await world.delete("configmaps", "top")
    journal = world.store._journal
    commit, refused = journal.commit, []

    def full(batch):
        from spinney.meta.errors import JournalFull

        refused.append(len(batch))
        if len(refused) <= 4:
            raise JournalFull("no space left")
        commit(batch)

    journal.commit = full
    began = world.clock.elapsed()
    await world.settle()
    assert world.names("configmaps") == []
    assert (world.clock.elapsed() - began).total_seconds() == 1 + 2 + 4 + 8
    refused.clear()
    with pytest.raises(StorageFull):
        await world.create(config_map("more"))


@story
async def test_what_is_written_is_seen_as_a_restart_shows_it(world):
    """A controller gives a tuple or an infinity, and changes its own document afterwards."""
    writer = world.world.writer(CONTROLLERS)
    pods = pod()
    pods["spec"]["nodeSelector"] = {"zone": "a"}
    pods["spec"]["containers"] = tuple(pods["spec"]["containers"])
    await writer.create(pods)
    pods["spec"]["nodeSelector"]["zone"] = "b"
    condition = {"type": "Ready", "status": "True"}
    stored = world.store.get(WEB)
    await writer.put_status(WEB, {"conditions": (condition,)}, str(stored.version))
    condition["status"] = "False"
    await writer.patch(WEB, {"metadata": {"annotations": {"a": "b"}}}, Precondition())
    stored = world.store.get(WEB)
    assert repr(stored.document()) == repr(msgspec.json.decode(stored.body))
    assert stored.document()["spec"]["nodeSelector"] == {"zone": "a"}
    assert stored.document()["status"]["conditions"] == [{"type": "Ready", "status": "True"}]


@pytest.mark.law
@given(st.lists(st.sampled_from([pod(), clique("c")]).flatmap(samples.mutated), max_size=3))
def test_whatever_is_written_is_seen_as_a_restart_shows_it(documents):
    async def tell():
        world = await opened()
        writer = world.world.writer(CONTROLLERS)
        for document in documents:
            for write in (writer.create(document), writer.apply(document, force=True)):
                with contextlib.suppress(ApiError):
                    await write
        await world.settle()
        for event in world.store.since(0):
            stored = event.stored
            assert repr(stored.document()) == repr(msgspec.json.decode(stored.body))
        await world.store.close()

    loop.run(tell())
