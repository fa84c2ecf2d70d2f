"""The data folder: where a world is kept, and who holds it.

`store.db` the journal, `lock` the journal's own · `kubeconfig` how to reach the server · `pki/`
keys, certificates, tokens · `log` what happened · `holder` which process has it all. That file is
locked by the kernel, so the lock is gone the moment its process is, however that ended; what the
file says is only who it was.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.meta.times import format_time

LOCK_TRIES = 4
LOCK_PAUSE_SECONDS = 0.05


class BadDataFolder(SpinneyError):
    """The user: the folder cannot be used; says why, and what to do."""


class Holder(Record):
    """Which process holds a data folder."""

    pid: int
    since: datetime
    address: str = ""
    """Where it listens; "" while it starts."""

    durability: str = ""
    version: str = ""
    nodes: tuple[str, ...] = ()
    """Which nodes it has, as `--nodes` says it."""


class Held(SpinneyError):
    """The user: another process holds the folder; says which."""

    def __init__(self, folder: DataFolder, holder: Holder | None) -> None:
        """Name the process."""
        if holder is None:
            told = "by a process that is starting"
        else:
            where = f", at {holder.address}" if holder.address else ", starting"
            told = f"by process {holder.pid} since {format_time(holder.since)}{where}"
        super().__init__(
            f"{folder.root} is held {told}: stop it with `spinney --data {folder.root} down`, "
            "or give this one another folder with --data"
        )
        self.holder = holder


class DataFolder:
    """The paths below a data folder."""

    def __init__(self, root: Path) -> None:
        """Name the folder; nothing is touched."""
        self.root = root
        self.store = root / "store.db"
        self.kubeconfig = root / "kubeconfig"
        self.pki = root / "pki"
        self.tokens = root / "pki" / "tokens.json"
        self.log = root / "log"
        self.lock = root / "holder"
        self.pods = root / "pods"
        self.settings = root / "spinney.toml"
        self.agent_log = root / "agent.log"
        self.agent_socket = root / "agent.sock"

    def make(self) -> None:
        """Make the folder, for its owner alone; raises BadDataFolder."""
        with self.explained():
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self.root))

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the file system into BadDataFolder, with what to do."""
        try:
            yield
        except OSError as error:
            raise BadDataFolder(self._explanation(error)) from error

    def _explanation(self, error: OSError) -> str:
        subject = str(error.filename or self.root)
        advice = _ADVICE.get(error.errno or 0, "give another folder with --data")
        return f"{subject}: {error.strerror or error}: {advice}"

    def holder(self) -> Holder | None:
        """Return which process holds the folder, None where none does."""
        try:
            descriptor = os.open(self.lock, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _read(descriptor) or STARTING
        else:
            return None
        finally:
            os.close(descriptor)


class AgentFolder(DataFolder):
    """A data folder as its agent holds it: beside the control plane, by a lock of its own."""

    def __init__(self, root: Path) -> None:
        """Name the folder; nothing is touched."""
        super().__init__(root)
        self.lock = root / "agent"


class Lock:
    """A data folder, held."""

    def __init__(self, descriptor: int) -> None:
        """Own the descriptor that holds the lock."""
        self._descriptor = descriptor

    @classmethod
    def take(cls, folder: DataFolder, holder: Holder) -> Lock:
        """Hold a folder; raises Held, BadDataFolder."""
        with folder.explained():
            descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _lock_patiently(descriptor)
            except BlockingIOError:
                found = _read(descriptor)
                os.close(descriptor)
                raise Held(folder, found) from None
            except OSError:
                os.close(descriptor)
                raise
            lock = cls(descriptor)
            lock.tell(holder)
            return lock

    def tell(self, holder: Holder) -> None:
        """Write down who holds the folder."""
        text = msgspec.json.encode(holder) + b"\n"
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Hold the folder no more."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def _lock_patiently(descriptor: int) -> None:
    """Take the lock; whoever only looks whether it is held, holds it for an instant."""
    for _ in range(LOCK_TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOCK_PAUSE_SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read(descriptor: int) -> Holder | None:
    text = os.pread(descriptor, 4096, 0).partition(b"\n")[0]
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(text, type=Holder)
    return None


STARTING = Holder(pid=0, since=datetime.fromisoformat("1970-01-01T00:00:00+00:00"))
"""A process that has not written down yet who it is."""

_ADVICE = {
    errno.EACCES: "make it yours to write, or give another folder with --data",
    errno.EPERM: "make it yours to write, or give another folder with --data",
    errno.EROFS: "this file system is read-only: give another folder with --data",
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your quota is used up: free some space",
    errno.ENOTDIR: "a part of the path is a file: give another folder with --data",
    errno.EEXIST: "there is a file in its place: give another folder with --data",
    errno.ENOLCK: "this file system has no locks: give a folder on a local disk with --data",
    errno.EOPNOTSUPP: "this file system has no locks: give a folder on a local disk with --data",
    errno.ENAMETOOLONG: "give a folder with a shorter path with --data",
}
