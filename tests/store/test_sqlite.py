"""The database file: whose it is, which schema it has, who may read it, and what it costs."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys

import apsw
import pytest

from spinney.meta.errors import CorruptJournal, JournalFailed, SpinneyError
from spinney.ports import Entry
from spinney.store import locks, sqlite, tables
from spinney.store.marks import Mark
from spinney.store.sqlite import SqliteJournal
from spinney.testing import loop
from tests.store import databases
from tests.store.stores import opened, put, ref


def written(version, name="a", body=b"{}"):
    return Entry(version=version, ref=ref(name), uid="u", body=body)


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of two entries, which nobody has open."""
    journal = SqliteJournal(tmp_path / "data")
    assert [*journal.load()] == []
    journal.commit([written(1), written(2, "b")])
    journal.close()
    return tmp_path / "data"


def changed(folder, *statements):
    """Change a database behind its back, as no damage but an evil hand would."""
    connection = apsw.Connection(str(folder / "store.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def load(folder, **options):
    journal = SqliteJournal(folder, **options)
    try:
        return [*journal.load()]
    finally:
        journal.close()


def test_only_the_owner_may_read_what_is_stored(folder):
    """Secrets are objects like all others."""
    journal = SqliteJournal(folder)
    [*journal.load()]
    journal.commit([written(3)])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    journal.close()
    assert modes == dict.fromkeys(["lock", "store.db", "store.db-wal", "store.db-mark"], 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    other = apsw.Connection(str(tmp_path / "store.db"))
    other.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    other.close()
    before = (tmp_path / "store.db").read_bytes()
    with pytest.raises(tables.ForeignJournal, match="another program") as caught:
        load(tmp_path)
    assert isinstance(caught.value, CorruptJournal)
    assert "--data" in str(caught.value)
    assert (tmp_path / "store.db").read_bytes() == before


@pytest.mark.parametrize("body", [b"#!/bin/sh\n" * 500, b"x"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, body):
    (tmp_path / "store.db").write_bytes(body)
    with pytest.raises(CorruptJournal, match=r"store\.db"):
        load(tmp_path)
    assert (tmp_path / "store.db").read_bytes() == body


def test_a_newer_schema_is_refused_by_an_older_spinney_and_left_alone(folder, monkeypatch):
    def add_column(connection):
        connection.execute("ALTER TABLE entries ADD COLUMN region TEXT NOT NULL DEFAULT ''")

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, add_column))
    monkeypatch.setattr(
        tables,
        "SELECT",
        "SELECT * FROM entries ORDER BY version".replace(
            "*", "version, api_group, kind, namespace, name, uid, is_deletion, checksum, document"
        ),
    )
    assert [entry.version for entry in load(folder)] == [1, 2]
    monkeypatch.undo()
    before = (folder / "store.db").read_bytes()
    with pytest.raises(tables.NewerJournal, match="has schema 2, this Spinney knows up to 1"):
        load(folder)
    assert (folder / "store.db").read_bytes() == before


def test_an_older_schema_is_brought_along_once(folder, monkeypatch):
    steps = []

    def rename(connection):
        steps.append(len(steps))
        connection.execute("UPDATE entries SET name = name")

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, rename))
    assert [entry.version for entry in load(folder)] == [1, 2]
    assert [entry.version for entry in load(folder)] == [1, 2]
    assert steps == [0]


def test_a_migration_that_fails_leaves_the_database_as_it_was(folder, monkeypatch):
    def fail(connection):
        connection.execute("DELETE FROM entries")
        raise apsw.FullError("planted")

    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, fail))
    with pytest.raises(SpinneyError, match="planted"):
        load(folder)
    monkeypatch.undo()
    assert [entry.version for entry in load(folder)] == [1, 2]


EVIL = {
    "a row taken out": ["DELETE FROM entries WHERE version = 1"],
    "the newest row taken out": ["DELETE FROM entries WHERE version = 2"],
    "a row changed": ["UPDATE entries SET name = 'c' WHERE version = 1"],
    "a row moved": ["UPDATE entries SET version = 9 WHERE version = 2"],
    "a row doubled": [
        "INSERT INTO entries SELECT 3, api_group, kind, namespace, name, uid, is_deletion, "
        "checksum, document FROM entries WHERE version = 2"
    ],
    "a text that is none": ["UPDATE entries SET name = CAST(x'ff' AS TEXT) WHERE version = 1"],
    "another schema": ["UPDATE journal SET schema = 7"],
    "totals gone": ["DELETE FROM journal"],
    "totals changed": ["UPDATE journal SET newest = 1, count = 1"],
    "a floor that was never reached": ["UPDATE journal SET floor = 1"],
    "a table gone": ["DROP TABLE journal"],
    "the other table gone": ["DROP TABLE entries"],
    "all gone": ["DROP TABLE journal", "DROP TABLE entries", "PRAGMA application_id = 0"],
}


