"""History: the latest events, in order, as far back as its bounds allow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from spinney.meta.errors import Expired
from spinney.meta.references import GroupKind
from spinney.store.objects import Event

_EVENT_BYTES = 512
"""What an event costs beyond its body, about."""

_version = attrgetter("version")


def cost_bytes(event: Event) -> int:
    """Return what an event may hold in memory: its body, and its line once it was sent."""
    return 2 * len(event.stored.body) + _EVENT_BYTES


class History:
    """Every event after a version, the floor; the oldest go when there are too many."""

    def __init__(self, *, events_max: int, bytes_max: int) -> None:
        """Hold nothing yet, from version 0 on."""
        self._events: list[Event] = []
        self._first = 0
        self._events_max = events_max
        self._bytes_max = bytes_max
        self.bytes = 0
        self.floor = 0
        """The version up to which events may be missing."""

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._events) - self._first

    def add(self, event: Event) -> None:
        """Keep an event, and forget the oldest beyond the bounds."""
        self._events.append(event)
        self.bytes += cost_bytes(event)
        while self.bytes > self._bytes_max or len(self._events) - self._first > self._events_max:
            self._drop_first()

    def forget(self, before: int) -> None:
        """Forget the events before a version."""
        while len(self) and self._events[self._first].version < before:
            self._drop_first()
        self.floor = max(self.floor, before - 1)

    def after(self, since: int, newest: int, kind: GroupKind | None = None) -> Sequence[Event]:
        """Return the events after a version, oldest first; raises Expired where some may miss.

        `newest` is the newest version there is. A version beyond it, of which only a store knows
        that has lost writes, is Expired too: the caller lists again.
        """
        if since > newest:
            raise Expired(
                f"too large resource version: {since}, the newest is {newest}: list again",
                details={"causes": [{"reason": "ResourceVersionTooLarge"}]},
            )
        if since < self.floor:
            raise Expired(f"too old resource version: {since} ({self.floor}): list again")
        at = bisect_right(self._events, since, lo=self._first, key=_version)
        events = self._events[at:]
        if kind is None:
            return events
        return [event for event in events if event.stored.ref.kind == kind]

    def _drop_first(self) -> None:
        event = self._events[self._first]
        self.floor = event.version
        self.bytes -= cost_bytes(event)
        self._first += 1
        if self._first * 2 > len(self._events):
            del self._events[: self._first]
            self._first = 0
