"""Sets in a living world: they come to be, rest, scale, and go, whatever happens to controllers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.engine.leases import LeaseSettings
from spinney.meta.documents import Document, value_at
from spinney.meta.references import Precondition, Ref
from spinney.ports import Written
from tests.controllers.living import CONTROLLERS, Life, live
from tests.decisions.shapes import Clique, Group, Small

WHOLE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=3, min_available=2),
    ),
    groups=(Group(name="g", replicas=3, min_available=1),),
)
MINUTE = timedelta(minutes=1)
SET = Ref(kind=groupkinds.SET, namespace="default", name="small")


async def comes_to_be(life: Life, shape: Small = WHOLE, within: timedelta = MINUTE) -> None:
    await life.until(
        lambda: (
            life.names(groupkinds.POD) == shape.pods()
            and life.is_available("small", shape.replicas)
            and life.names(groupkinds.GANG) == shape.gangs()
        ),
        within,
    )


def scaled(shape: Small, replicas: int) -> Small:
    return Small(replicas=replicas, cliques=shape.cliques, groups=shape.groups)


@pytest.mark.rule("2.1")
@pytest.mark.rule("7.3")
def test_a_set_comes_to_be_at_once_and_then_nothing_is_written() -> None:
    """No 5-second quantum anywhere: all that takes time here is the nodes."""

    async def story(life: Life) -> None:
        async with life.running() as manager:
            await life.apply(WHOLE.document())
            await comes_to_be(life, within=timedelta(seconds=3))
            await life.nodes.wait_quiet()
            await manager.settle()
            version = life.store.version
            await life.rest()
            assert life.store.version == version

    live(story)


def test_a_reaction_follows_its_cause_within_milliseconds() -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(WHOLE.document())
            await comes_to_be(life)
            await life.nodes.wait_quiet()
            life.nodes.is_up = False
            await life.scale(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c"), 4)
            await life.until(
                lambda: "small-0-c-3" in life.names(groupkinds.POD), timedelta(milliseconds=50)
            )

    live(story)


@pytest.mark.parametrize("seed", range(4))
def test_a_set_comes_to_be_over_a_bad_line(seed: int) -> None:
    """Lists and watches come late, are cut, expire and are told again: never a pod too many."""

    async def story(life: Life) -> None:
        async with life.lagging():
            await life.apply(WHOLE.document())
            await comes_to_be(life, within=timedelta(minutes=10))
            await life.scale(SET, 3)
            await comes_to_be(life, scaled(WHOLE, 3), within=timedelta(minutes=10))
            await life.scale(SET, 1)
            await comes_to_be(life, scaled(WHOLE, 1), within=timedelta(minutes=10))

    live(story, seed)


@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_a_set_is_scaled_and_rests_again(replicas: int) -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(WHOLE.document())
            await comes_to_be(life)
            await life.scale(SET, replicas)
            await comes_to_be(life, scaled(WHOLE, replicas))
            await life.nodes.wait_quiet()
            version = life.store.version
            await life.rest()
            assert life.store.version == version

    live(story)


def test_a_deleted_set_leaves_nothing() -> None:
    async def story(life: Life) -> None:
        before = made(life)
        async with life.running():
            await life.apply(WHOLE.document())
            await comes_to_be(life)
            await life.user.delete(
                SET, Precondition(), grace_seconds=None, propagation="Background"
            )
            await life.until(lambda: made(life) == before, MINUTE)

    live(story)


def made(life: Life) -> set[Ref]:
    """What sets made, and sets themselves."""
    return {
        stored.ref
        for kind in _ALL
        for stored in life.store.list(kind)
        if stored.ref.name != "default"
    }


_ALL = (
    groupkinds.SET,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.POD,
    groupkinds.SERVICE,
    groupkinds.SERVICE_ACCOUNT,
    groupkinds.ROLE,
    groupkinds.ROLE_BINDING,
    groupkinds.REVISION,
)


@pytest.mark.rule("7.1")
@pytest.mark.parametrize("writes", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_controllers_killed_between_two_writes_begin_again(writes: int) -> None:
    """The process dies before the n-th write goes out, again and again; then one lives on."""

    async def story(life: Life) -> None:
        await life.apply(WHOLE.document())
        for _ in range(3):
            writer = Dying(life, writes)
            async with life.running(writer=writer):
                await life.until(lambda: writer.left < 0 or _whole(life), MINUTE)  # noqa: B023
        async with life.running():
            await comes_to_be(life)

    live(story)


def _whole(life: Life) -> bool:
    return life.is_available("small", WHOLE.replicas)


class Dying:
    """A writer that stops to answer after some writes, as if its process had been killed."""

    def __init__(self, life: Life, writes: int) -> None:
        self._writer = life.world.writer(CONTROLLERS)
        self.left = writes

    async def _pass(self) -> None:
        self.left -= 1
        if self.left < 0:
            await asyncio.Event().wait()

    async def create(self, document: Document) -> Written:
        await self._pass()
        return await self._writer.create(document)

    async def apply(self, document: Document, *, force: bool) -> Written:
        await self._pass()
        return await self._writer.apply(document, force=force)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        await self._pass()
        return await self._writer.patch(target, merge, only_if, subresource)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        await self._pass()
        return await self._writer.put_status(target, status, resource_version)

    async def delete(
        self, target: Ref, only_if: Precondition, *, grace_seconds: int | None, propagation: str
    ) -> None:
        await self._pass()
        await self._writer.delete(
            target, only_if, grace_seconds=grace_seconds, propagation=propagation
        )

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        await self._pass()
        await self._writer.evict(target, only_if)

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        await self._pass()
        await self._writer.bind(pod, node, only_if)


def test_two_managers_share_one_lease_and_one_set() -> None:
    """The leader goes without a word; the other takes over, and nothing is made twice."""

    async def story(life: Life) -> None:
        settings = LeaseSettings(namespace="kube-system")
        async with life.running(leases=settings, identity="two"):
            async with life.running(leases=settings, identity="one") as first:
                await life.apply(WHOLE.document())
                await comes_to_be(life)
                led = first.is_leading
            await life.scale(SET, 3)
            await comes_to_be(life, scaled(WHOLE, 3))
            assert led in (True, False)

    live(story)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (groupkinds.POD, "small-0-c-1"),
        (groupkinds.CLIQUE, "small-1-g-0-b"),
        (groupkinds.SCALING_GROUP, "small-0-g"),
        (groupkinds.GANG, "small-1"),
        (groupkinds.SERVICE, "small-0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_lost_is_made_again(kind: object, name: str) -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(WHOLE.document())
            await comes_to_be(life)
            ref = Ref(kind=kind, namespace="default", name=name)  # type: ignore[arg-type]
            before = life.store.get(ref)
            assert before is not None
            await life.world.writer(CONTROLLERS).delete(
                ref, Precondition(), grace_seconds=None, propagation="Background"
            )
            await life.until(
                lambda: (found := life.store.get(ref)) is not None and found.uid != before.uid,
                MINUTE,
            )
            await comes_to_be(life)

    live(story)


@pytest.mark.rule("1.5")
def test_a_name_held_by_another_is_taken_once_it_is_free() -> None:
    async def story(life: Life) -> None:
        await life.user.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "small-0-c-0", "namespace": "default"},
                "spec": {"containers": [{"name": "main", "image": "other:1"}]},
            }
        )
        async with life.running():
            await life.apply(WHOLE.document())
            await life.until(lambda: "small-0-c-2" in life.names(groupkinds.POD), MINUTE)
            conditions = value_at(
                life.document(groupkinds.CLIQUE, "small-0-c"), ["status", "conditions"]
            )
            assert "NameConflict" in str(conditions)
            await life.user.delete(
                Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0"),
                Precondition(),
                grace_seconds=0,
                propagation="Background",
            )
            await comes_to_be(life)

    live(story)
