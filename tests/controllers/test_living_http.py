"""Sets in a living world whose controllers see and act through a server, as on a cluster.

The lag is real, and so is the time. What is waited for is a commit of the store, or a change of
the informer's view; how long, is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest

from spinney.api import groupkinds
from spinney.app.real import SystemClock
from spinney.engine.informer import Informer
from spinney.engine.manager import Manager
from spinney.engine.metrics import NoMetrics
from spinney.kube.source import HttpSource
from spinney.kube.transport import Transport
from spinney.kube.writer import HttpWriter
from spinney.meta.documents import Document
from spinney.meta.errors import AlreadyExists
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Written
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.store import Event, Store
from spinney.testing.entropy import SeededEntropy
from spinney.testing.lines import PERFECT, BadLine
from tests.controllers.living import CONTROLLERS, READ, Life
from tests.controllers.test_living import SET, made, scaled
from tests.decisions.shapes import Clique, Group, Small
from tests.kube import over_http
from tests.kube.over_http import Front

WITHIN_SECONDS = 40
"""How long anything may take; it takes less than two, and machines may be busy."""

SLOW = msgspec.structs.replace(PERFECT, late_most=timedelta(milliseconds=10), page_items=500)
"""Each event comes later than loopback brings it, as over a network."""

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)


class Tide:
    """Knows the newest version of each kind, and wakes whoever waits for anything to move."""

    def __init__(self, store: Store) -> None:
        self.newest: dict[GroupKind, int] = {}
        self._moved = asyncio.Event()
        store.attach(None, store.version, self)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            self.newest[event.stored.ref.kind] = event.version
        self._moved.set()

    def cut(self) -> None:
        raise AssertionError("the tide missed something")

    def move(self, *_change: object) -> None:
        """Note that somebody's view moved."""
        self._moved.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_SECONDS):
            while not holds():
                self._moved.clear()
                await self._moved.wait()


class NotingWriter(HttpWriter):
    """Notes what was to be made though it was there: nobody looked at that again."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, READ, CONTROLLERS.manager)
        self.made_again: list[str] = []

    async def create(self, document: Document) -> Written:
        try:
            return await super().create(document)
        except AlreadyExists as error:
            self.made_again.append(error.message)
            raise


class Outpost:
    """Controllers that know their world by its server alone."""

    def __init__(
        self, manager: Manager, informer: Informer, writer: NotingWriter, tide: Tide
    ) -> None:
        self.manager = manager
        self.writer = writer
        self._informer = informer
        self._tide = tide
        for kind in READ:
            informer.on_change(kind.names.group_kind, tide.move)

    def has_seen_all(self) -> bool:
        return all(self._informer.seen(kind) >= at for kind, at in self._tide.newest.items())


class Far:
    """A living world with a server before it."""

    def __init__(self, life: Life, front: Front) -> None:
        self.life = life
        self.front = front
        self.tide = Tide(life.store)

    @asynccontextmanager
    async def outpost(self, name: str = "spinney") -> AsyncIterator[Outpost]:
        """Run controllers."""
        transport = self.front.transport()
        entropy = self.life.entropy.stream(name)
        line = entropy.stream("line")
        source = BadLine(HttpSource(transport, READ), self.life.clock, line, SLOW)
        writer = NotingWriter(transport)
        informer = Informer(source, READ, self.life.clock, entropy, NoMetrics())
        following = asyncio.create_task(informer.run())
        try:
            async with self.life.running(
                reader=informer, writer=writer, identity=name, wait_synced=informer.wait_synced
            ) as manager:
                yield Outpost(manager, informer, writer, self.tide)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await transport.close()

    async def comes_to_be(self, shape: Small) -> None:
        life = self.life
        await self.tide.until(
            lambda: (
                life.names(groupkinds.POD) == shape.pods()
                and life.names(groupkinds.GANG) == shape.gangs()
                and life.is_available("small", shape.replicas)
            )
        )

    async def rest(self, outpost: Outpost) -> int:
        """Wait until all is seen, and nobody has anything left to do; returns the version."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while True:
                version = self.life.store.version
                await self.tide.until(outpost.has_seen_all)
                await outpost.manager.wait_ready()
                await outpost.manager.settle()
                await self.life.nodes.wait_quiet()
                if self.life.store.version == version and outpost.has_seen_all():
                    return version


