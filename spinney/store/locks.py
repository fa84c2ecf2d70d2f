"""The lock on a data folder: one process at a time, and whoever else asks learns which."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from spinney.meta.errors import SpinneyError

NAME = "lock"


class Held(SpinneyError):
    """Another process works on this data folder: stop it, or choose another folder."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        """Name the folder and, as far as it is known, the process."""
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(
            f"{folder} is held by {holder}: stop it (`spinney down`), or give another --data"
        )
        self.folder = folder
        self.pid = pid


class FolderLock:
    """The lock on a data folder, held until it is released or the process ends, however it ends.

    The file stays; what counts is the lock of the kernel on it.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises Held where another has it."""
        self._descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid_in(self._descriptor)
            os.close(self._descriptor)
            raise Held(folder, pid) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def holder(folder: Path) -> int | None:
    """Return the pid of the process that holds a data folder, None where none does."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid_in(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
