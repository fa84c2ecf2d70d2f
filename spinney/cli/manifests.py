"""The manifests a command is given: files, folders, standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from spinney.cli.usage import Usage
from spinney.meta import manifests
from spinney.meta.manifests import Manifest
from spinney.meta.records import Record

SUFFIXES = (".yaml", ".yml", ".json")


class Found(Record):
    """One document, and the file it stands in."""

    file: str
    manifest: Manifest


def read(given: Sequence[str]) -> tuple[Found, ...]:
    """Return the documents of files and folders in the order given; raises Usage.

    A folder stands for the manifests right in it, by name; `-` for standard input.
    """
    return tuple(
        Found(file=file.encode(errors="backslashreplace").decode(), manifest=manifest)
        for file, data in _texts(given)
        for manifest in manifests.load(data)
    )


def _texts(given: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in given:
        if name == "-":
            if sys.stdin is None:
                raise Usage("-: standard input is closed")
            yield "<stdin>", sys.stdin.buffer.read()
            continue
        if not name:
            raise Usage("the name of a file is empty")
        path = Path(name)
        if path.is_dir():
            inside = sorted(
                entry for entry in path.iterdir() if entry.suffix in SUFFIXES and entry.is_file()
            )
            if not inside:
                raise Usage(f"{name}: no manifests in this folder ({', '.join(SUFFIXES)})")
            for entry in inside:
                yield os.fspath(entry), _bytes(entry)
        else:
            yield name, _bytes(path)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Usage(f"{os.fspath(path)}: cannot be read: {reason}") from error
