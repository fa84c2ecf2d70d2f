"""A load: HTTP connections that cost the asking process little, so that the server is measured.

Requests are whole bytes made beforehand; of an answer only its status and its length are read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import cast

from bench.serving import HOST, Running

_END = b"\r\n\r\n"
_LAST = b"0\r\n\r\n"
"""What ends an answer that comes in pieces."""

_LENGTH = b"content-length:"


def request(server: Running, method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request as it goes over the wire."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {server.token}\r\n"
        "User-Agent: bench/1\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """One connection, that asks one thing after the other."""

    def __init__(self) -> None:
        """Be open once it is made."""
        self._transport: asyncio.WriteTransport | None = None
        self._answered: asyncio.Future[int] | None = None
        self._head = b""
        self._status = 0
        self._left = 0
        self.received = 0
        """How many bytes the last answer had, apart from its head."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def ask(self, data: bytes) -> asyncio.Future[int]:
        """Send a request; what it returns is the status, once the answer is there whole."""
        assert self._transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._head, self._status = b"", 0
        self._transport.write(data)
        return self._answered

    def data_received(self, data: bytes) -> None:
        """Take note of what came of the answer."""
        if not self._status:
            self._head += data
            head, end, data = self._head.partition(_END)
            if not end:
                return
            self._status = int(head[9:12])
            _, is_known, length = head.lower().partition(_LENGTH)
            self._left = int(length.split(b"\r\n", 1)[0]) if is_known else -1
            self.received = 0
        self.received += len(data)
        is_whole = data.endswith(_LAST) if self._left < 0 else self.received >= self._left
        if is_whole and self._answered is not None:
            self._answered.set_result(self._status)
            self._answered = None

    def connection_lost(self, error: Exception | None) -> None:
        """Fail what waits for an answer."""
        if self._answered is not None:
            self._answered.set_exception(error or ConnectionResetError("the server hung up"))

    def close(self) -> None:
        """Ask no more."""
        assert self._transport is not None
        self._transport.close()


class Watching(asyncio.Protocol):
    """One watch, that says when a certain text came by."""

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._transport: asyncio.WriteTransport | None = None
        self._wanted = b""
        self._seen = b""
        self._found: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def ask(self, data: bytes, wanted: bytes) -> asyncio.Future[float]:
        """Send a request, if there is one; what it returns is when the text came."""
        assert self._transport is not None
        self._wanted, self._seen = wanted, b""
        self._found = asyncio.get_running_loop().create_future()
        if data:
            self._transport.write(data)
        return self._found

    def data_received(self, data: bytes) -> None:
        """Look for the text."""
        if self._found is None:
            return
        self._seen += data
        if self._wanted in self._seen:
            self._found.set_result(time.perf_counter())
            self._found = None

    def close(self) -> None:
        """Watch no more."""
        assert self._transport is not None
        self._transport.close()


async def connected(server: Running, count: int) -> list[Connection]:
    """Return connections to a server."""
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(Connection, HOST, server.port, ssl=server.tls)
        for _ in range(count)
    ]
    return [protocol for _, protocol in made]


async def watching(server: Running, count: int, path: str) -> list[Watching]:
    """Return watches of a server that have begun."""
    loop = asyncio.get_running_loop()
    watches = []
    for _ in range(count):
        _, watch = await loop.create_connection(Watching, HOST, server.port, ssl=server.tls)
        await watch.ask(request(server, "GET", path), b"200 OK")
        watches.append(watch)
    return watches


async def rate(
    server: Running, count: int, requests: Iterator[bytes], seconds: float, status: int
) -> tuple[float, float]:
    """Return answers a second to so many at once, and the server's CPU seconds for each."""
    connections = await connected(server, count)
    answers = 0
    before, began = await server.cpu_seconds(), time.perf_counter()
    end = began + seconds

    async def ask(connection: Connection) -> None:
        nonlocal answers
        while time.perf_counter() < end:
            found = await connection.ask(next(requests))
            assert found == status, f"expected {status}, got {found}"
            answers += 1

    await asyncio.gather(*map(ask, connections))
    taken = time.perf_counter() - began
    used = await server.cpu_seconds() - before
    for connection in connections:
        connection.close()
    return answers / taken, used / answers
