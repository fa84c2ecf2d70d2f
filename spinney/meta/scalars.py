"""Scalars of YAML as kubectl reads them, that is sigs.k8s.io/yaml's goyaml.v2 (`resolve.go`).

YAML 1.1's booleans count, `y` and `n` too; dates and `1:30` stay strings; `017`, `0o17`, `0x1F`,
`0b11` and `1_000` are integers. A number that is whole becomes an integer (`3.0`, `1e3`, `08`), as
it does on kubectl's way through JSON. Stricter than kubectl in one thing: what JSON cannot hold
exactly (`.inf`, `1e999`, integers beyond 64 bits) is refused, where kubectl would change it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from spinney.meta.documents import Json
from spinney.meta.schemas import INT64_MAX

_WORDS: Mapping[str, Json] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]([0-7]+)|0[bB]([01]+)|0([0-7]*)|([1-9][0-9]*))"
)
_BASES = (16, 8, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

SPECIAL = frozenset("yYnNtTfFoO~+-.0123456789")
"""With which a plain scalar must start to be more than a string; the empty one is null."""

DIGITS_MAX = 400
"""How many characters a number may have: more than any that fits has use for."""

_TAG = "tag:yaml.org,2002:"
MERGE_TAG = _TAG + "merge"
JSON_TAG = "json"
"""Marks a number as written in JSON, which knows no octals and no underscores."""


def plain(text: str) -> Json:
    """Return what a scalar without quotes and tag means; raises ValueError with what must hold."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first not in SPECIAL or first.isalpha():
        return text
    if _INFINITE.fullmatch(text):
        raise ValueError(f"{text} has no form in JSON: write it in quotes, or give a number")
    digits = text if first == "." else text.replace("_", "")
    if (match := _INTEGER.fullmatch(digits)) and first != ".":
        return _integer(match, text)
    if _FLOAT.fullmatch(digits):
        return number(digits)
    return text


def _integer(match: re.Match[str], text: str) -> int:
    sign, *groups = match.groups()
    for base, found in zip(_BASES, groups, strict=True):
        if found is not None:
            if len(found) > DIGITS_MAX:
                break
            value = int(found or "0", base)
            value = -value if sign == "-" else value
            if -INT64_MAX - 1 <= value <= INT64_MAX:
                return value
            break
    raise ValueError(f"integer {_cut(text)} does not fit in 64 bits: write it in quotes")


def number(text: str) -> int | float:
    """Return a decimal number, as an integer if it is whole; raises ValueError if it is none."""
    if len(text) > DIGITS_MAX:
        raise ValueError(f"number {_cut(text)} has too many digits: write it in quotes")
    value = float(text)
    if value - value != 0:
        raise ValueError(f"number {_cut(text)} is too large: write it in quotes")
    return int(value) if value.is_integer() and abs(value) <= INT64_MAX else value


def json_integer(text: str) -> int:
    """Return an integer written in JSON; raises ValueError where it does not fit in 64 bits."""
    if len(text) <= 20 and -INT64_MAX - 1 <= (value := int(text)) <= INT64_MAX:
        return value
    raise ValueError(f"integer {_cut(text)} does not fit in 64 bits: write it in quotes")


def json_float(text: str) -> float:
    """Return a number written in JSON with fraction or exponent; raises ValueError if too large."""
    if len(text) <= DIGITS_MAX and (value := float(text)) - value == 0:
        return value
    raise ValueError(f"number {_cut(text)} is too large: write it in quotes")


def tagged(tag: str, text: str) -> Json:
    """Return what a scalar with a tag means; raises ValueError with what must hold."""
    if tag == JSON_TAG:
        return json_integer(text) if text.lstrip("-").isdigit() else json_float(text)
    short = tag.removeprefix(_TAG)
    if short in ("!", "str", "timestamp", "merge"):
        return text
    if short == "binary":
        return _binary(text)
    if tag == short or short not in ("int", "float", "bool", "null"):
        raise ValueError(f"tag {shown_tag(tag)} is not known: leave it out")
    value = plain(text)
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "null": value is None,
    }
    if not fits[short]:
        raise ValueError(f"{_cut(text)!r} cannot be read as {shown_tag(tag)}: leave the tag out")
    return value


def check_collection_tag(tag: str, kind: str) -> None:
    """Raise ValueError unless a tag only says of a collection what it is: `!!map` or `!!seq`."""
    if tag not in ("!", _TAG + kind):
        raise ValueError(f"tag {shown_tag(tag)} is not known: leave it out")


def key(value: Json) -> str:
    """Return a key as JSON must have it; raises ValueError if it is no scalar, or null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise ValueError("a key must be a string, found null: write it in quotes")


def shown_tag(tag: str) -> str:
    """Return a tag as people write it: `!!int`."""
    return _cut(f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag)


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ValueError(
            "!!binary must be base64 of UTF-8 text: leave the tag out to keep the base64"
        ) from error


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
