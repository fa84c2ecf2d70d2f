"""An alarm: rings once, when a time has come. It can be set anew before it rings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

from spinney.ports import Clock


class Alarm:
    """Calls a function at a time of the clock's `elapsed`."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        """Be set to nothing yet."""
        self._clock = clock
        self._ring = ring
        self._at: timedelta | None = None
        self._waiting: asyncio.Task[None] | None = None

    def set(self, at: timedelta | None) -> None:
        """Ring at a time, None for never; what it was set to before is forgotten."""
        if at == self._at:
            return
        self.stop()
        if at is not None:
            self._at = at
            self._waiting = asyncio.create_task(self._wait(at), name="alarm")

    def stop(self) -> None:
        """Do not ring."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._at = self._waiting = None

    async def _wait(self, at: timedelta) -> None:
        while (left := at - self._clock.elapsed()) > timedelta():
            await self._clock.sleep(left)
        self._at = self._waiting = None
        self._ring()
