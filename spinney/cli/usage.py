"""What is wrong with a call itself, and with where it is made."""

from __future__ import annotations

from spinney.meta.errors import SpinneyError


class Usage(SpinneyError):
    """The caller: says what was typed, and what can be. Ends the command with exit code 2."""


class NoServer(SpinneyError):
    """The caller: there is no server to ask; says how to start one. Exit code 3."""
