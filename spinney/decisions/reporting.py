"""How statuses are put together and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from spinney.api.status import LastError
from spinney.decisions.actions import Action, Emit
from spinney.meta import conditions, records
from spinney.meta.conditions import TRUE, Condition
from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.meta.references import Ref

STALLED = "Stalled"
"""The condition that some action is refused until somebody acts."""

BLOCKED = "Blocked"
"""The condition that something it needs is not there, and who has to make it (rule 1.10)."""

ALL_LOST = "AllScheduledReplicasLost"

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


def with_blocked(
    found: tuple[Condition, ...], errors: Sequence[LastError], now: datetime
) -> tuple[Condition, ...]:
    """Return conditions that tell what somebody has to make first, where there is such a thing."""
    if not errors:
        return tuple(each for each in found if each.type != BLOCKED)
    words = errors[0].code.removeprefix("ERR_").lower().split("_")
    reason = "".join(word.capitalize() for word in words)
    message = "; ".join(error.description for error in errors)
    return conditions.set_condition(found, BLOCKED, TRUE, reason, message, now)


def losses(about: Ref, before: int, after: int, needed: int, unit: str) -> Iterator[Action]:
    """Yield the event that nothing of what was placed is placed any more, though it is needed."""
    if before and not after and needed:
        note = (
            f"none of {needed} {unit} is placed any more, {before} were: they are placed anew as "
            "soon as nodes have room"
        )
        yield Emit(about=about, type="Warning", reason=ALL_LOST, note=note, key=ALL_LOST)
