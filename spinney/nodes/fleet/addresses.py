"""Addresses of simulated pods: each has one of its own while it is there.

They lie in 241.0.0.0/8, which is reserved: no machine answers there, so nothing that is simulated
is ever taken for something real.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from spinney.meta.errors import Unavailable

FIRST: Final = int(ipaddress.IPv4Address("241.0.0.1"))
COUNT: Final = 2**24 - 2


class Addresses:
    """Gives addresses out, and takes them back."""

    def __init__(self) -> None:
        """Begin with all of them free."""
        self._taken: set[int] = set()
        self._next = 0

    def take(self) -> str:
        """Return an address nobody has; one given back is not given out again at once."""
        if len(self._taken) >= COUNT:
            raise Unavailable(f"all {COUNT} addresses of simulated pods are taken")
        while self._next in self._taken:
            self._next = (self._next + 1) % COUNT
        number = self._next
        self._taken.add(number)
        self._next = (number + 1) % COUNT
        return str(ipaddress.IPv4Address(FIRST + number))

    def keep(self, address: str) -> None:
        """Note that a pod has an address already."""
        if (number := _number(address)) is not None:
            self._taken.add(number)

    def give_back(self, address: str) -> None:
        """Note that a pod needs its address no more."""
        if (number := _number(address)) is not None:
            self._taken.discard(number)

    def __len__(self) -> int:
        """How many are taken."""
        return len(self._taken)


def _number(address: str) -> int | None:
    try:
        number = int(ipaddress.IPv4Address(address)) - FIRST
    except ValueError:
        return None
    return number if 0 <= number < COUNT else None
