"""Commands beside a container: with pipes, with a terminal, and when one side goes away."""

from __future__ import annotations

import asyncio

import pytest

from spinney.meta.errors import BadRequest, NotFound
from spinney.ports import Window
from tests.nodes.processes.pods import Watched, plan, pod, run, runtime_of, shell
from tests.nodes.processes.tiers import EVERY_TIER


class Typist:
    """A console that is typed at by a test."""

    def __init__(self, *typed, windows=()):
        self._typed = asyncio.Queue()
        for data in typed:
            self._typed.put_nowait(data)
        self._windows = list(windows)
        self.printed = b""
        self.errors = b""
        self._changed = asyncio.Condition()

    def type(self, data):
        self._typed.put_nowait(data)

    async def read(self):
        return await self._typed.get()

    async def write(self, data):
        async with self._changed:
            self.printed += data
            self._changed.notify_all()

    async def write_error(self, data):
        self.errors += data

    async def resized(self):
        return self._windows.pop(0) if self._windows else None

    async def until(self, what):
        async with self._changed:
            await self._changed.wait_for(lambda: what in self.printed)


@EVERY_TIER
def test_a_command_gets_input_and_its_outputs_are_apart(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000", environment={"COLOUR": "red"}))
            typist = Typist(b"hello ", b"there", b"")
            script = "cat; echo $COLOUR; echo oops >&2; exit 9"
            code = await runtime.exec("uid-web-0", "main", ("sh", "-c", script), typist)
            assert (code, typist.printed, typist.errors) == (9, b"hello therered\n", b"oops\n")

    run(main())


@EVERY_TIER
def test_a_command_gets_a_terminal_of_its_own(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000"))
            typist = Typist(windows=[Window(columns=101, rows=37)])
            script = "tty < /dev/tty >&2; trap 'exit 5' INT; echo ready; while :; do sleep 1; done"
            running = asyncio.ensure_future(
                runtime.exec("uid-web-0", "main", ("sh", "-c", script), typist, terminal=True)
            )
            await typist.until(b"ready")
            typist.type(b"\x03")
            assert await running == 5
            assert b"/dev/" in typist.printed
            assert typist.errors == b""

            sized = Typist(windows=[Window(columns=101, rows=37)])
            script = "read x; stty size"
            running = asyncio.ensure_future(
                runtime.exec("uid-web-0", "main", ("sh", "-c", script), sized, terminal=True)
            )
            await asyncio.sleep(0)
            sized.type(b"go\n")
            assert await running == 0
            assert b"37 101" in sized.printed

    run(main())


@EVERY_TIER
def test_much_output_comes_back_whole_and_what_stays_behind_is_not_waited_for(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000"))
            typist = Typist(b"")
            script = "(sleep 1000 &); exec head -c 3000000 /dev/zero"
            code = await runtime.exec("uid-web-0", "main", ("sh", "-c", script), typist)
            assert (code, len(typist.printed)) == (0, 3_000_000)

    run(main())


@EVERY_TIER
def test_a_caller_that_goes_away_ends_the_command(tmp_path, tier):
    async def main():
        alive = Watched(tmp_path)
        async with runtime_of(tmp_path / "pods", tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000"))
            typist = Typist()
            script = f"exec 3>{alive.path}; echo up; sleep 1000"
            running = asyncio.ensure_future(
                runtime.exec("uid-web-0", "main", ("sh", "-c", script), typist)
            )
            await typist.until(b"up")
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await alive.gone()

    run(main())


@EVERY_TIER
def test_a_container_that_ends_ends_its_commands(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("sleep", "1000"))
            typist = Typist()
            running = asyncio.ensure_future(
                runtime.exec("uid-web-0", "main", ("sh", "-c", "echo up; sleep 1000"), typist)
            )
            await typist.until(b"up")
            await runtime.stop("uid-web-0", "main", 0)
            assert await running == 137
            assert (await seen.end()).exit_code == 137

    run(main())


@EVERY_TIER
def test_what_cannot_be_run_is_told(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            with pytest.raises(NotFound, match="has not been started"):
                await runtime.exec("uid-web-0", "main", ("true",), Typist())
            await runtime.start(sandbox, shell("exit 0"))
            await seen.end()
            with pytest.raises(BadRequest, match="is not running"):
                await runtime.exec("uid-web-0", "main", ("true",), Typist())
            await runtime.start(sandbox, plan("sleep", "1000", attempt=1))
            typist = Typist()
            assert await runtime.exec("uid-web-0", "main", ("nothing-such",), typist) == 127
            assert typist.errors.startswith(b'exec: "nothing-such": executable file not found')
            assert await runtime.exec("uid-web-0", "main", ("/etc/passwd",), typist) == 126
            with pytest.raises(BadRequest, match="a command is needed"):
                await runtime.exec("uid-web-0", "main", (), typist)

    run(main())
