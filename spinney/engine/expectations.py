"""Read-your-writes: no key is looked at on a view older than its own last writes.

Each write leaves an expectation with the key it was done for: a version its kind must have been
seen at, or an object that must be seen to be gone or going. While one is unmet the key is parked;
it is woken by the change that meets the last of them. Nothing spins, nothing times out.

Only kinds that the controller is woken by are waited for: of others no change is ever heard.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from spinney.engine import subjects
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader


class _Expected:
    """What one key waits to see."""

    __slots__ = ("gone", "versions")

    def __init__(self) -> None:
        self.versions: dict[GroupKind, int] = {}
        self.gone: dict[Ref, str] = {}


class ExpectationStatistics(Record):
    """How many keys wait for their own writes."""

    parked: int = 0
    expecting: int = 0


class Expectations:
    """What each key must see before it is looked at again."""

    def __init__(self, reader: Reader, kinds: Iterable[GroupKind]) -> None:
        """Wait for the kinds given only."""
        self._reader = reader
        self._kinds = frozenset(kinds)
        self._expected: dict[Ref, _Expected] = {}
        self._parked: set[Ref] = set()
        self._by_version: dict[GroupKind, list[tuple[int, Ref]]] = {}
        self._lined_up: set[tuple[GroupKind, int, Ref]] = set()
        self._by_object: dict[Ref, set[Ref]] = {}

    def wrote(self, key: Ref, kind: GroupKind, resource_version: str) -> None:
        """Expect to see a version that a write for a key returned."""
        version = int(resource_version)
        if kind not in self._kinds or self._reader.seen(kind) >= version:
            return
        versions = self._expected.setdefault(key, _Expected()).versions
        versions[kind] = max(versions.get(kind, 0), version)

    def deleted(self, key: Ref, target: Ref, uid: str | None) -> None:
        """Expect to see an object go that was deleted for a key."""
        if target.kind not in self._kinds or (found := self._standing(target)) is None:
            return
        if uid is None or found == uid:
            self._expected.setdefault(key, _Expected()).gone[target] = found

    def forget(self, key: Ref) -> None:
        """Expect nothing more for a key."""
        self._expected.pop(key, None)
        self._parked.discard(key)

    def forget_all(self) -> None:
        """Expect nothing at all: what was written before no longer matters."""
        self._expected.clear()
        self._parked.clear()
        self._by_version.clear()
        self._lined_up.clear()
        self._by_object.clear()

    def must_wait(self, key: Ref) -> bool:
        """Whether a key has to wait; if so it is parked, and `met` will name it."""
        expected = self._expected.get(key)
        if expected is None:
            return False
        for kind, version in [*expected.versions.items()]:
            if self._reader.seen(kind) >= version:
                del expected.versions[kind]
        for target, uid in [*expected.gone.items()]:
            if self._standing(target) != uid:
                del expected.gone[target]
        if not expected.versions and not expected.gone:
            self.forget(key)
            return False
        self._parked.add(key)
        for kind, version in expected.versions.items():
            if (kind, version, key) not in self._lined_up:
                self._lined_up.add((kind, version, key))
                heapq.heappush(self._by_version.setdefault(kind, []), (version, key))
        for target in expected.gone:
            self._by_object.setdefault(target, set()).add(key)
        return True

    def met(self, changed: Ref) -> Iterable[Ref]:
        """Return the parked keys that need not wait any longer, now that an object changed."""
        if not self._parked:
            return ()
        candidates = self._by_object.pop(changed, set())
        waiting = self._by_version.get(changed.kind)
        if waiting:
            seen = self._reader.seen(changed.kind)
            while waiting and waiting[0][0] <= seen:
                version, key = heapq.heappop(waiting)
                self._lined_up.discard((changed.kind, version, key))
                candidates.add(key)
        parked = [key for key in sorted(candidates) if key in self._parked]
        return [key for key in parked if not self.must_wait(key)]

    def _standing(self, target: Ref) -> str | None:
        """Return the uid of an object that is seen and not seen to be going."""
        metadata = subjects.metadata_of(subjects.view_of(self._reader, target))
        if metadata is None or metadata.deletion_timestamp is not None:
            return None
        return metadata.uid

    def statistics(self) -> ExpectationStatistics:
        """Return how many keys wait."""
        return ExpectationStatistics(parked=len(self._parked), expecting=len(self._expected))

    def validate(self) -> None:
        """Check that every parked key will be woken; raises InvariantViolation."""
        for key in self._parked:
            expected = self._expected.get(key)
            if expected is None:
                raise InvariantViolation(f"{key} is parked and expects nothing")
            if not (self._hears_version(key, expected) or self._hears_object(key, expected)):
                raise InvariantViolation(f"{key} is parked, and nothing will wake it")

    def _hears_version(self, key: Ref, expected: _Expected) -> bool:
        return any(
            heard == key and at <= version
            for kind, version in expected.versions.items()
            for at, heard in self._by_version.get(kind, ())
        )

    def _hears_object(self, key: Ref, expected: _Expected) -> bool:
        return any(key in self._by_object.get(target, ()) for target in expected.gone)
