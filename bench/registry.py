"""The write path alone: what a write costs before it waits for the disk.

Beside it the least any write path must do with the same pods: encode them, and put them into the
store. The journal is in memory, and its commits are not counted.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine, Iterator, Sequence

import msgspec

from bench.store import pod
from spinney.api.kinds import KINDS
from spinney.app.real import SystemClock
from spinney.meta.documents import Document, without
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Identity
from spinney.registry.patching import MERGE_PATCH, Patch
from spinney.registry.requests import DeleteOptions, Outcome, Request
from spinney.registry.world import World, open_world
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor

POD = KINDS[GroupKind(group="", kind="Pod")]
COUNT = 1_000
ROUNDS = 5
CREATE_TARGET = 250
"""How many millionths of a second a creation may take."""

_REQUEST = Request(who=Identity(user="bench", manager="bench"))
_Write = Coroutine[None, None, Outcome]


def _given(number: int) -> Document:
    """Return a pod as its maker gives it."""
    return without(without(pod(number), ("status",)), ("metadata", "uid"))


async def open_bench_world() -> World:
    """Return an empty world with ten namespaces, over a journal in memory."""
    clock = SystemClock()
    store = await Store.open(MemoryJournal(), clock, executor=InlineExecutor())
    world = await open_world(store, clock, SeededEntropy(1))
    for number in range(10):
        namespace: Document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": f"team-{number}"},
        }
        kind = world.catalog.kind_of(namespace)
        assert kind is not None
        await world.registry.create(kind, namespace, _REQUEST)
    return world


async def _timed(writes: Sequence[_Write]) -> float:
    """Return the CPU seconds until every write waits for the disk; then let them be committed."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    for write in writes:
        write.send(None)
    taken = time.process_time() - began
    gc.enable()
    for write in writes:
        write.close()
    await asyncio.sleep(0.01)
    return taken


async def _measured() -> dict[str, float]:
    best: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        best[name] = min(best.get(name, seconds), seconds)

    for _ in range(ROUNDS):
        world = await open_bench_world()
        registry = world.registry
        pods = [_given(number) for number in range(COUNT)]
        note("encode", _encoding(pods))
        note("store alone", await _storing(pods))
        note("create", await _timed([registry.create(POD, each, _REQUEST) for each in pods]))
        patches: dict[str, tuple[str, Document]] = {
            "status": ("status", {"status": {"phase": "Running", "podIP": "127.0.0.1"}}),
            "label": ("", {"metadata": {"labels": {"seen": "yes"}}}),
            "nothing": ("", {"metadata": {"labels": {"seen": "yes"}}}),
        }
        for name, (subresource, body) in patches.items():
            writes = [
                registry.patch(
                    POD,
                    f"team-{number % 10}",
                    f"chat-0-decode-{number}",
                    Patch(type=MERGE_PATCH, body=body),
                    _REQUEST,
                    subresource=subresource,
                )
                for number in range(COUNT)
            ]
            note(name, await _stepped(writes) if name == "nothing" else await _timed(writes))
        note(
            "delete",
            await _timed(
                [
                    registry.delete(
                        POD,
                        f"team-{number % 10}",
                        f"chat-0-decode-{number}",
                        DeleteOptions(grace_seconds=0),
                        _REQUEST,
                    )
                    for number in range(COUNT)
                ]
            ),
        )
        await world.store.close()
    return best


async def _stepped(writes: Sequence[_Write]) -> float:
    """Return the CPU seconds of writes that write nothing, and so wait for nothing."""
    began = time.process_time()
    for write in writes:
        await write
    return time.process_time() - began


def _encoding(pods: Sequence[Document]) -> float:
    began = time.process_time()
    for each in pods:
        msgspec.json.encode(each)
    return time.process_time() - began


async def _storing(pods: Sequence[Document]) -> float:
    store = await Store.open(MemoryJournal(), SystemClock(), executor=InlineExecutor())
    refs = [
        Ref(kind=POD.names.group_kind, namespace="bench", name=f"p{number}")
        for number in range(len(pods))
    ]
    began = time.process_time()
    for ref, each in zip(refs, pods, strict=True):
        store.put(ref, each, expects=0)
    taken = time.process_time() - began
    await store.close()
    return taken


def run() -> Iterator[str]:
    """Yield what a write of each sort costs, beside encoding and storing alone."""
    best = asyncio.run(_measured())
    base = best["store alone"]
    for name, seconds in best.items():
        micros = seconds / COUNT * 1e6
        yield f"{name:<12} {micros:7.1f} us  {seconds / base:5.1f} x storing alone"
    micros = best["create"] / COUNT * 1e6
    told = "within" if micros <= CREATE_TARGET else "BEYOND"
    yield f"a creation is {told} its {CREATE_TARGET} us, commit apart"
