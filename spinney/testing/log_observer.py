"""An observer outside the store: it believes nothing but the log, and compares.

It is told every event, keeps its own copy of what there must be, and checks each event against
it. What it finds wrong it notes with the object's story; `check` raises the first of them. Rules of
a world, of gangs or nodes say, are given as `invariants`: they see each event and all objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from spinney.meta.documents import string_at
from spinney.meta.errors import Expired, InvariantViolation
from spinney.meta.references import Ref
from spinney.ports import Change
from spinney.store.store import Event, Store, Stored

Invariant: TypeAlias = Callable[[Event, Mapping[Ref, Stored]], "str | None"]
"""Says what is wrong once an event has happened, None where nothing is."""

STORY_LENGTH_MAX = 20
"""How many of an object's last events are told."""


class LogObserver:
    """Watches everything a store does, over restarts too."""

    def __init__(self, store: Store, invariants: Sequence[Invariant] = ()) -> None:
        """Begin with a store's first version; raises Expired where that is compacted away."""
        self.log: list[Event] = []
        """Every event, in the order told."""

        self.objects: dict[Ref, Stored] = {}
        """What there must be."""

        self.version = 0
        self.faults: list[str] = []
        self._invariants = tuple(invariants)
        self._store = store
        store.attach(None, 0, self)

    def resume(self, store: Store) -> None:
        """Go on with a store that was opened anew: nothing that was told may be gone."""
        if store.version < self.version:
            self._note(f"the store is at version {store.version}, it was at {self.version}")
        self._store.detach(self)
        self._store = store
        self.cut()

    def cut(self) -> None:
        """Go on where the last event was."""
        try:
            self._store.attach(None, min(self.version, self._store.version), self)
        except Expired as error:
            self._note(f"the events after version {self.version} are gone: {error}")

    def deliver(self, events: Sequence[Event]) -> None:
        """Check each event against what there must be, and keep it."""
        for event in events:
            self._check(event)
            self.log.append(event)
            self.version = max(self.version, event.version)
            if event.change is Change.DELETED:
                self.objects.pop(event.stored.ref, None)
            else:
                self.objects[event.stored.ref] = event.stored
            for invariant in self._invariants:
                self._note(invariant(event, self.objects), event.stored.ref)

    def check(self) -> None:
        """Raise InvariantViolation for the first thing that was wrong, now or before."""
        self._compare_objects()
        self._compare_history()
        if self.faults:
            raise InvariantViolation(self.faults[0])

    def story(self, ref: Ref) -> str:
        """Return the last events of an object, a line each."""
        lines = [_line(event) for event in self.log if event.stored.ref == ref]
        return "\n".join(lines[-STORY_LENGTH_MAX:])

    def _check(self, event: Event) -> None:
        stored, ref = event.stored, event.stored.ref
        known = self.objects.get(ref)
        if event.version <= self.version:
            self._note(f"version {event.version} was told after {self.version}", ref)
        if (event.change is Change.ADDED) != (known is None):
            there = "not there" if known is None else "there already"
            self._note(f"{event.change.value} of what is {there}", ref)
        if _content(event.before) != _content(known):
            self._note(f"version {event.version} tells of another state before", ref)
        if known is not None and known.uid != stored.uid:
            self._note(f"uid {known.uid} became {stored.uid} without a deletion", ref)
        found = string_at(stored.document(), ["metadata", "resourceVersion"])
        if found != str(event.version):
            self._note(f"version {event.version} says it is {found}", ref)

    def _compare_objects(self) -> None:
        kinds = {ref.kind for ref in self.objects} | {event.stored.ref.kind for event in self.log}
        listed = {
            stored.ref: _content(stored) for kind in kinds for stored in self._store.list(kind)
        }
        expected = {ref: _content(stored) for ref, stored in self.objects.items()}
        for ref in sorted(listed.keys() | expected.keys()):
            if listed.get(ref) != expected.get(ref):
                self._note("the list does not hold what the log made of it", ref)

    def _compare_history(self) -> None:
        floor = self._store.statistics().floor
        kept = [_line(event) for event in self._store.since(floor)]
        told = [_line(event) for event in self.log if event.version > floor]
        if kept != told:
            self._note(f"the history after version {floor} is not the log")

    def _note(self, fault: str | None, ref: Ref | None = None) -> None:
        if fault is not None:
            told = f"{fault}" if ref is None else f"{ref}: {fault}\n{self.story(ref)}"
            self.faults.append(told)


def _content(stored: Stored | None) -> tuple[int, bytes] | None:
    return None if stored is None else (stored.version, stored.body)


def _line(event: Event) -> str:
    size = len(event.stored.body)
    return f"{event.version:>8} {event.change.value:<8} {event.stored.ref} {size} bytes"
