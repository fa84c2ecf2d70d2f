"""Control groups: one for each container, where this machine lets us make them.

They limit memory and the number of processes, say whether the kernel killed for memory, count what
was used, and end all that is in them at once. Version 2 is looked for from our own group upwards:
the nearest above which more limits can be had wins. Where memory or processes are still held by a
version 1 hierarchy, that is used for them.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator, Sequence
from pathlib import Path

from spinney.meta.records import Record

MEMORY = "memory"
PIDS = "pids"
WANTED = (MEMORY, PIDS)

_WAIT_MILLISECONDS = 1000


class Hierarchy(Record):
    """A group of ours, below which containers get theirs."""

    folder: str
    version: int
    controllers: tuple[str, ...]


class GroupUsage(Record):
    """What a group used."""

    cpu_nanoseconds: int | None = None
    memory_bytes: int | None = None


class Groups:
    """The groups of one world."""

    def __init__(self, hierarchies: Sequence[Hierarchy]) -> None:
        """Make groups in these hierarchies; none means that no group is ever made."""
        self._hierarchies = tuple(hierarchies)

    @classmethod
    def find(cls, world: str, root: Path = Path("/")) -> Groups:
        """Find where groups can be made, and make ours; `root` is the root of the file system."""
        mounted = list(_mounted(root))
        own = _own_groups(root)
        found: list[Hierarchy] = []
        for where, controllers in mounted:
            if controllers is None and (best := _best_version_2(where, own.get("", "/"), world)):
                found.append(best)
        for controller in WANTED:
            if any(controller in each.controllers for each in found):
                continue
            for where, controllers in mounted:
                if controllers is not None and controller in controllers:
                    path = own.get(controller, "/")
                    found += _version_1(where, path, world, controller)
        return cls(found)

    @property
    def controllers(self) -> frozenset[str]:
        """What can be limited."""
        return frozenset(name for each in self._hierarchies for name in each.controllers)

    @property
    def folders(self) -> tuple[str, ...]:
        """Where our groups stand."""
        return tuple(each.folder for each in self._hierarchies)

    def __bool__(self) -> bool:
        """Whether groups can be made at all."""
        return bool(self._hierarchies)

    def make(self, name: str, *, memory_bytes: int | None, processes_max: int) -> tuple[str, ...]:
        """Make the groups of a container, with limits; returns their folders. Raises OSError."""
        made = []
        for each in self._hierarchies:
            folder = Path(each.folder) / name
            folder.mkdir(exist_ok=True)
            made.append(str(folder))
            if MEMORY in each.controllers and memory_bytes is not None:
                if each.version == 2:
                    (folder / "memory.max").write_text(str(memory_bytes))
                    _put(folder / "memory.swap.max", "0")
                else:
                    (folder / "memory.limit_in_bytes").write_text(str(memory_bytes))
                    _put(folder / "memory.memsw.limit_in_bytes", str(memory_bytes))
            if PIDS in each.controllers:
                (folder / "pids.max").write_text(str(processes_max))
        return tuple(made)

    def close(self) -> None:
        """Remove our own groups; those in which something is stay."""
        for each in self._hierarchies:
            with contextlib.suppress(OSError):
                os.rmdir(each.folder)


def clear(folder: str) -> None:
    """End all that is in the groups below a folder, and remove them; it may be gone already."""
    try:
        below = [entry.path for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return
    for each in below:
        processes = _numbers(Path(each) / "cgroup.procs")
        end((each,))
        remove((each,), processes[0] if processes else 0)


def procs_files(folders: Sequence[str]) -> list[str]:
    """Return what a process writes to in order to be in groups."""
    return [f"{folder}/cgroup.procs" for folder in folders]


def end(folders: Sequence[str]) -> None:
    """Kill all that is in groups: at once where the kernel can, else one by one."""
    for folder in folders:
        if _put(Path(folder) / "cgroup.kill", "1"):
            continue
        for _ in range(100):
            processes = _numbers(Path(folder) / "cgroup.procs")
            if not processes:
                break
            for process in processes:
                with contextlib.suppress(OSError):
                    os.kill(process, 9)
            _wait_gone(processes[0])


def is_out_of_memory(folders: Sequence[str]) -> bool:
    """Whether the kernel killed something in the groups because of their memory limit."""
    for folder in folders:
        for name in ("memory.events", "memory.oom_control"):
            if _fields(Path(folder) / name).get("oom_kill", 0) > 0:
                return True
    return False


def usage(folders: Sequence[str]) -> GroupUsage:
    """Return what groups used; memory without the files that could be dropped from it."""
    cpu: int | None = None
    memory: int | None = None
    for folder in map(Path, folders):
        used = _fields(folder / "cpu.stat").get("usage_usec")
        cpu = cpu if used is None else used * 1000
        for current, inactive in (
            ("memory.current", "inactive_file"),
            ("memory.usage_in_bytes", "total_inactive_file"),
        ):
            if found := _numbers(folder / current):
                droppable = _fields(folder / "memory.stat").get(inactive, 0)
                memory = max(0, found[0] - droppable)
    return GroupUsage(cpu_nanoseconds=cpu, memory_bytes=memory)


def remove(folders: Sequence[str], keeper: int) -> None:
    """Remove groups once their last process, the keeper, is gone."""
    if keeper > 0:
        _wait_gone(keeper)
    for folder in folders:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _wait_gone(process: int) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(_WAIT_MILLISECONDS)
        finally:
            os.close(descriptor)


def _mounted(root: Path) -> Iterator[tuple[Path, tuple[str, ...] | None]]:
    """Yield where hierarchies are mounted, with their controllers; None for version 2."""
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        where = before.split(" ")[4]
        place = root / where.lstrip("/")
        if kind == "cgroup2":
            yield place, None
        elif kind == "cgroup":
            yield place, tuple(options.split(","))


def _own_groups(root: Path) -> dict[str, str]:
    """Return our own group by controller, "" for version 2."""
    found: dict[str, str] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _best_version_2(mounted: Path, own: str, world: str) -> Hierarchy | None:
    """Return the group with most limits that can be made at our own, or above it."""
    best: Hierarchy | None = None
    for above in _upwards(mounted, own):
        if not os.access(above / "cgroup.procs", os.W_OK):
            continue
        folder = above / f"spinney-{world}"
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            continue
        there = _words(folder / "cgroup.controllers")
        controllers = tuple(
            name
            for name in WANTED
            if name in there and _put(folder / "cgroup.subtree_control", f"+{name}")
        )
        if best is None or len(controllers) > len(best.controllers):
            if best is not None:
                os.rmdir(best.folder)
            best = Hierarchy(folder=str(folder), version=2, controllers=controllers)
        else:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if best.controllers == WANTED:
            break
    return best


def _version_1(mounted: Path, own: str, world: str, controller: str) -> list[Hierarchy]:
    for above in _upwards(mounted, own):
        folder = above / f"spinney-{world}"
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
            return [Hierarchy(folder=str(folder), version=1, controllers=(controller,))]
    return []


def _upwards(mounted: Path, own: str) -> Iterator[Path]:
    here = mounted / own.lstrip("/")
    while here != mounted and mounted in here.parents:
        if here.is_dir():
            yield here
        here = here.parent
    yield mounted


def _put(path: Path, text: str) -> bool:
    """Write to a file of the kernel's that is there; returns whether it was taken."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _numbers(path: Path) -> list[int]:
    return [int(word) for word in _words(path) if word.isdigit()]


def _fields(path: Path) -> dict[str, int]:
    pairs = [line.split() for line in _lines(path)]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
