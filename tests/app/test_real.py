"""Real chance: uids are random UUIDs, and no process has those of another."""

from __future__ import annotations

import os
import uuid

from spinney.app.real import UIDS_AT_ONCE, SystemEntropy


def test_uids_are_random_uuids() -> None:
    entropy = SystemEntropy()
    found = [entropy.uid() for _ in range(3 * UIDS_AT_ONCE)]
    assert len(set(found)) == len(found)
    for text in found:
        parsed = uuid.UUID(text)
        assert (parsed.version, parsed.variant, str(parsed)) == (4, uuid.RFC_4122, text)


def test_a_process_that_was_split_off_has_uids_of_its_own() -> None:
    entropy = SystemEntropy()
    entropy.uid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "".join(entropy.uid() for _ in range(50)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 50 * 36).decode()
    os.close(reading)
    os.close(writing)
    assert len(theirs) == 50 * 36
    assert not {entropy.uid() for _ in range(100)} & {
        theirs[at : at + 36] for at in range(0, 1800, 36)
    }
