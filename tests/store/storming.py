"""Writes as fast as it can until it is killed, and says each write once it is acknowledged.

Run as a process of its own: `python -m tests.store.storming FOLDER`. Each line is the version, the
name, and how often the object was written; -1 where it was deleted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path

from spinney.store import sqlite
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Limits, Store
from tests.store.stores import document, ref

LIMITS = Limits(
    history_events_max=300, compaction_versions=50, rest_after=timedelta(milliseconds=20)
)
WRITERS = 30


class RealTime:
    """As much of a clock as a store needs."""

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())


def payload(name: str, count: int) -> str:
    """What the document must hold in full: half of it would not be the same."""
    return f"{name}:{count};" * (1 + count % 400)


async def write_for_ever(store: Store, number: int) -> None:
    target = ref(f"object-{number}")
    while True:
        head = store.head(target)
        count = head.document()["spec"]["count"] + 1 if head else 1
        body = document(target, uid=f"{number}", payload=payload(target.name, count))
        body["spec"]["count"] = count
        if head is not None and count % 9 == 0:
            stored, count = await store.remove(target, expects=head.version, document=body), -1
        else:
            stored = await store.put(target, body, expects=head.version if head else 0)
        os.write(1, f"{stored.version} {target.name} {count}\n".encode())
        if count % 5 == number % 5:
            await asyncio.sleep(0.002 * (number % 7))


async def main(folder: Path) -> None:
    sqlite.WAL_BYTES_MAX = 300_000
    store = await Store.open(SqliteJournal(folder), RealTime(), limits=LIMITS)
    await asyncio.gather(*(write_for_ever(store, number) for number in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
