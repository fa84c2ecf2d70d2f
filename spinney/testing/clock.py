"""Clocks for tests: one that goes with the virtual loop, one that is moved by hand."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

from spinney.testing.loop import VirtualLoop

START = datetime(2026, 1, 1, tzinfo=UTC)
"""When tests begin, unless they say otherwise."""


class VirtualClock:
    """Implements `ports.Clock` on the virtual loop that runs; its wall time may be made to jump."""

    def __init__(self, start: datetime = START) -> None:
        """Show `start` at the loop's time 0; raises TypeError outside a virtual loop."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise TypeError(f"a VirtualClock needs a VirtualLoop, not {type(loop).__name__}")
        self._loop = loop
        self._wall = start

    def now(self) -> datetime:
        """Return the wall time."""
        return self._wall + self.elapsed()

    def elapsed(self) -> timedelta:
        """Return the loop's time."""
        return timedelta(microseconds=self._loop.nanoseconds // 1000)

    async def sleep(self, duration: timedelta) -> None:
        """Wait, which takes virtual time alone."""
        await asyncio.sleep(duration.total_seconds())

    def jump(self, by: timedelta) -> None:
        """Set the wall clock forward, or back, as an operator or NTP would."""
        self._wall += by


class ManualClock:
    """Implements `ports.Clock` on any loop; time stands still until `advance`."""

    def __init__(self, start: datetime = START) -> None:
        """Stand at a time."""
        self._start = start
        self._elapsed = timedelta()
        self._sleepers: list[tuple[timedelta, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        """Return the wall time."""
        return self._start + self._elapsed

    def elapsed(self) -> timedelta:
        """Return by how much the clock was advanced."""
        return self._elapsed

    async def sleep(self, duration: timedelta) -> None:
        """Wait until the clock was advanced far enough."""
        if duration <= timedelta():
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._elapsed + duration, self._count, woken))
        await woken

    @property
    def sleeper_count(self) -> int:
        """How many wait."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, by: timedelta) -> None:
        """Move on, and wake those whose time has come, in order."""
        self._elapsed += by
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
