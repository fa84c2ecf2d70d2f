"""The line: gangs that are to be looked at, in the order of their turns.

Gangs that have nodes for some of the pods they need come first: until they are whole they hold
room for nothing. Then the more important before the less, and of equal ones the older.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime

from spinney.meta.records import Record
from spinney.meta.references import Ref

_NEVER = datetime.max.replace(tzinfo=UTC)


class Turn(Record, order=True):
    """When a gang's turn is: the least is first."""

    is_complete: bool
    """False where it has nodes for some of the pods it needs, and not for all."""

    less_important: int
    """The priority, negated."""

    created: datetime
    whole: Ref


def turn(whole: Ref, priority: int, created: datetime | None, *, is_partial: bool) -> Turn:
    """Return when a gang's turn is."""
    return Turn(
        is_complete=not is_partial,
        less_important=-priority,
        created=created or _NEVER,
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

    def take(self) -> Ref | None:
        """Return the gang whose turn it is, None where nobody waits."""
        while self._heap:
            found = heapq.heappop(self._heap)
            if self._turns.get(found.whole) == found:
                del self._turns[found.whole]
                return found.whole
        return None

    def __len__(self) -> int:
        """How many wait for a look."""
        return len(self._turns)
