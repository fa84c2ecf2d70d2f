"""JSONPath templates, as `-o jsonpath=` takes them: text with paths in braces, and ranges.

`{.metadata.name}` prints what a path leads to, `{range .items[*]}…{end}` repeats, and what stands
in quotes, as `{"\\n"}`, is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from spinney.cli.usage import Usage
from spinney.meta.documents import Json
from spinney.meta.records import Record
from spinney.server import jsonpaths

_IN_BRACES = re.compile(r"\{((?:[^{}\"']|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')*)\}")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Text(Record):
    """Text as it is."""

    text: str


class Value(Record):
    """What a path leads to."""

    path: str


class Range(Record):
    """A part that is repeated for all that a path leads to."""

    path: str
    parts: tuple[Part, ...]


Part = Text | Value | Range


def parse(template: str) -> tuple[Part, ...]:
    """Return a template ready to be filled; raises Usage."""
    if "{" not in template:
        template = (
            f"{{{template if template.startswith(('.', '[', '$', '@')) else '.' + template}}}"
        )
    tokens = list(_tokens(template))
    parts, rest = _parts(tokens, is_within=False)
    assert not rest
    return parts


def fill(parts: Sequence[Part], document: Json) -> str:
    """Return a template filled from a document."""
    return "".join(_filled(part, document) for part in parts)


def _filled(part: Part, document: Json) -> str:
    if isinstance(part, Text):
        return part.text
    found = jsonpaths.find(part.path, document)
    if isinstance(part, Range):
        return "".join(fill(part.parts, item) for item in found)
    return " ".join(map(shown, found))


def shown(value: Json) -> str:
    """Return a value as a template prints it: texts bare, the rest as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def checked(path: str) -> str:
    """Return a path; raises Usage where it is none."""
    try:
        jsonpaths.compiled(path)
    except jsonpaths.BadPath as error:
        raise Usage(f"jsonpath {path}: {error}") from error
    return path


def _tokens(template: str) -> Iterator[tuple[bool, str]]:
    """Yield text, and what stands in braces."""
    at = 0
    for match in _IN_BRACES.finditer(template):
        yield from _outside(template[at : match.start()], template)
        yield True, match[1].strip()
        at = match.end()
    yield from _outside(template[at:], template)


def _outside(text: str, template: str) -> Iterator[tuple[bool, str]]:
    if "{" in text or "}" in text:
        raise Usage(f"jsonpath {template}: a brace is not closed, or not opened")
    if text:
        yield False, text


def _parts(
    tokens: list[tuple[bool, str]], *, is_within: bool
) -> tuple[tuple[Part, ...], list[tuple[bool, str]]]:
    parts: list[Part] = []
    while tokens:
        (in_braces, text), *tokens = tokens
        if not in_braces:
            parts.append(Text(text=text))
        elif text == "end":
            if not is_within:
                raise Usage("jsonpath: {end} without {range}")
            return tuple(parts), tokens
        elif text.startswith("range "):
            below, tokens = _parts(tokens, is_within=True)
            path = checked(text.removeprefix("range ").strip())
            parts.append(Range(path=path, parts=below))
        elif _QUOTED.fullmatch(text):
            parts.append(Text(text=_unquoted(text)))
        else:
            parts.append(Value(path=checked(text)))
    if is_within:
        raise Usage("jsonpath: {range} without {end}")
    return tuple(parts), tokens


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
