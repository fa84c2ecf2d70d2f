"""Consoles: a person at a client, talking to a command that runs in a container.

Over a WebSocket, each message begins with the number of its channel; over SPDY, each channel is a
stream. Either way the command's end is told by a `Status` in the error channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec
from aiohttp import web

from spinney.meta.documents import Document
from spinney.meta.errors import BadRequest
from spinney.meta.records import Record
from spinney.ports import Window
from spinney.server import links, parameters, replies
from spinney.server.asking import LOG, Asked
from spinney.server.inboxes import Inbox, Sizes
from spinney.server.links import Raw, Socket, Taken
from spinney.server.multiplexing import Session, Stream

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
SOCKET_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""What is spoken over a WebSocket; with the fifth, a client can end its input."""

SPDY_PROTOCOLS = ("v4.channel.k8s.io",)
BEGIN_SECONDS = 30.0
"""How long a client may take to open the streams it asked for."""

SIZE_BYTES_MAX = 1024
CELLS_MAX = 65535

Send = Callable[[bytes], Awaitable[None]]


class Wanted(Record):
    """Which channels a client asks for."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    terminal: bool = False


def wanted_of(query: parameters.Query) -> Wanted:
    """Return which channels a query asks for; raises BadRequest where there are none."""
    terminal = parameters.flag(query, "tty")
    found = Wanted(
        stdin=parameters.flag(query, "stdin"),
        stdout=parameters.flag(query, "stdout"),
        stderr=parameters.flag(query, "stderr") and not terminal,
        terminal=terminal,
    )
    if not (found.stdin or found.stdout or found.stderr):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    return found


class Remote:
    """A client's side of a command; fills `ports.Console`."""

    def __init__(self, output: Send | None, errors: Send | None) -> None:
        """Send what is printed on, or drop it where the client asked for none of it."""
        self.typed = Inbox()
        self.sizes = Sizes()
        self._output = output
        self._errors = errors

    async def read(self) -> bytes:
        """Return what was typed next, b"" at the end."""
        return await self.typed.get()

    async def write(self, data: bytes) -> None:
        """Send what the command printed."""
        if self._output is not None and data:
            await self._output(data)

    async def write_error(self, data: bytes) -> None:
        """Send what it printed as errors."""
        if self._errors is not None and data:
            await self._errors(data)

    async def resized(self) -> Window | None:
        """Wait for the terminal's next size."""
        return await self.sizes.get()

    def take_size(self, data: bytes) -> None:
        """Take a size as clients send it; what is none is passed over."""
        try:
            size = msgspec.json.decode(data, type=_Size)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if 0 < size.Width <= CELLS_MAX and 0 < size.Height <= CELLS_MAX:
            self.sizes.put(Window(columns=size.Width, rows=size.Height))

    def end_input(self) -> None:
        """Let the command read to the end: nothing more will be typed."""
        self.typed.end()
        self.sizes.end()


class _Size(msgspec.Struct):
    Width: int = 0
    Height: int = 0


Work = Callable[[Remote], Coroutine[Any, Any, Document]]
"""What is done with a client at its console; returns how it ended."""


class Talk(Protocol):
    """A conversation with a client, however it is carried."""

    console: Remote

    async def listen(self) -> None:
        """Take what the client sends, until it is gone."""

    async def begin(self) -> None:
        """Have all channels open; raises ConnectionError where the client opens them not."""

    async def conclude(self, status: Document) -> None:
        """Tell how it ended, and end; what was sent before still arrives."""

    def close(self) -> None:
        """Let the connection go."""


