"""The addresses pods get: one each, of this machine's own network.

All of 127.0.0.0/8 is this machine, but for two parts: 127.0.0.0/16, where people and programs
expect things of their own, and 127.96.0.0/12, where services have theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

RESERVED = range(96, 112)
"""The second numbers of the addresses of services."""

TRIES_MAX = 1000


class NoAddress(Exception):
    """So many pods have addresses that none was found for another."""


def address_for(pod_uid: str, taken: Collection[str]) -> str:
    """Return an address for a pod that no other has: the same each time, where it can be.

    It follows from the uid, so that two worlds on one machine hardly ever meet.
    """
    for attempt in range(TRIES_MAX):
        digest = hashlib.blake2b(f"{attempt}/{pod_uid}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        seconds = [each for each in range(1, 255) if each not in RESERVED]
        second = seconds[number % len(seconds)]
        third = (number >> 16) % 256
        fourth = 1 + (number >> 32) % 254
        address = f"127.{second}.{third}.{fourth}"
        if address not in taken:
            return address
    raise NoAddress(f"no free address found for pod {pod_uid}; {len(taken)} are taken")
