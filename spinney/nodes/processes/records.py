"""What is kept of each attempt of a container, on the disk: a small file each.

It is there before the attempt runs, and replaced when it has ended; so a restarted agent knows
what ran when the last one died, and what ended how before. Of each container the newest two
attempts are kept, with their logs.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from spinney.meta import errors
from spinney.meta import records as records_
from spinney.meta.records import Record
from spinney.ports import ContainerState

KEPT_ATTEMPTS = 2

R = TypeVar("R", bound=Record)


class Attempt(Record):
    """One attempt of a container, as it is kept."""

    state: ContainerState
    log_path: str
    gpus: tuple[int, ...] = ()


def folder_of(root: Path, container: str) -> Path:
    """Return where a container's attempts are kept, below its pod's folder."""
    return root / "containers" / container


def write(root: Path, attempt: Attempt) -> None:
    """Keep an attempt, in place of what was kept of it; older ones are forgotten."""
    folder = folder_of(root, attempt.state.container)
    folder.mkdir(parents=True, exist_ok=True)
    number = attempt.state.attempt
    replace(folder / f"{number}.json", attempt)
    if number >= KEPT_ATTEMPTS:
        forget(folder, number - KEPT_ATTEMPTS)


def forget(folder: Path, number: int) -> None:
    """Forget an attempt, with its log."""
    for path in folder.glob(f"{number}.*"):
        path.unlink(missing_ok=True)


def replace(path: Path, record: Record) -> None:
    """Write a record to a file, wholly or not at all."""
    made = path.with_name(f"{path.name}.new")
    made.write_bytes(msgspec.json.encode(record))
    os.replace(made, path)


def read(path: Path, record: type[R]) -> R | None:
    """Return the record a file holds, None where there is none that can be read."""
    with contextlib.suppress(OSError, errors.DecodeError):
        return records_.decode_bytes(record, path.read_bytes())
    return None


def attempts(root: Path) -> list[Attempt]:
    """Return what is kept of the attempts of a pod, by container, oldest first."""
    found = [
        kept
        for path in root.glob("containers/*/*.json")
        if (kept := read(path, Attempt)) is not None
    ]
    return sorted(found, key=lambda kept: (kept.state.container, kept.state.attempt))
