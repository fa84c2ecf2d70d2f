"""What a container sees at its mount paths, in a mount namespace of its own.

A volume is bound to its path. Where the path is not there, the folder above it is mirrored: a file
system in memory takes its place, with everything that was in it bound to where it was, and the
missing folder made beside. Nothing is ever made on the machine's own file systems.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from spinney.nodes.processes.spawner import kernel
from spinney.nodes.processes.spawner.plans import MountPlan

MIRRORED_ENTRIES_MAX = 1000
"""A folder that holds more is not mirrored: each entry costs a mount."""

_KEPT_FLAGS = {
    os.ST_NOSUID: kernel.MS_NOSUID,
    os.ST_NODEV: kernel.MS_NODEV,
    os.ST_NOEXEC: kernel.MS_NOEXEC,
    os.ST_NOATIME: kernel.MS_NOATIME,
    os.ST_NODIRATIME: kernel.MS_NODIRATIME,
    os.ST_RELATIME: kernel.MS_RELATIME,
}


def mount_all(mounts: Sequence[MountPlan], scratch: str, *, own_pids: bool) -> list[str]:
    """Mount what a container shall see; returns, in sentences, what could not be mounted.

    Raises OSError where processes have ids of their own and /proc cannot tell of them.
    """
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_SLAVE)
    if own_pids:
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", "/proc", "proc", flags)
    notes = []
    for each in mounts:
        try:
            _mount_one(each, scratch)
        except OSError as error:
            reason = error.strerror or str(error)
            notes.append(f"{each['source']} is not mounted at {each['target']}: {reason}")
    return notes


def _mount_one(mount: MountPlan, scratch: str) -> None:
    source, target = mount["source"], os.path.normpath(mount["target"])
    is_folder = os.path.isdir(source)
    if not os.path.exists(target):
        _make(target, scratch, is_folder=is_folder)
    if os.path.isdir(target) != is_folder:
        what = "a folder" if is_folder else "a file"
        raise OSError(20, f"{target} is there, and is not {what}", target)
    kernel.mount(source, target, "", kernel.MS_BIND | kernel.MS_REC)
    if mount["read_only"]:
        flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
        kernel.mount("none", target, "", flags | _flags_of(target))


def _flags_of(path: str) -> int:
    """Return the flags of a mount that a user namespace may not take away."""
    found = os.statvfs(path).f_flag
    return sum(ours for theirs, ours in _KEPT_FLAGS.items() if found & theirs)


def _make(path: str, scratch: str, *, is_folder: bool) -> None:
    """Make a path that is not there, in memory."""
    above = os.path.dirname(path)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if not _is_in_memory_of_ours(above):
        _mirror(os.path.realpath(above), scratch)
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


_MIRRORS: set[int] = set()
"""The devices of mirrors made in this process, which mounts for one container only."""


def _is_in_memory_of_ours(path: str) -> bool:
    return os.stat(path).st_dev in _MIRRORS


def _mirror(folder: str, scratch: str) -> None:
    """Put a file system in memory in a folder's place that shows what the folder holds."""
    entries = list(os.scandir(folder))
    if len(entries) > MIRRORED_ENTRIES_MAX:
        raise OSError(
            7, f"it is not there, and {folder}, with {len(entries)} entries, is too large to mirror"
        )
    about = os.stat(folder)
    kernel.mount("spinney", scratch, "tmpfs", kernel.MS_NOSUID, "size=16m,mode=755")
    try:
        for entry in entries:
            _show(entry, os.path.join(scratch, entry.name))
        os.chmod(scratch, stat.S_IMODE(about.st_mode))
        if folder == "/":
            former = os.path.join(scratch, ".spinney-former-root")
            os.mkdir(former)
            kernel.pivot_root(scratch, former)
            os.chdir("/")
            kernel.unmount("/.spinney-former-root")
            os.rmdir("/.spinney-former-root")
            _forget(scratch)
        else:
            kernel.mount(scratch, folder, "", kernel.MS_BIND | kernel.MS_REC)
            _forget(scratch)
    except OSError:
        _forget(scratch)
        raise
    _MIRRORS.add(os.stat(folder).st_dev)


def _forget(scratch: str) -> None:
    """Take away what was mounted to build a mirror, which is where it belongs by now."""
    if os.path.ismount(scratch):
        kernel.unmount(scratch)


def _show(entry: os.DirEntry[str], place: str) -> None:
    """Make one entry of a folder seen elsewhere too."""
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), place)
        return
    if entry.is_dir():
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    kernel.mount(entry.path, place, "", kernel.MS_BIND | kernel.MS_REC)
