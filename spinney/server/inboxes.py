"""Inboxes: what came in and waits for whoever reads it, no more than a bound of it."""

from __future__ import annotations

import asyncio
from collections import deque

from spinney.ports import Window

BYTES_MAX = 256 * 1024
"""How much may wait; a sender that is ahead by more waits too."""


class Inbox:
    """Bytes on their way from one sender to one reader."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        """Be empty."""
        self._bytes_max = bytes_max
        self._parts: deque[bytes] = deque()
        self._bytes = 0
        self._is_ended = False
        self._is_unwanted = False
        self._came = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def put(self, data: bytes) -> None:
        """Take bytes; waits while too many wait. What comes after the end is dropped."""
        while not self._has_room.is_set():
            await self._has_room.wait()
        if not data or self._is_ended or self._is_unwanted:
            return
        self._parts.append(data)
        self._bytes += len(data)
        if self._bytes >= self._bytes_max:
            self._has_room.clear()
        self._came.set()

    def end(self) -> None:
        """Take no more; what waits is still read."""
        self._is_ended = True
        self._came.set()

    def drop(self) -> None:
        """Forget what waits and all that will come: nobody reads any more."""
        self._is_unwanted = True
        self._parts.clear()
        self._bytes = 0
        self._has_room.set()
        self.end()

    async def get(self) -> bytes:
        """Return what came next, b"" at the end."""
        while not self._parts:
            if self._is_ended:
                return b""
            self._came.clear()
            await self._came.wait()
        data = self._parts.popleft()
        self._bytes -= len(data)
        if self._bytes < self._bytes_max:
            self._has_room.set()
        return data


class Sizes:
    """The sizes a terminal takes; of those nobody looked at, the last counts."""

    def __init__(self) -> None:
        """Know none yet."""
        self._next: Window | None = None
        self._is_ended = False
        self._came = asyncio.Event()

    def put(self, size: Window) -> None:
        """Take a size."""
        self._next = size
        self._came.set()

    def end(self) -> None:
        """Take no more."""
        self._is_ended = True
        self._came.set()

    async def get(self) -> Window | None:
        """Return the next size, None at the end."""
        while self._next is None:
            if self._is_ended:
                return None
            self._came.clear()
            await self._came.wait()
        size, self._next = self._next, None
        return size
