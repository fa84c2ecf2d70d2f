"""A living world: the real store, registry, engine and controllers, in virtual time.

Nodes are played: whoever may be placed is bound, made ready after a while, and taken away when it
is deleted. An observer stands outside and reads the store's log alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from spinney.api import groupkinds, labels
from spinney.api.kinds import KINDS
from spinney.controllers import catalog
from spinney.engine.informer import Informer
from spinney.engine.leases import LeaseSettings
from spinney.engine.manager import Manager
from spinney.engine.metrics import NoMetrics
from spinney.meta.documents import Document, list_at, string_at, value_at
from spinney.meta.errors import Conflict, NotFound
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Change, Clock, Identity, Reader, Source, Writer
from spinney.registry.world import World, open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader, StoreSource
from spinney.store.store import Event, Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor
from spinney.testing.lines import BadLine
from spinney.testing.log_observer import LogObserver

CONTROLLERS = Identity(user="system:spinney:controllers", manager="spinney")
NODES = Identity(user="system:node:one", groups=("system:nodes",), manager="kubelet")
USER = Identity(user="anna", manager="kubectl")
READ = [kind for kind in KINDS.values() if kind.stored_as is None]
STARTS_WITHIN = timedelta(milliseconds=200)


class PodsTooMany:
    """Tells, from the log alone, when a PodClique has more pods than it ever asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: dict[str, set[str]] = {}
        self.faults: list[str] = []

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            stored = event.stored
            if stored.ref.kind != groupkinds.POD or not stored.owners:
                continue
            there = self._counts.setdefault(stored.owners[0], set())
            if event.change is Change.DELETED:
                there.discard(stored.uid)
            elif event.change is Change.ADDED:
                there.add(stored.uid)
                name = stored.labels.get(labels.PODCLIQUE, "")
                ref = Ref(kind=groupkinds.CLIQUE, namespace=stored.ref.namespace, name=name)
                clique = self._store.get(ref)
                wanted = (
                    None if clique is None else value_at(clique.document(), ["spec", "replicas"])
                )
                if isinstance(wanted, int) and len(there) > wanted:
                    self.faults.append(f"{name} has {len(there)} pods, asked for are {wanted}")

    def cut(self) -> None:
        raise AssertionError("the observer of pods missed something")


class Nodes:
    """Plays all nodes: places pods that may be placed, runs them, takes deleted ones away."""

    def __init__(self, world: World, clock: Clock, entropy: SeededEntropy) -> None:
        self._world = world
        self._writer = world.writer(NODES)
        self._clock = clock
        self._entropy = entropy
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_up = True
        world.store.attach(groupkinds.POD, world.store.version, self)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.change is not Change.DELETED and self.is_up:
                task = asyncio.create_task(self._look(event.stored.ref))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def cut(self) -> None:
        raise AssertionError("nodes missed something")

    async def wait_quiet(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _look(self, ref: Ref) -> None:
        await self._clock.sleep(self._entropy.jitter(STARTS_WITHIN))
        stored = self._world.store.get(ref)
        if stored is None:
            return
        pod = stored.document()
        try:
            await self._act(ref, pod)
        except (Conflict, NotFound):
            return

    async def _act(self, ref: Ref, pod: Document) -> None:
        only_if = Precondition(uid=string_at(pod, ["metadata", "uid"]))
        if string_at(pod, ["metadata", "deletionTimestamp"]):
            await self._writer.delete(ref, only_if, grace_seconds=0, propagation="Background")
        elif list_at(pod, ["spec", "schedulingGates"]):
            return
        elif not string_at(pod, ["spec", "nodeName"]):
            await self._writer.bind(ref, "one", only_if)
        elif string_at(pod, ["status", "phase"]) == "Pending":
            status: Document = {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "True"},
                ],
            }
            version = string_at(pod, ["metadata", "resourceVersion"])
            await self._writer.put_status(ref, status, version)


