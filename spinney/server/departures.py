"""Departures: who is asked about a pod learns when it is gone, however long its node is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from spinney.ports import Change
from spinney.server.discovery import POD
from spinney.store.store import Event, Store


class Departures:
    """Tells of pods that are gone. Attached to the store only while somebody waits."""

    def __init__(self, store: Store) -> None:
        """Look at the pods of a store."""
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def wait(self, uid: str, since: int) -> None:
        """Wait until a pod is gone that was there at a version."""
        gone = asyncio.Event()
        if not self._waiting:
            self._store.attach(POD, self._store.version, self)
        self._waiting.setdefault(uid, set()).add(gone)
        try:
            missed = self._store.since(since, POD)
            if any(event.change is Change.DELETED and event.stored.uid == uid for event in missed):
                return
            await gone.wait()
        finally:
            waiting = self._waiting.get(uid, set())
            waiting.discard(gone)
            if not waiting:
                self._waiting.pop(uid, None)
            if not self._waiting:
                self._store.detach(self)

    def deliver(self, events: Sequence[Event]) -> None:
        """Take committed events."""
        for event in events:
            if event.change is Change.DELETED:
                for gone in self._waiting.get(event.stored.uid, ()):
                    gone.set()

    def cut(self) -> None:
        """Learn that the store tells no more: it is closing, or this one raised."""
        for waiting in self._waiting.values():
            for gone in waiting:
                gone.set()
