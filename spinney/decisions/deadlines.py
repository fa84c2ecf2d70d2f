"""Deadlines: when something that was written down is due. Nothing else compares durations."""

from __future__ import annotations

from datetime import datetime, timedelta

WHOLE_SECOND = timedelta(seconds=1)
"""What is stored is cut to whole seconds: it may have happened at the end of its second."""


def due_at(stored: datetime, delay: timedelta) -> datetime:
    """Return when a delay that counts from a stored time is over (rule 7.2). No delay: at once."""
    return stored + WHOLE_SECOND + delay if delay else stored


def left(stored: datetime, delay: timedelta, now: datetime) -> timedelta:
    """Return how much of a delay is left; nothing where it is over."""
    return max(due_at(stored, delay) - now, timedelta())


def earliest(*waits: timedelta | None) -> timedelta | None:
    """Return the shortest of some waits, None where there is none."""
    return min((wait for wait in waits if wait is not None), default=None)
