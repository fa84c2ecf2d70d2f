"""Lifetimes: how long what is asked of a running pod lasts.

Until it is done; or its client leaves, its pod is gone, or the server stops. Then it is cancelled,
and nothing of it is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from spinney.meta.errors import ApiError, NotFound, TooManyRequests, Unavailable
from spinney.server.containers import Place
from spinney.server.departures import Departures
from spinney.store.store import Store

CONVERSATIONS_MAX = 2000
"""How many logs, commands and forwarded ports may be open at once."""

LINGER_SECONDS = 5.0
"""How long what is asked of a pod may go on when the pod is gone: its node has more to say."""

T = TypeVar("T")


class Lifetimes:
    """Knows what goes on, and ends it."""

    def __init__(self, store: Store) -> None:
        """Look for pods in a store."""
        self._departures = Departures(store)
        self._stopping = asyncio.Event()
        self._count = 0

    def __len__(self) -> int:
        """How much goes on."""
        return self._count

    @property
    def is_stopping(self) -> bool:
        """Whether all is to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End everything, and begin nothing more."""
        self._stopping.set()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count what goes on; raises TooManyRequests or Unavailable where no more may begin."""
        if self.is_stopping:
            raise Unavailable("the server is stopping")
        if self._count >= CONVERSATIONS_MAX:
            raise TooManyRequests(
                f"{self._count} logs, commands and forwarded ports are open, which is the most",
                retry_after_seconds=1,
            )
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def spend(
        self, work: Coroutine[Any, Any, T], place: Place, client: asyncio.Future[Any]
    ) -> T:
        """Return what comes of the work, which is cancelled where its client is done before.

        Raises ConnectionResetError then, NotFound where the pod is gone, Unavailable where the
        server stops.
        """
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stopping.wait())
        leaving = asyncio.create_task(self._gone(place))
        try:
            await asyncio.wait(
                {working, stopping, leaving, client}, return_when=asyncio.FIRST_COMPLETED
            )
            if working.done():
                return working.result()
            raise self._why(client, leaving, place)
        finally:
            await ended(working, stopping, leaving)

    @staticmethod
    def _why(
        client: asyncio.Future[Any], leaving: asyncio.Future[None], place: Place
    ) -> ApiError | ConnectionResetError:
        if client.done():
            return ConnectionResetError("the client left")
        if leaving.done():
            return NotFound(f'pod "{place.pod}" is gone')
        return Unavailable("the server is stopping")

    async def _gone(self, place: Place) -> None:
        await self._departures.wait(place.uid, place.version)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                await self._stopping.wait()


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and wait until they are through; what they raised counts no more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
