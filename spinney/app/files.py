"""Files that hold secrets: written whole or not at all, and readable by their owner alone."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

PRIVATE = 0o600
PUBLIC = 0o644


def write(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Put a file in place in one step: a reader, or a crash, finds the old one or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    with _folder(path.parent) as folder:
        os.fsync(folder)


def write_if_changed(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Put a file in place unless it stands there already, with that content and mode."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data and path.stat().st_mode & 0o777 == mode:
            return
    write(path, data, mode)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
