"""Forwarding: connections of a client's, carried to ports of a pod.

Over SPDY, directly or inside a WebSocket, each connection is a pair of streams that name its port
and number: one for its bytes, one for what went wrong. Over a plain WebSocket every port has one
connection and two channels, which begin with the port's number.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Protocol

from spinney.meta.errors import ApiError, BadRequest
from spinney.ports import PodRuntime, Streams
from spinney.server import parameters, spdy
from spinney.server.asking import LOG
from spinney.server.containers import Place
from spinney.server.inboxes import Inbox
from spinney.server.lifetimes import ended
from spinney.server.links import Socket
from spinney.server.multiplexing import Session, Stream

SPDY_PROTOCOLS = ("portforward.k8s.io",)
TUNNEL = "SPDY/3.1+portforward.k8s.io"
CHANNELS = "v4.channel.k8s.io"
SOCKET_PROTOCOLS = (TUNNEL, CHANNELS)

PAIR_SECONDS = 30.0
"""How long a client may take to open the second stream of a connection."""

PORTS_MAX = 100
PORT_MAX = 65535


class Client(Protocol):
    """A client's end of one connection."""

    gone: asyncio.Event
    """Set once it is gone in both directions."""

    async def read(self) -> bytes:
        """Return what came in, b"" at the end."""

    async def write(self, data: bytes) -> None:
        """Send; raises ConnectionError where it is gone."""


async def relay(runtime: PodRuntime, place: Place, port: int, client: Client) -> str:
    """Carry a connection to its end; returns what kept it from being opened, "" if nothing did."""
    try:
        inside = await runtime.connect(place.uid, port)
    except (ApiError, OSError) as error:
        said = error.message if isinstance(error, ApiError) else str(error)
        return f"error forwarding port {port} to pod {place.pod}, uid {place.uid}: {said}"
    inward = asyncio.create_task(_inward(client, inside))
    outward = asyncio.create_task(_outward(inside, client))
    leaving = asyncio.create_task(client.gone.wait())
    try:
        await asyncio.wait({outward, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await ended(inward, outward, leaving)
        finally:
            await inside.close()
    return ""


async def _inward(client: Client, inside: Streams) -> None:
    try:
        while data := await client.read():
            await inside.write(data)
        await inside.end()
    except OSError:
        return


async def _outward(inside: Streams, client: Client) -> None:
    try:
        while data := await inside.read():
            await client.write(data)
    except OSError:
        return


# Over SPDY


class Forwarder:
    """Serves the connections of one session."""

    def __init__(self, session: Session, runtime: PodRuntime, place: Place) -> None:
        """Carry them to a pod."""
        self._session = session
        self._runtime = runtime
        self._place = place
        self._halves: dict[str, asyncio.Future[Stream]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Take connections until the client opens no more; those that are open end first."""
        try:
            while (stream := await self._session.accept()) is not None:
                await self._take(stream)
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            await ended(*self._tasks)

    async def _take(self, stream: Stream) -> None:
        key, kind = stream.headers.get("requestid", ""), stream.headers.get("streamtype", "")
        port = _port(stream.headers.get("port", ""))
        if port is None or kind not in ("data", "error"):
            await stream.reset()
            return
        waiting = self._halves.pop(f"{key} {kind}", None)
        if waiting is not None:
            waiting.set_result(stream)
            return
        other = "data" if kind == "error" else "error"
        awaited = asyncio.get_running_loop().create_future()
        if f"{key} {other}" in self._halves:
            await stream.reset()
            return
        self._halves[f"{key} {other}"] = awaited
        task = asyncio.create_task(self._paired(stream, kind, port, f"{key} {other}", awaited))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _paired(
        self, stream: Stream, kind: str, port: int, key: str, awaited: asyncio.Future[Stream]
    ) -> None:
        try:
            async with asyncio.timeout(PAIR_SECONDS):
                other = await awaited
        except TimeoutError:
            self._halves.pop(key, None)
            await stream.reset()
            return
        error, data = (stream, other) if kind == "error" else (other, stream)
        try:
            wrong = await relay(self._runtime, self._place, port, data)
            if wrong:
                await error.write(wrong.encode())
            await error.end()
            await data.end()
            error.inbox.drop()
            data.inbox.drop()
        except ConnectionError:
            return
        except Exception:  # noqa: BLE001 the other connections of the client go on
            LOG.exception("a forwarded connection failed", extra={"object": self._place.pod})
            await _reset(error, data)


async def _reset(*streams: Stream) -> None:
    """Reset streams whose connection came to nothing."""
    for stream in streams:
        with contextlib.suppress(ConnectionError):
            await stream.reset(spdy.INTERNAL_ERROR)


def _port(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        return None
    return int(text) if 0 < int(text) <= PORT_MAX else None


# Over a plain WebSocket


class Channel:
    """One port's channel of a WebSocket; fills Client."""

    def __init__(self, socket: Socket, number: int) -> None:
        """Be a channel, by its number."""
        self._socket = socket
        self._number = number
        self.inbox = Inbox()
        self.gone = asyncio.Event()

    async def read(self) -> bytes:
        """Return what came next, b"" at the end."""
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        """Send a message."""
        await self._socket.write(bytes([self._number]) + data)


def ports_of(query: str) -> tuple[int, ...]:
    """Return the ports a query asks for; raises BadRequest where one is none."""
    words = [word for value in parameters.every(query, "ports") for word in value.split(",")]
    found = tuple(_port(word.strip()) or 0 for word in words)
    if not found:
        raise BadRequest('query parameter "ports" is required')
    if len(found) > PORTS_MAX:
        raise BadRequest(f"{len(found)} ports, at most {PORTS_MAX} can be asked for at once")
    for word, port in zip(words, found, strict=True):
        if not port:
            raise BadRequest(f'port "{word[:20]}" must be between 1 and {PORT_MAX}')
    return found


class Channels:
    """Serves the ports of one WebSocket."""

    def __init__(self, socket: Socket, ports: tuple[int, ...]) -> None:
        """Carry these ports."""
        self._socket = socket
        self._ports = ports
        self._data = [Channel(socket, 2 * index) for index in range(len(ports))]
        self._errors = [Channel(socket, 2 * index + 1) for index in range(len(ports))]

    async def listen(self) -> None:
        """Take messages until the client is gone."""
        try:
            while message := await self._socket.read():
                index, is_error = divmod(message[0], 2)
                if index < len(self._data) and not is_error:
                    await self._data[index].inbox.put(message[1:])
        except ConnectionError:
            return
        finally:
            for channel in self._data:
                channel.gone.set()
                channel.inbox.end()

    async def run(self, runtime: PodRuntime, place: Place) -> None:
        """Carry every port's connection to its end."""
        for port, data, error in zip(self._ports, self._data, self._errors, strict=True):
            told = struct.pack("<H", port)
            await data.write(told)
            await error.write(told)
        tasks = [
            asyncio.create_task(self._port(runtime, place, index))
            for index in range(len(self._ports))
        ]
        try:
            await asyncio.wait(tasks)
        finally:
            await ended(*tasks)

    async def _port(self, runtime: PodRuntime, place: Place, index: int) -> None:
        data = self._data[index]
        try:
            wrong = await relay(runtime, place, self._ports[index], data)
            if wrong:
                await self._errors[index].write(wrong.encode())
        except ConnectionError:
            return
        finally:
            data.inbox.drop()
