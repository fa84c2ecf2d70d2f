"""Watchers do not know of each other: none is held up, or left untold, by what another does."""

from __future__ import annotations

import asyncio

import pytest

from spinney.meta.errors import Expired
from spinney.testing import loop
from tests.store.stores import POD, SET, Recorder, opened, put, ref


class Raiser(Recorder):
    """A watcher that breaks at every batch."""

    def deliver(self, events):
        super().deliver(events)
        raise RuntimeError("broken watcher")


def test_a_watcher_that_raises_is_cut_off_and_reported_and_nobody_else_notices():
    async def main():
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: reported.append(said))
        async with opened() as store:
            before, broken, after = Recorder(), Raiser(), Recorder()
            for watcher in (before, broken, after):
                store.attach(POD, 0, watcher)
            stored = [await put(store, ref("a")) for _ in range(3)]
            assert before.versions == after.versions == [item.version for item in stored]
            assert (broken.versions, broken.cuts) == ([1], 1)
            assert store.statistics().watchers == 2
        assert [str(said["exception"]) for said in reported] == ["broken watcher"]

    loop.run(main())


def test_a_watcher_that_raises_when_it_is_cut_off_is_reported_too():
    class Worse(Raiser):
        def cut(self):
            raise ValueError("worse")

    async def main():
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: reported.append(said))
        async with opened() as store:
            store.attach(None, 0, Worse())
            last = Recorder()
            store.attach(None, 0, last)
            await put(store, ref("a"))
            assert last.versions == [1]
        assert [type(said["exception"]) for said in reported] == [RuntimeError, ValueError]

    loop.run(main())


def test_a_watcher_that_raises_at_what_it_missed_is_not_attached():
    async def main():
        async with opened() as store:
            await put(store, ref("a"))
            with pytest.raises(RuntimeError):
                store.attach(POD, 0, Raiser())
            assert store.statistics().watchers == 0

    loop.run(main())


def test_watchers_may_come_go_and_write_while_they_are_told():
    async def main():
        async with opened() as store:
            late, gone = Recorder(), Recorder()

            class Busy(Recorder):
                def deliver(self, events):
                    super().deliver(events)
                    if len(self.batches) == 1:
                        store.attach(POD, 0, late)
                        store.detach(gone)
                        head = store.head(ref("a"))
                        store.put(ref("a"), head.document(), expects=head.version)

            busy = Busy()
            for watcher in (busy, gone):
                store.attach(POD, 0, watcher)
            await put(store, ref("a"))
            await put(store, ref("b"))
            assert busy.versions == late.versions == [1, 2, 3]
            assert gone.versions == []

    loop.run(main())


def test_who_attaches_while_a_batch_is_told_gets_it_once():
    async def main():
        async with opened() as store:
            late = Recorder()

            class Inviting(Recorder):
                def deliver(self, events):
                    super().deliver(events)
                    if len(self.batches) == 1:
                        store.attach(POD, 0, late)

            store.attach(POD, 0, Recorder())
            store.attach(None, 0, Inviting())
            await put(store, ref("a"))
            await put(store, ref("b"))
            assert late.versions == [1, 2]

    loop.run(main())


def test_a_batch_is_told_at_once_and_only_of_the_kind_asked_for():
    async def main():
        async with opened() as store:
            everything, pods, sets = Recorder(), Recorder(), Recorder()
            store.attach(None, 0, everything)
            store.attach(POD, 0, pods)
            store.attach(SET, 0, sets)
            targets = [ref("a"), ref("a", kind=SET), ref("b")]
            await asyncio.gather(*(put(store, target) for target in targets))
            await put(store, ref("c", kind=SET))
            told = [
                [[event.version for event in batch] for batch in watcher.batches]
                for watcher in (everything, pods, sets)
            ]
            assert told == [[[1, 2, 3], [4]], [[1, 3]], [[2], [4]]]

    loop.run(main())


def test_a_thousand_watchers_share_the_events_and_the_bytes():
    async def main():
        async with opened() as store:
            watchers = [Recorder() for _ in range(1000)]
            for number, watcher in enumerate(watchers):
                store.attach((POD, SET, None)[number % 3], 0, watcher)
            for number in range(20):
                await put(store, ref(f"pod-{number}"))
            assert store.statistics().watchers == 1000
            first = watchers[0]
            lines = {id(event.line) for event in first.events}
            assert (len(first.events), len(lines)) == (20, 20)
            for number, watcher in enumerate(watchers):
                if number % 3 == 1:
                    assert watcher.events == []
                else:
                    assert [id(event) for event in watcher.events] == [*map(id, first.events)]
                    assert {id(event.line) for event in watcher.events} == lines
            for watcher in watchers:
                store.detach(watcher)
            assert store.statistics().watchers == 0
            await put(store, ref("a"))
            assert len(first.events) == 20

    loop.run(main())


def test_an_event_is_a_line_as_a_watch_sends_it():
    async def main():
        async with opened() as store:
            recorder = Recorder()
            store.attach(POD, 0, recorder)
            stored = await put(store, ref("a"))
            assert recorder.events[0].line == b'{"type":"ADDED","object":%b}\n' % stored.body

    loop.run(main())


def test_a_version_nobody_gave_yet_is_expired_and_says_why():
    async def main():
        async with opened() as store:
            with pytest.raises(Expired, match="too large resource version: 5") as caught:
                store.attach(POD, 5, Recorder())
            causes = caught.value.to_status()["details"]["causes"]
            assert causes[0]["reason"] == "ResourceVersionTooLarge"

    loop.run(main())
