"""Lives of containers: what starts, ends, is stopped, and what is told of it, on every tier."""

from __future__ import annotations

import pytest

from tests.nodes.processes.pods import log_of, pod, run, runtime_of, said, shell
from tests.nodes.processes.tiers import EVERY_TIER


@EVERY_TIER
@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error"), (255, "Error")])
def test_an_exit_code_is_told(tmp_path, tier, code, reason):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell(f"echo out; echo err >&2; exit {code}"))
            end = await seen.end()
            assert (end.exit_code, end.signal, end.reason) == (code, None, reason)
            assert [state.ended_at is None for state in seen.states] == [True, False]
            assert sorted((await log_of(runtime)).split()) == [b"err", b"out"]

    run(main())


@EVERY_TIER
def test_a_signal_is_told(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("kill -9 $$"))
            end = await seen.end()
            assert (end.exit_code, end.signal, end.reason) == (137, 9, "Error")
            assert "which Spinney did not send" in end.message

    run(main())


@EVERY_TIER
def test_a_container_is_asked_to_end(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            script = 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.01; done'
            await runtime.start(sandbox, shell(script))
            await said(runtime, b"up\n")
            await runtime.stop("uid-web-0", "main", 30)
            end = await seen.end()
            assert (end.exit_code, end.reason) == (7, "Error")
            assert await log_of(runtime) == b"up\nbye\n"

    run(main())
