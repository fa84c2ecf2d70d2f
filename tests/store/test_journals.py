"""What every journal must do: the one in memory and the one on disk, by the same cases."""

from __future__ import annotations

import pytest

from spinney.ports import Entry
from spinney.store.journals import MemoryJournal, Superseded
from spinney.store.sqlite import SqliteJournal
from tests.store.stores import ref


def written(version, name="a", body=None):
    return Entry(
        version=version, ref=ref(name), uid=f"uid-{name}", body=body or b'{"v":%d}' % version
    )


def deleted(version, name="a"):
    return Entry(version=version, ref=ref(name), uid=f"uid-{name}", body=None, last=b"{}")


@pytest.fixture(params=["memory", "full", "relaxed"])
def reopened(request, tmp_path):
    """Return what opens the journal again: it closes the last, and loads."""
    memory = MemoryJournal()
    journals = []

    def reopen():
        if journals:
            journals[-1].close()
        durable = request.param
        journals.append(memory if durable == "memory" else SqliteJournal(tmp_path, durable))
        return journals[-1], [*journals[-1].load()]

    yield reopen
    journals[-1].close()


def test_a_new_journal_is_empty(reopened):
    journal, entries = reopened()
    assert entries == []
    assert journal.floor == 0
    assert not journal.is_overdue


def test_what_was_committed_is_loaded_in_order(reopened):
    journal, _ = reopened()
    batches = [
        [written(1), written(2, "b", b'"\xc3\xa9\\u0000"')],
        [deleted(4)],
        [written(7), written(9, "b")],
    ]
    for batch in batches:
        journal.commit(batch)
    journal.tend()
    _, entries = reopened()
    assert entries == [entry for batch in batches for entry in batch]


def test_compaction_forgets_what_was_superseded_before_the_floor_and_nothing_else(reopened):
    journal, _ = reopened()
    log = [
        written(1),
        written(2, "b"),
        written(3),
        written(4, "c"),
        deleted(5, "c"),
        written(6),
        written(7, "b"),
    ]
    journal.commit(log)
    journal.compact(before=6)
    assert journal.floor == 5
    kept = [2, 3, 6, 7]
    assert [entry.version for entry in reopened()[1]] == kept
    journal, entries = reopened()
    assert entries == [entry for entry in log if entry.version in kept]
    assert journal.floor == 5
    journal.compact(before=8)
    journal, entries = reopened()
    assert [entry.version for entry in entries] == [6, 7]
    assert journal.floor == 7


def test_the_floor_never_falls(reopened):
    journal, _ = reopened()
    journal.commit([written(1), written(2), written(3)])
    journal.compact(before=3)
    journal.compact(before=2)
    assert journal.floor == 2
    assert reopened()[0].floor == 2


def test_the_newest_entry_stays_so_that_versions_go_on_from_it(reopened):
    journal, _ = reopened()
    journal.commit([written(1), written(2), deleted(3)])
    journal.compact(before=100)
    journal, entries = reopened()
    assert entries == [deleted(3)]
    journal.commit([written(4, "b")])
    journal.compact(before=100)
    assert reopened()[1] == [written(4, "b")]


def test_compaction_goes_on_where_it_was_after_loading(reopened):
    journal, _ = reopened()
    journal.commit([written(version) for version in range(1, 11)])
    journal.compact(before=4)
    journal, _ = reopened()
    journal.commit([written(11)])
    journal.compact(before=11)
    assert [entry.version for entry in reopened()[1]] == [10, 11]


def test_an_object_made_again_after_its_deletion_keeps_no_old_version():
    superseded = Superseded()
    for version, is_deletion in ((1, False), (2, True), (3, False), (4, False)):
        superseded.add(version, ref("a"), is_deletion=is_deletion)
    assert superseded.below(2) == []
    assert superseded.below(3) == [1, 2]
    superseded.drop(2)
    assert superseded.below(5) == [3]
