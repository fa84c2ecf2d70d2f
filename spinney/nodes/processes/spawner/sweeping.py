"""Killing every descendant of a process, also those that fork faster than one can look.

First all are stopped, again and again until a look finds none that was not: what is stopped does
not fork. Then all are killed. A process is named by a descriptor once it was looked at, so a
number that was given to another process meanwhile harms nobody.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

ROUNDS_MAX = 200
"""How many looks are taken to stop all, before they are killed as they are."""


def kill_descendants(ancestor: int) -> None:
    """Stop, then kill, all that descend from a process; it does not wait for their end."""
    stopped: set[tuple[int, int]] = set()
    for _ in range(ROUNDS_MAX):
        found = [one for one in descendants(ancestor) if one not in stopped]
        if not found:
            break
        for one in found:
            send(one, signal.SIGSTOP)
        stopped.update(found)
    for one in descendants(ancestor):
        send(one, signal.SIGKILL)


def descendants(ancestor: int) -> list[tuple[int, int]]:
    """Return all that descend from a process, each with the time it began."""
    below: dict[int, list[tuple[int, int]]] = {}
    for process, parent, began in processes():
        below.setdefault(parent, []).append((process, began))
    found: list[tuple[int, int]] = []
    waiting = [ancestor]
    while waiting:
        for one in below.pop(waiting.pop(), ()):
            found.append(one)
            waiting.append(one[0])
    return found


def processes() -> Iterator[tuple[int, int, int]]:
    """Yield of every process its id, its parent's, and when it began; zombies are left out."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (told := _stat(int(name))) is not None:
            yield told


def _stat(process: int) -> tuple[int, int, int] | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return process, int(fields[1]), int(fields[19])


def send(process: tuple[int, int], number: signal.Signals) -> None:
    """Send a signal to a process, if its number still means the one that was looked at."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process[0])
        try:
            told = _stat(process[0])
            if told is not None and told[2] == process[1]:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
