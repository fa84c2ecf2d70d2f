"""A container's log on the disk: lines with a time and a stream, in files of a bounded size.

    2026-01-01T00:00:00.000000Z stdout F a whole line
    2026-01-01T00:00:00.000000Z stderr P the beginning of a line that goes on

Every line begins with 37 characters of that form, so a reader finds its way without parsing. When
the file has grown to its size it becomes `.1`, what was `.1` becomes `.2`, and so on; the oldest is
gone. A disk that is full costs lines, never the container: how much was lost is said in the log
once there is space again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from spinney.meta import times

HEADER_BYTES = 37
STAMP_BYTES = 27
PARTIAL_AT = 35
"""Where in the header `P` or `F` stands."""

CARRIED_BYTES_MAX = 16 * 1024
"""How much of a line without an end is kept in memory before it is written as a part."""


def header(now: datetime, stream: str, *, is_whole: bool) -> bytes:
    """Return what a line begins with."""
    return f"{times.format_micro_time(now)} {stream} {'F' if is_whole else 'P'} ".encode()


class LogFile:
    """The log of one attempt of a container, being written. Used by one thread."""

    def __init__(self, path: Path, bytes_max: int, files_max: int) -> None:
        """Go on with the file at a path; raises OSError where it cannot be opened."""
        self.path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size
        self.lost_bytes = 0
        """How much could not be written since the last time anything could."""

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def write(self, lines: bytes, now: datetime) -> None:
        """Write whole lines; what the disk does not take is counted and gone."""
        if self.lost_bytes:
            told = f"{self.lost_bytes} bytes of output were lost: the disk was full\n".encode()
            if not self._put(header(now, "stderr", is_whole=True) + told):
                self.lost_bytes += len(lines)
                return
            self.lost_bytes = 0
        if not self._put(lines):
            self.lost_bytes += len(lines)
        if self._size >= self._bytes_max:
            self._rotate()

    def _put(self, data: bytes) -> bool:
        """Write all of it, or nothing."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            return False
        self._size += len(data)
        return True

    def _rotate(self) -> None:
        """Begin a new file; where that cannot be, go on with this one, from its start."""
        try:
            for number in range(self._files_max - 2, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(rotated(self.path, number), rotated(self.path, number + 1))
            os.replace(self.path, rotated(self.path, 1))
            descriptor = self._open()
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            self._size = 0
            return
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, 0

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


class Stream:
    """One of a container's two outputs, made into lines."""

    def __init__(self, name: str, log: LogFile, now: Callable[[], datetime]) -> None:
        """Write to a log; `now` says when something was read."""
        self._name = name
        self._log = log
        self._now = now
        self._carried = b""

    def feed(self, data: bytes) -> None:
        """Take what was read; the end of it waits for the rest of its line, up to a size."""
        now = self._now()
        whole, newline, rest = (self._carried + data).rpartition(b"\n")
        if newline:
            prefix = header(now, self._name, is_whole=True)
            lines = prefix + whole.replace(b"\n", b"\n" + prefix) + b"\n"
            self._log.write(lines, now)
        if len(rest) >= CARRIED_BYTES_MAX:
            self._log.write(header(now, self._name, is_whole=False) + rest + b"\n", now)
            rest = b""
        self._carried = rest

    def end(self) -> None:
        """Write what waits for the rest of its line, which will not come."""
        if self._carried:
            now = self._now()
            self._log.write(header(now, self._name, is_whole=False) + self._carried + b"\n", now)
            self._carried = b""


def rotated(path: Path, number: int) -> Path:
    """Return where a log that is `number` files old stands."""
    return path.with_name(f"{path.name}.{number}")


def files(path: Path) -> list[Path]:
    """Return the files of a log, oldest first."""
    found = []
    number = 1
    while (older := rotated(path, number)).exists():
        found.append(older)
        number += 1
    return [*reversed(found), path]
