"""How much containers and the node use: of processors over a window, of memory now.

By control group where there is one; else by adding up the processes below the container's keeper.
Memory is then what each of them holds, so what they share is counted more than once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta.quantities import NANO
from spinney.meta.records import Record
from spinney.nodes.processes import cgroups

_SECOND = 1_000_000_000
_TICK = _SECOND // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

Key = tuple[str, str]
"""A pod's uid, and the name of a container of it."""


class Subject(Record):
    """A container that is to be measured."""

    key: Key
    attempt: int
    keeper: int
    """The process id of its keeper."""

    started_at: datetime
    groups: tuple[str, ...] = ()


class Counted(Record):
    """What was counted of a container: processor time so far, memory now."""

    cpu_nanoseconds: int
    memory_bytes: int


class Process(Record):
    """One process, as /proc tells of it."""

    process: int
    parent: int
    cpu_nanoseconds: int
    inherited_nanoseconds: int
    """What its children had used that are gone."""

    memory_bytes: int


class Meter:
    """Measures, and remembers what it counted last."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        self._last: dict[Key, tuple[int, datetime, Counted]] = {}
        self._last_node: tuple[datetime, int] | None = None

    def measured(
        self, subjects: Sequence[Subject], counted: Mapping[Key, Counted], now: datetime
    ) -> dict[str, PodUsage]:
        """Return what pods used since they were measured last, or since they began."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        windows: dict[str, timedelta] = {}
        for subject in subjects:
            count = counted.get(subject.key)
            if count is None:
                continue
            since, before = subject.started_at, 0
            if (last := self._last.get(subject.key)) and last[0] == subject.attempt:
                since, before = last[1], last[2].cpu_nanoseconds
            self._last[subject.key] = (subject.attempt, now, count)
            window = max(now - since, timedelta(microseconds=1))
            used = max(0, count.cpu_nanoseconds - before)
            pod, name = subject.key
            windows[pod] = max(windows.get(pod, timedelta()), window)
            found.setdefault(pod, {})[name] = {
                "cpu": _rate(used, window),
                "memory": count.memory_bytes * NANO,
            }
        self._last = {key: last for key, last in self._last.items() if key in counted}
        return {
            pod: PodUsage(measured_at=now, window=windows[pod], containers=containers)
            for pod, containers in found.items()
        }

    def measured_node(self, cpu_nanoseconds: int, memory_bytes: int, now: datetime) -> NodeUsage:
        """Return what the machine used since this was asked last; nothing of processors before."""
        last = self._last_node
        self._last_node = (now, cpu_nanoseconds)
        since, before = last or (now, cpu_nanoseconds)
        window = max(now - since, timedelta(microseconds=1))
        values = {
            "cpu": _rate(max(0, cpu_nanoseconds - before), window),
            "memory": memory_bytes * NANO,
        }
        return NodeUsage(measured_at=now, window=window, values=values)


def _rate(nanoseconds: int, window: timedelta) -> int:
    """Return how much of a processor was used, in billionths."""
    return nanoseconds * 1_000_000 // (window // timedelta(microseconds=1))


def count(subjects: Sequence[Subject]) -> dict[Key, Counted]:
    """Count what containers use; reads many small files, so call it in a thread."""
    found: dict[Key, Counted] = {}
    left: list[tuple[Subject, cgroups.GroupUsage]] = []
    for subject in subjects:
        used = cgroups.usage(subject.groups)
        if used.cpu_nanoseconds is not None and used.memory_bytes is not None:
            found[subject.key] = Counted(
                cpu_nanoseconds=used.cpu_nanoseconds, memory_bytes=used.memory_bytes
            )
        else:
            left.append((subject, used))
    if left:
        below: dict[int, list[Process]] = {}
        every = {process.process: process for process in _processes()}
        for process in every.values():
            below.setdefault(process.parent, []).append(process)
        for subject, used in left:
            if (keeper := every.get(subject.keeper)) is None:
                continue
            cpu, memory = _added_up(keeper, below)
            found[subject.key] = Counted(
                cpu_nanoseconds=cpu if used.cpu_nanoseconds is None else used.cpu_nanoseconds,
                memory_bytes=memory if used.memory_bytes is None else used.memory_bytes,
            )
    return found


def _added_up(keeper: Process, below: Mapping[int, Sequence[Process]]) -> tuple[int, int]:
    cpu, memory = keeper.inherited_nanoseconds, 0
    waiting = [keeper.process]
    while waiting:
        for process in below.get(waiting.pop(), ()):
            cpu += process.cpu_nanoseconds + process.inherited_nanoseconds
            memory += process.memory_bytes
            waiting.append(process.process)
    return cpu, memory


def _processes() -> list[Process]:
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        found.append(
            Process(
                process=int(name),
                parent=int(fields[1]),
                cpu_nanoseconds=(int(fields[11]) + int(fields[12])) * _TICK,
                inherited_nanoseconds=(int(fields[13]) + int(fields[14])) * _TICK,
                memory_bytes=int(fields[21]) * _PAGE,
            )
        )
    return found


def count_node() -> tuple[int, int]:
    """Return the processor time the machine has used, in nanoseconds, and the memory it uses."""
    with open("/proc/stat", "rb") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    memory = meminfo()
    return (sum(ticks) - idle) * _TICK, memory["MemTotal"] - memory["MemAvailable"]


def meminfo() -> dict[str, int]:
    """Return what the kernel says of memory, in bytes."""
    found = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, rest = line.partition(":")
            found[name] = int(rest.split()[0]) * 1024
    return found
