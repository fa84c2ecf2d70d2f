"""Running a command beside a container, for somebody at a console."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from spinney.nodes.processes import ends
from spinney.nodes.processes.containers import Container, Failure
from spinney.nodes.processes.descriptors import Descriptor
from spinney.nodes.processes.spawner import launching, messages
from spinney.nodes.processes.spawner.messages import Message
from spinney.nodes.processes.spawner.plans import ExecPlan
from spinney.ports import Console

NOT_FOUND_CODE = 127
NOT_STARTED_CODE = 126
END_OF_INPUT = b"\x04"

Write = Callable[[bytes], Awaitable[None]]


async def run(
    container: Container,
    environment: Mapping[str, str],
    command: tuple[str, ...],
    console: Console,
    *,
    terminal: bool,
) -> int:
    """Run a command; returns its exit code. It is killed where the caller goes away."""
    talk = Terminal(console) if terminal else Pipes(console)
    made = {**environment, "TERM": environment.get("TERM", "xterm")} if terminal else environment
    plan: ExecPlan = {
        "command": list(command),
        "environment": dict(made),
        "terminal": talk.path,
    }
    holder = messages.write_plan(cast(Message, plan))
    try:
        begun = await container.begin_exec(holder, talk.theirs)
    except OSError:
        talk.close()
        return ends.KILLED_CODE
    finally:
        os.close(holder)
        talk.let_go()
    pumps = [asyncio.ensure_future(pump) for pump in talk.pumps()]
    try:
        end = await begun.wait()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        await talk.finish()
    finally:
        for pump in pumps:
            pump.cancel()
        await begun.kill()
        talk.close()
    if isinstance(end, Failure):
        path = environment.get("PATH", launching.PATH)
        told = ends.program_not_started(end.number, end.subject, end.text, command[0], path)
        await console.write_error(f"{told}\n".encode())
        return NOT_FOUND_CODE if end.number == errno.ENOENT else NOT_STARTED_CODE
    if end is None:
        return ends.KILLED_CODE
    return end if end >= 0 else 128 - end


class Pipes:
    """A command's input, output and errors, apart."""

    path = ""

    def __init__(self, console: Console) -> None:
        """Make the pipes."""
        self._console = console
        input_theirs, input_ours = os.pipe2(os.O_CLOEXEC)
        output_ours, output_theirs = os.pipe2(os.O_CLOEXEC)
        errors_ours, errors_theirs = os.pipe2(os.O_CLOEXEC)
        self.theirs: tuple[int, ...] = (input_theirs, output_theirs, errors_theirs)
        self._input = Descriptor(input_ours)
        self._outputs: list[tuple[Descriptor, Write]] = [
            (Descriptor(output_ours), console.write),
            (Descriptor(errors_ours), console.write_error),
        ]
        self._unsent: dict[Descriptor, bytes] = {}

    def let_go(self) -> None:
        """Close the command's own ends."""
        for each in self.theirs:
            os.close(each)
        self.theirs = ()

    def pumps(self) -> list[Awaitable[None]]:
        """Return what carries data until it is cancelled."""
        return [
            self._carry_input(),
            *(self._carry_output(source, write) for source, write in self._outputs),
        ]

    async def _carry_input(self) -> None:
        while data := await self._console.read():
            if not await self._input.write(data):
                return
        self._input.close()

    async def _carry_output(self, source: Descriptor, write: Write) -> None:
        while data := self._unsent.get(source) or await source.read():
            self._unsent[source] = data
            await write(data)
            self._unsent[source] = b""

    async def finish(self) -> None:
        """Carry what the command left in its outputs, and wait for no more."""
        for source, write in self._outputs:
            if data := self._unsent.pop(source, b""):
                await write(data)
            while data := source.read_now():
                await write(data)

    def close(self) -> None:
        """Let go of everything."""
        self._input.close()
        for source, _ in self._outputs:
            source.close()


class Terminal:
    """A terminal of a command's own."""

    def __init__(self, console: Console) -> None:
        """Make the terminal."""
        self._console = console
        ours, self._theirs = os.openpty()
        self.path = os.ttyname(self._theirs)
        self.theirs: tuple[int, ...] = ()
        self._terminal = Descriptor(ours)
        self._unsent = b""

    def let_go(self) -> None:
        """Keep the command's end open: until it has opened it itself, there would be none."""

    def pumps(self) -> list[Awaitable[None]]:
        """Return what carries data until it is cancelled."""
        return [self._carry_input(), self._carry_output(), self._resize()]

    async def _carry_input(self) -> None:
        while data := await self._console.read():
            if not await self._terminal.write(data):
                return
        await self._terminal.write(END_OF_INPUT)

    async def _carry_output(self) -> None:
        while data := self._unsent or await self._terminal.read():
            self._unsent = data
            await self._console.write(data)
            self._unsent = b""

    async def _resize(self) -> None:
        while (window := await self._console.resized()) is not None:
            size = struct.pack("HHHH", window.rows, window.columns, 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._terminal.number, termios.TIOCSWINSZ, size)

    async def finish(self) -> None:
        """Carry what the command left on its terminal."""
        if self._unsent:
            await self._console.write(self._unsent)
        while data := self._terminal.read_now():
            await self._console.write(data)

    def close(self) -> None:
        """Let go of it; whoever still uses it is hung up on."""
        self._terminal.close()
        if self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1
