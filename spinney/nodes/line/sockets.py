"""Where the line is: a socket in a folder, for its owner alone.

The kernel allows a path of 107 bytes; a longer one is reached through the folder, opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spinney.meta.errors import SpinneyError
from spinney.nodes.line.frames import Wire

PATH_BYTES_MAX: Final = 100
"""Systems differ by a few bytes; this fits all."""

BACKLOG: Final = 128
_CREDENTIALS: Final = struct.Struct("3i")


class PathTooLong(SpinneyError, OSError):
    """The user: a socket cannot be made there; says what to do."""


@contextlib.contextmanager
def address(path: Path) -> Iterator[str]:
    """Give an address for a socket that the kernel takes; raises PathTooLong, OSError."""
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield os.fspath(path)
        return
    if not os.path.isdir("/proc/self/fd"):
        raise PathTooLong(f"{path}: the path is too long for a socket: give a shorter --data")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path) -> socket.socket:
    """Return a socket that listens; one that was left behind gives way. Raises OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            with address(path) as where:
                made.bind(where)
        finally:
            os.umask(before)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


async def connect(path: Path) -> Wire:
    """Return a connection; raises OSError where nobody listens."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    try:
        with address(path) as where:
            await asyncio.get_running_loop().sock_connect(made, where)
        reader, writer = await asyncio.open_unix_connection(sock=made)
    except BaseException:
        made.close()
        raise
    return Wire(reader, writer)


def is_owner(writer: asyncio.StreamWriter) -> bool:
    """Whether whoever connected is who runs this process, or root; the kernel says so."""
    connected = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(told)
    return user in (os.geteuid(), 0)
