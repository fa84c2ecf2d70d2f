"""GPUs: which there are, and which container sees which.

Each is given to one container at a time. A container that asks for none sees none, where the
machine has any: otherwise two would use the same by accident. What a container had is remembered,
with its record, and given to it again if it is free.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping

from spinney.meta.errors import SpinneyError

RESOURCE = "nvidia.com/gpu"
VARIABLE = "SPINNEY_GPUS"
"""Names the machine's GPUs where it is set, in place of what nvidia-smi says: `0,1,2,3`."""

PROGRAM_SECONDS_MAX = 20


class NoGpus(SpinneyError):
    """More were asked for than are free."""


def find(outer: Mapping[str, str]) -> tuple[int, ...]:
    """Return the numbers of the machine's GPUs. It may take seconds; call it in a thread."""
    if VARIABLE in outer:
        return _numbers(outer[VARIABLE].replace(",", "\n"))
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS_MAX,
            check=False,
            env=dict(outer),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return _numbers(done.stdout) if done.returncode == 0 else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split() if word.isdigit())


class Allotment:
    """Which container has which GPU."""

    def __init__(self, numbers: Iterable[int]) -> None:
        """Begin with all free."""
        self.numbers = tuple(sorted(set(numbers)))
        self._held: dict[int, tuple[str, str]] = {}
        self._had: dict[tuple[str, str], tuple[int, ...]] = {}
        """What each container had last: the pod's own until the pod is gone, as far as can be."""

    def take(self, holder: tuple[str, str], count: int) -> tuple[int, ...]:
        """Give a container so many, those it had before if it can be; raises NoGpus."""
        free = [number for number in self.numbers if number not in self._held]
        if count > len(free):
            raise NoGpus(
                f"{count} of {RESOURCE} were asked for, {len(free)} of {len(self.numbers)} are free"
            )
        own = self._had.get(holder, ())
        others = {each for other, had in self._had.items() if other != holder for each in had}
        free.sort(key=lambda number: (number not in own, number in others, number))
        taken = tuple(sorted(free[:count]))
        self._held.update(dict.fromkeys(taken, holder))
        if taken:
            self._had[holder] = taken
        return taken

    def give_back(self, holder: tuple[str, str]) -> None:
        """Take note that a container uses its own no more."""
        self._held = {number: each for number, each in self._held.items() if each != holder}

    def remember(self, holder: tuple[str, str], numbers: Iterable[int]) -> None:
        """Take note of what a container had, before this agent."""
        known = tuple(number for number in numbers if number in self.numbers)
        if known:
            self._had[holder] = known

    def forget(self, pod_uid: str) -> None:
        """Forget what the containers of a pod had."""
        self._had = {holder: had for holder, had in self._had.items() if holder[0] != pod_uid}


def visible(allotment: Allotment, taken: tuple[int, ...]) -> str | None:
    """Return what a container is told it may see; None where the machine has none."""
    return ",".join(map(str, taken)) if allotment.numbers else None
