"""Patterns: regular expressions of schemas, which are written for RE2, as Python reads them.

RE2 takes `$` for the very end, spells that end `\\z` too, knows classes such as `[[:alpha:]]`, and
counts only ASCII as `\\d`, `\\w` and `\\s`. What Python has no word for (`\\pL`) cannot be judged.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping

_CLASSES: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\x\{(?P<code>[0-9A-Fa-f]{1,6})\}"
    r"|(?P<escape>\\.)"
    r"|\[:(?P<class>[a-z]+):\]"
    r"|(?P<plain>.)",
    re.DOTALL,
)


@functools.cache
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return an RE2 pattern as Python's; None where Python cannot say it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return re.compile(_translated(pattern), re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError, FutureWarning):
        return None


def _translated(pattern: str) -> str:
    made: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(pattern):
        kind, text = match.lastgroup, match.group()
        if kind == "quoted":
            made.append(re.escape(match["quoted"]))
        elif kind == "code":
            made.append(re.escape(chr(int(match["code"], 16))))
        elif kind == "escape":
            made.append(r"\Z" if text == r"\z" else text)
        elif kind == "class" and in_class:
            made.append(_CLASSES[text[2:-2]] if text[2:-2] in _CLASSES else _unknown(text))
        else:
            made.append(r"\Z" if text == "$" and not in_class else _escaped(text, in_class))
            in_class = _stays_in_class(text, in_class, made)
    return "".join(made)


def _escaped(text: str, in_class: bool) -> str:
    """Escape within a class what Python may one day read as more."""
    return "\\[" if in_class and text == "[" else text


def _stays_in_class(text: str, in_class: bool, made: list[str]) -> bool:
    if not in_class:
        return text == "["
    is_first = made[-2] == "[" or (made[-2] == "^" and made[-3:-2] == ["["])
    return text != "]" or is_first


def _unknown(text: str) -> str:
    raise ValueError(f"no such class: {text}")
