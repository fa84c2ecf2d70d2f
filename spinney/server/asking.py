"""What one request asks, taken apart: the ground all handlers stand on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator

import msgspec
from aiohttp import ClientPayloadError, web, web_protocol

from spinney.meta.errors import ApiError, BadRequest, TooLarge
from spinney.ports import Clock, Nodes
from spinney.registry import requests
from spinney.registry.requests import Request
from spinney.registry.world import World
from spinney.server import bodies, negotiation, parameters, replies
from spinney.server.access import Access, Caller
from spinney.server.bodies import Body
from spinney.server.negotiation import Form
from spinney.server.parameters import Query, WriteOptions
from spinney.server.paths import Target

LOG = logging.getLogger("spinney.server")

BODY_SECONDS = 60
"""How long a client may take to send a body."""

READ_SECONDS = 60.0
STALL_SECONDS = 4 * 3600.0
"""As long a person may take to read on, whose pager holds a log or a command's output back."""

_BROKEN_BODY = (
    ClientPayloadError,
    web_protocol.RequestPayloadError,
    web_protocol.PayloadAccessError,
)

THREAD_JSON_BYTES = 256 * 1024
THREAD_YAML_BYTES = 16 * 1024
"""Larger bodies are read in a thread, so that others are answered meanwhile."""


class Timeout(ApiError):
    """What was asked for did not come to be in time: ask again."""

    code, reason = 504, "Timeout"


class NotImplementedHere(ApiError):
    """The caller: this is known and not offered; the message says what to do instead."""

    code, reason = 501, "NotImplemented"


class Services(msgspec.Struct, frozen=True):
    """What handlers work with."""

    world: World
    access: Access
    clock: Clock
    read_seconds: float = READ_SECONDS
    """How long a client of a long answer may read nothing."""

    compresses_locally: bool = False
    """Whether clients on this machine are compressed for too, which costs more than it saves."""

    nodes: Nodes | None = None
    """The nodes whose pods can be asked; None in a world where nothing runs."""

    stall_seconds: float = STALL_SECONDS
    """How long a client of what a pod sends may read nothing."""

    def compresses(self, request: web.BaseRequest) -> bool:
        """Whether a large answer is to be compressed."""
        if not replies.takes_gzip(request.headers):
            return False
        return self.compresses_locally or not is_local(request.remote or "")


def is_local(address: str) -> bool:
    """Whether an address is this machine's own."""
    return not address or address == "::1" or address.startswith("127.")


class Asked(msgspec.Struct, frozen=True):
    """One request."""

    request: web.BaseRequest
    target: Target
    query: Query
    caller: Caller

    @property
    def form(self) -> Form:
        """The form the client takes; raises NotAcceptable."""
        return negotiation.form(self.request.headers.get("Accept", ""))

    @property
    def content_type(self) -> str:
        """What the body says it is."""
        return self.request.headers.get("Content-Type", "")

    def writing(self, options: WriteOptions) -> Request:
        """Return who writes, and how, as the registry knows it."""
        manager = parameters.manager_of(options, self.request.headers.get("User-Agent", ""))
        return Request(
            who=self.caller.identity(manager),
            dry_run=options.dry_run,
            field_validation=options.field_validation or requests.WARN,
        )

    async def bytes(self) -> bytes:
        """Return the body; raises TooLarge or BadRequest."""
        return await _body(self.request)

    async def body(
        self, *, api_version: str = "", kind: str = "", may_be_empty: bool = False
    ) -> Body:
        """Return the object in the body; None where it is empty and may be."""
        data = await self.bytes()
        if may_be_empty and not data.strip():
            return Body(value=None)
        sort = self.content_type

        def read() -> Body:
            return bodies.read(data, sort, api_version=api_version, kind=kind)

        return await off_the_loop(read, data, sort)


async def off_the_loop(read: Callable[[], Body], data: bytes, sort: str) -> Body:
    """Read a body, in a thread where that may take long."""
    limit = THREAD_YAML_BYTES if "yaml" in sort else THREAD_JSON_BYTES
    if len(data) <= limit:
        return read()
    return await asyncio.get_running_loop().run_in_executor(None, read)


async def _body(request: web.BaseRequest) -> bytes:
    if (request.content_length or 0) > bodies.BYTES_MAX:
        raise _too_large()
    if not request.body_exists:
        return b""
    if request.headers.get("Expect", "").casefold() == "100-continue":
        transport = request.transport
        if transport is not None:
            transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if request.content.is_eof() and request.content.total_bytes <= bodies.BYTES_MAX:
        return _there_already(request)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > bodies.BYTES_MAX:
                    raise _too_large()
                parts.append(chunk)
    except TimeoutError as error:
        raise Timeout(f"the body did not come within {BODY_SECONDS} seconds") from error
    except _BROKEN_BODY as error:
        raise BadRequest(f"the body cannot be read: {error}") from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _there_already(request: web.BaseRequest) -> bytes:
    """Return a body that came whole with its head, as small ones do."""
    try:
        return request.content.read_nowait()
    except _BROKEN_BODY as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def _too_large() -> TooLarge:
    most = bodies.BYTES_MAX
    return TooLarge(f"Request entity too large: limit is {most}")


@contextlib.contextmanager
def whole_or_cut(request: web.BaseRequest) -> Iterator[None]:
    """Write an answer whose head is sent already: what goes wrong now cuts the connection.

    The client must not take half of an answer for the whole.
    """
    try:
        yield
    except ConnectionError:
        raise
    except Exception as error:
        if isinstance(error, TimeoutError):
            LOG.info("a client that reads nothing was cut", extra={"object": request.path})
        else:
            LOG.exception("an answer was cut short", extra={"object": request.path})
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the answer was cut short") from error


async def write(response: web.StreamResponse, data: bytes, seconds: float) -> None:
    """Write part of an answer; raises TimeoutError where the client reads nothing for so long."""
    async with asyncio.timeout(seconds):
        await response.write(data)
