"""The engine: what a key costs in the queue, and what a look costs that finds nothing to do."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bench.measuring import best_seconds
from spinney.api.core.configuration import ConfigMap
from spinney.api.kinds import KINDS
from spinney.api.podclique import PodClique
from spinney.app.real import SystemClock
from spinney.decisions.actions import Decision
from spinney.engine.controller import Controller
from spinney.engine.manager import Manager
from spinney.engine.metrics import PrometheusMetrics
from spinney.engine.queue import Queue
from spinney.engine.wakes import Wake
from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Identity, Reader
from spinney.registry.world import World, open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader
from spinney.store.store import Store
from spinney.testing.entropy import SeededEntropy

KEYS = 10_000
CHILDREN = 2
CLIQUE = GroupKind(group="grove.io", kind="PodClique")
CONFIG_MAP = GroupKind(group="", kind="ConfigMap")


class _Observation(Record):
    now: datetime
    clique: PodClique
    children: tuple[ConfigMap, ...]


def _observe(reader: Reader, key: Ref, now: datetime) -> _Observation | None:
    clique = reader.get(PodClique, key.namespace, key.name)
    if clique is None:
        return None
    by = ("owner", clique.metadata.uid)
    children = reader.list(ConfigMap, namespace=key.namespace, by=by)
    return _Observation(now=now, clique=clique, children=tuple(children))


def _decide(observation: _Observation) -> Decision:
    return Decision(status={"replicas": len(observation.children)})


def _owners(child: ConfigMap) -> list[Ref]:
    metadata = child.metadata
    return [
        Ref(kind=CLIQUE, namespace=metadata.namespace, name=owner.name)
        for owner in metadata.owner_references
    ]


CONTROLLER = Controller(
    name="bench",
    kind=CLIQUE,
    observe=_observe,
    decide=_decide,
    wakes=(Wake(kind=CONFIG_MAP, record=ConfigMap, keys=_owners),),
)


def _clique(index: int) -> Document:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": f"clique-{index}", "namespace": "default"},
        "spec": {
            "roleName": "decode",
            "replicas": CHILDREN,
            "minAvailable": 1,
            "podSpec": {"containers": [{"name": "main", "image": "main:1"}]},
        },
    }


def _child(index: int, number: int, uid: str) -> Document:
    owner: Document = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "controller": True}
    owner |= {"name": f"clique-{index}", "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"clique-{index}-{number}",
            "namespace": "default",
            "ownerReferences": [owner],
        },
    }


async def _filled() -> World:
    store = await Store.open(MemoryJournal(), SystemClock())
    world = await open_world(store, SystemClock(), SeededEntropy(1))
    writer = world.writer(Identity(user="system:spinney:controllers", manager="bench"))
    cliques = await asyncio.gather(*(writer.create(_clique(index)) for index in range(KEYS)))
    await asyncio.gather(
        *(
            writer.create(_child(index, number, written.uid))
            for index, written in enumerate(cliques)
            for number in range(CHILDREN)
        )
    )
    return world


def _use_queue(keys: list[Ref]) -> None:
    queue, now = Queue(), timedelta()
    for key in keys:
        queue.add(key, now)
        queue.add(key, now, timedelta(seconds=1))
    while (key_taken := queue.take(now)) is not None:
        queue.finish(key_taken, now)


def _use_timers(keys: list[Ref]) -> None:
    queue, now = Queue(), timedelta()
    for number, key in enumerate(keys):
        queue.add(key, now, timedelta(milliseconds=number % 977), is_timer=True)
    now = timedelta(seconds=1)
    while (key_taken := queue.take(now)) is not None:
        queue.finish(key_taken, now)


def _use_deque(keys: list[Ref]) -> None:
    line: deque[Ref] = deque()
    known: set[Ref] = set()
    for key in keys:
        for _ in range(2):
            if key not in known:
                known.add(key)
                line.append(key)
    while line:
        known.discard(line.popleft())


async def _looks() -> tuple[float, float, float, int]:
    """Return the seconds of all first looks: bare, in a manager, in one with metrics; writes."""
    world = await _filled()
    reader = StoreReader(world.store, (KINDS[CLIQUE], KINDS[CONFIG_MAP]))
    writer = world.writer(Identity(user="system:spinney:controllers", manager="bench"))
    keys = [Ref(kind=CLIQUE, namespace="default", name=f"clique-{i}") for i in range(KEYS)]

    async def once(metrics: PrometheusMetrics | None) -> float:
        manager = Manager(
            reader, writer, SystemClock(), SeededEntropy(1), [CONTROLLER], metrics=metrics
        )
        began = time.perf_counter()
        task = asyncio.create_task(manager.run())
        await manager.settle()
        seconds = time.perf_counter() - began
        manager.stop()
        await task
        return seconds

    await once(None)  # writes every status, and decodes every object
    version = world.store.version
    bare = plain = measured = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        now = datetime.now(UTC)
        for key in keys:
            observation = _observe(reader, key, now)
            assert observation is not None
            _decide(observation)
        bare = min(bare, time.perf_counter() - began)
        plain = min(plain, await once(None))
        measured = min(measured, await once(PrometheusMetrics()))
    written = world.store.version - version
    await world.store.close()
    return bare, plain, measured, written


def run() -> Iterator[str]:
    """Yield what keys cost in the queue, and looks that find nothing to do."""
    keys = [
        Ref(kind=CLIQUE, namespace=f"space-{index % 40}", name=f"clique-{index}")
        for index in range(KEYS)
    ]
    seconds = best_seconds(
        {
            "a set and a deque": lambda: _use_deque(keys),
            "queue, each key added twice": lambda: _use_queue(keys),
            "queue, each key by a timer": lambda: _use_timers(keys),
        }
    )
    least = seconds["a set and a deque"]
    for name, value in seconds.items():
        yield f"{name:<30} {KEYS / value:>9,.0f} keys/s  ({value / least:.1f} x the least)"
    bare, plain, measured, written = asyncio.run(_looks())
    for name, value in (
        ("observe and decide alone", bare),
        ("a look with nothing to do", plain),
        ("the same, with metrics", measured),
    ):
        yield f"{name:<30} {KEYS / value:>9,.0f} looks/s ({value / bare:.1f} x bare)"
    yield f"{'writes of all these looks':<30} {written:>9} (must be 0)"
