"""Connections: HTTP as aiohttp speaks it, with an end for clients that begin and do not go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

HEADER_SECONDS = 30.0
"""How long a new connection may take to ask something whole."""

LINE_BYTES_MAX = 32 * 1024
"""How long a request's line, and each of its headers, may be."""

HEADERS_MAX = 128
KEEPALIVE_SECONDS = 120.0
LINGER_SECONDS = 2.0
"""How long the rest of a body is read that nobody wants any more."""

_LEAVING: dict[RequestHandler, asyncio.Event] = {}

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextlib.contextmanager
def left(request: web.BaseRequest) -> Iterator[asyncio.Event]:
    """Give what is set once the client of a request is gone, which silence does not tell."""
    gone = _LEAVING[request.protocol] = asyncio.Event()
    if request.transport is None or request.transport.is_closing():
        gone.set()
    try:
        yield gone
    finally:
        _LEAVING.pop(request.protocol, None)


class Connections:
    """Makes the protocol of each connection, and closes them all in the end."""

    def __init__(self, handle: Handle, header_seconds: float = HEADER_SECONDS) -> None:
        """Have requests answered by a function."""
        self._header_seconds = header_seconds
        self._handle = handle
        self._silent: set[RequestHandler] = set()
        self._server = _Server(
            self._noted,
            access_log=None,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
        )

    async def _noted(self, request: web.BaseRequest) -> web.StreamResponse:
        self._silent.discard(request.protocol)
        return await self._handle(request)

    def new(self) -> RequestHandler:
        """Return the protocol of a new connection; it has so long to ask something."""
        protocol = self._server()
        self._silent.add(protocol)
        asyncio.get_running_loop().call_later(self._header_seconds, self._check, protocol)
        return protocol

    def _check(self, protocol: RequestHandler) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            protocol.force_close()

    async def close(self, seconds: float) -> None:
        """Let requests end for so long, then close everything; what comes still is refused."""
        self._server.is_closing = True
        self._server.pre_shutdown()
        await self._server.shutdown(seconds)


class _Server(web.Server):
    """Knows its connections; one that was being accepted while it closed is cut at once.

    It would be in no list of what is to be closed, and stay open with nobody behind it.
    """

    is_closing = False

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self.is_closing:
            transport.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if (gone := _LEAVING.get(handler)) is not None:
            gone.set()
