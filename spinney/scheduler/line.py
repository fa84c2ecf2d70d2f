"""The line: gangs that are to be looked at, in the order of their turns.

Gangs that have nodes for some of the pods they need come first: until they are whole they hold
room for nothing. Then, as `decisions/placement/queueing` has it, the more important before the
less; of equal ones those that run and want to be whole again, then the older.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime

from spinney.meta.records import Record
from spinney.meta.references import Ref

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Turn(Record, order=True):
    """When a gang's turn is: the least is first."""

    is_complete: bool
    """False where it has nodes for some of the pods it needs, and not for all."""

    less_important: int
    """The priority, negated."""

    is_new: bool
    """Whether none of its pods has a node."""

    created: datetime
    whole: Ref


def turn(
    whole: Ref, priority: int, created: datetime | None, *, is_running: bool, is_partial: bool
) -> Turn:
    """Return when a gang's turn is."""
    return Turn(
        is_complete=not is_partial,
        less_important=-priority,
        is_new=not is_running,
        created=created or _LONG_AGO,
        whole=whole,
    )


class Line:
    """Gangs that wait for a look, each once."""

    def __init__(self) -> None:
        """Be empty."""
        self._turns: dict[Ref, Turn] = {}
        self._heap: list[Turn] = []

    def add(self, found: Turn) -> None:
        """Line a gang up; where its turn has changed, the new one counts."""
        if self._turns.get(found.whole) != found:
            self._turns[found.whole] = found
            heapq.heappush(self._heap, found)

    def first(self) -> Turn | None:
        """Return whose turn it is, None where nobody waits."""
        while self._heap:
            found = self._heap[0]
            if self._turns.get(found.whole) == found:
                return found
            heapq.heappop(self._heap)
        return None

    def take(self) -> Ref | None:
        """Return the gang whose turn it is, and take it out."""
        found = self.first()
        if found is None:
            return None
        del self._turns[found.whole]
        heapq.heappop(self._heap)
        return found.whole

    def drop(self, whole: Ref) -> None:
        """Take a gang out, whose turn it need not be."""
        self._turns.pop(whole, None)

    def __iter__(self) -> Iterator[Turn]:
        """Yield those that wait, in no order."""
        return iter(self._turns.values())

    def __len__(self) -> int:
        """How many wait for a look."""
        return len(self._turns)
