"""The mark beside a database: the newest version that was ever acknowledged.

A write-ahead log that lost its end looks like one that ended earlier, and SQLite takes it for that.
The mark is what tells the two apart. It is written after each commit, and not flushed: after a
loss of power it may be behind the database, never ahead of it.
"""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path

from spinney.meta.errors import CorruptJournal

SUFFIX = "-mark"

_LINE = re.compile(rb"(full|relaxed) (\d{20}) ([0-9a-f]{8})\n")


class Mark:
    """The mark of one database, open for as long as the database is."""

    def __init__(self, database: Path, durability: str) -> None:
        """Open the mark, or make it; it says nothing new before `write`."""
        self.path = database.with_name(database.name + SUFFIX)
        self._durability = durability.encode()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def read(self) -> int | None:
        """Return the version, None where there is none to go by; raises CorruptJournal."""
        line = os.pread(self._descriptor, 128, 0)
        if not line:
            return None
        found = _LINE.fullmatch(line)
        if found is None or found[3] != _checksum(line[:-10]):
            raise CorruptJournal(
                f"{self.path} is damaged, so it is not known whether the database beside it is "
                "whole; remove the file to take the database as it is"
            )
        return int(found[2]) if found[1] == b"full" else 0

    def write(self, version: int) -> None:
        """Put a version on record, for the operating system to write when it likes."""
        line = b"%b %020d" % (self._durability, version)
        os.pwrite(self._descriptor, b"%b %b\n" % (line, _checksum(line)), 0)

    def flush(self) -> None:
        """Make sure of what was written, and of the file's own name."""
        os.fsync(self._descriptor)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def _checksum(line: bytes) -> bytes:
    return b"%08x" % zlib.crc32(line)
