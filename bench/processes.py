"""Real processes: two hundred pods of one process each, beside spawning as many by hand.

By hand: `subprocess.Popen`, with pipes for the output, and nothing that reads them, contains what
is forked or takes note of anything.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from spinney.api.core.pod import Pod
from spinney.app.real import SystemClock, SystemEntropy
from spinney.meta.metadata import ObjectMeta
from spinney.nodes.processes.runtime import ProcessRuntime
from spinney.nodes.processes.settings import Settings
from spinney.nodes.processes.spawning import Isolation, SpawnerFailed
from spinney.ports import ContainerPlan

PODS = 200
ROUNDS = 3
COMMAND = ("sleep", "1000")


def by_hand() -> float:
    """Return the seconds that spawning takes."""
    began = time.perf_counter()
    spawned = [
        subprocess.Popen(
            COMMAND,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(PODS)
    ]
    taken = time.perf_counter() - began
    for process in spawned:
        process.terminate()
    for process in spawned:
        process.communicate()
    return taken


def prepared(isolation: Isolation) -> tuple[float, float, float]:
    """Return the seconds until all pods run, until all were stopped, and until all are removed."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_prepared(Path(folder), isolation))


async def _prepared(folder: Path, isolation: Isolation) -> tuple[float, float, float]:
    settings = Settings(isolation=isolation, gpus=())
    runtime = await ProcessRuntime.open(folder, SystemClock(), SystemEntropy(), settings)
    names = [f"pod-{number}" for number in range(PODS)]

    async def start(name: str) -> None:
        metadata = ObjectMeta(name=name, namespace="default", uid=name)
        sandbox = await runtime.prepare(Pod(metadata=metadata), {})
        await runtime.start(sandbox, ContainerPlan(name="main", attempt=0, command=COMMAND))

    try:
        moments = [time.perf_counter()]
        await asyncio.gather(*map(start, names))
        moments.append(time.perf_counter())
        await asyncio.gather(*(runtime.stop(name, "main", 30) for name in names))
        moments.append(time.perf_counter())
        await asyncio.gather(*map(runtime.remove, names))
        moments.append(time.perf_counter())
    finally:
        await runtime.close()
    first, second, third = (after - before for before, after in itertools.pairwise(moments))
    return first, second, third


def run() -> Iterator[str]:
    """Measure, and say what came out."""
    hand = min(by_hand() for _ in range(ROUNDS))
    yield f"{PODS} processes by hand: {hand * 1000:.0f} ms, {os.cpu_count()} processors"
    for isolation in Isolation:
        try:
            rounds = [prepared(isolation) for _ in range(ROUNDS)]
        except SpawnerFailed as error:
            yield f"{isolation.value}: cannot be had here: {error}"
            continue
        up, down, gone = (min(times) for times in zip(*rounds, strict=True))
        yield (
            f"{PODS} pods, own {isolation.value}: running after {up / hand:.2f} times that, "
            f"stopped in {down / hand:.2f}, removed in {gone / hand:.2f}"
        )
