"""Durations in Go's syntax: `4h`, `1h30m`, `0s`, `-1.5h`.

Only this module converts. Parts below a microsecond are cut off, as a `timedelta` holds none; the
span is Go's own, about 292 years either way.
"""

from __future__ import annotations

import re
from datetime import timedelta

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_NANOSECONDS_MAX = 2**63 - 1
LENGTH_MAX = 64
"""How long a duration's text may be."""


class Duration(timedelta):
    """A span of time as it stands in a document. A `timedelta`, but for its JSON form."""

    __slots__ = ()


def parse_duration(text: str) -> Duration:
    """Return the duration a text in Go's syntax names; raises ValueError saying what is wrong."""
    sign, rest = -1 if text.startswith("-") else 1, text[1:] if text[:1] in "+-" else text
    if rest == "0":
        return Duration()
    if not rest or len(text) > LENGTH_MAX:
        raise ValueError('must be a duration such as "4h", "1h30m" or "0s"')
    nanoseconds, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or not (part[1] or part[2]):
            raise ValueError(_advice(rest, position))
        scale = _NANOSECONDS[part[3]]
        fraction = part[2] or ""
        nanoseconds += int(part[1] or "0") * scale
        nanoseconds += int(fraction or "0") * scale // 10 ** len(fraction)
        position = part.end()
    if nanoseconds > _NANOSECONDS_MAX:
        raise ValueError("must be shorter than 292 years")
    return Duration(microseconds=sign * (nanoseconds // 1_000))


def _advice(text: str, position: int) -> str:
    number = re.compile(r"[0-9]*\.?[0-9]+$").match(text, position)
    if number:
        return f'must be a duration with a unit, such as "{number[0]}s", "{number[0]}m" or "1h30m"'
    if re.fullmatch(r"[0-9.]+d", text):
        return 'must be a duration such as "24h"; days are not a unit'
    return 'must be a duration such as "4h", "1h30m" or "0s" (units: h, m, s, ms, us, ns)'


def format_duration(duration: timedelta) -> str:
    """Return the shortest text in Go's syntax: `1h30m`, never `1h30m0s`."""
    microseconds = duration // timedelta(microseconds=1)
    if microseconds == 0:
        return "0s"
    sign = "-" if microseconds < 0 else ""
    seconds, micro = divmod(abs(microseconds), 1_000_000)
    if seconds == 0:
        milli, rest = divmod(micro, 1_000)
        return f"{sign}{micro}us" if rest else f"{sign}{milli}ms"
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    parts = [f"{hours}h"] if hours else []
    if minutes:
        parts.append(f"{minutes}m")
    if micro:
        parts.append(f"{seconds}.{f'{micro:06d}'.rstrip('0')}s")
    elif seconds:
        parts.append(f"{seconds}s")
    return sign + "".join(parts)
