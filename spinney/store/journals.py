"""The journal in memory, and which versions any journal may forget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from spinney.meta.references import Ref
from spinney.ports import Entry


class Superseded:
    """Which versions a journal need not keep.

    A version may go once another of the same object, itself below the version compacted to, took
    its place: so the first event kept still finds what was before it. A deletion may go by
    itself. The newest entry stays, for its version is where counting goes on.
    """

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._current: dict[Ref, int] = {}
        self._due: deque[tuple[int, int]] = deque()
        self._newest = 0

    def add(self, version: int, ref: Ref, *, is_deletion: bool) -> None:
        """Take note of an entry, in the order of versions."""
        before = self._current.pop(ref, None) if is_deletion else self._current.get(ref)
        if before is not None:
            self._due.append((version, before))
        if is_deletion:
            self._due.append((version, version))
        else:
            self._current[ref] = version
        self._newest = version

    def below(self, before: int) -> list[int]:
        """Return the versions that may go."""
        found = []
        for by, version in self._due:
            if by >= before or version == self._newest:
                break
            found.append(version)
        return found

    def drop(self, count: int) -> None:
        """Take note that the first so many of them are gone."""
        for _ in range(count):
            self._due.popleft()


class MemoryJournal:
    """A journal that keeps nothing beyond the process: for simulations and `--durability memory`.

    Closed and loaded again it has everything still, as a file would.
    """

    is_overdue = False

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._entries: dict[int, Entry] = {}
        self._superseded = Superseded()
        self.floor = 0

    def load(self) -> Iterator[Entry]:
        """Yield what was kept, oldest version first."""
        return iter(tuple(self._entries.values()))

    def commit(self, batch: Sequence[Entry]) -> None:
        """Keep a batch."""
        for entry in batch:
            self._entries[entry.version] = entry
            self._superseded.add(entry.version, entry.ref, is_deletion=entry.body is None)

    def compact(self, before: int) -> None:
        """Forget superseded versions below a version."""
        going = self._superseded.below(before)
        for version in going:
            del self._entries[version]
        self._superseded.drop(len(going))
        self.floor = max(self.floor, before - 1)

    def tend(self) -> None:
        """Do nothing: there is no upkeep."""

    def close(self) -> None:
        """Let go of nothing: there are no files."""
