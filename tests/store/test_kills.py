"""Killed at random moments of a storm of writes, again and again, on the same database.

`make test KILLS=200` kills it two hundred times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spinney.ports import Change
from spinney.store.sqlite import SqliteJournal
from spinney.testing import loop
from spinney.testing.entropy import SeededEntropy
from tests.store.stores import POD, opened
from tests.store.storming import payload

KILLS = int(os.environ.get("KILLS", "20"))
ROOT = Path(__file__).resolve().parents[2]


def storm_until_killed(folder, entropy):
    """Return the writes that were acknowledged before the kill, in order."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.store.storming", str(folder)],
        cwd=ROOT,
        bufsize=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = child.stdout.readline()
    time.sleep(entropy.between(0, 150_000) / 1_000_000)
    child.kill()
    rest, errors = child.communicate(timeout=20)
    assert first, errors.decode()
    assert child.returncode == -9, errors.decode()
    *lines, last = (first + rest).split(b"\n")
    assert last == b""
    return [
        (int(version), name.decode(), int(count))
        for version, name, count in (line.split() for line in lines)
    ]


def found_in(folder):
    """Return the newest version, and each object's last event as it was told; all are whole."""

    async def main():
        async with opened(SqliteJournal(folder)) as store:
            found = {}
            objects = list(store.list(POD))
            deletions = [
                event.stored
                for event in store.since(store.statistics().floor)
                if event.change is Change.DELETED and store.get(event.stored.ref) is None
            ]
            for stored in [*objects, *deletions]:
                spec = stored.document()["spec"]
                assert spec["payload"] == payload(stored.ref.name, spec["count"])
                count = -1 if store.get(stored.ref) is None else spec["count"]
                found[stored.ref.name] = (stored.version, count)
            return store.version, found

    return loop.run(main())


@pytest.mark.timeout(60 + 4 * KILLS)
def test_every_acknowledged_write_survives_and_no_other_is_half_there(tmp_path):
    entropy = SeededEntropy(time.time_ns())
    acknowledged = {}
    newest = 0
    for kill in range(KILLS):
        written = storm_until_killed(tmp_path / "data", entropy)
        versions = [version for version, _, _ in written]
        assert min(versions) > newest, f"kill {kill}: versions went back"
        for version, name, count in written:
            assert version > acknowledged.get(name, (0, 0))[0]
            acknowledged[name] = (version, count)
        newest, found = found_in(tmp_path / "data")
        assert newest >= max(versions)
        for name, (version, count) in acknowledged.items():
            last = found.get(name, (0, -1))
            if last[0] <= version:
                assert last[1] == count, f"kill {kill}: {name} of version {version}: {last}"
                assert last[0] in (version, 0), f"kill {kill}: {name} went back"
        acknowledged |= found