class SocketTalk:
    """A conversation over a WebSocket."""

    def __init__(self, socket: Socket, wanted: Wanted, stall_seconds: float) -> None:
        """Talk over a socket that is open."""
        self._socket = socket
        self._wanted = wanted
        self._stall_seconds = stall_seconds
        self.console = Remote(
            (lambda data: self._send(STDOUT, data)) if wanted.stdout else None,
            (lambda data: self._send(STDERR, data)) if wanted.stderr else None,
        )
        if not wanted.stdin:
            self.console.typed.end()
        if not wanted.terminal:
            self.console.sizes.end()

    async def begin(self) -> None:
        """Say, by a message with nothing in it, that channels are open."""
        wanted = self._wanted
        await self._send(STDOUT if wanted.stdout else STDERR if wanted.stderr else ERROR, b"")

    async def listen(self) -> None:
        """Take messages."""
        console = self.console
        can_end = self._socket.protocol == SOCKET_PROTOCOLS[0]
        try:
            while message := await self._socket.read():
                channel, data = message[0], message[1:]
                if channel == STDIN:
                    await console.typed.put(data)
                elif channel == RESIZE:
                    console.take_size(data[:SIZE_BYTES_MAX])
                elif channel == CLOSE and can_end and data[:1] == bytes([STDIN]):
                    console.typed.end()
        except ConnectionError:
            LOG.debug("a client left")
        finally:
            console.end_input()

    async def conclude(self, status: Document) -> None:
        """Send the status and close."""
        self.console.typed.drop()
        await self._send(ERROR, replies.encoded(status))
        await self._socket.close()

    def close(self) -> None:
        """Leave it to HTTP, which closes what it opened."""

    async def _send(self, channel: int, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._stall_seconds):
                await self._socket.write(bytes([channel]) + data)
        except TimeoutError as error:
            self._socket.abort()
            raise ConnectionResetError("the client reads nothing") from error


class SpdyTalk:
    """A conversation over SPDY."""

    def __init__(self, raw: Raw, wanted: Wanted, stall_seconds: float) -> None:
        """Talk over a connection that was taken over."""
        self._raw = raw
        self._session = Session(raw, stall_seconds)
        self._stall_seconds = stall_seconds
        self._streams: dict[str, Stream] = {}
        self._names = {
            "error": True,
            "stdin": wanted.stdin,
            "stdout": wanted.stdout,
            "stderr": wanted.stderr,
            "resize": wanted.terminal,
        }
        self.console = Remote(
            (lambda data: self._streams["stdout"].write(data)) if wanted.stdout else None,
            (lambda data: self._streams["stderr"].write(data)) if wanted.stderr else None,
        )
        self._feeders: list[asyncio.Task[None]] = []

    async def listen(self) -> None:
        """Take frames."""
        try:
            await self._session.run()
        finally:
            self.console.end_input()
            for feeder in self._feeders:
                feeder.cancel()
            await asyncio.gather(*self._feeders, return_exceptions=True)

    async def begin(self) -> None:
        """Wait for the streams the client asked for."""
        missing = {name for name, is_wanted in self._names.items() if is_wanted}
        try:
            async with asyncio.timeout(BEGIN_SECONDS):
                while missing:
                    stream = await self._session.accept()
                    if stream is None:
                        raise ConnectionResetError("the client left")
                    name = stream.headers.get("streamtype", "")
                    if name not in missing:
                        await stream.reset()
                        continue
                    missing.discard(name)
                    self._streams[name] = stream
        except TimeoutError as error:
            self._raw.abort()
            raise ConnectionResetError("the client did not open its streams") from error
        self._feed()

    def _feed(self) -> None:
        console = self.console
        if "stdin" in self._streams:
            console.typed = self._streams["stdin"].inbox
        else:
            console.typed.end()
        if "resize" in self._streams:
            self._feeders.append(asyncio.create_task(self._take_sizes(self._streams["resize"])))
        else:
            console.sizes.end()

    async def _take_sizes(self, stream: Stream) -> None:
        """Take sizes, which come one after another, in whatever pieces."""
        waiting = b""
        while data := await stream.read():
            waiting = (waiting + data)[-SIZE_BYTES_MAX:]
            *whole, waiting = waiting.split(b"}")
            for text in whole:
                self.console.take_size(text + b"}")
        self.console.sizes.end()

    async def conclude(self, status: Document) -> None:
        """Send the status, end all streams, and wait for the client to close."""
        for name in ("stdin", "resize"):
            if (stream := self._streams.get(name)) is not None:
                stream.inbox.drop()
        if (error := self._streams.get("error")) is not None:
            await error.write(replies.encoded(status))
        for stream in self._streams.values():
            await stream.end()
        await self._session.finish()

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


async def begin(
    asked: Asked, wanted: Wanted, stall_seconds: float
) -> tuple[Talk, web.StreamResponse]:
    """Answer an upgrade; returns the conversation, and what the request is answered with."""
    if links.is_socket(asked):
        socket = await links.open_socket(asked, SOCKET_PROTOCOLS, stall_seconds)
        return SocketTalk(socket, wanted, stall_seconds), socket.response
    raw, _ = links.open_raw(asked, SPDY_PROTOCOLS)
    return SpdyTalk(raw, wanted, stall_seconds), Taken()
