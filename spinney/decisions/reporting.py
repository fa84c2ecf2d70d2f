"""How statuses are put together and written."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.meta import records
from spinney.meta.documents import Document
from spinney.meta.records import Record


def document(status: Record, counters: Sequence[str]) -> Document:
    """Return a status as it is stored. Its counters are told when they are 0 too."""
    zeros: Document = dict.fromkeys(counters, 0)
    return {**zeros, **records.encode(status)}
