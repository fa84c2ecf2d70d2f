"""Expiry: events are kept for an hour after they were last seen, and only so many of them.

The times at which events are due stand in a heap; the loop sleeps until the first. An event that
was seen again meanwhile is put back by what it then says, so one entry an event is enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta

from spinney.api.kinds import KINDS
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import (
    Conflict,
    NotFound,
    StorageFull,
    TooManyRequests,
    Unavailable,
)
from spinney.meta.references import Precondition, Ref
from spinney.meta.times import parse_time
from spinney.ports import Change, Identity
from spinney.registry.looks import AT_ONCE, RETRY_MAX
from spinney.registry.registry import Registry
from spinney.registry.requests import DeleteOptions, Request
from spinney.registry.strategies import EVENT
from spinney.store.store import Event

EVENT_LIFE = timedelta(hours=1)
EVENTS_MAX = 50_000
"""How many events are kept; above it, those seen longest ago go first."""

KEEPER = Identity(user="system:apiserver", groups=("system:masters",), manager="event-expiry")
_REQUEST = Request(who=KEEPER)

_SEEN = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("eventTime",),
    ("firstTimestamp",),
    ("metadata", "creationTimestamp"),
)


def last_seen(document: Document) -> datetime:
    """Return when what an event tells was last seen; an event without any time, long ago."""
    for path in _SEEN:
        text = string_at(document, path)
        if text:
            with contextlib.suppress(ValueError):
                return parse_time(text)
    return datetime.min.replace(tzinfo=UTC)


class EventExpiry:
    """Deletes events that are due."""

    def __init__(
        self, registry: Registry, *, life: timedelta = EVENT_LIFE, events_max: int = EVENTS_MAX
    ) -> None:
        """Work on a registry; nothing happens before `start`."""
        self._registry = registry
        self._store = registry.store
        self._clock = registry.clock
        self._life = life
        self._events_max = events_max
        self._due: list[tuple[datetime, Ref]] = []
        self._known: set[Ref] = set()
        self._woken = asyncio.Event()

    def start(self) -> None:
        """Take note of all events there are, and of those to come."""
        self._store.attach(EVENT, self._store.version, self)
        self._due.clear()
        self._known.clear()
        for stored in self._store.list(EVENT):
            self._schedule(stored.ref, stored.document())

    def deliver(self, events: Sequence[Event]) -> None:
        """Take note of new events; an entry of one that is gone goes when it is due."""
        for event in events:
            if event.change is not Change.DELETED:
                self._schedule(event.stored.ref, event.stored.document())

    def cut(self) -> None:
        """Start over: some changes were missed."""
        self.start()

    def _schedule(self, ref: Ref, document: Document) -> None:
        if ref in self._known:
            return
        self._known.add(ref)
        heapq.heappush(self._due, (last_seen(document) + self._life, ref))
        if self._due[0][1] == ref or len(self._due) > self._events_max:
            self._woken.set()

    async def run(self) -> None:
        """Wait for the first event that is due, for ever."""
        while True:
            await self.settle()
            await self._wait()

    async def _wait(self) -> None:
        """Wait until the first event is due, or another one is first."""
        self._woken.clear()
        waits: list[Coroutine[None, None, object]] = [self._woken.wait()]
        if self._due:
            delay = max(self._due[0][0] - self._clock.now(), timedelta())
            waits.append(self._clock.sleep(delay))
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Delete what is due, and what is too many."""
        while batch := self._take():
            refused = await asyncio.gather(*map(self._delete, batch))
            if any(refused):
                await self._clock.sleep(RETRY_MAX)

    def _take(self) -> list[Ref]:
        now = self._clock.now()
        batch: list[Ref] = []
        while self._due and len(batch) < AT_ONCE:
            due, ref = self._due[0]
            if due > now and len(self._due) <= self._events_max:
                break
            heapq.heappop(self._due)
            self._known.discard(ref)
            stored = self._store.head(ref)
            if stored is None:
                continue
            later = last_seen(stored.document()) + self._life
            if later > due:
                self._known.add(ref)
                heapq.heappush(self._due, (later, ref))
            else:
                batch.append(ref)
        return batch

    async def _delete(self, ref: Ref) -> bool:
        """Delete an event; returns whether the store refused to."""
        stored = self._store.head(ref)
        if stored is None:
            return False
        options = DeleteOptions(only_if=Precondition(uid=stored.uid))
        try:
            await self._registry.delete(KINDS[EVENT], ref.namespace, ref.name, options, _REQUEST)
        except (NotFound, Conflict):
            return False
        except (StorageFull, TooManyRequests, Unavailable):
            self._schedule(ref, stored.document())
            return True
        return False
