"""What becomes of containers, told to whoever asked. What is told before anybody asked is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from spinney.ports import ContainerState


class Announcer:
    """Tells states of containers, in order, to everybody who listens."""

    def __init__(self) -> None:
        """Begin with nobody listening."""
        self._listeners: list[asyncio.Queue[ContainerState]] = []
        self._kept: list[ContainerState] = []

    def announce(self, state: ContainerState) -> None:
        """Tell a state."""
        if not self._listeners:
            self._kept.append(state)
        for listener in self._listeners:
            listener.put_nowait(state)

    def listen(self) -> AsyncIterator[ContainerState]:
        """Return what is told from now on; to the first listener, also what was told before."""
        queue: asyncio.Queue[ContainerState] = asyncio.Queue()
        for state in self._kept:
            queue.put_nowait(state)
        self._kept.clear()
        self._listeners.append(queue)
        return self._told(queue)

    async def _told(self, queue: asyncio.Queue[ContainerState]) -> AsyncIterator[ContainerState]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.remove(queue)
