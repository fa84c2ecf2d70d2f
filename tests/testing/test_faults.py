"""Faults come as often as they should, and keep nothing; executors run without threads."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from spinney.meta.errors import JournalFailed, JournalFull
from spinney.ports import Entry
from spinney.store.journals import MemoryJournal
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor, SlowExecutor
from spinney.testing.faults import FaultyJournal, JournalFaults
from tests.store.stores import ref


def entry(version):
    return Entry(version=version, ref=ref("a"), uid="u", body=b"{}")


def outcomes(faults, seed=1):
    below = MemoryJournal()
    journal = FaultyJournal(below, SeededEntropy(seed), faults)
    found = []
    for version in range(1, 1001):
        try:
            journal.commit([entry(version)])
        except (JournalFull, JournalFailed) as error:
            found.append(type(error))
    assert len([*below.load()]) + len(found) == 1000
    assert journal.failures == len(found)
    return found


def test_a_journal_fails_as_often_as_it_should_and_the_same_for_a_seed():
    assert outcomes(JournalFaults()) == []
    full = outcomes(JournalFaults(full_per_mille=100))
    assert set(full) == {JournalFull}
    assert 60 < len(full) < 140
    both = JournalFaults(full_per_mille=100, failed_per_mille=300)
    assert {*outcomes(both)} == {JournalFull, JournalFailed}
    assert outcomes(both) == outcomes(both)
    assert outcomes(both) != outcomes(both, seed=2)


def test_a_journal_fails_until_it_is_healed():
    journal = FaultyJournal(MemoryJournal(), SeededEntropy(1), JournalFaults(upkeep_per_mille=1000))
    journal.is_full = True
    with pytest.raises(JournalFull):
        journal.commit([entry(1)])
    journal.is_full, journal.is_broken = False, True
    for call in (lambda: journal.commit([entry(1)]), lambda: journal.compact(1), journal.tend):
        with pytest.raises(JournalFailed):
            call()
    journal.heal()
    journal.commit([entry(1)])
    journal.compact(1)
    journal.tend()
    assert [*journal.load()] == [entry(1)]


@pytest.mark.parametrize(("dies", "kept"), [("before", []), ("after", [entry(1)])])
def test_a_killed_process_reaches_its_journal_no_more(dies, kept):
    below = MemoryJournal()
    journal = FaultyJournal(below, SeededEntropy(1))
    journal.dies = dies
    for _ in range(2):
        with pytest.raises(JournalFailed):
            journal.commit([entry(1)])
    journal.heal()
    with pytest.raises(JournalFailed, match="dead"):
        journal.compact(2)
    journal.close()
    assert [*below.load()] == kept


def test_an_inline_executor_calls_at_once_and_hands_on_what_was_raised():
    executor = InlineExecutor()
    assert executor.submit(divmod, 7, 2).result(0) == (3, 1)
    assert isinstance(executor.submit(divmod, 7, 0).exception(0), ZeroDivisionError)


def test_a_slow_executor_takes_its_time_one_call_after_the_other():
    async def main():
        clock = VirtualClock()
        waits = iter([timedelta(seconds=2), timedelta(seconds=1)])
        executor = SlowExecutor(lambda: next(waits))
        running = asyncio.get_running_loop()
        first = running.run_in_executor(executor, clock.elapsed)
        second = running.run_in_executor(executor, clock.elapsed)
        assert not first.done()
        assert await second == timedelta(seconds=3)
        assert await first == timedelta(seconds=2)

    loop.run(main())
