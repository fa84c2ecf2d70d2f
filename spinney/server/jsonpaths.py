"""JSONPath, as far as printer columns use it: fields, indexes, `[*]`, `..` and simple filters."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence

from spinney.meta import documents
from spinney.meta.documents import Json

Step = Callable[[Json], Iterator[Json]]

_NAME = re.compile(r"(?:[^\s.\[\]{}()'\"\\*]|\\.)+")
_BRACKET = re.compile(
    r"\[\s*(?:(?P<index>-?\d{1,9})|(?P<slice>-?\d{0,9}:-?\d{0,9})|(?P<all>\*)"
    r"|'(?P<single>(?:[^'\\]|\\.)*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\""
    r"|\?\(\s*@(?P<left>(?:\.(?:[^\s.\[\]=!<>()\\]|\\.)+|\['[^']*'\])+)\s*"
    r"(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<right>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[\w.+-]+)\s*)?\))\s*\]"
)


class BadPath(ValueError):
    """A path that is none of those understood; the message says where."""


@functools.lru_cache(maxsize=4096)
def compiled(path: str) -> tuple[Step, ...]:
    """Return a path as steps; raises BadPath."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            steps.append(_everything_below)
            at += 2
            if at < len(text) and text[at] not in "[*":
                at = _name(text, at, steps)
            elif text.startswith("*", at):
                steps.append(_each)
                at += 1
        elif text[at] == ".":
            at += 1
            if text.startswith("*", at):
                steps.append(_each)
                at += 1
            elif at < len(text) and text[at] != "[":
                at = _name(text, at, steps)
        elif text[at] == "[":
            at = _bracket(text, at, steps)
        else:
            at = _name(text, at, steps)
    return tuple(steps)


def find(path: str, document: Json) -> list[Json]:
    """Return all values a path leads to, in order; none where it leads nowhere."""
    found: list[Json] = [document]
    for step in compiled(path):
        found = [below for value in found for below in step(value)]
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text


def _name(text: str, at: int, steps: list[Step]) -> int:
    match = _NAME.match(text, at)
    if match is None:
        raise BadPath(f'expected a field at position {at + 1} of "{text}"')
    steps.append(_field(_unescaped(match[0])))
    return match.end()


def _bracket(text: str, at: int, steps: list[Step]) -> int:
    match = _BRACKET.match(text, at)
    if match is None:
        raise BadPath(f'no index, field or filter at position {at + 1} of "{text}"')
    if match["index"] is not None:
        steps.append(_index(int(match["index"])))
    elif match["slice"] is not None:
        start, _, end = match["slice"].partition(":")
        steps.append(_slice(int(start) if start else None, int(end) if end else None))
    elif match["all"]:
        steps.append(_each)
    elif match["left"] is not None:
        steps.append(_filter(match["left"], match["sign"] or "", match["right"] or ""))
    else:
        steps.append(_field(_unescaped(match["single"] or match["double"] or "")))
    return match.end()


def _field(name: str) -> Step:
    def step(value: Json) -> Iterator[Json]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Json) -> Iterator[Json]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(start: int | None, end: int | None) -> Step:
    def step(value: Json) -> Iterator[Json]:
        if isinstance(value, list):
            yield from value[start:end]

    return step


def _each(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _everything_below(value: Json) -> Iterator[Json]:
    waiting = [value]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(list(_each(here))))


def _filter(left: str, sign: str, right: str) -> Step:
    path = compiled(left)
    wanted = _literal(right) if sign else None

    def holds(item: Json) -> bool:
        found: Sequence[Json] = [item]
        for each in path:
            found = [below for value in found for below in each(value)]
        if not sign:
            return bool(found)
        return bool(found) and _compares(found[0], sign, wanted)

    def step(value: Json) -> Iterator[Json]:
        for item in _each(value):
            if holds(item):
                yield item

    return step


def _literal(text: str) -> Json:
    if text[0] in "\"'":
        return _unescaped(text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _compares(found: Json, sign: str, wanted: Json) -> bool:
    if sign in ("==", "!="):
        return documents.same(found, wanted) == (sign == "==")
    if isinstance(found, bool) or isinstance(wanted, bool):
        return False
    if isinstance(found, (int, float)) and isinstance(wanted, (int, float)):
        return _in_order((found > wanted) - (found < wanted), sign)
    if isinstance(found, str) and isinstance(wanted, str):
        return _in_order((found > wanted) - (found < wanted), sign)
    return False


def _in_order(order: int, sign: str) -> bool:
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]