class Life:
    """One world, and what tests ask of it."""

    def __init__(self, world: World, clock: Clock, entropy: SeededEntropy) -> None:
        self.world = world
        self.store = world.store
        self.clock = clock
        self.entropy = entropy
        self.user = world.writer(USER)
        self.observer = LogObserver(world.store)
        self.pods_too_many = PodsTooMany(world.store)
        world.store.attach(None, world.store.version, self.pods_too_many)
        self.nodes = Nodes(world, clock, entropy.stream("nodes"))
        self.direct = StoreReader(world.store, READ)

    def manager(
        self,
        reader: Reader | None = None,
        writer: Writer | None = None,
        leases: LeaseSettings | None = None,
        identity: str = "spinney",
        wait_synced: Callable[[], Awaitable[None]] | None = None,
    ) -> Manager:
        reader = reader or self.direct
        options = {} if wait_synced is None else {"wait_synced": wait_synced}
        return Manager(
            reader,
            writer or self.world.writer(CONTROLLERS),
            self.clock,
            self.entropy.stream(identity),
            catalog.controllers(reader),
            leases=leases,
            identity=identity,
            **options,  # type: ignore[arg-type]
        )

    @asynccontextmanager
    async def running(self, **options: object) -> AsyncIterator[Manager]:
        manager = self.manager(**options)  # type: ignore[arg-type]
        task = asyncio.create_task(manager.run())
        try:
            yield manager
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def lagging(self, line: Source | None = None) -> AsyncIterator[Manager]:
        """Run controllers over an informer whose line is bad."""
        source = line or BadLine(StoreSource(self.store), self.clock, self.entropy.stream("line"))
        informer = Informer(source, READ, self.clock, self.entropy.stream("informer"), NoMetrics())
        following = asyncio.create_task(informer.run())
        try:
            async with self.running(reader=informer, wait_synced=informer.wait_synced) as manager:
                yield manager
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def apply(self, document: Document) -> Ref:
        return (await self.user.apply(document, force=True)).ref

    async def scale(self, ref: Ref, replicas: int) -> None:
        merge: Document = {"spec": {"replicas": replicas}}
        await self.user.patch(ref, merge, Precondition(), "scale")

    async def until(self, holds: Callable[[], bool], within: timedelta) -> None:
        """Let time pass until something holds; it must within a bounded time."""
        end = self.clock.elapsed() + within
        while not holds():
            assert self.clock.elapsed() < end, f"not within {within}"
            await self.clock.sleep(timedelta(milliseconds=20))

    async def rest(self) -> None:
        """Let a long time pass."""
        await self.clock.sleep(timedelta(seconds=60))

    def names(self, kind: GroupKind) -> list[str]:
        return [
            stored.ref.name
            for stored in self.store.list(kind, namespace="default")
            if not string_at(stored.document(), ["metadata", "deletionTimestamp"])
        ]

    def document(self, kind: GroupKind, name: str) -> Document:
        stored = self.store.get(Ref(kind=kind, namespace="default", name=name))
        assert stored is not None, f"{kind} {name} is not there"
        return stored.document()

    def is_available(self, name: str, replicas: int) -> bool:
        stored = self.store.get(Ref(kind=groupkinds.SET, namespace="default", name=name))
        if stored is None:
            return False
        status = stored.document().get("status")
        return isinstance(status, dict) and status.get("availableReplicas") == replicas

    def check(self) -> None:
        """Have the observers tell what they saw."""
        self.observer.check()
        assert not self.pods_too_many.faults, self.pods_too_many.faults


def live(story: Callable[[Life], Awaitable[None]], seed: int = 1) -> None:
    """Run a story in a world of its own, in virtual time."""

    async def run() -> None:
        clock = VirtualClock()
        entropy = SeededEntropy(seed)
        store = await Store.open(MemoryJournal(), clock, executor=InlineExecutor())
        keeping: asyncio.Task[None] | None = None
        try:
            world = await open_world(store, clock, entropy.stream("world"))
            keeping = asyncio.create_task(world.run())
            life = Life(world, clock, entropy)
            await story(life)
            await life.nodes.wait_quiet()
            life.check()
        finally:
            if keeping is not None:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
            await store.close()

    loop.run(run())
