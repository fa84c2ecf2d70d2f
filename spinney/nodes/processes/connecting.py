"""Connections to the ports of a pod."""

from __future__ import annotations

import asyncio
import contextlib

from spinney.meta.errors import Unavailable

READ_BYTES = 64 * 1024
CONNECT_SECONDS_MAX = 10


class Connection:
    """A connection; fills `ports.Streams`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Own both directions."""
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """Return what came in, b"" at the end."""
        try:
            return await self._reader.read(READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Send; waits while the other side does not read."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        """Send nothing more; what comes in is still read."""
        with contextlib.suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        """End both directions."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def connect(address: str, port: int, pod: str) -> Connection:
    """Connect to a port of a pod; raises Unavailable, saying what to look at."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(address, port)
    except ConnectionRefusedError as error:
        raise Unavailable(
            f'nothing listens on port {port} of pod "{pod}": it must listen on its POD_IP, '
            f"{address}, or on all addresses"
        ) from error
    except (OSError, TimeoutError) as error:
        raise Unavailable(f'port {port} of pod "{pod}" ({address}): {error}') from error
    return Connection(reader, writer)
