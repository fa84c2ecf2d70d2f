"""Progress: what a command still waits for, in place on a terminal, else told now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from spinney.cli import screen
from spinney.cli.live import Live
from spinney.cli.screen import CYAN, DIM, Screen
from spinney.ports import Clock
from spinney.server import ages

TICK = timedelta(milliseconds=500)
QUIET = timedelta(seconds=5)
"""Without a terminal nothing is told sooner, nor more often."""

SECOND = timedelta(seconds=1)


class Progress:
    """What is waited for; the command keeps it up to date."""

    def __init__(self, output: Screen, clock: Clock, limit: timedelta) -> None:
        """Wait no longer than the limit."""
        self.subject = ""
        self.lacks = ""
        self.done = 0
        self.count = 1
        self._screen = output
        self._clock = clock
        self._limit = limit
        self._began = clock.elapsed()

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show it for as long as the block lasts, apart from the results."""
        show = self._draw if self._screen.is_aside_live else self._tell
        task = asyncio.create_task(show())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _text(self) -> str:
        place = f" ({self.done + 1} of {self.count})" if self.count > 1 else ""
        lacks = f": {self.lacks}" if self.lacks else ""
        return screen.plain(f"waiting for {self.subject}{place}{lacks}")

    def _time(self) -> str:
        passed = (self._clock.elapsed() - self._began) // SECOND
        return f"{ages.duration(passed)} of {ages.duration(self._limit // SECOND)}"

    async def _draw(self) -> None:
        with Live(self._screen, self._screen.aside) as live:
            try:
                while True:
                    await self._clock.sleep(TICK)
                    live.draw([[(f"{self._time()}  ", DIM), (self._text(), CYAN)]])
            finally:
                live.clear()

    async def _tell(self) -> None:
        told = ""
        while True:
            await self._clock.sleep(QUIET)
            text = self._text()
            if text != told:
                self._screen.note(f"{self._time()}  {text}")
            told = text
