"""Frames: what goes over the line. A length of four bytes, one byte that says what, the body.

| sort | body            | meaning                                                              |
|------|-----------------|----------------------------------------------------------------------|
| `J`  | JSON            | what is asked first; what is answered, last                          |
| `D`  | bytes           | data: a log, what a command prints or reads, what a connection sends |
| `E`  | bytes           | what a command prints as errors                                      |
| `W`  | two numbers     | the size of a terminal                                               |
| `X`  |                 | no more data will come from this side                                |
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec

from spinney.meta.documents import Document, Json, is_object
from spinney.meta.errors import ApiError, Internal, SpinneyError

JSON, DATA, ERRORS, WINDOW, END = b"J", b"D", b"E", b"W", b"X"
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
PIECE_BYTES: Final = 64 * 1024
"""Larger data is sent in pieces of this size, so nobody holds much."""


class BadFrame(SpinneyError, ConnectionError):
    """The other side: what it sends is not what this side knows; another version, perhaps."""


class Wire:
    """One connection of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Own both directions."""
        self._reader = reader
        self._writer = writer

    async def receive(self) -> tuple[bytes, bytes]:
        """Return what came next, its sort and body; raises ConnectionError at the end."""
        try:
            head = await self._reader.readexactly(5)
            size = int.from_bytes(head[:4], "big")
            if size > BODY_BYTES_MAX:
                raise BadFrame(f"a frame of {size} bytes: at most {BODY_BYTES_MAX} are sent")
            return head[4:], await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the connection was closed") from error

    async def receive_json(self) -> Document:
        """Return what was asked or answered; raises what went wrong on the other side."""
        sort, body = await self.receive()
        if sort != JSON:
            raise BadFrame(f"a frame of sort {sort!r} where an answer was due")
        return answer(body)

    async def send(self, sort: bytes, body: bytes = b"") -> None:
        """Send; waits while the other side does not read."""
        rest = memoryview(body)
        while True:
            piece, rest = rest[:PIECE_BYTES], rest[PIECE_BYTES:]
            if sort in (JSON, WINDOW):
                piece, rest = memoryview(body), rest[:0]
            self._writer.write(len(piece).to_bytes(4, "big") + sort + piece)
            await self._writer.drain()
            if not rest:
                return

    async def send_json(self, value: Json) -> None:
        """Ask, or answer."""
        await self.send(JSON, msgspec.json.encode(value))

    async def close(self) -> None:
        """End it."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """End it at once, whatever is on its way."""
        self._writer.transport.abort()


def answer(body: bytes) -> Document:
    """Return an answer; raises the error it tells of, or BadFrame."""
    try:
        found: Json = msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        raise BadFrame("what came is no JSON") from error
    if not is_object(found):
        raise BadFrame("what came is no JSON object")
    fault = found.get("fault")
    if is_object(fault):
        raise ApiError.from_status(fault)
    return found


def fault_of(error: Exception) -> Document:
    """Return an error as the other side raises it again."""
    if not isinstance(error, ApiError):
        error = Internal(str(error) or type(error).__name__)
    return {"fault": error.to_status()}
