"""Real time and real chance: the one place where they are fetched rather than passed in."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from datetime import UTC, datetime, timedelta

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end in: no vowels, so no words; nothing that looks like something else."""


class SystemClock:
    """The time of this machine. Implements `ports.Clock`."""

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> timedelta:
        """Return monotonic time."""
        return timedelta(microseconds=time.monotonic_ns() // 1000)

    async def sleep(self, duration: timedelta) -> None:
        """Wait."""
        await asyncio.sleep(duration / timedelta(seconds=1))


class SystemEntropy:
    """The chance of this machine, fit for secrets. Implements `ports.Entropy`."""

    def uid(self) -> str:
        """Return a new random UUID."""
        return str(uuid.uuid4())

    def suffix(self, length: int) -> str:
        """Return letters and digits for a generated name."""
        return "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(length))

    def token(self, size_bytes: int) -> str:
        """Return a secret of so many random bytes, in letters that need no quoting."""
        return secrets.token_urlsafe(size_bytes)

    def jitter(self, most: timedelta) -> timedelta:
        """Return a duration from nothing to `most`."""
        return timedelta(microseconds=secrets.randbelow(most // timedelta(microseconds=1) + 1))
