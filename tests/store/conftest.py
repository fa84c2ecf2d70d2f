"""Where tests of the store put databases whose flushes need not reach a disk."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def memory_path():
    """A folder in memory where the machine has one: flushing it takes no time."""
    shared = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="spinney-", dir=shared if shared.is_dir() else None))
    yield made
    shutil.rmtree(made)
