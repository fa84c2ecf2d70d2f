"""Faults at the ports: what goes wrong in the world, at a chance each, drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from spinney.meta.errors import JournalFailed, JournalFull
from spinney.meta.records import Record
from spinney.ports import Entry, Journal
from spinney.testing.entropy import SeededEntropy


class JournalFaults(Record):
    """How often a journal fails, in a thousand calls. Most runs have most faults off."""

    full_per_mille: int = 0
    """A commit finds the disk full."""

    failed_per_mille: int = 0
    """A commit fails otherwise, as with EIO."""

    upkeep_per_mille: int = 0
    """A compaction, or other upkeep, fails."""


class FaultyJournal:
    """A journal over a disk that fails. What fails keeps nothing, as the port demands."""

    def __init__(
        self, journal: Journal, entropy: SeededEntropy, faults: JournalFaults | None = None
    ) -> None:
        """Fail by chance; `is_full` and `is_broken` make every write fail until they are unset.

        `dies` kills the process at its next commit: before it, or after it and before anybody
        could be told. From then on nothing reaches the journal below, which a new life may open.
        """
        self._journal = journal
        self._entropy = entropy
        self.faults = faults or JournalFaults()
        self.is_full = False
        self.is_broken = False
        self.is_dead = False
        self.dies: Literal["", "before", "after"] = ""
        self.failures = 0
        """How many calls failed."""

    @property
    def floor(self) -> int:
        """The floor of the journal below."""
        return self._journal.floor

    @property
    def is_overdue(self) -> bool:
        """Whether the journal below is."""
        return self._journal.is_overdue

    def heal(self) -> None:
        """Fail no more."""
        self.faults = JournalFaults()
        self.is_full = self.is_broken = False

    def load(self) -> Iterator[Entry]:
        """Yield what was kept."""
        return self._journal.load()

    def commit(self, batch: Sequence[Entry]) -> None:
        """Keep a batch, or fail."""
        self._perhaps_fail(self.faults.full_per_mille, self.faults.failed_per_mille)
        if self.dies != "before":
            self._journal.commit(batch)
        if self.dies:
            self.is_dead = True
            raise JournalFailed(f"planted: killed {self.dies} the commit")

    def compact(self, before: int) -> None:
        """Forget superseded versions, or fail."""
        self._perhaps_fail(0, self.faults.upkeep_per_mille)
        self._journal.compact(before)

    def tend(self) -> None:
        """Do upkeep, or fail."""
        self._perhaps_fail(0, self.faults.upkeep_per_mille)
        self._journal.tend()

    def close(self) -> None:
        """Close the journal below."""
        if not self.is_dead:
            self._journal.close()

    def _perhaps_fail(self, full_per_mille: int, failed_per_mille: int) -> None:
        if self.is_dead:
            raise JournalFailed("planted: this process is dead")
        full = self._entropy.happens(full_per_mille)
        failed = self._entropy.happens(failed_per_mille)
        if self.is_full or full:
            self.failures += 1
            raise JournalFull("planted: no space left on device")
        if self.is_broken or failed:
            self.failures += 1
            raise JournalFailed("planted: input/output error")
