"""What an agent that is killed leaves: nothing that runs, and a record of what did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.testing.clock import ManualClock
from tests.nodes.processes.pods import (
    Watched,
    log_of,
    plan,
    pod,
    run,
    runtime_of,
    shell,
    wait_gone,
)
from tests.nodes.processes.tiers import EVERY_TIER

ROOT = Path(__file__).resolve().parents[3]

AGENT = """
import asyncio, sys
from pathlib import Path
from tests.nodes.processes import pods

async def main():
    tier = next(each for each in pods.POSSIBLE if each.name == sys.argv[2])
    async with pods.runtime_of(Path(sys.argv[1]), tier) as (runtime, seen):
        sandbox = await runtime.prepare(pods.pod(), {})
        await runtime.start(sandbox, pods.shell("exit 3", name="done"))
        await seen.end("done")
        script = f'exec 3>"{sys.argv[3]}"; (setsid sleep 1000 &); echo up; sleep 1000'
        await runtime.start(sandbox, pods.shell(script))
        await pods.said(runtime, b"up\\n")
        print(runtime._machine._spawner.process_id, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@EVERY_TIER
@pytest.mark.parametrize("who", ["the agent", "both"])
def test_nothing_outlives_a_killed_agent_and_the_next_says_so(tmp_path, tier, who):
    """With `both` the spawner is killed first, so nothing below it can rely on it."""
    alive = Watched(tmp_path)
    folder = tmp_path / "pods"
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, folder, tier.name, alive.path],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    spawner = int(agent.stdout.readline())
    if who == "both":
        os.kill(agent.pid, signal.SIGSTOP)
        os.kill(spawner, signal.SIGKILL)
    agent.kill()
    agent.wait()
    agent.stdout.close()

    async def main():
        async with runtime_of(folder, tier) as (runtime, seen):
            found = {state.container: state for state in await runtime.adopt()}
            await alive.gone()
            assert found["done"].exit_code == 3
            assert (found["main"].exit_code, found["main"].reason) == (
                137,
                "ContainerStatusUnknown",
            )
            assert found["main"].started_at <= found["main"].ended_at
            assert await runtime.adopt() == tuple(found.values())
            assert await log_of(runtime) == b"up\n"
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("exit 1"))
            assert seen.states == [], "an attempt is not run twice"
            await runtime.start(sandbox, shell("exit 7", attempt=1))
            assert (await seen.end(attempt=1)).exit_code == 7
            assert await log_of(runtime, previous=True) == b"up\n"

    run(main())


@EVERY_TIER
def test_what_escaped_is_found_by_its_marker(tmp_path, tier):
    """A process with our marker that nobody watches over; one of another world is left alone."""
    (tmp_path / ".shared").mkdir()
    (tmp_path / ".shared/world").write_text("ours\n")

    def left(world):
        return subprocess.Popen(
            ["sleep", "1000"],
            env={**os.environ, "SPINNEY_CONTAINER": f"{world}/uid-web-0/main/0"},
        )

    mine, others = left("ours"), left("theirs")
    descriptor = os.pidfd_open(mine.pid)

    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            await runtime.adopt()

    try:
        run(main())
        wait_gone(descriptor)
        assert others.poll() is None
    finally:
        for process in (mine, others):
            process.kill()
            process.wait()


@EVERY_TIER
def test_adopting_leaves_alone_what_runs_here(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000"))
            (state,) = await runtime.adopt()
            assert state.ended_at is None
            assert state.started_at is not None
            await runtime.stop("uid-web-0", "main", 30)
            assert (await seen.end()).signal == signal.SIGTERM

    run(main())


def test_an_address_is_remembered_and_removed_pods_are_gone(tmp_path):
    async def main():
        async with runtime_of(tmp_path, clock=ManualClock()) as (runtime, _):
            first = await runtime.prepare(pod("a"), {})
            second = await runtime.prepare(pod("b"), {})
            assert first.ip != second.ip
        async with runtime_of(tmp_path) as (runtime, seen):
            assert (await runtime.prepare(pod("a"), {})).ip == first.ip
            await runtime.start(first, plan("sleep", "1000"))
            locked = Path(first.root) / "containers/main/work/locked"
            (locked / "below").mkdir(parents=True)
            locked.chmod(0)
            await runtime.remove("uid-a")
            await runtime.remove("uid-a")
            assert (await seen.end()).signal == signal.SIGKILL
            assert sorted(path.name for path in tmp_path.iterdir()) == [".shared", "uid-b"]
            assert not list((tmp_path / ".shared").glob("removed-*"))

    run(main())


def test_a_removal_that_was_cut_short_is_taken_up(tmp_path):
    async def main():
        half = tmp_path / ".shared/removed-uid-x/volumes"
        half.mkdir(parents=True)
        async with runtime_of(tmp_path) as (runtime, _):
            assert await runtime.adopt() == ()
            assert not half.exists()

    run(main())


def test_a_record_that_is_damaged_is_passed_over(tmp_path):
    async def main():
        async with runtime_of(tmp_path) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("exit 1"))
            await seen.end()
            await runtime.start(sandbox, shell("exit 1", attempt=1))
            await seen.end(attempt=1)
        (tmp_path / "uid-web-0/containers/main/1.json").write_bytes(b"{half")
        (tmp_path / "uid-odd").mkdir()
        (tmp_path / "uid-odd/sandbox.json").write_bytes(b"\xff")
        async with runtime_of(tmp_path) as (runtime, _):
            (state,) = await runtime.adopt()
            assert state.attempt == 0

    run(main())
