"""The agent's side of the line: does what is asked of its runtime, a connection at a time each.

When the asking side goes, what was done for it ends: a command is killed, a log read no further.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import msgspec

from spinney.engine import logs
from spinney.meta import records
from spinney.meta.documents import Document
from spinney.meta.errors import BadRequest, Conflict, SpinneyError
from spinney.nodes.line import frames, sockets
from spinney.nodes.line.frames import Wire
from spinney.nodes.line.messages import (
    ABOUT,
    CONNECT,
    EXEC,
    HOLD,
    LEAVE,
    LOGS,
    Ask,
    Hello,
    Used,
)
from spinney.ports import Clock, LogOptions, PodRuntime, Window

FIRST_SECONDS_MAX: Final = 10
MEASURE_PERIOD: Final = timedelta(seconds=15)

_log = logs.logger("line")


class Service(Protocol):
    """What an agent does for a control plane, beside its runtime."""

    @property
    def runtime(self) -> PodRuntime:
        """What runs its pods."""

    def hello(self) -> Hello:
        """Say who it is."""

    def held(self, ask: Ask) -> None:
        """Take note that a control plane is there; raises Conflict where it is another's."""

    def let_go(self) -> None:
        """Take note that it is there no more."""

    async def measured(self) -> Used:
        """Return what pods and machine use."""

    async def leave(self, grace_seconds: int) -> None:
        """End all pods, and afterwards this process."""


