"""How statuses are put together and written."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.meta import conditions, records
from spinney.meta.conditions import Condition
from spinney.meta.documents import Document
from spinney.meta.records import Record

STALLED = "Stalled"
"""The condition that some action is refused until somebody acts."""

TOLD_FIRST = "its status is told first: what is to be done was refused before"


def document(status: Record, counters: Sequence[str]) -> Document:
    """Return a status as it is stored. Its counters are told when they are 0 too."""
    zeros: Document = dict.fromkeys(counters, 0)
    return {**zeros, **records.encode(status)}


def must_go_first(found: Sequence[Condition]) -> bool:
    """Whether a changed status is stored before anything is done.

    A status follows the actions; while some of these are refused, it would never be told.
    """
    return conditions.is_true(found, STALLED)
