"""The scheduler alone: 5,000 nodes, gangs of 4 and of 1,000, from the first look to the last bind.

Nodes, gangs and pods are there before it starts; no controller and no agent runs beside it. Every
bind is a write through the registry, so the time holds all that a user would wait for. The public
numbers are for kube-scheduler on 5,000 nodes, placing gangs of 4 (560 to 630 pods a second) and
single pods (950), on machines larger than most this runs on.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Sequence

from spinney.api import groupkinds
from spinney.api.kinds import KINDS
from spinney.app.real import SystemClock
from spinney.meta.documents import Document, Json
from spinney.ports import Change, Identity
from spinney.registry.world import World, open_world
from spinney.scheduler.scheduler import Scheduler
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader
from spinney.store.store import Event, Store
from spinney.testing.entropy import SeededEntropy

NODES = 5_000
PODS = 10_000
GPUS_EACH = 8
RACK_NODES, BLOCK_NODES = 32, 256
"""A rack has room for 64 gangs of 4, a block for two of 1,000."""

AT_ONCE = 256
PATIENCE = 600.0
_NODE = b'"nodeName"'
PUBLIC = "kube-scheduler: 560–630 in gangs of 4, 950 alone"


class _Bound:
    """Counts, from the store's log, pods that got their nodes."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = asyncio.Event()

    def deliver(self, events: Sequence[Event]) -> None:
        """Take note of a batch of changes."""
        for event in events:
            if event.change is Change.MODIFIED and event.stored.ref.kind == groupkinds.POD:
                had = event.before is not None and _NODE in event.before.body
                self.count += not had and _NODE in event.stored.body
        self.changed.set()

    def cut(self) -> None:
        """Fail: nothing may be missed."""
        raise AssertionError("events were missed")


def _node(index: int) -> Document:
    has: Document = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": GPUS_EACH}
    name = f"node-{index:04}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "rack": f"rack-{index // RACK_NODES}",
                "block": f"block-{index // BLOCK_NODES}",
            },
        },
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _gang(name: str, size: int, key: str) -> Document:
    references: list[Json] = [
        {"namespace": "default", "name": f"{name}-{index}"} for index in range(size)
    ]
    group: Document = {"name": name, "podReferences": references, "minReplicas": size}
    spec: Document = {"podgroups": [group]}
    if key:
        spec["topologyConstraint"] = {"packConstraint": {"required": key}}
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _pod(name: str, gang: str) -> Document:
    resources: Document = {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "4"}}
    container: Document = {"name": "main", "image": "main:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"grove.io/podgang": gang},
        },
        "spec": {"containers": [container]},
    }


async def _create(world: World, documents: Sequence[Document]) -> None:
    writer = world.writer(Identity(user="system:spinney:controllers", manager="bench"))
    for start in range(0, len(documents), AT_ONCE):
        await asyncio.gather(*map(writer.create, documents[start : start + AT_ONCE]))


async def _measured(size: int, key: str) -> str:
    store = await Store.open(MemoryJournal(), SystemClock())
    gc.set_threshold(50_000, 50, 1_000)
    try:
        world = await open_world(store, SystemClock(), SeededEntropy(1))
        gangs = [f"gang-{index}" for index in range(PODS // size)]
        await _create(world, [_node(index) for index in range(NODES)])
        await _create(world, [_gang(name, size, key) for name in gangs])
        await _create(
            world, [_pod(f"{name}-{index}", name) for name in gangs for index in range(size)]
        )
        gc.collect()
        gc.freeze()
        return await _placed(world, size, key)
    finally:
        await store.close()
        gc.unfreeze()


async def _placed(world: World, size: int, key: str) -> str:
    bound = _Bound()
    world.store.attach(None, world.store.version, bound)
    reader = StoreReader(world.store, [kind for kind in KINDS.values() if not kind.stored_as])
    writer = world.writer(Identity(user="system:spinney:controllers", manager="spinney-scheduler"))
    writes = world.store.statistics().writes
    scheduler = Scheduler(reader, writer, SystemClock(), SeededEntropy(2))
    began, cpu = time.perf_counter(), time.process_time()
    running = asyncio.create_task(scheduler.run())
    stalls = asyncio.create_task(_longest_stall())
    try:
        async with asyncio.timeout(PATIENCE):
            while bound.count < PODS:
                bound.changed.clear()
                await bound.changed.wait()
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        stalls.cancel()
        stall = (await asyncio.gather(stalls, return_exceptions=True))[0]
        await scheduler.settle()
        writes = world.store.statistics().writes - writes
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    where = f"within one {key}" if key else "anywhere"
    return (
        f"{PODS} pods in gangs of {size:>4}, {where:<16}: {took:5.2f} s, "
        f"{PODS / took:6.0f} pods/s, {1e3 * cpu / PODS:.2f} ms CPU and {writes / PODS:.2f} writes "
        f"a pod, longest stall {_told(stall)}"
    )


class _Stalled(Exception):
    """Carries the longest time the loop was held."""


async def _longest_stall() -> None:
    longest, last = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        raise _Stalled(longest) from None


def _told(stall: object) -> str:
    return f"{1e3 * stall.args[0]:.0f} ms" if isinstance(stall, _Stalled) else str(stall)


def run() -> Iterator[str]:
    """Yield how many pods a second get their nodes, gangs small and large, packed and not."""
    yield f"{NODES} nodes; pods a second of {PUBLIC}"
    for size, key in ((4, ""), (4, "rack"), (1_000, ""), (1_000, "block")):
        yield asyncio.run(_measured(size, key))
