"""Tables as kubectl prints them: aligned, upper-case headings, three spaces between columns."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.cli import screen
from spinney.cli.screen import BOLD, Screen

GAP = "   "
STATE_COLUMNS = frozenset({"STATUS", "PHASE", "STATE"})


class Table:
    """Prints rows under headings; columns keep the width they once had, as rows may follow."""

    def __init__(
        self,
        headings: Sequence[str],
        output: Screen,
        *,
        is_headed: bool = True,
        indent: str = "",
        keeps_case: bool = False,
    ) -> None:
        """Begin a table; nothing is printed before the first rows."""
        self._headings = tuple(each if keeps_case else each.upper() for each in headings)
        self._widths = [len(heading) if is_headed else 0 for heading in self._headings]
        self._screen = output
        self._has_begun = not is_headed
        self._indent = indent

    def print(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows, with the headings before the first."""
        cells = [[_cell(text) for text in row] for row in rows]
        for row in cells:
            for index, text in enumerate(row):
                self._widths[index] = max(self._widths[index], len(text))
        if not self._has_begun:
            self._has_begun = True
            self._line([(heading, BOLD) for heading in self._headings])
        for row in cells:
            self._line(
                [
                    (text, screen.colour_of(text) if heading in STATE_COLUMNS else "")
                    for heading, text in zip(self._headings, row, strict=True)
                ]
            )
        self._screen.out.flush()

    def _line(self, cells: Sequence[tuple[str, str]]) -> None:
        """Print a line; colour takes no room."""
        last = len(cells) - 1
        parts = []
        for index, (text, colour) in enumerate(cells):
            room = "" if index == last else " " * (self._widths[index] - len(text))
            painted = self._screen.painted(text, colour) if colour else text
            parts.append(painted + room)
        self._screen.write(f"{self._indent}{GAP.join(parts).rstrip()}\n")


def _cell(text: str) -> str:
    """Return a cell on one line."""
    first, newline, _ = text.partition("\n")
    return screen.plain(f"{first}..." if newline else first).replace("\t", " ")
