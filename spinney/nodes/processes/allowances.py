"""How many processes a user may have, and how many files may be open.

The number of processes counts where no control group can limit those of a container. The kernel's
limit counts all processes of the user, so those there are come on top of what a container may have.
They are counted anew now and then: counting costs a look at every process.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable
from datetime import timedelta

from spinney.nodes.processes.spawner import sweeping

COUNTED_FOR = timedelta(seconds=5)


class Allowance:
    """The limit for containers that start now."""

    def __init__(self, most: int, elapsed: Callable[[], timedelta]) -> None:
        """Allow each container so many of its own."""
        self._most = most
        self._elapsed = elapsed
        self._counted_at: timedelta | None = None
        self._count = 0

    def now(self) -> int:
        """Return the limit; it may look through /proc, so call it in a thread."""
        at = self._elapsed()
        if self._counted_at is None or at - self._counted_at >= COUNTED_FOR:
            self._counted_at = at
            self._count = sum(_threads(process) for process, _, _ in sweeping.processes())
        return self._most + self._count


def _threads(process: int) -> int:
    """Return how many threads a process of ours has; 0 for those of others."""
    try:
        if os.stat(f"/proc/{process}").st_uid != os.getuid():
            return 0
        return len(os.listdir(f"/proc/{process}/task"))
    except OSError:
        return 0


def raise_files_max() -> tuple[int, int]:
    """Let this process open as many files as it may; returns what containers are to have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
