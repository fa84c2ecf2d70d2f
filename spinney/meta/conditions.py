"""Conditions: what is true of an object, since when, and why."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec

from spinney.meta.records import Field, Record

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


class Condition(Record):
    """One thing that is, or is not, true of an object."""

    type: Annotated[str, Field("What it is about.", required=True, example="Available")]
    status: Annotated[
        str, Field("Whether it holds.", required=True, enum=(TRUE, FALSE, UNKNOWN))
    ] = ""
    reason: Annotated[str, Field("Why, in one word for programs.", max_length=1024)] = ""
    message: Annotated[str, Field("Why, in a sentence for people.", max_length=32768)] = ""
    last_transition_time: Annotated[
        datetime | None, Field("When its status last changed.", format="date-time")
    ] = None
    observed_generation: Annotated[
        int | None, Field("Which generation of the spec it is about.", minimum=0, format="int64")
    ] = None


def find(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    """Return the condition of a type, None if there is none."""
    return next((each for each in conditions if each.type == condition_type), None)


def is_true(conditions: Iterable[Condition], condition_type: str) -> bool:
    """Whether a condition is there and holds."""
    found = find(conditions, condition_type)
    return found is not None and found.status == TRUE


def set_condition(
    conditions: tuple[Condition, ...],
    condition_type: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """Return the conditions with one set in its place; the same ones if nothing changed.

    The time of transition, in whole seconds, moves only with the status.
    """
    old = find(conditions, condition_type)
    since = now.replace(microsecond=0)
    if old is not None and old.status == status and old.last_transition_time is not None:
        since = old.last_transition_time
    new = Condition(
        type=condition_type,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=observed_generation,
    )
    if old is None:
        return (*conditions, new)
    if msgspec.structs.astuple(new) == msgspec.structs.astuple(old):
        return conditions
    return tuple(new if each is old else each for each in conditions)
