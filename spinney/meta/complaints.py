"""What libyaml complains of, in words that help, with the line to look at."""

from __future__ import annotations

import re
from typing import Final

import yaml
from yaml.events import Event
from yaml.reader import ReaderError

from spinney.meta.composing import Events
from spinney.meta.errors import DecodeError

_PARSER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser; PyYAML's own, twenty times slower, where PyYAML was built without it."""

_NO_SPACE = re.compile(r"[ \t]*(?:- +)*[\w./-]+:[^\s:/]")
_TWO_COLONS = re.compile(r"[^'\"#]*:\s+[^'\"#]*:(?:\s|$)")
_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")

_PLAIN_WORDS = (
    (
        "did not find expected node content",
        "a value is expected here: is a bracket not closed?",
    ),
    ("found undefined tag handle", "the tag is not known: leave it out"),
    (
        "did not find expected key",
        "a key is expected here: does the indentation fit the lines above?",
    ),
    (
        "did not find expected '-' indicator",
        'an item with "- " is expected here: does the indentation fit the lines above?',
    ),
    ("did not find expected ',' or '}'", 'expected "," or "}": is a bracket not closed?'),
    ("did not find expected ',' or ']'", 'expected "," or "]": is a bracket not closed?'),
    ("could not find expected ':'", 'a key needs a ":" with a space behind it'),
    ("found invalid Unicode character escape code", "the escape names no character"),
    ("did not find expected <document start>", "does the indentation fit the lines above?"),
    ("found unknown escape character", "the escape is not known: use single quotes to keep it"),
    (
        "block sequence entries are not allowed",
        'a "- " must stand on its own line',
    ),
)


def events(text: str, first_line: int) -> Events:
    """Return libyaml's events of a text, one a call; raises DecodeError saying what to mend."""
    try:
        get = _PARSER(text).get_event
    except yaml.YAMLError as error:
        raise _translated(error, text, first_line) from error

    def next_event() -> Event | None:
        try:
            event: Event | None = get()
        except yaml.YAMLError as error:
            raise _translated(error, text, first_line) from error
        return event

    return next_event


def _translated(error: yaml.YAMLError, text: str, first_line: int) -> DecodeError:
    if isinstance(error, ReaderError):
        at = error.position
        line = len(_BREAK.findall(text, 0, at))
        code = error.character if isinstance(error.character, int) else ord(text[at])
        message = f"control character 0x{code:02x} is not allowed: remove or escape it"
        return DecodeError(message, line=first_line + line)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return DecodeError(f"not YAML: {error}", line=first_line)
    mark = error.problem_mark
    line = mark.line
    problem, context = error.problem or "", error.context or ""
    if ("quoted scalar" in context and "end of" in problem) or "document indicator" in problem:
        line = error.context_mark.line if error.context_mark else line
        message = "the quote opened here is not closed"
    else:
        message = _advice(problem, text, mark.line, mark.column)
    return DecodeError(message, line=first_line + line)


def _advice(problem: str, text: str, line: int, column: int) -> str:
    lines = _BREAK.split(text)
    here = lines[line] if line < len(lines) else ""
    above = lines[line - 1] if 0 < line <= len(lines) else ""
    if "cannot start any token" in problem:
        found = here[column : column + 1]
        if found == "\t":
            return "found a tab: indent with spaces"
        return f'found "{found}", with which no value starts: write the value in quotes'
    if "mapping values are not allowed" in problem:
        told = f"mapping values are not allowed here: {here.strip()[:60]}"
        if _NO_SPACE.match(above):
            return f"{told}: is a space missing after the colon in the line above?"
        if _TWO_COLONS.match(here):
            return f"{told}: write a value that holds a colon in quotes"
        return f"{told}: does the indentation fit the lines above?"
    if "\t" in here[: len(here) - len(here.lstrip())]:
        return f"found a tab: indent with spaces ({problem})"
    for theirs, ours in _PLAIN_WORDS:
        if theirs in problem:
            if "':'" in theirs and _NO_SPACE.match(here):
                return "is a space missing after the colon?"
            return ours
    return problem.removeprefix("while ")
