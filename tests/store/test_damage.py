"""Damage on the disk: a database is loaded whole, or CorruptJournal says what is damaged.

The law: whatever bit is flipped, wherever a file is cut or blanked, never is anything else loaded
than what was acknowledged.
"""

from __future__ import annotations

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.meta.errors import CorruptJournal
from tests.store import databases

FILES = ("store.db", "store.db-wal", "store.db-mark")


@pytest.fixture(scope="module", params=["closed", "killed"])
def whole(request, tmp_path_factory):
    """A database, and what must be loaded from it."""
    folder = tmp_path_factory.mktemp(request.param)
    expected = databases.make(folder, is_killed=request.param == "killed")
    return folder / "whole", expected


def copied(whole):
    folder = whole.with_name("copy")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    return folder


def flip(body, draw):
    at = draw(st.integers(0, len(body) - 1))
    return body[:at] + bytes([body[at] ^ (1 << draw(st.integers(0, 7)))]) + body[at + 1 :]


def cut(body, draw):
    return body[: draw(st.integers(0, len(body) - 1))]


def blank(body, draw):
    """A block of the disk that came back as zeroes."""
    at = draw(st.integers(0, (len(body) - 1) // 512)) * 512
    return body[:at] + bytes(len(body[at : at + 512])) + body[at + 512 :]


def swap(body, draw):
    """A page that was written to another page's place."""
    pages = [body[at : at + 4096] for at in range(0, len(body), 4096)]
    one, other = (draw(st.integers(0, len(pages) - 1)) for _ in range(2))
    pages[one] = pages[other]
    return b"".join(pages)


DAMAGES = st.sampled_from([flip, flip, flip, cut, blank, swap])


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_damage_is_named_or_harmless(whole, data):
    source, expected = whole
    folder = copied(source)
    file = folder / data.draw(st.sampled_from(FILES))
    body = file.read_bytes()
    if body:
        file.write_bytes(data.draw(DAMAGES)(body, data.draw))
    found = databases.loaded(folder)
    if isinstance(found, CorruptJournal):
        assert "store.db" in str(found)
    else:
        assert found == expected
