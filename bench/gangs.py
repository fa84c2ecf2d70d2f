"""Sets become gangs: from one set to all its pods, gated and let go, without any node."""

from __future__ import annotations

import asyncio
import gc
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from spinney.api import groupkinds
from spinney.api.kinds import KINDS
from spinney.app.real import SystemClock
from spinney.controllers import catalog
from spinney.engine.manager import Manager
from spinney.meta.documents import Document, list_at, string_at
from spinney.meta.references import Precondition, Ref
from spinney.ports import Identity
from spinney.registry.world import World, open_world
from spinney.store.reader import StoreReader
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Event, Store
from spinney.testing.entropy import SeededEntropy

PODS_EACH = 2
SMALL, LARGE = 500, 5_000
"""Set replicas: 1,000 and 10,000 pods."""

GROWTH_MAX = 11
PATIENCE = 600.0


class _Count:
    """Counts, from the store's log, pods and what has become of them."""

    def __init__(self) -> None:
        self.pods: set[str] = set()
        self.open: set[str] = set()
        self.changed = asyncio.Event()

    def deliver(self, events: Sequence[Event]) -> None:
        """Take note of a batch of changes."""
        for event in events:
            if event.stored.ref.kind != groupkinds.POD:
                continue
            name = event.stored.ref.name
            if event.change.value == "DELETED":
                self.pods.discard(name)
                self.open.discard(name)
            else:
                self.pods.add(name)
                if not list_at(event.stored.document(), ["spec", "schedulingGates"]):
                    self.open.add(name)
        self.changed.set()

    def cut(self) -> None:
        """Fail: nothing may be missed."""
        raise AssertionError("events were missed")

    async def until(self, holds: Callable[[], bool]) -> float:
        """Wait until something holds; return how long that took."""
        began = time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.changed.clear()
                await self.changed.wait()
        return time.perf_counter() - began


def _set(replicas: int) -> Document:
    container: Document = {"name": "main", "image": "main:1", "command": ["sleep", "3600"]}
    clique: Document = {
        "name": "worker",
        "spec": {
            "roleName": "worker",
            "replicas": PODS_EACH,
            "minAvailable": PODS_EACH,
            "podSpec": {"containers": [container]},
        },
    }
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "scale", "namespace": "default"},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }


async def _story(world: World, replicas: int) -> Iterator[str]:
    lines: list[str] = []
    reader = StoreReader(world.store, [kind for kind in KINDS.values() if not kind.stored_as])
    writer = world.writer(Identity(user="system:spinney:controllers", manager="spinney"))
    manager = Manager(reader, writer, SystemClock(), SeededEntropy(1), catalog.controllers(reader))
    running = asyncio.create_task(manager.run())
    keeping = asyncio.create_task(world.run())
    count = _Count()
    world.store.attach(None, world.store.version, count)
    user = world.writer(Identity(user="bench", manager="bench"))
    pods = replicas * PODS_EACH
    ref = Ref(kind=groupkinds.SET, namespace="default", name="scale")
    try:
        await manager.settle()
        before, cpu = world.store.statistics().writes, time.process_time()
        await user.create(_set(replicas))
        created = await count.until(lambda: len(count.pods) == pods)
        opened = created + await count.until(lambda: len(count.open) == pods)
        await manager.settle()
        writes = world.store.statistics().writes - before
        cpu = time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        lines.append(
            f"{pods} pods as {replicas} × {PODS_EACH}: created {created:.2f} s, let go "
            f"{opened:.2f} s, {writes / pods:.1f} writes and {1e3 * cpu / pods:.2f} ms CPU a pod, "
            f"{memory} MiB"
        )
        half = {"spec": {"replicas": replicas // 2}}
        await user.patch(ref, half, Precondition(), "scale")  # type: ignore[arg-type]
        taken = await count.until(lambda: len(count.pods) == pods // 2)
        lines.append(f"  scaled in to half: {taken:.2f} s")
        await manager.settle()
        quiet = world.store.version
        await asyncio.sleep(2)
        lines.append(f"  at rest: {world.store.version - quiet} writes in 2 s")
        lines.append(f"  the set says: {_said(world, ref)}; {opened:.6f}")
    finally:
        running.cancel()
        keeping.cancel()
        await asyncio.gather(running, keeping, return_exceptions=True)
    return iter(lines)


def _said(world: World, ref: Ref) -> str:
    stored = world.store.get(ref)
    assert stored is not None
    status = stored.document().get("status")
    assert isinstance(status, dict)
    return f"{status.get('replicas')} replicas, {string_at(status, ['phase'])}"


def _measured(replicas: int) -> tuple[list[str], float]:
    async def run() -> list[str]:
        with tempfile.TemporaryDirectory(prefix="spinney-bench-") as folder:
            store = await Store.open(SqliteJournal(Path(folder)), SystemClock())
            gc.freeze()
            gc.set_threshold(50_000, 50, 1_000)
            try:
                world = await open_world(store, SystemClock(), SeededEntropy(2))
                return list(await _story(world, replicas))
            finally:
                await store.close()

    lines = asyncio.run(run())
    *shown, last = lines
    text, _, seconds = last.rpartition("; ")
    return [*shown, text], float(seconds)


def run() -> Iterator[str]:
    """Yield what a set of 1,000 pods costs, one of 10,000, and how that grows."""
    shown, small = _measured(SMALL)
    yield from shown
    shown, large = _measured(LARGE)
    yield from shown
    growth = large / small
    verdict = "within" if growth <= GROWTH_MAX else "beyond"
    pods = f"{SMALL * PODS_EACH} to {LARGE * PODS_EACH} pods"
    yield f"growth from {pods}: {growth:.1f} times ({verdict} {GROWTH_MAX})"
