"""Ages as kubectl prints them: `47s`, `3m12s`, `5d4h`, `2y31d`."""

from __future__ import annotations

from datetime import datetime

from spinney.meta import times
from spinney.meta.documents import Json

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def age(since: Json, now: datetime) -> str:
    """Return how long ago a time of a document was."""
    if not isinstance(since, str) or not since:
        return UNKNOWN
    try:
        instant = times.parse_time(since)
    except ValueError:
        return UNKNOWN
    return duration(int((now - instant).total_seconds()))


def duration(seconds: int) -> str:
    """Return a number of seconds in at most two units, the finer one while it still matters."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    whole = f"{seconds // large}{large_name}"
    return f"{whole}{rest}{small_name}" if rest else whole
