"""JSON as events of a YAML parser, slowly, telling what is wrong in it and where.

Good JSON is read by Python's own decoder; only what that will not take, or takes too lightly,
comes by here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from yaml.error import Mark
from yaml.events import (
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from spinney.meta import scalars
from spinney.meta.errors import DecodeError

_TOKEN = re.compile(
    r'[ \t\r\n]*+(?:(?P<mark>[\[\]{}:,])|(?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)(?![\w.+-])"
    r"|(?P<word>true|false|null)(?!\w))"
)
_BLANK = re.compile(r"[ \t\r\n]*+")
_CONTROL = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+([\x00-\x1f])')
_WORD = re.compile(r"[-+\w.]+")


class NotJson(DecodeError):
    """Text that breaks JSON's grammar; it may still be YAML."""


class Tokens:
    """The events of one JSON value in a text, and where it ended."""

    def __init__(self, text: str, at: int, first_line: int) -> None:
        """Stand before a value at a position of the text."""
        self._text = text
        self._start = self._counted = at
        self._line = 0
        self._first_line = first_line
        self.end = at
        self._events = self._walk()

    def next_event(self) -> Event | None:
        """Return the next event, None after the last; raises DecodeError at what is not JSON."""
        return next(self._events, None)

    def _mark(self, at: int) -> Mark:
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return Mark("", at, self._line, 0, None, 0)

    def _fault(self, at: int, message: str) -> DecodeError:
        return DecodeError(message, line=self._first_line + self._mark(at).line)

    def _not_json(self, at: int, message: str) -> NotJson:
        return NotJson(f"not JSON: {message}", line=self._first_line + self._mark(at).line)

    def _walk(self) -> Iterator[Event]:
        """Yield events; `wanted` is what may stand next: value, key, colon, or after a value."""
        open_marks: list[str] = []
        wanted, may_close = "value", False
        while True:
            match = _TOKEN.match(self._text, self.end)
            if match is None:
                raise self._unknown(wanted)
            kind, token = match.lastgroup or "", match[match.lastgroup or 0]
            at = match.start(kind)
            mark = self._mark(at)
            self.end = match.end()
            if kind == "mark" and token in "]}":
                fits = open_marks and open_marks[-1] == ("[" if token == "]" else "{")
                if not fits or not (may_close or wanted == "comma"):
                    raise self._unexpected(at, wanted, open_marks)
                open_marks.pop()
                yield MappingEndEvent(mark) if token == "}" else SequenceEndEvent(mark)
                wanted = "comma"
            elif wanted == "comma" and token == ",":
                wanted, may_close = ("key" if open_marks[-1] == "{" else "value"), False
                continue
            elif wanted == "colon" and token == ":":
                wanted, may_close = "value", False
                continue
            elif wanted == "key" and kind == "string":
                yield self._string(token, at, mark)
                wanted = "colon"
                continue
            elif wanted == "value" and kind == "mark" and token in "[{":
                open_marks.append(token)
                start = MappingStartEvent if token == "{" else SequenceStartEvent
                yield start(None, None, True, mark)
                wanted, may_close = ("key" if token == "{" else "value"), True
                continue
            elif wanted == "value" and kind == "string":
                yield self._string(token, at, mark)
                wanted = "comma"
            elif wanted == "value" and kind == "number":
                yield ScalarEvent(None, scalars.JSON_TAG, (False, False), token, mark)
                wanted = "comma"
            elif wanted == "value" and kind == "word":
                yield ScalarEvent(None, None, (True, False), token, mark)
                wanted = "comma"
            else:
                raise self._unexpected(at, wanted, open_marks)
            if not open_marks:
                return

    def _string(self, token: str, at: int, mark: Mark) -> ScalarEvent:
        try:
            text = json.loads(token)
            text.encode()
        except UnicodeEncodeError as error:
            message = r"a string holds half of a surrogate pair such as \ud83d: give both halves"
            raise self._fault(at, message) from error
        except ValueError as error:
            raise self._fault(
                at, rf"a string holds an escape JSON does not know: {token[:40]}"
            ) from error
        return ScalarEvent(None, None, (False, True), text, mark, style='"')

    def _unexpected(self, at: int, wanted: str, open_marks: list[str]) -> DecodeError:
        expected = {
            "comma": f'"," or "{"}" if open_marks[-1:] == ["{"] else "]"}"',
            "colon": '":"',
            "key": "a key in double quotes",
            "value": "a value",
        }[wanted]
        found = self._text[at : at + 20].splitlines()[0]
        return self._not_json(at, f"expected {expected}, found {found}")

    def _unknown(self, wanted: str) -> DecodeError:
        text = self._text
        at = blank.end() if (blank := _BLANK.match(text, self.end)) else self.end
        if at >= len(text):
            return self._not_json(at, "it ends too early, a bracket or quote is not closed")
        if text[at] == '"':
            if control := _CONTROL.match(text, at):
                if control[1] in "\r\n":
                    return self._not_json(at, "a quote is not closed in its line")
                code = f"\\u{ord(control[1]):04x}"
                return self._fault(
                    control.start(1), f"not JSON: a string holds a control character: write {code}"
                )
            return self._not_json(at, "a quote is not closed")
        word = match[0] if (match := _WORD.match(text, at)) else text[at]
        if word in ("NaN", "Infinity", "-Infinity"):
            return self._fault(at, f"not JSON: {word} is no number of JSON: write it in quotes")
        if word == "'":
            return self._not_json(at, "use double quotes")
        expected = "a key in double quotes" if wanted == "key" else wanted
        return self._not_json(at, f"expected {expected}, found {word[:40]}")
