"""Garbage collection: what lost its last owner goes; who goes in the foreground goes last."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from registry_worlds import config_map, namespace, opened, owner_of, running, service, story

from spinney.testing import loop
from spinney.testing.entropy import SeededEntropy


async def owned(world, name, *owners, kind=config_map, **metadata):
    references = [owner if "uid" in owner else owner_of(owner) for owner in owners]
    return (await world.create(kind(name, ownerReferences=references, **metadata))).document


@story
async def test_background_deletion_takes_what_depends(world):
    top = (await world.create(config_map("top"))).document
    middle = await owned(world, "middle", top)
    await owned(world, "bottom", middle)
    await world.delete("configmaps", "top", propagation="Background")
    assert world.names("configmaps") == ["bottom", "middle"]
    await world.settle()
    assert world.names("configmaps") == []


@story
async def test_orphans_stay_without_their_owner(world):
    top = (await world.create(config_map("top"))).document
    other = (await world.create(config_map("other"))).document
    await owned(world, "one", top)
    await owned(world, "two", top, other)
    await world.delete("configmaps", "top", propagation="Orphan")
    await world.settle()
    assert world.names("configmaps") == ["one", "other", "two"]
    assert "ownerReferences" not in world.get("configmaps", "one")["metadata"]
    left = world.get("configmaps", "two")["metadata"]["ownerReferences"]
    assert [item["name"] for item in left] == ["other"]


@story
async def test_an_owner_in_the_foreground_waits_for_those_that_block(world):
    top = (await world.create(config_map("top"))).document
    await owned(world, "held", owner_of(top, blocks=True), finalizers=["example.com/hold"])
    await owned(world, "free", owner_of(top, blocks=False), finalizers=["example.com/hold"])
    await world.delete("configmaps", "top", propagation="Foreground")
    await world.settle()
    assert world.names("configmaps") == ["free", "held", "top"]
    assert "deletionTimestamp" in world.get("configmaps", "held")["metadata"]
    await world.patch("configmaps", "held", {"metadata": {"finalizers": None}})
    await world.settle()
    assert world.names("configmaps") == ["free"], "who does not block is not waited for"


@story
async def test_an_owner_is_let_go_when_what_blocked_it_is_no_longer_its_own(world):
    top = (await world.create(config_map("top"))).document
    other = (await world.create(config_map("other"))).document
    await owned(
        world, "held", owner_of(top, blocks=True), owner_of(other), finalizers=["example.com/h"]
    )
    await owned(world, "bare", owner_of(top, blocks=True), finalizers=["example.com/h"])
    await world.delete("configmaps", "top", propagation="Foreground")
    await world.settle()
    left = world.get("configmaps", "held")["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in left] == ["other"]
    assert world.has("configmaps", "top")
    unblocked = [{**owner_of(top), "blockOwnerDeletion": False}]
    await world.patch("configmaps", "bare", {"metadata": {"ownerReferences": unblocked}})
    await world.settle()
    assert world.names("configmaps") == ["bare", "held", "other"]


@story
async def test_an_owner_that_never_was_is_as_one_that_is_gone(world):
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "none"}
    await owned(world, "a", nobody)
    other = (await world.create(config_map("other"))).document
    await owned(world, "wrong-name", {**owner_of(other), "name": "wrong"})
    await owned(world, "wrong-uid", {**owner_of(other), "uid": "wrong"})
    await world.settle()
    assert world.names("configmaps") == ["other"]


@story
async def test_solid_owners_keep_and_lost_ones_are_taken_off(world):
    solid = (await world.create(config_map("solid"))).document
    lost = (await world.create(config_map("lost"))).document
    await owned(world, "both", solid, lost)
    await world.delete("configmaps", "lost")
    await world.settle()
    left = world.get("configmaps", "both")["metadata"]["ownerReferences"]
    assert [item["name"] for item in left] == ["solid"]
    await world.delete("configmaps", "solid")
    await world.settle()
    assert world.names("configmaps") == []


@story
async def test_owners_lie_in_the_same_namespace_or_in_none(world):
    await world.create(namespace("far"))
    far = (await world.create(config_map("top", "far"))).document
    await owned(world, "across", far)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
    node = (await world.create(node)).document
    await owned(world, "of-node", node)
    await world.settle()
    assert world.names("configmaps") == ["of-node"]
    await world.delete("nodes", "one", namespace="")
    await world.settle()
    assert world.names("configmaps") == []


@story
async def test_what_nothing_can_be_known_of_keeps(world):
    """An owner of a kind nobody serves; a cluster's object with an owner in some namespace."""
    foreign = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u"}
    await owned(world, "a", foreign)
    top = (await world.create(config_map("top"))).document
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "ownerReferences": [owner_of(top)]},
    }
    await world.create(node)
    await world.delete("configmaps", "top")
    await world.settle()
    assert world.names("configmaps") == ["a"]
    assert world.has("nodes", "one", "")


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@story
async def test_a_cycle_of_owners_goes_as_a_whole(world, propagation, size):
    """Each owns the next, the last the first; all block, and none may wait for ever."""
    made = [(await world.create(config_map(f"c{number}"))).document for number in range(size)]
    for number in range(size):
        references = [owner_of(made[number - 1], blocks=True)]
        await world.patch("configmaps", f"c{number}", {"metadata": {"ownerReferences": references}})
    await world.settle()
    assert len(world.names("configmaps")) == size
    await world.delete("configmaps", "c0", propagation=propagation)
    await world.settle()
    assert world.names("configmaps") == []


