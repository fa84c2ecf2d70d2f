"""Single promises of the store that the laws do not tell by themselves."""

from __future__ import annotations

import asyncio
import gc
import threading
from datetime import timedelta

import pytest

from spinney.meta.errors import CorruptJournal, Expired, TooManyRequests, Unavailable
from spinney.meta.references import GroupKind
from spinney.ports import Change, Entry
from spinney.store.journals import MemoryJournal
from spinney.store.store import Limits, Moved, Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor, SlowExecutor
from spinney.testing.faults import FaultyJournal, JournalFaults
from tests.store.stores import POD, SET, Recorder, document, opened, put, ref, remove, settled


class CountingJournal(MemoryJournal):
    """Takes note of each batch, and of the thread it comes on."""

    def __init__(self):
        super().__init__()
        self.batches = []
        self.threads = set()

    def commit(self, batch):
        self.threads.add(threading.current_thread().name)
        self.batches.append([entry.version for entry in batch])
        super().commit(batch)


def test_what_is_queued_together_is_committed_together():
    async def main():
        journal = CountingJournal()
        async with opened(journal) as store:
            await asyncio.gather(*(put(store, ref(f"pod-{number}")) for number in range(50)))
            await put(store, ref("last"))
        assert journal.batches == [list(range(1, 51)), [51]]

    loop.run(main())


def test_a_store_of_its_own_calls_the_journal_on_one_thread():
    class RealTime:
        async def sleep(self, duration):
            await asyncio.sleep(duration.total_seconds())

    async def main():
        journal = CountingJournal()
        store = await Store.open(journal, RealTime())
        await asyncio.gather(*(put(store, ref(f"pod-{number}")) for number in range(50)))
        await store.close()
        assert len(journal.threads) == 1
        assert threading.current_thread().name not in journal.threads

    asyncio.run(main())


def test_nobody_sees_a_write_before_it_is_committed_but_writers():
    async def main():
        executor = SlowExecutor(lambda: timedelta(seconds=1))
        async with opened(executor=executor) as store:
            recorder = Recorder()
            store.attach(POD, 0, recorder)
            write = store.put(ref("a"), document(ref("a")), expects=0)
            await VirtualClock().sleep(timedelta(milliseconds=900))
            assert (store.get(ref("a")), store.list(POD), recorder.events) == (None, [], [])
            assert store.head(ref("a")).version == store.heads(POD)[0].version == 1
            stored = await write
            assert store.get(ref("a")) is stored
            assert recorder.events[0].stored is stored

    loop.run(main())


def test_the_head_is_the_last_queued_write_whatever_is_committed_before_it():
    """An object is made, deleted, made again and deleted, each a commit of its own."""

    async def main():
        executor = SlowExecutor(lambda: timedelta(milliseconds=5))
        async with opened(executor=executor, limits=Limits(batch_writes_max=1)) as store:
            target, body = ref("a"), document(ref("a"))
            writes = [
                store.put(target, body, expects=0),
                store.remove(target, expects=1, document=body),
                store.put(target, body, expects=0),
                store.remove(target, expects=3, document=body),
            ]
            assert store.statistics().heads == 1
            for number, write in enumerate(writes):
                await write
                assert (store.get(target) is None) is bool(number % 2)
                assert store.head(target) is None
                assert store.heads(POD) == []
            assert store.statistics().heads == 0

    loop.run(main())


def test_watchers_are_told_before_the_writer_is_answered():
    async def main():
        async with opened() as store:
            recorder = Recorder()
            store.attach(POD, 0, recorder)
            await put(store, ref("a"))
            assert recorder.versions == [1]

    loop.run(main())


def test_two_writers_of_one_object_cannot_both_win():
    async def main():
        async with opened() as store:
            await put(store, ref("a"))
            first = store.put(ref("a"), document(ref("a"), payload="1"), expects=1)
            with pytest.raises(Moved, match="Pod default/a is at version 2, not at version 1"):
                store.put(ref("a"), document(ref("a"), payload="2"), expects=1)
            with pytest.raises(Moved, match="Pod default/b is not there"):
                store.put(ref("b"), document(ref("b")), expects=7)
            with pytest.raises(Moved):
                store.remove(ref("b"), expects=0, document=document(ref("b")))
            assert (await first).document()["spec"]["payload"] == "1"

    loop.run(main())


