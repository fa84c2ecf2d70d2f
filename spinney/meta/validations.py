"""Validations: what the schemas of users ask of a value beyond its type and its fields.

`wanted` is for a place of a document whose type is known: it adds what `Shape` does not look at
itself. `loose` is for schemas below `allOf`, `anyOf`, `oneOf` and `not`, which have no types: each
word of them says something of values of its own type, and nothing of others.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import TypeAlias
from urllib.parse import urlsplit

from spinney.meta import errors, patterns
from spinney.meta.documents import Json, is_integer, same
from spinney.meta.errors import FieldError
from spinney.meta.schemas import Schema
from spinney.meta.times import parse_time

Report: TypeAlias = "list[FieldError]"
Check: TypeAlias = Callable[[Json, str, Report], None]
Says: TypeAlias = Callable[[Json], str]
"""What must hold of a value; "" if it does."""


def wanted(schema: Schema) -> Check | None:
    """Return the check of what a place wants beyond its type; None where that is nothing."""
    checks = [*_own(schema), *_junctors(schema)]
    if schema.type in ("", "number"):
        checks += _bounds(schema)
    if not schema.type:
        checks += _texts(schema)
    return _all(checks) if checks else None


def loose(schema: Schema) -> Check:
    """Return the check of a schema that has no type."""
    checks = [*_own(schema), *_bounds(schema), *_texts(schema), *_junctors(schema)]
    if schema.type:
        checks.insert(0, _saying(_type_fault(schema.type), errors.TYPE_INVALID))
    if schema.enum:
        checks.append(_among(schema.enum))
    if schema.min_items is not None:
        checks.append(_saying(_at_least(schema.min_items, list, "items")))
    below = {name: loose(each) for name, each in schema.properties.items()}
    if below or schema.required:
        checks.append(_fields(below, schema.required))
    if schema.items is not None:
        checks.append(_items(loose(schema.items)))
    if schema.values is not None:
        checks.append(_values(loose(schema.values), frozenset(schema.properties)))
    return _all(checks)


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def check(value: Json, path: str, report: Report) -> None:
        for each in checks:
            each(value, path, report)

    return check


def _saying(says: Says, reason: str = errors.INVALID) -> Check:
    def check(value: Json, path: str, report: Report) -> None:
        if message := says(value):
            report.append(FieldError(path=path, reason=reason, message=message, found=value))

    return check


def _own(schema: Schema) -> Iterator[Check]:
    """Yield what is asked by words that `Shape` leaves alone."""
    if schema.choices:
        yield _among(schema.choices)
    if schema.max_items is not None:
        yield _saying(_at_most(schema.max_items, list, "items"), errors.TOO_MANY)
    if schema.min_properties is not None:
        yield _saying(_at_least(schema.min_properties, dict, "properties"))
    if schema.max_properties is not None:
        yield _saying(_at_most(schema.max_properties, dict, "properties"), errors.TOO_MANY)
    if schema.exclusive_minimum or schema.exclusive_maximum:
        yield _saying(_exclusive(schema))
    if schema.multiple_of is not None:
        yield _saying(_multiple(schema.multiple_of))
    if (form := FORMATS.get(schema.text_format)) is not None:
        yield _saying(lambda value: form(value) if isinstance(value, str) else "")


def _among(choices: tuple[Json, ...]) -> Check:
    message = "supported values: " + ", ".join(errors.shown(choice) for choice in choices)

    def check(value: Json, path: str, report: Report) -> None:
        if not any(same(value, choice) for choice in choices):
            reason = errors.NOT_SUPPORTED
            report.append(FieldError(path=path, reason=reason, message=message, found=value))

    return check


def _at_least(least: int, sort: type, what: str) -> Says:
    message = f"must have at least {least} {what}"
    return lambda value: message if isinstance(value, sort) and _size(value) < least else ""


def _at_most(most: int, sort: type, what: str) -> Says:
    message = f"must have at most {most} {what}"
    return lambda value: message if isinstance(value, sort) and _size(value) > most else ""


def _size(value: Json) -> int:
    return len(value) if isinstance(value, (str, list, dict)) else 0


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bounds(schema: Schema) -> Iterator[Check]:
    least, most = schema.minimum, schema.maximum
    if least is not None and not schema.exclusive_minimum:
        low = f"must be greater than or equal to {least}"
        yield _saying(lambda value: low if _is_number(value) and _less(value, least) else "")
    if most is not None and not schema.exclusive_maximum:
        high = f"must be less than or equal to {most}"
        yield _saying(lambda value: high if _is_number(value) and _less(most, value) else "")


def _less(one: Json, other: Json) -> bool:
    return isinstance(one, (int, float)) and isinstance(other, (int, float)) and one < other


def _exclusive(schema: Schema) -> Says:
    least = schema.minimum if schema.exclusive_minimum else None
    most = schema.maximum if schema.exclusive_maximum else None

    def says(value: Json) -> str:
        if not _is_number(value):
            return ""
        if least is not None and not _less(least, value):
            return f"must be greater than {least}"
        if most is not None and not _less(value, most):
            return f"must be less than {most}"
        return ""

    return says


def _multiple(factor: int | float) -> Says:
    step = Decimal(str(factor))

    def says(value: Json) -> str:
        if is_integer(value) and isinstance(factor, int):
            return f"must be a multiple of {factor}" if value % factor else ""
        if not _is_number(value):
            return ""
        quotient = Decimal(str(value)) / step if step else Decimal(0)
        fits = quotient.is_finite() and quotient == quotient.to_integral_value()
        return "" if fits else f"must be a multiple of {factor}"

    return says


def _texts(schema: Schema) -> Iterator[Check]:
    least, most = schema.min_length, schema.max_length
    if least is not None:
        few = f"must have at least {least} characters"
        yield _saying(lambda value: few if isinstance(value, str) and len(value) < least else "")
    if most is not None:
        many = f"must have at most {most} characters"
        yield _saying(lambda value: many if isinstance(value, str) and len(value) > most else "")
    pattern = patterns.compiled(schema.pattern) if schema.pattern else None
    if pattern is not None:
        message, search = f"must match {schema.pattern}", pattern.search
        yield _saying(lambda value: message if isinstance(value, str) and not search(value) else "")


TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def _type_fault(sort: str) -> Says:
    expected, message = TYPES[sort], f"must be of type {sort}"

    def says(value: Json) -> str:
        if isinstance(value, bool):
            return "" if sort == "boolean" else message
        if sort == "integer" and isinstance(value, float) and value.is_integer():
            return ""
        return "" if isinstance(value, expected) else message

    return says


def _fields(below: Mapping[str, Check], required: tuple[str, ...]) -> Check:
    def check(value: Json, path: str, report: Report) -> None:
        if not isinstance(value, dict):
            return
        prefix = f"{path}." if path else ""
        for name, each in below.items():
            if name in value:
                each(value[name], prefix + name, report)
        for name in required:
            if name not in value:
                report.append(FieldError(path=prefix + name, reason=errors.REQUIRED, message=""))

    return check


def _items(below: Check) -> Check:
    def check(value: Json, path: str, report: Report) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                below(item, f"{path}[{index}]", report)

    return check


def _values(below: Check, named: frozenset[str]) -> Check:
    def check(value: Json, path: str, report: Report) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                if key not in named:
                    below(each, f"{path}[{key}]", report)

    return check


def _junctors(schema: Schema) -> Iterator[Check]:
    yield from (loose(each) for each in schema.all_of)
    if schema.any_of:
        yield _any_of([loose(each) for each in schema.any_of])
    if schema.one_of:
        yield _one_of([loose(each) for each in schema.one_of])
    if schema.never is not None:
        refused = loose(schema.never)
        yield _saying(
            lambda value: "" if faults(refused, value) else "must not validate the schema (not)"
        )


def _any_of(checks: list[Check]) -> Check:
    def says(value: Json) -> str:
        if any(not faults(each, value) for each in checks):
            return ""
        return "must validate at least one schema (anyOf)" + _closest(checks, value)

    return _saying(says)


def _one_of(checks: list[Check]) -> Check:
    def says(value: Json) -> str:
        count = sum(not faults(each, value) for each in checks)
        if count == 1:
            return ""
        found = f"found {count} valid" if count else "found none valid"
        closest = "" if count else _closest(checks, value)
        return f"must validate one and only one schema (oneOf): {found}{closest}"

    return _saying(says)


def _closest(checks: list[Check], value: Json) -> str:
    """Tell what the schema with the fewest faults misses, so that a reader sees what to mend."""
    nearest = min((faults(each, value) for each in checks), key=len)
    fault = nearest[0]
    return f"; nearest: {fault.path + ': ' if fault.path else ''}{fault.text}"


def faults(check: Check, value: Json) -> list[FieldError]:
    """Return what a check tells of a value, with paths from there on."""
    found: list[FieldError] = []
    check(value, "", found)
    return found


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?", re.ASCII)
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4,6}", re.ASCII)
_UUID = re.compile(
    r"[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?([0-9A-Fa-f])[0-9A-Fa-f]{3}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}",
    re.ASCII,
)
_EMAIL = re.compile(r"[^@\s<>()]+@[^@\s<>()]+", re.ASCII)
_DURATION = re.compile(
    r"-?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?:ns|us|µs|μs|ms|s|m|h|d|w))"
    r"(?:\s*(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?:ns|us|µs|μs|ms|s|m|h|d|w))*"
)


def _parsing(parse: Callable[[str], object], message: str) -> Callable[[str], str]:
    def says(text: str) -> str:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return message
        return ""

    return says


def _matching(pattern: re.Pattern[str], message: str) -> Callable[[str], str]:
    return lambda text: "" if pattern.fullmatch(text) else message


def _cidr(text: str) -> None:
    if "/" not in text:
        raise ValueError
    ipaddress.ip_interface(text)


def _uri(text: str) -> None:
    if not urlsplit(text).scheme and not text.startswith("/"):
        raise ValueError


def _uuid(version: str) -> Callable[[str], str]:
    def says(text: str) -> str:
        match = _UUID.fullmatch(text)
        fits = match is not None and version in ("", match[1])
        return "" if fits else f"must be a UUID{' of version ' + version if version else ''}"

    return says


FORMATS: Mapping[str, Callable[[str], str]] = {
    "byte": _parsing(lambda text: base64.b64decode(text, validate=True), "must be base64"),
    "cidr": _parsing(_cidr, 'must be a CIDR such as "10.0.0.0/8"'),
    "date": _parsing(date.fromisoformat, 'must be a date such as "2025-01-31"'),
    "date-time": _parsing(parse_time, 'must be a time such as "2025-01-31T12:00:00Z"'),
    "datetime": _parsing(parse_time, 'must be a time such as "2025-01-31T12:00:00Z"'),
    "duration": _matching(_DURATION, 'must be a duration such as "1h30m"'),
    "email": _matching(_EMAIL, "must be an email address"),
    "hostname": _matching(_HOSTNAME, "must be a host name"),
    "ipv4": _parsing(ipaddress.IPv4Address, "must be an IPv4 address"),
    "ipv6": _parsing(ipaddress.IPv6Address, "must be an IPv6 address"),
    "mac": _matching(_MAC, "must be a MAC address"),
    "password": lambda _text: "",
    "uri": _parsing(_uri, 'must be a URI such as "https://example.com"'),
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}
"""The formats of texts that are judged."""

UNJUDGED = ("bsonobjectid", "creditcard", "hexcolor", "isbn", "isbn10", "isbn13", "rgbcolor", "ssn")
"""The formats a cluster judges and Spinney does not; others neither does."""
