"""The data folder: who holds it, what is kept in it, and what is said when it cannot be used."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime

import msgspec
import pytest

from spinney.app import credentials, files, logs
from spinney.app.datafolder import BadDataFolder, DataFolder, Held, Holder, Lock
from spinney.app.real import SystemClock, SystemEntropy

NOW = datetime(2026, 11, 19, 8, 30, tzinfo=UTC)
ME = Holder(pid=os.getpid(), since=NOW)


@pytest.fixture
def folder(tmp_path):
    made = DataFolder(tmp_path / "a" / "b")
    made.make()
    return made


def test_a_folder_is_made_for_its_owner_alone(folder):
    assert folder.root.stat().st_mode & 0o777 == 0o700


def test_who_holds_a_folder_is_told_while_it_is_held(folder):
    assert folder.holder() is None
    lock = Lock.take(folder, ME)
    assert folder.holder() == ME
    up = msgspec.structs.replace(ME, address="https://127.0.0.1:7443", durability="full")
    lock.tell(up)
    assert folder.holder() == up
    lock.release()
    assert folder.holder() is None


def test_a_second_one_is_told_who_holds_it(folder):
    lock = Lock.take(folder, msgspec.structs.replace(ME, address="https://127.0.0.1:7443"))
    with pytest.raises(Held) as caught:
        Lock.take(folder, ME)
    assert str(caught.value) == (
        f"{folder.root} is held by process {os.getpid()} since 2026-11-19T08:30:00Z, at "
        f"https://127.0.0.1:7443: stop it with `spinney --data {folder.root} down`, or give this "
        "one another folder with --data"
    )
    lock.release()
    Lock.take(folder, ME).release()


def test_whoever_looks_does_not_keep_another_from_starting(folder, monkeypatch):
    """`status` looks in the very moment `up` takes the lock."""
    Lock.take(folder, ME).release()
    looking = os.open(folder.lock, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _seconds: fcntl.flock(looking, fcntl.LOCK_UN))
    Lock.take(folder, ME).release()
    os.close(looking)


def test_a_killed_holder_holds_nothing(folder):
    holding = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, datetime; from pathlib import Path\n"
            "from spinney.app.datafolder import DataFolder, Holder, Lock\n"
            "folder = DataFolder(Path(sys.argv[1]))\n"
            "lock = Lock.take(folder, Holder(pid=7, since=datetime.datetime.now(datetime.UTC)))\n"
            "print('holding', flush=True)\n"
            "sys.stdin.read()",
            folder.root,
        ],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    holding.stdout.readline()
    assert folder.holder().pid == 7
    holding.kill()
    holding.communicate()
    assert folder.holder() is None
    Lock.take(folder, ME).release()


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("file", "file: File exists: there is a file in its place"),
        ("file/below", "file/below: Not a directory: a part of the path is a file"),
        ("x" * 300, "File name too long: give a folder with a shorter path"),
    ],
)
def test_a_folder_that_cannot_be_is_explained(tmp_path, place, told):
    (tmp_path / "file").touch()
    with pytest.raises(BadDataFolder) as caught:
        DataFolder(tmp_path / place).make()
    assert told in str(caught.value)
    assert "--data" in str(caught.value)


def test_tokens_are_made_once_and_differ(folder):
    folder.pki.mkdir()
    first = credentials.prepare(folder.tokens, SystemEntropy())
    assert credentials.prepare(folder.tokens, SystemEntropy()) == first
    assert len({first.admin, first.read_only}) == 2
    assert min(len(first.admin), len(first.read_only)) >= 43
    assert folder.tokens.stat().st_mode & 0o777 == 0o600


def test_damaged_tokens_are_made_anew(folder):
    folder.pki.mkdir()
    folder.tokens.write_text('{"admin": "", "readOnly": ""}')
    assert credentials.prepare(folder.tokens, SystemEntropy()).admin


def test_a_file_is_put_in_place_whole_with_its_mode(tmp_path):
    file = tmp_path / "file"
    files.write(file, b"one")
    files.write(file, b"two", files.PUBLIC)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"two", 0o644)
    inode = file.stat().st_ino
    files.write_if_changed(file, b"two", files.PUBLIC)
    assert file.stat().st_ino == inode
    files.write_if_changed(file, b"two")
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "file"
    files.write(file, b"old")
    with pytest.raises(TypeError):
        files.write(file, "no bytes")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"old")]


def test_the_log_is_limited_and_shows_values(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "BYTES_MAX", 2000)
    root = logging.getLogger()
    before = list(root.handlers)
    logs.begin(tmp_path / "log")
    (handler,) = [each for each in root.handlers if each not in before]
    try:
        log = logging.getLogger("spinney.planted")
        for number in range(100):
            log.info("made", extra={"object": f"Pod default/p-{number}", "count": number})
    finally:
        root.removeHandler(handler)
        handler.close()
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.endswith('Z INFO spinney.planted made object="Pod default/p-99" count=99')
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(each.stat().st_size <= 2000 for each in tmp_path.iterdir())
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_real_time_and_chance_keep_the_promises_of_the_ports():
    clock, entropy = SystemClock(), SystemEntropy()
    assert clock.now().utcoffset().total_seconds() == 0
    assert clock.elapsed() <= clock.elapsed()
    assert len({entropy.uid() for _ in range(100)}) == 100
    assert len(entropy.suffix(5)) == 5
    assert set(entropy.suffix(1000)) <= set("bcdfghjklmnpqrstvwxz2456789")
    most = SystemClock().elapsed() - SystemClock().elapsed()
    assert entropy.jitter(abs(most)) <= abs(most)
