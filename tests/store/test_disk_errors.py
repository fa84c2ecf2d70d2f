"""A disk that fails: a write is kept wholly or refused, and the store goes on when it can.

* What was acknowledged is there, whatever failed before or after it.
* What was refused is not, once the store was closed; after a kill it may be, but wholly.
* Reads go on; the first write after the disk is well again is taken, with nothing done by hand.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.meta.errors import JournalFailed, StorageFull, Unavailable
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Limits, Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.executors import InlineExecutor
from tests.store.disks import FAULTS, FaultyDisk
from tests.store.stores import POD, document, opened, put, ref, settled

LIMITS = Limits(
    history_events_max=8, compaction_versions=4, batch_writes_max=3, rest_after=timedelta(seconds=1)
)
NAMES = itertools.count()


@pytest.fixture
def disk():
    disk = FaultyDisk(f"faulty-{next(NAMES)}")
    yield disk
    disk.unregister()


def versions(store):
    return {stored.ref.name: stored.version for stored in store.list(POD)}


async def write_some(store, names):
    """Queue a write to each at once; return what was acknowledged of it."""
    writes = []
    for name in names:
        head = store.head(ref(name))
        body = document(ref(name), payload=name * 3000)
        writes.append(store.put(ref(name), body, expects=head.version if head else 0))
    outcomes = await settled(writes)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert all(isinstance(error, (StorageFull, Unavailable)) for error in refused)
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


NAME = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(
    st.tuples(
        st.lists(NAME, min_size=1, max_size=7),
        st.integers(0, 25),
        st.sampled_from(FAULTS),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_what_is_acknowledged_is_kept_and_what_is_refused_is_not(memory_path, disk, steps):
    folder = memory_path / "work"
    shutil.rmtree(folder, ignore_errors=True)

    async def main():
        acknowledged = {}
        journal = SqliteJournal(folder, vfs=disk.name)
        clock = VirtualClock()
        store = await Store.open(journal, clock, limits=LIMITS, executor=InlineExecutor())
        for names, after, fault, persists, rests in steps:
            disk.fail(after, fault, persists=persists)
            for stored in await write_some(store, names):
                acknowledged[stored.ref.name] = stored.version
            if rests:
                await clock.sleep(timedelta(seconds=3))
            assert versions(store) == acknowledged
            await check_a_kill_now(folder, acknowledged, store.version)
            disk.heal()
            (stored,) = await write_some(store, names[:1])
            acknowledged[stored.ref.name] = stored.version
            assert versions(store) == acknowledged
        await store.close()
        async with opened(SqliteJournal(folder)) as again:
            assert versions(again) == acknowledged
            assert again.version == store.version

    loop.run(main())


async def check_a_kill_now(folder, acknowledged, version):
    """Load what stands on the disk: what was acknowledged, and perhaps more, wholly."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    async with opened(SqliteJournal(copy), limits=LIMITS) as store:
        found = versions(store)
        assert store.version >= version
        for name, kept in acknowledged.items():
            assert found[name] == kept or found[name] > version
        for stored in store.list(POD):
            assert stored.document()["spec"]["payload"] == stored.ref.name * 3000


@pytest.mark.parametrize("fault", FAULTS)
def test_reads_go_on_and_writes_are_refused_until_the_disk_is_well(tmp_path, disk, fault):
    """The disk fills up over night; the operator frees some of it, and that is all he does."""
    expected = StorageFull if fault in ("full", "short") else Unavailable

    async def main():
        async with opened(SqliteJournal(tmp_path / "data", vfs=disk.name)) as store:
            await put(store, ref("a"))
            disk.fail(0, fault, persists=True)
            for _ in range(3):
                with pytest.raises(expected, match="nothing was written") as caught:
                    await put(store, ref("a"), payload="new")
                assert store.get(ref("a")).version == store.version == 1
                assert store.head(ref("a")) is store.get(ref("a"))
            status = caught.value.to_status()
            assert status["code"] == (507 if expected is StorageFull else 503)
            disk.heal()
            written = await put(store, ref("a"), payload="new")
            assert store.get(ref("a")) is written
            assert written.version > 1

    loop.run(main())


def test_after_a_failed_flush_the_log_is_trusted_no_more(tmp_path, disk):
    """What the kernel could not flush it may forget; all that was acknowledged is elsewhere."""
    data = tmp_path / "data"

    async def main():
        async with opened(SqliteJournal(data, vfs=disk.name)) as store:
            for name in "abc":
                await put(store, ref(name))
            for fault in ("failed", "failed-after"):
                disk.fail(1, fault)
                with pytest.raises(Unavailable):
                    await put(store, ref("d"))
            await put(store, ref("e"))
            shutil.copytree(data, tmp_path / "without")
        for lost in ("store.db-wal", "store.db-mark"):
            (tmp_path / "without" / lost).unlink()
        async with opened(SqliteJournal(tmp_path / "without")) as store:
            assert [*versions(store)] == ["a", "b", "c"]

    loop.run(main())


def test_upkeep_that_fails_is_tried_again_and_harms_no_write(tmp_path, disk):
    async def main():
        journal = SqliteJournal(tmp_path / "data", vfs=disk.name)
        async with opened(journal, limits=LIMITS) as store:
            for number in range(12):
                await put(store, ref("a"), payload=f"{number}")
            clock = VirtualClock()
            disk.fail(0, "failed", persists=True)
            await clock.sleep(timedelta(seconds=5))
            assert store.statistics().failed_upkeep > 0
            disk.heal()
            await put(store, ref("a"), payload="last")
            await clock.sleep(timedelta(seconds=5))
            assert store.statistics().floor - journal.floor < LIMITS.compaction_versions

    loop.run(main())


def test_a_disk_that_fails_while_loading_is_told_from_damage(tmp_path):
    (tmp_path / "store.db").mkdir()
    with pytest.raises(JournalFailed, match=r"store\.db"):
        [*SqliteJournal(tmp_path).load()]


ROOT = Path(__file__).resolve().parents[2]


def mounted(folder, command):
    """Return a command that runs with a small file system of its own, None where none may be."""
    mount = f'mount -t tmpfs -o size=4m tmpfs "{folder}"'
    unshare = shutil.which("unshare")
    if (
        unshare is None
        or subprocess.run([unshare, "-m", "sh", "-c", mount], check=False).returncode
    ):
        return None
    return [unshare, "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *command, "ballast"]


def test_a_real_disk_that_fills_up(tmp_path):
    """By a limit on the size of files, and where it may be mounted a small file system too."""
    bare = [sys.executable, "-m", "tests.store.filling"]
    (tmp_path / "mounted").mkdir()
    commands = [
        [*bare, str(tmp_path / "limited")],
        mounted(tmp_path / "mounted", [*bare, str(tmp_path / "mounted")]),
    ]
    for command in filter(None, commands):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=50, check=False, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["refused"] == "InsufficientStorage"
        assert told["written"] > 50
        assert told["read_while_full"] == told["loaded_while_full"] == told["written"]
        assert told["read_after"] == told["written"] + 1
