"""Printing lines of logs, each with its pod in front, in a colour of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spinney.cli.screen import BLUE, CYAN, GREEN, MAGENTA, RED, YELLOW, Screen

if TYPE_CHECKING:
    from spinney.cli.reading import Tap

_COLOURS = (CYAN, GREEN, YELLOW, MAGENTA, BLUE, RED)


class Printer:
    """Prints lines of containers; the room for names is that of the longest so far."""

    def __init__(
        self, output: Screen, taps: Iterable[Tap], has_prefix: bool, has_stamps: bool
    ) -> None:
        """Print to a screen."""
        self._screen = output
        self._has_prefix = has_prefix
        self._has_stamps = has_stamps
        self._colours: dict[str, str] = {}
        self._width = 0
        self.widen(taps)

    def widen(self, taps: Iterable[Tap]) -> None:
        """Make room for the names of containers that may write."""
        for tap in taps:
            self._width = max(self._width, len(tap.title))

    def print(self, tap: Tap, stamp: str, line: bytes) -> None:
        """Print a line."""
        text = line.decode("utf-8", "replace")
        if self._has_stamps and stamp:
            text = f"{stamp} {text}"
        if self._has_prefix:
            colour = self._colours.setdefault(tap.pod, _COLOURS[len(self._colours) % len(_COLOURS)])
            text = f"{self._screen.painted(f'{tap.title:<{self._width}} |', colour)} {text}"
        self._screen.line(text)
