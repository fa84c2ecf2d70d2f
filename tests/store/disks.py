"""A way to the disk for SQLite that fails as disks do, at the operation a test says."""

from __future__ import annotations

import apsw

FAULTS = ("full", "short", "failed", "failed-after")
"""No space for anything; half of it written, then no space; EIO; done, and EIO still."""


class FaultyDisk(apsw.VFS):
    """The default way to the disk; after `fail` it breaks down at one write or flush."""

    def __init__(self, name):
        super().__init__(name, base="")
        self.name = name
        self.countdown = -1
        self.fault = ""
        self.persists = False
        self.failures = 0

    def xOpen(self, name, flags):
        return _FaultyFile(self, name, flags)

    def fail(self, after, fault, *, persists=False):
        """Fail at the write or flush after so many more; and at each that follows, or at none."""
        self.countdown, self.fault, self.persists = after, fault, persists

    def heal(self):
        self.countdown = -1

    def meet(self):
        """Return the fault this operation meets, "" for none."""
        if self.countdown < 0:
            return ""
        if self.countdown > 0:
            self.countdown -= 1
            return ""
        if not self.persists:
            self.countdown = -1
        self.failures += 1
        return self.fault


def _raise(fault):
    if fault in ("full", "short"):
        raise apsw.FullError("planted: no space left on device")
    raise apsw.IOError("planted: input/output error")


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data, offset):
        fault = self._disk.meet()
        if fault == "short":
            super().xWrite(data[: len(data) // 2], offset)
        if fault in ("", "failed-after"):
            super().xWrite(data, offset)
        if fault:
            _raise(fault)

    def xSync(self, flags):
        fault = self._disk.meet()
        if fault in ("", "failed-after"):
            super().xSync(flags)
        if fault:
            _raise(fault)

    def xTruncate(self, size):
        fault = self._disk.meet()
        if fault in ("", "failed-after"):
            super().xTruncate(size)
        if fault:
            _raise(fault)
