"""What this machine has: processors, memory, disk, GPUs; in billionths of a unit."""

from __future__ import annotations

import os
from pathlib import Path

from spinney.meta.quantities import NANO
from spinney.nodes.processes import gpus, measuring


def capacity(folder: Path, gpu_count: int, root: Path = Path("/")) -> dict[str, int]:
    """Return how much there is of each resource; `folder` is where pods keep their files.

    Where this process is itself limited by a control group, as in a container, that counts.
    """
    disk = os.statvfs(folder)
    found = {
        "cpu": processors(root),
        "memory": memory(root) * NANO,
        "ephemeral-storage": disk.f_blocks * disk.f_frsize * NANO,
    }
    if gpu_count:
        found[gpus.RESOURCE] = gpu_count * NANO
    return found


def processors(root: Path) -> int:
    """Return how many processors this process may use."""
    most = len(os.sched_getaffinity(0)) * NANO
    for folder in _groups(root):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            most = min(most, int(quota) * NANO // int(period))
    return most


def memory(root: Path) -> int:
    """Return how much memory this process may use, in bytes."""
    most = measuring.meminfo()["MemTotal"]
    for folder in _groups(root):
        try:
            text = (folder / "memory.max").read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            most = min(most, int(text))
    return most


def _groups(root: Path) -> list[Path]:
    """Return the control groups, of version 2, this process is in, from its own upwards."""
    mounted = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = mounted / own.lstrip("/")
    return [here, *(each for each in here.parents if each == mounted or mounted in each.parents)]
