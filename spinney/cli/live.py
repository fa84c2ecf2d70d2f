"""Live areas: lines at the end of a terminal that are drawn over as things change."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from spinney.cli import screen
from spinney.cli.screen import DIM, Line, Screen

_UP = "\x1b[{}F"
_TO_END_OF_LINE, _TO_END = "\x1b[K", "\x1b[J"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"


class Live:
    """Draws lines over those it drew before; what it drew last stays."""

    def __init__(self, output: Screen, stream: TextIO) -> None:
        """Draw at the end of a stream that is a terminal."""
        self._screen = output
        self._stream = stream
        self._drawn = 0

    def __enter__(self) -> Self:
        """Hide the cursor."""
        self._stream.write(_HIDE)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Show the cursor, under what was drawn last."""
        self._stream.write(_SHOW)
        self._stream.flush()

    def draw(self, lines: Sequence[Line]) -> None:
        """Draw lines in place of those drawn before, as many and as far as there is room."""
        columns, rows = shutil.get_terminal_size()
        room = max(rows - 1, 2)
        if len(lines) > room:
            left = len(lines) - room + 1
            lines = [*lines[: room - 1], [(f"… {left} more lines", DIM)]]
        up = _UP.format(self._drawn) if self._drawn else ""
        fitted = (self._screen.parts(screen.cut(line, columns)) for line in lines)
        text = "".join(f"{line}{_TO_END_OF_LINE}\n" for line in fitted)
        self._stream.write(f"{up}{text}{_TO_END}")
        self._stream.flush()
        self._drawn = len(lines)

    def clear(self) -> None:
        """Take away what was drawn."""
        self.draw(())
