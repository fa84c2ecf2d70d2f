"""Small ends of streams: what a probe or a hook reads into, and connections beyond the pod."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from spinney.ports import Window

KEPT_BYTES_MAX: Final = 4 * 1024


class Listening:
    """A console nobody types at, which keeps the first of what is printed; fills ports.Console."""

    def __init__(self) -> None:
        """Begin empty."""
        self._kept = bytearray()

    @property
    def text(self) -> str:
        """What was printed, as text."""
        return bytes(self._kept).decode(errors="replace").strip()

    async def read(self) -> bytes:
        """Return that nothing will be typed."""
        return b""

    async def write(self, data: bytes) -> None:
        """Keep the first of it."""
        self._kept += data[: KEPT_BYTES_MAX - len(self._kept)]

    async def write_error(self, data: bytes) -> None:
        """Keep the first of it."""
        await self.write(data)

    async def resized(self) -> Window | None:
        """Return that there is no terminal."""
        return None


class Socket:
    """A TCP connection; fills ports.Streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Own both directions."""
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, host: str, port: int) -> Socket:
        """Connect; raises OSError."""
        return cls(*await asyncio.open_connection(host, port))

    async def read(self) -> bytes:
        """Return what came in."""
        return await self._reader.read(65536)

    async def write(self, data: bytes) -> None:
        """Send."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """Send nothing more."""
        self._writer.write_eof()

    async def close(self) -> None:
        """End both directions."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
