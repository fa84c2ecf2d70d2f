"""Looks: the loop of everything that keeps objects in order behind the scenes.

What is noted is looked at, many at a time, so that their writes share a commit. A look may be
stopped anywhere, and taken once too often. Nothing is looked at that nobody noted: no polling.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from spinney.meta.errors import (
    ApiError,
    Conflict,
    NotFound,
    StorageFull,
    TooManyRequests,
    Unavailable,
)
from spinney.meta.references import Ref
from spinney.ports import Clock

AT_ONCE = 64

RETRY_MIN = timedelta(seconds=1)
RETRY_MAX = timedelta(seconds=30)
"""How long to wait while the store refuses writes: twice as long each time, up to this."""

_PASSING = (Conflict, StorageFull, TooManyRequests, Unavailable)

_log = logging.getLogger(__name__)


class Looks:
    """Objects to be looked at, each once however often it was noted."""

    def __init__(self, name: str, clock: Clock, look: Callable[[Ref], Awaitable[None]]) -> None:
        """Look with a function that may write; what it may raise is an ApiError."""
        self._name = name
        self._clock = clock
        self._look = look
        self._pending: dict[Ref, None] = {}
        self._woken = asyncio.Event()

    def __len__(self) -> int:
        """How many wait to be looked at."""
        return len(self._pending)

    def note(self, ref: Ref) -> None:
        """See to it that an object is looked at."""
        self._pending[ref] = None
        self._woken.set()

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await self._woken.wait()
            await self.settle()

    async def settle(self) -> None:
        """Look until there is nothing left to look at."""
        delay = RETRY_MIN
        while self._pending:
            batch = [self._pending.popitem()[0] for _ in range(min(AT_ONCE, len(self._pending)))]
            refused = await asyncio.gather(*map(self._try, batch))
            if any(refused):
                await self._clock.sleep(delay)
                delay = min(2 * delay, RETRY_MAX)
            else:
                delay = RETRY_MIN
        self._woken.clear()

    async def _try(self, ref: Ref) -> bool:
        """Look at one object; returns whether it must be looked at again, later.

        What can only be refused again is logged, and left until the object changes.
        """
        try:
            await self._look(ref)
        except NotFound:
            return False
        except _PASSING:
            self._pending[ref] = None
            return True
        except ApiError as error:
            _log.warning(
                "could not be kept in order",
                extra={"object": str(ref), "keeper": self._name, "error": error.message},
            )
        return False
