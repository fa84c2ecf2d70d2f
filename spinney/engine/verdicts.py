"""Verdicts: what an error of a write means for the key it was done for."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta

from spinney.meta import errors
from spinney.meta.documents import is_object, list_at
from spinney.meta.errors import ApiError, Terminal
from spinney.meta.records import Record


class Verdict(enum.Enum):
    """What is to be done about a failed write."""

    MOVED = "moved"
    """The world is not as it was when the decision was made: look again, nothing is wrong."""

    LATER = "later"
    """The server cannot or will not just now: retry, no sooner than it says."""

    STALLED = "stalled"
    """It will never go so: somebody must act. A condition and an event say who and what."""


class Failure(Record):
    """One failed write, judged."""

    verdict: Verdict
    reason: str
    message: str
    retry_after: timedelta | None = None


_MOVED = (errors.NotFound, errors.AlreadyExists, errors.Conflict)
_LATER = (
    errors.Internal,
    errors.Unavailable,
    errors.StorageFull,
    errors.TooManyRequests,
    errors.Unauthorized,
    errors.Expired,
)

Refusal = (ApiError, Terminal, TimeoutError, OSError)
"""What a writer may raise that is judged; anything else is a bug."""


_UNSAID: Mapping[type[BaseException], str] = {TimeoutError: "no answer in time"}
"""What is said of errors that say nothing themselves."""


def judged(error: ApiError | Terminal | TimeoutError | OSError) -> Failure:
    """Return what a failed write means."""
    if isinstance(error, Terminal):
        return Failure(verdict=Verdict.STALLED, reason=error.reason, message=error.message)
    if not isinstance(error, ApiError):
        message = str(error) or _UNSAID.get(type(error), type(error).__name__)
        return Failure(verdict=Verdict.LATER, reason="NoAnswer", message=message)
    seconds = error.retry_after_seconds
    return Failure(
        verdict=_verdict(error),
        reason=error.reason,
        message=error.message,
        retry_after=None if seconds is None else timedelta(seconds=max(seconds, 0)),
    )


def _verdict(error: ApiError) -> Verdict:
    if isinstance(error, errors.ApplyConflict):
        return Verdict.STALLED
    if isinstance(error, _MOVED) or _is_namespace_ending(error):
        return Verdict.MOVED
    return Verdict.LATER if isinstance(error, _LATER) else Verdict.STALLED


def _is_namespace_ending(error: ApiError) -> bool:
    """Whether nothing can be created because its namespace goes; then its owner goes too."""
    return isinstance(error, errors.Forbidden) and any(
        is_object(cause) and cause.get("reason") == "NamespaceTerminating"
        for cause in list_at(error.details, ["causes"])
    )
