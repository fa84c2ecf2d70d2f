"""Chance from a seed: the same seed gives the same uids, suffixes and faults."""

from __future__ import annotations

import base64
import random
import uuid
from datetime import timedelta

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The letters and digits Kubernetes makes generated names of."""


class SeededEntropy:
    """Implements `ports.Entropy`, and draws what tests want to be random."""

    def __init__(self, seed: int | str) -> None:
        """Begin the sequence of a seed."""
        self.seed = str(seed)
        self._random = random.Random(self.seed)

    def stream(self, name: str) -> SeededEntropy:
        """Return a sequence of its own for one purpose.

        What is drawn from it changes nothing in the others, so a new fault does not turn every
        known seed into another story.
        """
        return SeededEntropy(f"{self.seed}/{name}")

    def uid(self) -> str:
        """Return a new uid."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self, length: int) -> str:
        """Return letters and digits for a generated name."""
        return "".join(self._random.choices(SUFFIX_ALPHABET, k=length))

    def token(self, size_bytes: int) -> str:
        """Return what passes for a secret."""
        return base64.urlsafe_b64encode(self._random.randbytes(size_bytes)).decode().rstrip("=")

    def jitter(self, most: timedelta) -> timedelta:
        """Return a duration from nothing to `most`."""
        return timedelta(microseconds=self.between(0, most // timedelta(microseconds=1)))

    def between(self, least: int, most: int) -> int:
        """Return an integer, both ends included."""
        return self._random.randint(least, most)

    def happens(self, per_mille: int) -> bool:
        """Whether something that happens so many times in a thousand happens now."""
        return self._random.randrange(1000) < per_mille
