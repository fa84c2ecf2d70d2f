"""The observer finds what is wrong with a log: each sort of fault is planted, and told."""

from __future__ import annotations

import asyncio

import pytest

from spinney.meta.errors import InvariantViolation
from spinney.ports import Change
from spinney.store.journals import MemoryJournal
from spinney.store.objects import Event, stored_from_body, stored_from_document
from spinney.store.store import Limits
from spinney.testing import loop
from spinney.testing.log_observer import LogObserver
from tests.store.stores import document, opened, put, ref, remove


def stored(version, uid="u", name="a"):
    return stored_from_document(ref(name), document(ref(name), uid=uid), version)


def event(change, now, before=None):
    return Event(change=change, stored=now, before=before)


FIRST = stored(1)
ADDED = event(Change.ADDED, FIRST)
FAULTS = {
    "version 1 was told after 1": [ADDED, event(Change.MODIFIED, stored(1), FIRST)],
    "ADDED of what is there already": [ADDED, event(Change.ADDED, stored(2), FIRST)],
    "MODIFIED of what is not there": [event(Change.MODIFIED, FIRST)],
    "DELETED of what is not there": [event(Change.DELETED, FIRST)],
    "tells of another state before": [ADDED, event(Change.MODIFIED, stored(3), stored(2))],
    "uid u became v without": [ADDED, event(Change.MODIFIED, stored(2, uid="v"), FIRST)],
    "version 5 says it is 4": [
        event(Change.ADDED, stored_from_body(ref("a"), "u", 5, stored(4).body))
    ],
    "the list does not hold": [ADDED],
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_fault_of_the_log_is_found(told):
    async def main():
        async with opened() as store:
            observer = LogObserver(store)
            observer.check()
            observer.deliver(FAULTS[told])
            with pytest.raises(InvariantViolation, match=told) as caught:
                observer.check()
            assert "Pod default/a" in caught.value.story

    loop.run(main())


def test_a_history_that_is_not_the_log_is_found():
    async def main():
        async with opened() as store:
            observer = LogObserver(store)
            await put(store, ref("a"))
            observer.check()
            del observer.log[0]
            with pytest.raises(InvariantViolation, match="the history after version 0"):
                observer.check()

    loop.run(main())


def test_a_store_is_followed_over_restarts_and_may_not_lose_what_was_told():
    async def main():
        journal = MemoryJournal()
        async with opened(journal) as store:
            observer = LogObserver(store)
            for name in "aba":
                await put(store, ref(name))
            await remove(store, ref("b"))
        async with opened(journal) as store:
            observer.resume(store)
            await put(store, ref("c"))
            observer.check()
            assert [found.version for found in observer.log] == [1, 2, 3, 4, 5]
            assert len(observer.story(ref("b")).splitlines()) == 2
        async with opened(MemoryJournal()) as empty:
            observer.resume(empty)
            with pytest.raises(InvariantViolation, match="it was at 5"):
                observer.check()

    loop.run(main())


def test_what_was_compacted_before_it_could_be_told_is_found():
    async def main():
        journal = MemoryJournal()
        async with opened(journal) as store:
            observer = LogObserver(store)
            await put(store, ref("a"))
            store.detach(observer)
            for _ in range(9):
                await put(store, ref("a"))
        async with opened(journal, limits=Limits(history_events_max=3)) as store:
            observer.resume(store)
            with pytest.raises(InvariantViolation, match="the events after version 1 are gone"):
                observer.check()

    loop.run(main())


def test_invariants_see_each_event_and_all_objects():
    def at_most_two(_event, objects):
        return f"{len(objects)} objects" if len(objects) > 2 else None

    async def main():
        async with opened() as store:
            observer = LogObserver(store, [at_most_two])
            await asyncio.gather(*(put(store, ref(name)) for name in "ab"))
            observer.check()
            await put(store, ref("c"))
            with pytest.raises(InvariantViolation, match="Pod default/c: 3 objects"):
                observer.check()

    loop.run(main())