class LineServer:
    """Answers on the line."""

    def __init__(self, service: Service, clock: Clock) -> None:
        """Do what is asked for a service."""
        self._service = service
        self._clock = clock
        self._holder: Wire | None = None

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Listen at a path; raises OSError."""
        server = await asyncio.start_unix_server(self._serve, sock=sockets.listen(path))
        try:
            yield
        finally:
            server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer)
        try:
            if sockets.is_owner(writer):
                await self._answer(wire)
        except (OSError, asyncio.CancelledError):
            return
        finally:
            wire.abort()

    async def _answer(self, wire: Wire) -> None:
        try:
            async with asyncio.timeout(FIRST_SECONDS_MAX):
                ask = await _first(wire)
            do = self._doings.get(ask.what)
            if do is None:
                raise BadRequest(f'the agent does not know "{ask.what}": is it of this version?')
            await do(wire, ask)
        except OSError:
            raise
        except SpinneyError as error:
            await wire.send_json(frames.fault_of(error))
        except Exception as error:  # noqa: BLE001 - one thing asked must not end the line
            _log.exception("a bug", extra=logs.fields(what="line"))
            await wire.send_json(frames.fault_of(error))

    @property
    def _doings(self) -> dict[str, Callable[[Wire, Ask], Awaitable[None]]]:
        return {
            HOLD: self._hold,
            ABOUT: self._about,
            LOGS: self._logs,
            EXEC: self._exec,
            CONNECT: self._connect,
            LEAVE: self._leave,
        }

    async def _hold(self, wire: Wire, ask: Ask) -> None:
        """Tell what is measured, for as long as the control plane is there."""
        self._service.held(ask)
        former, self._holder = self._holder, wire
        if former is not None:
            former.abort()
        try:
            await wire.send_json({"hello": _document(self._service.hello())})
            await _until_gone(wire, self._measure(wire))
        finally:
            if self._holder is wire:
                self._holder = None
                self._service.let_go()

    async def _about(self, wire: Wire, _ask: Ask) -> None:
        await wire.send_json({"hello": _document(self._service.hello())})

    async def _measure(self, wire: Wire) -> None:
        while True:
            await wire.send_json({"used": _document(await self._service.measured())})
            await self._clock.sleep(MEASURE_PERIOD)

    async def _logs(self, wire: Wire, ask: Ask) -> None:
        options = LogOptions(
            follow=ask.follow,
            previous=ask.previous,
            timestamps=ask.timestamps,
            tail_lines=ask.tail_lines,
            since=ask.since,
            limit_bytes=ask.limit_bytes,
        )

        async def copy() -> None:
            chunks = self._service.runtime.logs(ask.pod_uid, ask.container, options)
            try:
                async for chunk in chunks:
                    await wire.send(frames.DATA, chunk)
            finally:
                close = getattr(chunks, "aclose", None)
                if close is not None:
                    await close()
            await wire.send_json({})

        await _until_gone(wire, copy())

    async def _exec(self, wire: Wire, ask: Ask) -> None:
        console = _Far(wire)

        async def run() -> None:
            code = await self._service.runtime.exec(
                ask.pod_uid, ask.container, ask.command, console, terminal=ask.terminal
            )
            await wire.send_json({"code": code})

        await _until_done(run(), console.listen())

    async def _connect(self, wire: Wire, ask: Ask) -> None:
        try:
            streams = await self._service.runtime.connect(ask.pod_uid, ask.port)
        except OSError as error:
            raise BadRequest(error.strerror or str(error)) from error
        await wire.send_json({})

        async def outwards() -> None:
            while data := await streams.read():
                await wire.send(frames.DATA, data)
            await wire.send(frames.END)

        async def inwards() -> None:
            while True:
                sort, body = await wire.receive()
                if sort == frames.DATA:
                    await streams.write(body)
                elif sort == frames.END:
                    await streams.end()

        sending = asyncio.create_task(outwards())
        try:
            await inwards()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await streams.close()

    async def _leave(self, wire: Wire, ask: Ask) -> None:
        await self._service.leave(ask.grace_seconds)
        await wire.send_json({})


class _Far:
    """The console on the other side of the line; fills ports.Console."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(maxsize=16)
        self._windows: asyncio.Queue[Window | None] = asyncio.Queue()

    async def listen(self) -> None:
        """Take what comes, until the other side is gone."""
        try:
            while True:
                sort, body = await self._wire.receive()
                if sort == frames.DATA and body:
                    await self._typed.put(body)
                elif sort == frames.END:
                    await self._typed.put(b"")
                elif sort == frames.WINDOW:
                    columns, rows = (int.from_bytes(body[at : at + 2], "big") for at in (0, 2))
                    self._windows.put_nowait(Window(columns=columns, rows=rows))
        finally:
            self._windows.put_nowait(None)

    async def read(self) -> bytes:
        return await self._typed.get()

    async def write(self, data: bytes) -> None:
        await self._wire.send(frames.DATA, data)

    async def write_error(self, data: bytes) -> None:
        await self._wire.send(frames.ERRORS, data)

    async def resized(self) -> Window | None:
        return await self._windows.get()


async def _first(wire: Wire) -> Ask:
    document = await wire.receive_json()
    try:
        return records.decode(Ask, document)
    except SpinneyError as error:
        raise BadRequest(f"the agent cannot read what is asked: {error}") from error


async def _until_gone(wire: Wire, work: Coroutine[object, object, None]) -> None:
    """Do something as long as the other side, which sends no more, is there."""

    async def listen() -> None:
        while True:
            await wire.receive()

    await _until_done(work, listen())


async def _until_done(
    work: Coroutine[object, object, None], listening: Coroutine[object, object, None]
) -> None:
    """Do something; the end of the other side ends it."""
    tasks = [asyncio.create_task(work), asyncio.create_task(listening)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(done[0], Exception):
        raise done[0]


def _document(record: Hello | Used) -> Document:
    document: Document = msgspec.json.decode(msgspec.json.encode(record))
    return document


def refuse_other(ask: Ask, world: str, version: str) -> None:
    """Raise Conflict where a control plane is of another world or version than the one served."""
    for what, mine, asked in (
        ("world", world, ask.world),
        ("version", version, ask.version),
    ):
        if mine and asked != mine:
            raise Conflict(f"this agent serves {what} {mine}, not {asked}")
