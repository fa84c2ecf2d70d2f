"""Real time and real chance: the one place where they are fetched rather than passed in."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
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


UIDS_AT_ONCE = 256
"""For how many uids the kernel is asked at once: asking costs more than making one."""


class SystemEntropy:
    """The chance of this machine, fit for secrets. Implements `ports.Entropy`."""

    def __init__(self) -> None:
        """Ask for nothing yet."""
        self._uids: list[str] = []
        self._process = 0

    def uid(self) -> str:
        """Return a new random UUID, never one that a process that was split off has too."""
        if not self._uids or self._process != os.getpid():
            self._process = os.getpid()
            digits = os.urandom(16 * UIDS_AT_ONCE).hex()
            self._uids = [_uuid(digits[at : at + 32]) for at in range(0, len(digits), 32)]
        return self._uids.pop()

    def suffix(self, length: int) -> str:
        """Return letters and digits for a generated name."""
        return "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(length))

    def token(self, size_bytes: int) -> str:
        """Return a secret of so many random bytes, in letters that need no quoting."""
        return secrets.token_urlsafe(size_bytes)

    def jitter(self, most: timedelta) -> timedelta:
        """Return a duration from nothing to `most`."""
        return timedelta(microseconds=secrets.randbelow(most // timedelta(microseconds=1) + 1))


def _uuid(digits: str) -> str:
    """Return 32 hexadecimal digits as a random UUID (version 4, RFC 9562)."""
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
