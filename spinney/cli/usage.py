"""What is wrong in a call itself: the person at the keyboard typed something that cannot be."""

from __future__ import annotations

from spinney.meta.errors import SpinneyError


class Usage(SpinneyError):
    """The caller: says what was typed, and what can be. Ends the command with exit code 2."""
