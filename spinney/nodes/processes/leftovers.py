"""What an agent that died may have left running: found, and ended.

Keepers end their containers when the agent is gone, and a PID namespace ends with its first
process. What escapes both is found by its control group, or by the marker in its environment.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable

from spinney.nodes.processes import environments
from spinney.nodes.processes.spawner import sweeping

ROUNDS_MAX = 100
WAIT_MILLISECONDS = 2000
"""How long one round waits for what it killed to be gone."""


def end_marked(world: str, is_wanted: Callable[[str], bool]) -> int:
    """End all processes of a world whose marker is not wanted; returns how many there were.

    Each process is stopped first: it may be about to fork.
    """
    count = 0
    for _ in range(ROUNDS_MAX):
        found = [one for one, marker in marked(world) if not is_wanted(marker)]
        if not found:
            break
        count += len(found)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for one in found:
                sweeping.send(one, number)
        for process, _ in found:
            _wait_gone(process)
    return count


def marked(world: str) -> list[tuple[tuple[int, int], str]]:
    """Return the processes of a world, each with its marker: `<pod uid>/<container>/<attempt>`."""
    prefix = f"{environments.MARKER}={world}/".encode()
    found = []
    for process, _, began in sweeping.processes():
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(prefix):
                marker = variable[len(prefix) :].decode(errors="replace")
                found.append(((process, began), marker))
                break
    return found


def _wait_gone(process: int) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(WAIT_MILLISECONDS)
        finally:
            os.close(descriptor)