@story
async def test_dependents_are_of_any_kind(world):
    top = (await world.create(config_map("top"))).document
    made = service("web")
    made["metadata"]["ownerReferences"] = [owner_of(top)]
    await world.create(made)
    await world.delete("configmaps", "top")
    await world.settle()
    assert world.names("services") == []


@story
async def test_a_restart_finishes_what_was_begun(world):
    """Killed between the owner's deletion and that of what it owned."""
    journal = world.store._journal
    top = (await world.create(config_map("top"))).document
    await owned(world, "below", owner_of(top, blocks=True), finalizers=["example.com/h"])
    await owned(world, "beside", top)
    await world.delete("configmaps", "top", propagation="Foreground")
    await world.store.close()
    later = await opened(journal, clock=world.clock)
    assert later.names("configmaps") == ["below", "top"]
    await later.patch("configmaps", "below", {"metadata": {"finalizers": None}})
    await later.settle()
    assert later.names("configmaps") == []
    await later.store.close()


@story
async def test_it_works_by_itself_and_rests(world):
    keepers = running(world)
    top = (await world.create(config_map("top"))).document
    await owned(world, "below", top)
    await world.delete("configmaps", "top")
    await world.sleep(seconds=1)
    assert world.names("configmaps") == []
    version = world.store.version
    await world.sleep(hours=2)
    assert world.store.version == version
    keepers.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keepers


# Laws


PROPAGATIONS = ("Foreground", "Background", "Orphan", "")


@st.composite
def forests(draw):
    """Owners of up to eight objects, who blocks, who is held, and what is deleted how, in order."""
    size = draw(st.integers(2, 8))
    owners = {
        number: draw(
            st.lists(st.integers(0, size), max_size=3, unique=True).map(
                lambda found, number=number: [other for other in found if other != number]
            )
        )
        for number in range(size)
    }
    blocking = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    deletions = draw(
        st.lists(
            st.tuples(
                st.integers(0, size - 1),
                st.sampled_from(["Foreground", "Background", "Orphan", ""]),
            ),
            max_size=4,
        )
    )
    return size, owners, blocking, deletions


async def _grown(size, owners, blocking, deletions, *, seed, settle=None):
    """Make a forest, delete in it, let it settle; return the world and the last events."""
    world = await opened(seed=seed)
    made = [(await world.create(config_map(f"c{number}"))).document for number in range(size)]
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "ghost"}
    for number, parents in owners.items():
        references = [
            {
                **(ghost if parent == size else owner_of(made[parent])),
                "blockOwnerDeletion": blocking[number],
            }
            for parent in parents
        ]
        if references:
            await world.patch(
                "configmaps", f"c{number}", {"metadata": {"ownerReferences": references}}
            )
    recorder = _Recorder()
    world.store.attach(None, world.store.version, recorder)
    for number, propagation in deletions:
        if world.has("configmaps", f"c{number}"):
            await world.delete("configmaps", f"c{number}", propagation=propagation)
    await (settle(world) if settle else world.settle())
    return world, recorder, made


