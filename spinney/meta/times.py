"""Instants: aware UTC `datetime`s within, RFC 3339 in documents. Only this module converts.

Documents hold whole seconds; `Lease` and the events of `events.k8s.io` hold microseconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def parse_time(text: str) -> datetime:
    """Return the instant an RFC 3339 text names, in UTC; raises ValueError with what must hold."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError('must be a time such as "2026-11-19T08:30:00Z"')
    fraction = match[1] or ""
    shortened = text.replace(fraction, fraction[:7], 1) if fraction else text
    try:
        return datetime.fromisoformat(shortened.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"must be a time that exists: {error}") from error


def format_time(instant: datetime) -> str:
    """Return an instant as documents hold it: whole seconds, cut off, in UTC."""
    return _format(instant, "seconds")


def format_micro_time(instant: datetime) -> str:
    """Return an instant as `Lease` holds it, with microseconds."""
    return _format(instant, "microseconds")


def _format(instant: datetime, unit: str) -> str:
    in_utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return f"{in_utc.isoformat(timespec=unit).removesuffix('+00:00')}Z"
