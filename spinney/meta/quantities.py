"""Quantities of Kubernetes (`500m`, `4Gi`) and values that are an integer or a percentage.

A quantity is an integer count of billionths, so nothing is lost: what Kubernetes cannot hold
smaller than that is rounded away from zero, as it does. Where Kubernetes silently caps a value at
2^63-1 units, this module refuses it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

IntOrString: TypeAlias = int | str
"""An integer or a string such as `25%`."""

NANO = 1_000_000_000
"""How many of what `parse_quantity` returns make one unit."""

UNITS_MAX = 2**63 - 1
"""Kubernetes' own limit of a quantity, either way."""

LENGTH_MAX = 64
"""How long a quantity's text may be."""

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_EXPONENT_MAX = 99
_QUANTITY = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))"
    r"(?:([KMGTPE]i)|([eE])([+-]?[0-9]{1,4})|([numkMGTPE]?))"
)
_PERCENT = re.compile(r"[0-9]{1,9}%")


def parse_quantity(value: str | int) -> int:
    """Return a quantity in billionths, rounded away from zero; raises ValueError if it is none."""
    if isinstance(value, int):
        return _within(value * NANO)
    match = _QUANTITY.fullmatch(value) if len(value) <= LENGTH_MAX else None
    if match is None:
        raise ValueError('must be a quantity such as "500m", "4Gi" or 8')
    sign, whole, fraction, bare, binary, e, exponent, decimal = match.groups()
    fraction = bare or fraction or ""
    digits = int((whole or "") + fraction)
    if binary is not None:
        nanos = _scaled(digits * NANO * 1024 ** _BINARY[binary], -len(fraction))
    else:
        power = int(exponent) if e else _DECIMAL[decimal]
        if abs(power) > _EXPONENT_MAX:
            raise ValueError(f"must have an exponent between -{_EXPONENT_MAX} and {_EXPONENT_MAX}")
        nanos = _scaled(digits * NANO, power - len(fraction))
    return _within(-nanos if sign == "-" else nanos)


def _scaled(digits: int, power: int) -> int:
    return digits * 10**power if power >= 0 else _ceil_div(digits, 10**-power)


def _within(nanos: int) -> int:
    if abs(nanos) > UNITS_MAX * NANO:
        raise ValueError("must be between -(2^63-1) and 2^63-1")
    return nanos


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def units(nanos: int) -> int:
    """Return a quantity in whole units, rounded up."""
    return _ceil_div(nanos, NANO)


def millis(nanos: int) -> int:
    """Return a quantity in thousandths, rounded up, as CPU is counted."""
    return _ceil_div(nanos, 1_000_000)


def family(value: str | int) -> str:
    """Return in which suffixes a quantity is written: `binary`, `exponent` or `decimal`."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is not None and match[5]:
        return "binary"
    return "exponent" if match is not None and match[6] else "decimal"


def format_quantity(nanos: int, family: str = "decimal") -> str:
    """Return a quantity as kubectl shows it, with the largest suffix that needs no fraction.

    Suffixes are of the family given; a binary one below 1024, or with a fraction, is shown in
    decimal suffixes, as Kubernetes does.
    """
    if nanos == 0:
        return "0"
    if family == "binary" and nanos % NANO == 0 and abs(nanos) >= 1024 * NANO:
        number, suffix = nanos // NANO, ""
        for name in _BINARY:
            if number % 1024:
                break
            number, suffix = number // 1024, name
        return f"{number}{suffix}"
    number, power = nanos, -9
    while number % 1000 == 0 and power < 18:
        number, power = number // 1000, power + 3
    if family == "exponent":
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_BY_EXPONENT[power]}"


def canonical(value: str | int) -> str:
    """Return a quantity's canonical text in its own family; raises ValueError if it is none."""
    return format_quantity(parse_quantity(value), family(value))


def parse_int_or_percent(value: IntOrString) -> tuple[int, bool]:
    """Return a number and whether it is a percentage; raises ValueError with what must hold."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value, False
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return int(value[:-1]), True
    raise ValueError('must be an integer or a percentage such as "25%"')


def resolve(value: IntOrString, total: int, *, round_up: bool) -> int:
    """Return an integer or a percentage as a count out of a total; raises ValueError."""
    number, is_percent = parse_int_or_percent(value)
    if not is_percent:
        return number
    return _ceil_div(number * total, 100) if round_up else number * total // 100
