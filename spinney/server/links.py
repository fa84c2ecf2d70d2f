"""Links: a connection that is no HTTP any more, taken over from it.

kubectl asks for one of two: a WebSocket, which carries messages, or SPDY/3.1, which is bytes. What
happens on a link is `consoles`' and `multiplexing`'s to say. A link whose peer is gone is found out
by the kernel, and one whose peer reads nothing for long is cut.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Protocol

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_protocol import RequestHandler

from spinney.meta.errors import BadRequest, Forbidden
from spinney.server.asking import Asked

SPDY = "SPDY/3.1"
MESSAGE_BYTES_MAX = 4 * 1024 * 1024
_READ_BYTES = 64 * 1024
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 8}


class Link(Protocol):
    """Carries pieces of bytes, in order, both ways."""

    async def read(self) -> bytes:
        """Return what came in next, b"" at the end."""

    async def write(self, data: bytes) -> None:
        """Send; waits while the peer does not read. Bytes of one call stay together."""

    def abort(self) -> None:
        """Cut it, whatever is on its way."""


def keep_alive(request: web.BaseRequest) -> None:
    """Have the kernel find out when the peer of a long-lived connection is gone without a word.

    It asks the peer's kernel, so that a client which is suspended, or which waits for a person to
    read on, is not taken for one that is gone.
    """
    transport = request.transport
    listening = None if transport is None else transport.get_extra_info("socket")
    if listening is None or listening.family not in (socket.AF_INET, socket.AF_INET6):
        return
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def is_socket(asked: Asked) -> bool:
    """Whether a client asks for a WebSocket; raises BadRequest where it asks for no upgrade."""
    wanted = asked.request.headers.get("Upgrade", "").strip().lower()
    if wanted == "websocket":
        return True
    if (
        wanted != SPDY.lower()
        or "upgrade" not in asked.request.headers.get("Connection", "").lower()
    ):
        raise BadRequest("Upgrade request required")
    return False


# WebSockets


class Socket:
    """A WebSocket, taken apart into messages; fills Link."""

    def __init__(self, response: web.WebSocketResponse, request: web.BaseRequest) -> None:
        """Belong to a response that is open."""
        self.response = response
        self._request = request

    @property
    def protocol(self) -> str:
        """The subprotocol that is spoken."""
        return self.response.ws_protocol or ""

    async def read(self) -> bytes:
        """Return the next message, b"" at the end; empty messages are passed over."""
        while True:
            message = await self.response.receive()
            if message.type is WSMsgType.BINARY:
                data: bytes = message.data
            elif message.type is WSMsgType.TEXT:
                data = message.data.encode()
            else:
                return b""
            if data:
                return data

    async def write(self, data: bytes) -> None:
        """Send one message."""
        await self.response.send_bytes(data)

    def abort(self) -> None:
        """Cut the connection."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def close(self, *, going_away: bool = False) -> None:
        """Say that nothing more will come, and wait a moment for the peer to say so too."""
        code = WSCloseCode.GOING_AWAY if going_away else WSCloseCode.OK
        await self.response.close(code=code)


async def open_socket(asked: Asked, protocols: Iterable[str], close_seconds: float) -> Socket:
    """Answer a WebSocket's handshake; raises BadRequest where the client speaks none of ours.

    `close_seconds` is how long the client may take to read on and to close, once we are done.
    """
    ours = tuple(protocols)
    asked_for = asked.request.headers.get("Sec-WebSocket-Protocol", "")
    if not {word.strip() for word in asked_for.split(",")} & {*ours}:
        raise BadRequest(
            f"unable to upgrade: the client speaks [{asked_for}], expected one of {', '.join(ours)}"
        )
    response = web.WebSocketResponse(
        timeout=close_seconds,
        protocols=ours,
        compress=False,
        max_msg_size=MESSAGE_BYTES_MAX,
    )
    try:
        await response.prepare(asked.request)
    except web.HTTPException as error:
        raise BadRequest(f"unable to upgrade: {error.text}") from error
    keep_alive(asked.request)
    return Socket(response, asked.request)


# Bytes


class Taken(web.StreamResponse):
    """Stands for the answer of a request whose connection was taken over: there is none to send."""

    def __init__(self) -> None:
        """Be the last answer of the connection."""
        super().__init__(status=101)
        self.force_close()

    async def prepare(
        self,
        request: web.BaseRequest,  # noqa: ARG002 the base class names it
    ) -> AbstractStreamWriter | None:
        """Send nothing."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Send nothing."""


class _Protocol(asyncio.StreamReaderProtocol):
    """Reads bytes where HTTP was read, and tells HTTP of the end."""

    def __init__(self, reader: asyncio.StreamReader, http: RequestHandler) -> None:
        super().__init__(reader)
        self._http = http

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._http.connection_lost(exc)


class Raw:
    """A connection as bytes; fills Link."""

    def __init__(self, request: web.BaseRequest, head: bytes) -> None:
        """Take the connection of a request over, and send the head of its answer."""
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client is gone")
        loop = asyncio.get_running_loop()
        self._transport = transport
        self._reader = asyncio.StreamReader(limit=_READ_BYTES)
        protocol = _Protocol(self._reader, request.protocol)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, loop)
        keep_alive(request)
        self._writer.write(head)

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        try:
            return await self._reader.read(_READ_BYTES)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._writer.write(data)
        await self._writer.drain()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    def close(self) -> None:
        """Close the connection, once what was sent is on its way."""
        self._writer.close()


def open_raw(asked: Asked, protocols: Iterable[str]) -> tuple[Raw, str]:
    """Answer an upgrade to SPDY; returns the link and the protocol that is spoken on it.

    Raises Forbidden where the client speaks none of ours.
    """
    ours = tuple(protocols)
    request = asked.request
    theirs = [
        word.strip()
        for line in request.headers.getall("X-Stream-Protocol-Version", ())
        for word in line.split(",")
    ]
    chosen = next((word for word in theirs if word in ours), "")
    if not chosen:
        raise Forbidden(
            f"unable to upgrade: unable to negotiate protocol: client supports {theirs}, "
            f"server accepts {list(ours)}"
        )
    if request.body_exists:
        raise BadRequest("unable to upgrade: a request for an upgrade has no body")
    head = (
        "HTTP/1.1 101 Switching Protocols\r\n"
        f"Connection: Upgrade\r\nUpgrade: {SPDY}\r\n"
        f"X-Stream-Protocol-Version: {chosen}\r\n\r\n"
    )
    return Raw(request, head.encode()), chosen