@pytest.mark.parametrize("statements", EVIL.values(), ids=EVIL)
def test_a_change_behind_our_back_is_named(folder, statements):
    changed(folder, *statements)
    with pytest.raises(CorruptJournal, match=r"store\.db"):
        load(folder)


def test_a_list_of_free_pages_that_names_one_in_use_is_named(folder):
    """Nothing is wrong with what can be read yet; the next write would go over an object."""
    file = folder / "store.db"
    body = bytearray(file.read_bytes())
    body[32:40] = (2).to_bytes(4) + (1).to_bytes(4)
    file.write_bytes(body)
    with pytest.raises(CorruptJournal, match=r"store\.db"):
        load(folder)


def test_a_database_that_is_gone_is_missed(folder):
    (folder / "store.db").unlink()
    with pytest.raises(CorruptJournal, match="gone or empty, the mark beside it is not"):
        load(folder)
    (folder / "store.db-mark").unlink()
    assert load(folder) == []


def test_a_write_ahead_log_without_its_end_is_missed_and_may_be_accepted(tmp_path):
    """The operator has no backup: he accepts what is left, by removing the mark."""
    databases.make(tmp_path, is_killed=True)
    log = tmp_path / "whole" / "store.db-wal"
    log.write_bytes(log.read_bytes()[:20_000])
    found = databases.loaded(tmp_path / "whole")
    assert isinstance(found, CorruptJournal)
    assert "the end of the write-ahead log is lost" in str(found)
    (tmp_path / "whole" / "store.db-mark").unlink()
    assert databases.loaded(tmp_path / "whole")[0] > 40


def test_a_mark_says_the_newest_version_or_that_it_is_damaged(tmp_path):
    mark = Mark(tmp_path / "store.db", "full")
    assert mark.read() is None
    for version in (7, 12, 10**15):
        mark.write(version)
        assert mark.read() == version
    line = mark.path.read_bytes()
    for at in range(len(line)):
        mark.path.write_bytes(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])
        with pytest.raises(CorruptJournal, match=r"store\.db-mark is damaged"):
            mark.read()
    mark.close()


def test_a_relaxed_database_may_lose_its_end_and_a_full_one_after_it_may_not(tmp_path):
    journal = SqliteJournal(tmp_path, "relaxed")
    [*journal.load()]
    journal.commit([written(1), written(2)])
    journal.tend()
    journal.commit([written(3)])
    shutil.copytree(tmp_path, tmp_path / "crashed")
    (tmp_path / "crashed" / "store.db-wal").unlink()
    assert [entry.version for entry in load(tmp_path / "crashed")] == [1, 2]
    assert b"full" in (tmp_path / "crashed" / "store.db-mark").read_bytes()
    journal.close()


def test_the_folder_is_locked_and_who_holds_it_is_said(folder):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        assert locks.holder(folder) == holder.pid
        with pytest.raises(locks.Held, match=f"held by process {holder.pid}") as caught:
            load(folder)
        assert caught.value.pid == holder.pid
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=10)
    assert locks.holder(folder) is None
    assert len(load(folder)) == 2


HOLD = """
import pathlib, sys
from spinney.store.sqlite import SqliteJournal
journal = SqliteJournal(pathlib.Path(sys.argv[1]))
list(journal.load())
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_against_the_same_process_too(folder):
    lock = locks.FolderLock(folder)
    with pytest.raises(locks.Held, match=f"process {os.getpid()}"):
        load(folder)
    lock.release()
    assert locks.holder(folder) is None
    assert locks.holder(folder / "nowhere") is None


def test_a_folder_that_may_not_be_written_is_no_damage(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalFailed, match="file"):
        load(tmp_path / "file" / "data")


def test_the_log_is_folded_in_at_rest_and_when_it_is_long(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "WAL_BYTES_MAX", 200_000)

    async def main():
        journal = SqliteJournal(tmp_path)
        async with opened(journal) as store:
            sizes = []
            for number in range(200):
                await put(store, ref(f"pod-{number % 5}"), payload="x" * 8000)
                sizes.append((tmp_path / "store.db-wal").stat().st_size)
            assert max(sizes) < 300_000
            assert not journal.is_overdue

    loop.run(main())
    assert (tmp_path / "store.db-wal").stat().st_size == 0


def test_space_of_forgotten_versions_is_used_again(tmp_path):
    journal = SqliteJournal(tmp_path)
    [*journal.load()]
    sizes = []
    for start in range(1, 1000, 100):
        journal.commit([written(start + step, body=b"x" * 5000) for step in range(100)])
        journal.compact(start + 99)
        journal.tend()
        sizes.append((tmp_path / "store.db").stat().st_size)
    journal.close()
    assert max(sizes) < 1.5 * sizes[1]
