"""What a command prints to: colour on a terminal, none elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

BOLD = "1"
RED = "31"
GREEN = "32"
YELLOW = "33"
BLUE = "34"
MAGENTA = "35"
CYAN = "36"
DIM = "2"

Line = Sequence[tuple[str, str]]
"""A line in parts, each with its colour."""

_GOOD = frozenset({"Running", "Ready", "Succeeded", "Completed", "Active", "Bound", "Healthy"})
_WAITING = frozenset(
    {
        "Pending",
        "Starting",
        "ContainerCreating",
        "Terminating",
        "Progressing",
        "Gated",
        "NotReady",
        "Idle",
    }
)


class Screen:
    """The two streams of a command."""

    def __init__(
        self,
        out: TextIO,
        aside: TextIO,
        *,
        has_colour: bool = False,
        is_live: bool = False,
        is_aside_live: bool = False,
    ) -> None:
        """Print results to `out`, the rest to `aside`; what is live can be drawn over."""
        self.out = out
        self.aside = aside
        self.has_colour = has_colour
        self.is_live = is_live
        self.is_aside_live = is_aside_live

    def write(self, text: str) -> None:
        """Print a part of the result."""
        self.out.write(text)

    def line(self, text: str = "") -> None:
        """Print a line of the result, at once, as somebody may be watching."""
        self.out.write(f"{text}\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """Print a line that is not part of the result."""
        self.out.flush()
        self.aside.write(f"{text}\n")
        self.aside.flush()

    def warn(self, text: str) -> None:
        """Print what the server warns of."""
        self.note(f"{self.painted('Warning:', YELLOW)} {text}")

    def painted(self, text: str, colour: str) -> str:
        """Return a text in a colour, where there is colour."""
        return f"\x1b[{colour}m{text}\x1b[0m" if self.has_colour and text else text

    def parts(self, line: Line) -> str:
        """Return a line with its colours."""
        return "".join(self.painted(text, colour) if colour else text for text, colour in line)


def for_call(arguments: argparse.Namespace) -> Screen:
    """Return the screen a call prints to."""
    wants_none = arguments.no_color or os.environ.get("NO_COLOR")
    is_able = os.environ.get("TERM", "dumb") != "dumb"
    return Screen(
        sys.stdout,
        sys.stderr,
        has_colour=is_able and sys.stdout.isatty() and not wants_none,
        is_live=is_able and sys.stdout.isatty(),
        is_aside_live=is_able and sys.stderr.isatty(),
    )


def colour_of(word: str) -> str:
    """Return the colour of a state, "" for those that say neither good nor bad."""
    if word in _GOOD:
        return GREEN
    if word in _WAITING or word.startswith("Init:"):
        return YELLOW
    is_bad = word.endswith(("Error", "BackOff", "Failed")) or word in ("Failed", "Evicted", "Lost")
    return RED if is_bad else ""


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(line: Line, columns: int) -> Line:
    """Return what of a line has room in so many columns, with … where it is cut."""
    if sum(columns_of(text) for text, _ in line) <= columns:
        return line
    found: list[tuple[str, str]] = []
    left = columns - 1
    for text, colour in line:
        kept = ""
        for letter in text:
            if _columns(letter) > left:
                return (*found, (f"{kept}…", colour))
            left -= _columns(letter)
            kept += letter
        found.append((kept, colour))
    return found


def plain(text: str) -> str:
    """Return a text that cannot steer a terminal: control characters as people write them."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else _spelt(letter) for letter in text
    )


def _spelt(letter: str) -> str:
    number = ord(letter)
    return f"^{chr(number ^ 0x40)}" if number < 0x80 else f"\\u{number:04x}"
