"""The life of a gang's pod, write by write: what each costs before it waits for the disk.

Pods of 3 KB, as PodCliques make them, written by writers in this process as controllers, a
scheduler and nodes are. The journal is in memory, and its commits are not counted.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from bench.registry import open_bench_world
from spinney.meta.documents import Document, Json
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Identity, Writer

COUNT = 500
ROUNDS = 5
TARGET = 1_500
"""How many millionths of a second the writes of a whole life may take."""

_POD = GroupKind(group="", kind="Pod")
_ALWAYS = Precondition()
_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
_SINCE = "2026-01-01T00:00:00Z"

_Write = Callable[[int], Awaitable[object]]


def _ref(number: int) -> Ref:
    return Ref(kind=_POD, namespace="team-0", name=f"chat-{number}-worker-0")


def _pod(number: int) -> Document:
    name = _ref(number).name
    variables: list[Json] = [{"name": f"GROVE_{index}", "value": "x" * 12} for index in range(8)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team-0",
            "labels": {f"grove.io/label-{index}": f"value-{index}" for index in range(9)},
            "ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1",
                    "kind": "PodClique",
                    "name": f"chat-{number}-worker",
                    "uid": f"uid-{number}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "hostname": name,
            "subdomain": f"chat-{number}",
            "schedulingGates": [{"name": "grove.io/podgang-pending-creation"}],
            "containers": [
                {
                    "name": "main",
                    "image": "main:1",
                    "command": ["serve"],
                    "env": variables,
                    "resources": {"requests": {"cpu": "1"}},
                }
            ],
        },
    }


def _status(phase: str, *, ready: bool) -> Document:
    """Return a whole status, as a node tells it."""
    conditions: list[Json] = [
        {"type": sort, "status": str(ready), "lastTransitionTime": _SINCE} for sort in _CONDITIONS
    ]
    state: Document = {"waiting": {"reason": "ContainerCreating"}}
    if phase == "Running":
        state = {"running": {"startedAt": _SINCE}}
    return {
        "phase": phase,
        "hostIP": "127.0.0.1",
        "podIP": "127.0.0.9",
        "podIPs": [{"ip": "127.0.0.9"}],
        "startTime": _SINCE,
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": "main",
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "image": "main:1",
                "imageID": "",
                "state": state,
            }
        ],
    }


def _life(
    controllers: Writer, scheduler: Writer, node: Writer, version: Callable[[Ref], str]
) -> Sequence[tuple[str, _Write]]:
    """Return the writes of a life, in order."""

    def tell(phase: str, *, ready: bool) -> _Write:
        status = _status(phase, ready=ready)
        return lambda number: node.put_status(_ref(number), status, version(_ref(number)))

    def remove(number: int) -> Awaitable[object]:
        return node.delete(_ref(number), _ALWAYS, grace_seconds=0, propagation="Background")

    def mark(number: int) -> Awaitable[object]:
        return controllers.delete(_ref(number), _ALWAYS, grace_seconds=30, propagation="Background")

    opened: Document = {"spec": {"schedulingGates": []}}
    labelled: Document = {"metadata": {"labels": {"seen": "yes"}}}
    return (
        ("created", lambda number: controllers.create(_pod(number))),
        ("its gate opened", lambda number: controllers.patch(_ref(number), opened, _ALWAYS)),
        ("bound", lambda number: scheduler.bind(_ref(number), f"node-{number}", _ALWAYS)),
        ("told as pending", tell("Pending", ready=False)),
        ("told as running", tell("Running", ready=False)),
        ("told as ready", tell("Running", ready=True)),
        ("told the same again", tell("Running", ready=True)),
        ("labelled", lambda number: controllers.patch(_ref(number), labelled, _ALWAYS)),
        ("marked", mark),
        ("removed", remove),
    )


async def _timed(write: _Write) -> float:
    """Return the CPU seconds until every write waits for the disk; then let them be committed."""
    writes = [asyncio.ensure_future(write(number)) for number in range(COUNT)]
    gc.collect()
    gc.disable()
    began = time.process_time()
    await asyncio.sleep(0)
    taken = time.process_time() - began
    gc.enable()
    await asyncio.gather(*writes)
    return taken


async def _measured() -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        world = await open_bench_world()
        store = world.store

        def version(ref: Ref) -> str:
            stored = store.get(ref)  # noqa: B023 - asked in this round alone
            assert stored is not None
            return str(stored.version)

        controllers, scheduler, node = (
            world.writer(Identity(user=f"system:{name}", manager=name))
            for name in ("controllers", "scheduler", "node")
        )
        for name, write in _life(controllers, scheduler, node, version):
            taken = await _timed(write)
            best[name] = min(best.get(name, taken), taken)
        await store.close()
    return best


def run() -> Iterator[str]:
    """Yield what each write of a pod's life costs, and all of them together."""
    best = asyncio.run(_measured())
    for name, seconds in best.items():
        yield f"{name:<20} {seconds / COUNT * 1e6:7.1f} us"
    whole = sum(best.values()) / COUNT * 1e6
    told = "within" if whole <= TARGET else "BEYOND"
    yield f"{'a whole life':<20} {whole:7.1f} us, {told} its {TARGET:,} us"
