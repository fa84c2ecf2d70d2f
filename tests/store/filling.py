"""Fills the disk under a store, and frees it again; says what became of the store, in JSON.

Run as a process of its own: `python -m tests.store.filling FOLDER [BALLAST]`. The ballast is a file
that takes space until it is removed. Without one the size of files is limited, then no more.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from spinney.meta.errors import StorageFull
from spinney.store.sqlite import SqliteJournal
from spinney.testing import loop
from tests.store.stores import POD, opened, put, ref

LIMIT_BYTES = 2 * 1024 * 1024


def shrink(folder: Path, ballast: Path | None) -> None:
    if ballast is None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
    else:
        ballast.write_bytes(bytes(2 * 1024 * 1024))


def grow(ballast: Path | None) -> None:
    if ballast is None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    else:
        ballast.unlink()


async def main(folder: Path, ballast: Path | None) -> dict[str, object]:
    told: dict[str, object] = {}
    shrink(folder, ballast)
    data = folder / "data"
    async with opened(SqliteJournal(data)) as store:
        written = 0
        try:
            while True:
                await put(store, ref(f"pod-{written}"), payload="x" * 5000)
                written += 1
        except StorageFull as error:
            told["refused"] = error.reason
        told["written"] = written
        told["read_while_full"] = len(store.list(POD))
    async with opened(SqliteJournal(data)) as store:
        told["loaded_while_full"] = len(store.list(POD))
        try:
            while True:
                await put(store, ref("pod-0"), payload="x" * 200_000)
        except StorageFull:
            pass
        grow(ballast)
        await put(store, ref("pod-0"), payload="free")
        await put(store, ref("one-more"), payload="x" * 200_000)
    async with opened(SqliteJournal(data)) as store:
        told["read_after"] = len(store.list(POD))
    return told


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    told = loop.run(main(folder, folder / sys.argv[2] if sys.argv[2:] else None))
    sys.stdout.write(json.dumps(told))
