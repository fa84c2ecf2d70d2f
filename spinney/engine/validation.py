"""Whether state machines check themselves after each step: with SPINNEY_VALIDATE=1."""

from __future__ import annotations

import os
from collections.abc import Callable

_SMALL = 64
_EVERY = 512


def is_wanted() -> bool:
    """Whether the environment asks for it; tests and simulations do."""
    return os.environ.get("SPINNEY_VALIDATE") == "1"


class Validation:
    """Calls a machine's `validate` after each step; of a large machine, after every 512th."""

    def __init__(self, validate: Callable[[], None], size: Callable[[], int]) -> None:
        """Decide once whether to do it at all."""
        self._validate = validate
        self._size = size
        self._is_on = is_wanted()
        self._steps = 0

    def step(self) -> None:
        """Note a step; raises InvariantViolation where the machine contradicts itself."""
        if not self._is_on:
            return
        self._steps += 1
        if self._size() <= _SMALL or self._steps % _EVERY == 0:
            self._validate()
