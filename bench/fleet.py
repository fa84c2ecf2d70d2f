"""The whole product on simulated nodes: from `apply` to all pods ready, scaling, and rest.

Everything `spinney up --nodes sim:…` has is there: server, journal, controllers, scheduler, nodes.
What is counted is read from the store's log alone. Beside it stand the public numbers of Grove.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from spinney.api import groupkinds
from spinney.app import embedded
from spinney.app.datafolder import DataFolder
from spinney.app.embedded import Embedded, Options
from spinney.app.real import SystemClock, SystemEntropy
from spinney.meta.documents import Document, list_at, string_at
from spinney.meta.references import Precondition, Ref
from spinney.nodes.fleet import shapes
from spinney.ports import Identity, Writer
from spinney.store.store import Event

PODS_EACH = 2
PATIENCE = 600.0
SET = Ref(kind=groupkinds.SET, namespace="default", name="scale")

GROVE_CREATED_AND_READY = 49.7
GROVE_DOWN_TO_NOTHING = 56.0
GROVE_DOWN_TO_HALF = 31.0
GROVE_UP_FROM_NOTHING = 0.5
"""Seconds of Grove for 1,000 pods on 100 simulated nodes: medians of its public weekly runs."""

REST_SECONDS = 10
CYCLES = 10


class _Count:
    """Counts, from the store's log, the pods there are and those that are ready."""

    def __init__(self) -> None:
        self.pods: set[str] = set()
        self.ready: set[str] = set()
        self.changed = asyncio.Event()

    def deliver(self, events: Sequence[Event]) -> None:
        """Take note of a batch of changes."""
        for event in events:
            if event.stored.ref.kind != groupkinds.POD:
                continue
            name = event.stored.ref.name
            if event.change.value == "DELETED":
                self.pods.discard(name)
                self.ready.discard(name)
                continue
            self.pods.add(name)
            if name not in self.ready and _is_ready(event.stored.document()):
                self.ready.add(name)
        self.changed.set()

    def cut(self) -> None:
        """Fail: nothing may be missed."""
        raise AssertionError("events were missed")

    async def until(self, pods: int) -> float:
        """Wait until there are so many pods and all are ready; return how long that took."""
        began = time.perf_counter()
        async with asyncio.timeout(PATIENCE):
            while not len(self.pods) == len(self.ready) == pods:
                self.changed.clear()
                await self.changed.wait()
        return time.perf_counter() - began


def _is_ready(pod: Document) -> bool:
    return any(
        string_at(item, ["type"]) == "Ready" and string_at(item, ["status"]) == "True"
        for item in list_at(pod, ["status", "conditions"])
    )


def _set(replicas: int) -> Document:
    container: Document = {
        "name": "main",
        "image": "main:1",
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
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
        "metadata": {"name": SET.name, "namespace": SET.namespace},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }


class _Run:
    """One world, and what the stories ask of it."""

    def __init__(self, world: Embedded) -> None:
        assert world.world is not None
        assert world.store is not None
        self.world = world
        self.store = world.store
        self.count = _Count()
        self.user: Writer = world.world.writer(Identity(user="bench", manager="bench"))
        self.store.attach(None, self.store.version, self.count)

    async def scaled(self, replicas: int) -> float:
        """Scale the set; return how long it took until all its pods are there and ready."""
        await self.user.patch(SET, {"spec": {"replicas": replicas}}, Precondition(), "scale")
        return await self.count.until(replicas * PODS_EACH)

    async def rested(self) -> None:
        """Wait until nothing is written any more."""
        version = -1
        while version != self.store.version:
            version = self.store.version
            await asyncio.sleep(0.3)


@asynccontextmanager
async def _world(nodes: int) -> AsyncIterator[_Run]:
    with tempfile.TemporaryDirectory(prefix="spinney-bench-") as folder:
        wanted = shapes.parse([f"sim:{nodes},cpu=64,memory=512Gi"])
        options = Options(port=0, nodes=wanted)
        clock, entropy = SystemClock(), SystemEntropy()
        world = await embedded.open_embedded(DataFolder(Path(folder)), options, clock, entropy)
        keeping = asyncio.create_task(world.run())
        try:
            await world.wait_ready()
            run = _Run(world)
            await run.rested()
            yield run
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await world.close()


async def _growing(run: _Run, replicas: int, nodes: int) -> list[str]:
    pods = replicas * PODS_EACH
    writes, cpu = run.store.statistics().writes, time.process_time()
    began = time.perf_counter()
    await run.user.create(_set(replicas))
    await run.count.until(pods)
    seconds = time.perf_counter() - began
    await run.rested()
    writes = run.store.statistics().writes - writes
    cpu = time.process_time() - cpu
    return [
        f"{pods} pods as {replicas} × {PODS_EACH} on {nodes} nodes: all ready {seconds:.2f} s, "
        f"{writes / pods:.1f} writes and {1e3 * cpu / pods:.2f} ms CPU a pod, {_peak()} MiB"
        f"{_beside(seconds, GROVE_CREATED_AND_READY) if pods == 1000 else ''}"
    ]


def _beside(seconds: float, grove: float) -> str:
    return f" (Grove {grove} s: {grove / seconds:.0f} times)"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


async def _at_rest(run: _Run) -> str:
    version, cpu = run.store.version, time.process_time()
    await asyncio.sleep(REST_SECONDS)
    share = (time.process_time() - cpu) / REST_SECONDS
    pods = len(run.count.ready)
    return (
        f"  at rest with {pods} running pods: {run.store.version - version} writes and "
        f"{1e3 * share:.2f} ms CPU a second, {_resident()} MiB"
    )


async def _small() -> list[str]:
    async with _world(100) as run:
        lines = await _growing(run, 500, 100)
        lines.append(await _at_rest(run))
        half = await run.scaled(250)
        lines.append(f"  1000 → 500: {half:.2f} s{_beside(half, GROVE_DOWN_TO_HALF)}")
        await run.rested()
        await run.scaled(500)
        await run.rested()
        down = await run.scaled(0)
        lines.append(f"  1000 → 0: {down:.2f} s{_beside(down, GROVE_DOWN_TO_NOTHING)}")
        await run.rested()
        up = await run.scaled(5)
        lines.append(f"  0 → 10: {up:.3f} s{_beside(up, GROVE_UP_FROM_NOTHING)}")
        await run.rested()
        return lines


async def _cycles() -> list[str]:
    async with _world(20) as run:
        await run.user.create(_set(25))
        await run.count.until(50)
        await run.scaled(50)
        await run.scaled(25)
        await run.rested()
        objects, memory = _objects(run), _resident()
        took: list[float] = []
        for _ in range(CYCLES):
            took.append(await run.scaled(50))
            await run.rested()
            await run.scaled(25)
            await run.rested()
        gc.collect()
        more = _objects(run) - objects
        return [
            f"{CYCLES} cycles of 50 ↔ 100: up {min(took):.2f}-{max(took):.2f} s, {more:+d} objects "
            f"beside events, {_resident() - memory:+d} MiB"
        ]


def _objects(run: _Run) -> int:
    return run.store.statistics().objects - len(run.store.list(groupkinds.EVENT))


async def _large() -> list[str]:
    async with _world(1000) as run:
        return await _growing(run, 5000, 1000)


def _alone(story: Callable[[], Awaitable[list[str]]]) -> list[str]:
    async def told() -> list[str]:
        return await story()

    return asyncio.run(told())


def run() -> Iterator[str]:
    """Yield what the whole product does with a thousand pods, with cycles, with ten thousand."""
    for story in (_small, _cycles, _large):
        yield from _alone(story)
