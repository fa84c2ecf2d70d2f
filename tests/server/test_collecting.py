"""Collecting: seldom is not never."""

from __future__ import annotations

import gc
import weakref

import pytest

from spinney.server import collecting


class _Ring:
    def __init__(self):
        self.self = self


@pytest.fixture
def collector():
    """Give Python's collector back as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("collector")
def test_what_is_there_is_left_out_and_new_cycles_still_go():
    collecting.collect_seldom()
    assert gc.get_freeze_count() > 0
    gone = weakref.ref(_Ring())
    kept = []
    while gone() is not None and len(kept) < 4 * collecting.NEW_OBJECTS:
        kept.append([kept])
    assert gone() is None
    assert len(kept) > 700
