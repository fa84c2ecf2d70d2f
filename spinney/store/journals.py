"""What a journal may be able to do beyond the port, and the journal in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from spinney.meta.references import Ref
from spinney.ports import Entry


@runtime_checkable
class HistoricJournal(Protocol):
    """A journal that knows from which version on it has kept everything."""

    @property
    def floor(self) -> int:
        """The version up to which entries may have been forgotten; known once it is loaded."""


class MemoryJournal:
    """A journal that keeps nothing beyond the process: for simulations and `--durability memory`.

    Closed and loaded again it has everything still, as a file would.
    """

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
            self._superseded.add(entry)

    def compact(self, before: int) -> None:
        """Forget superseded versions below a version."""
        for version in self._superseded.take(before):
            del self._entries[version]
        self.floor = max(self.floor, before - 1)

    def close(self) -> None:
        """Let go of nothing: there are no files."""


class Superseded:
    """Which versions a journal need not keep.

    A version may go once another of the same object, itself below the version compacted to, took
    its place: so the first event kept still finds what was before it. A deletion may go by
    itself. The newest entry stays, for its version is where counting goes on.
    """

    def __init__(self) -> None:
        """Know of nothing yet."""
        self._newest: dict[Ref, Entry] = {}
        self._gone: dict[int, int] = {}
        self._last = 0

    def add(self, entry: Entry) -> None:
        """Take note of an entry, in the order of versions."""
        before = self._newest.get(entry.ref)
        if before is not None:
            self._gone[entry.version] = before.version
        raise NotImplementedError

    def take(self, before: int) -> list[int]:
        """Return the versions that may go, once."""
        raise NotImplementedError