def live(story: Callable[[Far], Awaitable[None]]) -> None:
    """Run a story in a world of its own, in real time."""

    async def main() -> None:
        clock, entropy = SystemClock(), SeededEntropy(1)
        store = await Store.open(MemoryJournal(), clock)
        try:
            world = await open_world(store, clock, entropy.stream("world"))
            keeping = asyncio.create_task(world.run())
            try:
                life = Life(world, clock, entropy)
                async with over_http.fronted(world, clock) as front:
                    await story(Far(life, front))
                    await life.nodes.wait_quiet()
                life.check()
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
        finally:
            await store.close()

    over_http.run(main())


def test_a_set_lives_through_a_server() -> None:
    """It comes to be, is scaled in and out, and goes, and leaves nothing.

    Controllers look at nothing before they see what they wrote, so nothing is made again.
    """

    async def story(far: Far) -> None:
        before = made(far.life)
        async with far.outpost() as outpost:
            await far.life.apply(SHAPE.document())
            await far.comes_to_be(SHAPE)
            for replicas in (1, 3):
                await far.life.scale(SET, replicas)
                await far.comes_to_be(scaled(SHAPE, replicas))
            await far.rest(outpost)
            await far.life.user.delete(
                SET, Precondition(), grace_seconds=None, propagation="Background"
            )
            await far.tide.until(lambda: made(far.life) == before)
            assert outpost.writer.made_again == []

    live(story)


@pytest.mark.parametrize("kind", [groupkinds.CLIQUE, groupkinds.SCALING_GROUP])
def test_parts_of_a_set_are_scaled_through_a_server(kind: GroupKind) -> None:
    part = Ref(
        kind=kind,
        namespace="default",
        name="small-0-b" if kind == groupkinds.CLIQUE else "small-0-g",
    )
    each = 1 if kind == groupkinds.CLIQUE else 2

    async def story(far: Far) -> None:
        async with far.outpost() as outpost:
            await far.life.apply(SHAPE.document())
            await far.comes_to_be(SHAPE)
            before = len(far.life.names(groupkinds.POD))
            first = far.life.document(kind, part.name)["spec"]["replicas"]
            await far.life.scale(part, first + 2)
            await far.tide.until(lambda: len(far.life.names(groupkinds.POD)) == before + 2 * each)
            await far.life.scale(part, first)
            await far.tide.until(lambda: len(far.life.names(groupkinds.POD)) == before)
            await far.rest(outpost)

    live(story)


@pytest.mark.rule("7.3")
def test_nothing_is_written_at_rest_through_a_server() -> None:
    """Nor is it by controllers that begin anew, and look at everything once."""

    async def story(far: Far) -> None:
        async with far.outpost() as outpost:
            await far.life.apply(SHAPE.document())
            await far.comes_to_be(SHAPE)
            version = await far.rest(outpost)
        async with far.outpost("another") as outpost:
            assert await far.rest(outpost) == version

    live(story)


@pytest.mark.rule("7.1")
@pytest.mark.parametrize("pods", [0, 1, 4, 7])
def test_a_server_that_goes_away_and_comes_back_is_worked_with_again(pods: int) -> None:
    """Watches are cut, writes get no answer, and nothing is made twice."""

    async def story(far: Far) -> None:
        async with far.outpost() as outpost:
            await outpost.manager.wait_ready()
            await far.life.apply(SHAPE.document())
            await far.tide.until(lambda: len(far.life.names(groupkinds.POD)) >= pods)
            await far.front.go()
            await far.life.scale(SET, 1)
            await far.front.come()
            await far.comes_to_be(scaled(SHAPE, 1))
            await far.rest(outpost)

    live(story)