def test_a_failed_commit_takes_down_what_was_queued_on_top_of_it():
    """The first write of three fails; the others were worked out from it, and must not stand."""

    async def main():
        journal = FaultyJournal(MemoryJournal(), SeededEntropy(0))
        executor = SlowExecutor(lambda: timedelta(milliseconds=5))
        async with opened(journal, executor=executor) as store:
            await put(store, ref("a"), payload="kept")
            recorder = Recorder()
            store.attach(None, store.version, recorder)
            journal.is_broken = True
            clock = VirtualClock()
            first = store.put(ref("a"), document(ref("a")), expects=1)
            await clock.sleep(timedelta(milliseconds=2))
            second = store.put(ref("a"), document(ref("a")), expects=2)
            third = store.put(ref("b"), document(ref("b")), expects=0)
            outcomes = await settled([first, second, third])
            assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
            assert len({id(outcome) for outcome in outcomes}) == 3
            assert store.head(ref("a")).document()["spec"]["payload"] == "kept"
            assert store.heads(POD) == store.list(POD)
            journal.heal()
            stored = await put(store, ref("b"))
            assert stored.version > 4, "a version that was once given to a write is not used again"
            assert recorder.versions == [stored.version]

    loop.run(main())


def test_a_journal_that_breaks_its_word_is_reported_and_refuses_the_write():
    class Broken(MemoryJournal):
        def commit(self, _batch):
            raise ZeroDivisionError("a bug")

    async def main():
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: reported.append(said))
        async with opened(Broken()) as store:
            with pytest.raises(Unavailable, match="a bug"):
                await put(store, ref("a"))
        assert [type(said["exception"]) for said in reported] == [ZeroDivisionError]

    loop.run(main())


def test_a_writer_that_went_away_is_no_trouble_and_its_write_stands():
    async def main():
        async with opened() as store:
            write = store.put(ref("a"), document(ref("a")), expects=0)
            write.cancel()
            await put(store, ref("b"))
            assert [stored.ref.name for stored in store.list(POD)] == ["a", "b"]

    loop.run(main())


def test_too_many_queued_writes_are_refused_and_the_others_are_not():
    async def main():
        async with opened(limits=Limits(queued_writes_max=3)) as store:
            names = [ref(name) for name in "abcd"]
            writes = [store.put(name, document(name), expects=0) for name in names[:3]]
            with pytest.raises(TooManyRequests) as caught:
                store.put(names[3], document(names[3]), expects=0)
            assert caught.value.retry_after_seconds == 1
            assert store.head(names[3]) is None
            await asyncio.gather(*writes)
            assert store.version == 3

    loop.run(main())


def test_close_commits_what_was_queued_and_takes_no_more():
    async def main():
        journal = CountingJournal()
        async with opened(journal) as store:
            write = store.put(ref("a"), document(ref("a")), expects=0)
            closing = asyncio.gather(store.close(), store.close())
            await closing
            assert write.done()
            with pytest.raises(Unavailable, match="closed"):
                store.put(ref("b"), document(ref("b")), expects=0)
            assert store.get(ref("a")) is not None
        assert journal.batches == [[1]]

    loop.run(main())


def test_a_document_carries_its_version_and_is_left_alone_otherwise():
    async def main():
        async with opened() as store:
            body = document(ref("a"), payload="x") | {"unknown": {"kept": [1, None, "é"]}}
            stored = await store.put(ref("a"), body, expects=0)
            assert "resourceVersion" not in body["metadata"]
            expected = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
            assert stored.document() == expected
            gone = await store.remove(ref("a"), expects=1, document=body)
            assert gone.document()["metadata"]["resourceVersion"] == "2"

    loop.run(main())


def test_a_deletion_is_told_with_the_last_state_after_a_restart_too():
    async def main():
        journal = MemoryJournal()
        told = []
        async with opened(journal) as store:
            await put(store, ref("a"), payload="first")
            last = document(ref("a"), payload="marked")
            await store.remove(ref("a"), expects=1, document=last)
            told.append([(event.change, event.line) for event in store.since(0)])
        async with opened(journal) as store:
            told.append([(event.change, event.line) for event in store.since(0)])
            assert store.since(0)[1].before.document()["spec"]["payload"] == "first"
        assert told[0] == told[1]
        assert told[0][1][0] is Change.DELETED
        assert b"marked" in told[0][1][1]

    loop.run(main())


def test_versions_go_on_after_the_newest_object_was_deleted_and_forgotten():
    async def main():
        journal = MemoryJournal()
        limits = Limits(history_events_max=1, compaction_versions=1)
        async with opened(journal, limits=limits) as store:
            await put(store, ref("a"))
            await remove(store, ref("a"))
        async with opened(journal, limits=limits) as store:
            assert store.version == 2
            assert (await put(store, ref("a"))).version == 3

    loop.run(main())


