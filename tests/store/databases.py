"""Databases with a history, as they stand on the disk after a close, or after a kill."""

from __future__ import annotations

import shutil
from datetime import timedelta

from spinney.meta.errors import CorruptJournal
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Limits, Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.executors import InlineExecutor
from tests.store.stores import POD, put, ref, remove

LIMITS = Limits(history_events_max=40, compaction_versions=10, rest_after=timedelta(days=1))


async def open_store(journal):
    return await Store.open(journal, VirtualClock(), limits=LIMITS, executor=InlineExecutor())


def state_of(store):
    """Return all that must come back: versions, objects, and the history kept."""
    floor = store.statistics().floor
    return (
        store.version,
        [(stored.version, stored.uid, stored.body) for stored in store.list(POD)],
        [(event.change, event.stored.body) for event in store.since(floor)],
    )


def make(folder, *, is_killed):
    """Make `folder/whole`: written, changed and deleted, part in the database, part in the log.

    Returns what a store must make of it.
    """

    async def main():
        journal = SqliteJournal(folder / "work")
        store = await open_store(journal)
        for number in range(60):
            name = ref(f"pod-{number % 17}")
            await put(store, name, payload=f"{number:03d}" * (number * 40))
            if number % 7 == 0:
                await remove(store, name)
            if number == 45:
                journal.tend()
        if is_killed:
            shutil.copytree(folder / "work", folder / "whole")
        await store.close()
        if not is_killed:
            shutil.copytree(folder / "work", folder / "whole")
        return state_of(store)

    acknowledged = loop.run(main())
    shutil.copytree(folder / "whole", folder / "tried")
    found = loaded(folder / "tried")
    assert found[:2] == acknowledged[:2]
    assert found[2][-40:] == acknowledged[2]
    return found


def loaded(folder):
    """Return what a store makes of a folder, or the CorruptJournal it raises."""

    async def main():
        try:
            store = await open_store(SqliteJournal(folder))
        except CorruptJournal as error:
            return error
        state = state_of(store)
        await store.close()
        return state

    return loop.run(main())