class _Recorder:
    def __init__(self):
        self.events = []

    def deliver(self, events):
        self.events.extend(events)

    def cut(self):
        raise AssertionError("nothing is missed here")


@pytest.mark.law
@given(forests())
def test_after_it_settled_nobody_is_left_whose_owners_are_all_gone(forest):
    """And nothing waits to go: no finalizer of ours is left, and no owner that is gone is named."""

    async def tell():
        world, _, _ = await _grown(*forest, seed=1)
        there = {stored.uid: stored for stored in world.select("configmaps")}
        for stored in there.values():
            metadata = stored.document()["metadata"]
            assert "deletionTimestamp" not in metadata
            owners = metadata.get("ownerReferences", [])
            assert not owners or any(owner["uid"] in there for owner in owners)
        assert not world.world.collector._waiting
        version = world.store.version
        world.world.collector.start()
        await world.settle()
        assert world.store.version == version, "looking again changes nothing"
        await world.store.close()

    loop.run(tell())


async def _settled_one_by_one(world, random):
    """Look at one object at a time, in an order that is drawn."""
    looks = world.world.collector.looks
    while looks:
        pending = [*looks._pending]
        ref = pending[random.between(0, len(pending) - 1)]
        del looks._pending[ref]
        await looks._try(ref)
    await world.settle()


_KEPT_BY_WHO_LETS_GO = (
    3,
    {0: [], 1: [], 2: [0, 1]},
    [False, False, False],
    [(0, "Foreground"), (1, "Orphan")],
)


@pytest.mark.law
@given(forests(), st.integers(0, 1000))
@example(_KEPT_BY_WHO_LETS_GO, 0)
@example(_KEPT_BY_WHO_LETS_GO, 1)
@example(_KEPT_BY_WHO_LETS_GO, 2)
@example(_KEPT_BY_WHO_LETS_GO, 3)
def test_the_order_in_which_it_looks_changes_nothing(forest, seed):
    async def tell(settle):
        world, _, _ = await _grown(*forest, seed=1, settle=settle)
        names = world.names("configmaps")
        await world.store.close()
        return names

    async def in_order():
        return await tell(lambda world: world.settle())

    async def shuffled():
        return await tell(lambda world: _settled_one_by_one(world, SeededEntropy(seed)))

    assert loop.run(in_order()) == loop.run(shuffled())


@pytest.mark.law
@given(forests())
def test_an_owner_in_the_foreground_goes_after_all_that_block_it(forest):
    """Unless they own each other, or somebody changes his mind: then somebody goes first."""
    size, owners, blocking, deletions = forest
    once = [*dict(deletions).items()]
    acyclic = {number: [other for other in owners[number] if other < number] for number in owners}

    async def tell():
        world, recorder, made = await _grown(size, acyclic, blocking, once, seed=1)
        gone = {}
        for event in recorder.events:
            if event.change.value == "DELETED":
                gone[event.stored.uid] = event
        for uid, event in gone.items():
            before = event.before.document()["metadata"]
            if "foregroundDeletion" not in before.get("finalizers", []):
                continue
            for number, parents in acyclic.items():
                if not blocking[number]:
                    continue
                other = made[number]["metadata"]["uid"]
                if any(
                    made[parent]["metadata"]["uid"] == uid for parent in parents if parent < size
                ):
                    still = _owns_at(recorder.events, uid, other, event.version)
                    assert not still
        await world.store.close()

    loop.run(tell())


def _owns_at(events, owner, dependent, version):
    """Whether an object names an owner still when the owner goes."""
    owned_by = (owner,)
    for event in events:
        if event.stored.uid == dependent and event.version < version:
            if event.change.value == "DELETED":
                return False
            owned_by = event.stored.owners
    return owner in owned_by