def test_what_fell_out_of_the_history_is_expired_after_a_restart_too():
    async def main():
        journal = MemoryJournal()
        limits = Limits(history_events_max=5, compaction_versions=2)
        async with opened(journal, limits=limits) as store:
            for number in range(20):
                await put(store, ref("a"), payload=str(number))
            floor = store.statistics().floor
            assert floor == 15
        async with opened(journal, limits=limits) as store:
            assert store.statistics().floor == floor
            with pytest.raises(Expired, match="too old resource version: 14"):
                store.attach(POD, 14, Recorder())
            assert [event.version for event in store.since(15)] == [16, 17, 18, 19, 20]
        async with opened(journal) as store:
            assert store.statistics().floor == journal.floor == 14
            assert len(store.since(14)) == 6
            with pytest.raises(Expired):
                store.since(13)

    loop.run(main())


def test_the_history_keeps_to_its_bytes():
    async def main():
        async with opened(limits=Limits(history_bytes_max=50_000)) as store:
            for _ in range(30):
                await put(store, ref("a"), payload="x" * 3000)
                assert store.statistics().event_bytes <= 50_000
            assert 5 <= store.statistics().events <= 8

    loop.run(main())


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([(2, b"{}"), (2, b"{}")], "follows version 2"),
        ([(1, b'{"metadata": ')], "Pod default/a at version 1"),
        ([(1, b"\xff")], "Pod default/a at version 1"),
        ([(1, None)], "has no document"),
    ],
)
def test_entries_that_make_no_sense_are_named(entries, told):
    class Odd(MemoryJournal):
        def load(self):
            return iter(
                Entry(version=version, ref=ref("a"), uid="", body=body) for version, body in entries
            )

    async def main():
        with pytest.raises(CorruptJournal, match=told):
            await Store.open(Odd(), VirtualClock(), executor=InlineExecutor())

    loop.run(main())


def test_an_object_of_odd_shape_is_kept_and_found():
    async def main():
        journal = MemoryJournal()
        odd = {
            "metadata": {"uid": "u", "labels": {"a": 1, "b": "c"}, "ownerReferences": "me"},
            "spec": [],
        }
        async with opened(journal) as store:
            await store.put(ref("a"), odd, expects=0)
            found = store.get(ref("a"))
            assert (found.labels, found.owners, found.node) == ({"b": "c"}, (), "")
        async with opened(journal) as store:
            again = store.get(ref("a"))
            assert (again.body, again.labels) == (found.body, {"b": "c"})
            assert (again.owners, again.node) == ((), "")

    loop.run(main())


def test_a_store_at_rest_does_nothing_and_wakes_for_nothing():
    async def main():
        async with opened() as store:
            await put(store, ref("a"))
            await VirtualClock().sleep(timedelta(seconds=30))
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert others == set()
            assert store.statistics().commits == 1

    loop.run(main())


def test_compaction_that_failed_is_made_up_for_by_the_next():
    async def main():
        journal = FaultyJournal(
            MemoryJournal(), SeededEntropy(0), JournalFaults(upkeep_per_mille=1000)
        )
        limits = Limits(history_events_max=4, compaction_versions=4)
        async with opened(journal, limits=limits) as store:
            for _ in range(21):
                await put(store, ref("a"))
            assert (store.statistics().floor, journal.floor) == (17, 0)
            assert store.statistics().failed_upkeep >= 4
            journal.heal()
            await put(store, ref("a"))
            await VirtualClock().sleep(timedelta(seconds=5))
            assert (store.statistics().floor, journal.floor) == (18, 16)

    loop.run(main())


def test_the_garbage_collector_is_left_as_it_was():
    async def main():
        gc.disable()
        try:
            async with opened():
                assert not gc.isenabled()
        finally:
            gc.enable()
        async with opened():
            assert gc.isenabled()

    loop.run(main())


def test_statistics_count_what_there_is():
    async def main():
        async with opened() as store:
            await asyncio.gather(put(store, ref("a")), put(store, ref("b", kind=SET)))
            store.attach(POD, 0, Recorder())
            write = store.put(ref("c"), document(ref("c")), expects=0)
            found = store.statistics()
            assert (found.version, found.objects, found.events) == (2, 2, 2)
            assert (found.commits, found.writes, found.watchers, found.queued) == (1, 2, 1, 1)
            assert found.object_bytes == sum(
                len(stored.body) for kind in (POD, SET) for stored in store.list(kind)
            )
            await write
            assert store.list(GroupKind(group="", kind="Node")) == []

    loop.run(main())
