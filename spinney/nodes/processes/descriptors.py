"""Pipes and terminals in an event loop: read and written without blocking it."""

from __future__ import annotations

import asyncio
import contextlib
import os

READ_BYTES = 64 * 1024


class Descriptor:
    """One open file that has two ends: of a pipe, or of a terminal."""

    def __init__(self, number: int) -> None:
        """Own it."""
        os.set_blocking(number, False)
        self._number = number
        self._loop = asyncio.get_running_loop()

    @property
    def number(self) -> int:
        """Its number; -1 once closed."""
        return self._number

    async def read(self) -> bytes:
        """Return what came; b"" once nothing more will."""
        while self._number >= 0:
            try:
                return os.read(self._number, READ_BYTES)
            except BlockingIOError:
                await self._wait_readable()
            except OSError:
                break
        return b""

    def read_now(self) -> bytes:
        """Return what is there, b"" where nothing is."""
        try:
            return os.read(self._number, READ_BYTES)
        except OSError:
            return b""

    async def write(self, data: bytes) -> bool:
        """Write all of it; False where nobody reads any more."""
        rest = memoryview(data)
        while rest:
            if self._number < 0:
                return False
            try:
                rest = rest[os.write(self._number, rest) :]
            except BlockingIOError:
                await self._wait_writable()
            except OSError:
                return False
        return True

    async def _wait_readable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._number, _wake, ready)
        try:
            await ready
        finally:
            if self._number >= 0:
                self._loop.remove_reader(self._number)

    async def _wait_writable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._number, _wake, ready)
        try:
            await ready
        finally:
            if self._number >= 0:
                self._loop.remove_writer(self._number)

    def close(self) -> None:
        """Let go of it."""
        number, self._number = self._number, -1
        if number >= 0:
            with contextlib.suppress(ValueError):
                self._loop.remove_reader(number)
                self._loop.remove_writer(number)
            os.close(number)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
