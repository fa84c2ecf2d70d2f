"""Reading a container's log: the whole, its end, what came since, and what still comes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

from spinney.meta import times
from spinney.nodes.processes import logfile
from spinney.nodes.processes.logfile import HEADER_BYTES, PARTIAL_AT, STAMP_BYTES
from spinney.nodes.processes.scribe import Writing
from spinney.ports import LogOptions

CHUNK_BYTES = 256 * 1024


class Position:
    """How far a log was read, through files that change their names as they grow old."""

    def __init__(self, path: Path) -> None:
        """Stand before the oldest file."""
        self._path = path
        self._files = self._open_all()
        if not self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    def _open_all(self) -> list[int]:
        opened = []
        for path in logfile.files(self._path):
            with contextlib.suppress(FileNotFoundError):
                opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return opened

    def skip_to_tail(self, lines: int) -> None:
        """Go to where the last so many lines begin."""
        for index in range(len(self._files) - 1, -1, -1):
            start, lines = _tail(self._files[index], lines)
            if lines == 0 or index == 0:
                os.lseek(self._files[index], start, os.SEEK_SET)
                for older in self._files[:index]:
                    os.close(older)
                del self._files[:index]
                return

    def read(self) -> bytes:
        """Return the next whole lines; b"" where there are none yet."""
        while True:
            if lines := _lines(self._files[0]):
                return lines
            if len(self._files) == 1:
                newer = self._open_newer()
                if not newer:
                    return b""
                self._files += newer
                if lines := _lines(self._files[0]):
                    return lines
            os.close(self._files.pop(0))

    def _open_newer(self) -> list[int]:
        """Open what was begun since: once there is such a file, the one at hand is complete."""
        current = os.fstat(self._files[0])
        newer: list[int] = []
        for path in reversed(logfile.files(self._path)):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            if os.path.samestat(os.fstat(descriptor), current):
                os.close(descriptor)
                break
            newer.insert(0, descriptor)
        return newer

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in self._files:
            os.close(descriptor)
        self._files = []


def _lines(descriptor: int) -> bytes:
    """Return the next whole lines of a file; what follows them is left for the next time."""
    data = os.read(descriptor, CHUNK_BYTES)
    whole, newline, rest = data.rpartition(b"\n")
    if rest:
        os.lseek(descriptor, -len(rest), os.SEEK_CUR)
    return whole + newline


def _split(lines: bytes) -> list[bytes]:
    """Return lines, each with its end. Only newlines end lines: others are the container's own."""
    return [line + b"\n" for line in lines.split(b"\n")[:-1]]


def _tail(descriptor: int, lines: int) -> tuple[int, int]:
    """Return where the last so many lines of a file begin, and how many it lacks.

    Parts of a line count as one with the line they are of.
    """
    end = os.fstat(descriptor).st_size
    if lines == 0:
        return end, 0
    position, found, rest = end, 0, b""
    while position > 0:
        size = min(CHUNK_BYTES, position)
        block = os.pread(descriptor, size, position - size) + rest
        position -= size
        first = block.find(b"\n") + 1 if position > 0 else 0
        if position > 0 and first == 0:
            rest = block
            continue
        start = len(block)
        for line in reversed(_split(block[first:])):
            if _is_whole(line):
                if found == lines:
                    return position + start, 0
                found += 1
            elif found == 0:
                found = 1
            start -= len(line)
        rest = block[:first]
    return 0, lines - found


def _is_whole(line: bytes) -> bool:
    return line[PARTIAL_AT : PARTIAL_AT + 1] != b"P"


class Telling:
    """Makes of a log's lines what the container printed."""

    def __init__(self, *, timestamps: bool, since: bytes) -> None:
        """Tell lines from `since` on; with `timestamps`, each with its time."""
        self._timestamps = timestamps
        self._since = since
        self._within: set[bytes] = set()
        """The streams whose last line was only the beginning of one."""

    def told(self, lines: bytes) -> bytes:
        """Return what was printed."""
        return b"".join(self._told(line) for line in _split(lines))

    def _told(self, line: bytes) -> bytes:
        stamp, stream = line[:STAMP_BYTES], line[STAMP_BYTES:PARTIAL_AT]
        if stamp < self._since:
            return b""
        is_first = stream not in self._within
        prefix = stamp + b" " if self._timestamps and is_first else b""
        if _is_whole(line):
            self._within.discard(stream)
            return prefix + line[HEADER_BYTES:]
        self._within.add(stream)
        return prefix + line[HEADER_BYTES:-1]


async def read(path: Path, writing: Writing | None, options: LogOptions) -> AsyncIterator[bytes]:
    """Yield a log; with `follow` until it is written to its end.

    `writing` is the log being written, None where nobody writes to it any more.
    """
    woken = asyncio.Event()
    is_following = options.follow and writing is not None
    if writing is not None and is_following:
        writing.followers.add(woken)
    since = times.format_micro_time(options.since).encode() if options.since else b""
    telling = Telling(timestamps=options.timestamps, since=since)
    left = options.limit_bytes
    position = await asyncio.to_thread(_begin, path, options)
    try:
        while True:
            is_over = writing is None or writing.ended.is_set()
            woken.clear()
            data = await asyncio.to_thread(position.read)
            if not data:
                if not is_following or is_over:
                    return
                await woken.wait()
                continue
            chunk = telling.told(data)
            if left is not None:
                chunk = chunk[:left]
                left -= len(chunk)
            if chunk:
                yield chunk
            if left == 0:
                return
    finally:
        position.close()
        if writing is not None:
            writing.followers.discard(woken)


def _begin(path: Path, options: LogOptions) -> Position:
    position = Position(path)
    if options.tail_lines is not None:
        position.skip_to_tail(options.tail_lines)
    return position
