"""Servers and kubectl programs for the tests of conformance.

`SPINNEY_KUBECTL_VERSIONS=all` runs the table with every pinned kubectl instead of the newest and
the oldest, `newest` with that alone; `SPINNEY_TRANSCRIPTS=<folder>` writes the transcripts there
instead of comparing them; `SPINNEY_REFERENCE=<kubeconfig>` asks another server, which must be new.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest

from tests.conformance import cases
from tests.conformance.live import Live, Manned, Up
from tools import kubectl

CASES = cases.load()


class Lives:
    """The servers of one test process: a server a key, begun when first asked for."""

    def __init__(self, folder) -> None:
        self._folder = folder
        self._lives: dict[str, Live] = {}

    def of(self, key: str) -> Live:
        """Return the server of a key."""
        if key not in self._lives:
            folder = self._folder / key
            folder.mkdir()
            other = os.environ.get("SPINNEY_REFERENCE")
            begin = Manned if key.endswith("manned") else Up
            self._lives[key] = Live(Path(other)) if other else begin(folder)
        return self._lives[key]

    def end(self) -> None:
        """End them all; each must end well."""
        ended = {key: live.end() for key, live in self._lives.items()}
        assert not any(ended.values()), f"servers ended with exit codes {ended}"


def is_reference() -> bool:
    """Whether another server is asked, on whose nodes our pods do not run."""
    return bool(os.environ.get("SPINNEY_REFERENCE"))


def pytest_generate_tests(metafunc):
    """One test a case and a version of kubectl."""
    if "kubectl_case" in metafunc.fixturenames:
        wanted = os.environ.get("SPINNEY_KUBECTL_VERSIONS")
        minors = kubectl.minors(every=wanted == "all")[: 1 if wanted == "newest" else None]
        known = [case for case in CASES if case.world == "plain" or not is_reference()]
        rows = [(minor, case) for minor in minors for case in known]
        names = [f"1.{minor}-{case.group}-{case.name}" for minor, case in rows]
        metafunc.parametrize(("minor", "kubectl_case"), rows, ids=names)


@pytest.fixture(scope="session")
def lives(tmp_path_factory):
    """The servers of this process."""
    made = Lives(tmp_path_factory.mktemp("live"))
    yield made
    made.end()


@pytest.fixture(scope="session")
def live(lives):
    """One server, shared by the tests that do not mind each other."""
    return lives.of("shared")


@pytest.fixture(scope="session")
def manned(lives):
    """A server whose pods run."""
    return lives.of("manned")


_COUNT = itertools.count()


@pytest.fixture
def namespace(live, request):
    """A namespace of the test's own on the shared server."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].rstrip("-")
    name = f"{name}-{next(_COUNT)}"
    live.create_namespace(name)
    return name
