"""Cold starts: what a person waits for after typing a command."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring import best_seconds

UP = "spinney up --detach"
UP_ROUNDS = 5
UP_TARGET_SECONDS = 0.7
EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "disaggregated.yaml"
TARGET_SECONDS = 0.15


def _command(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *words], capture_output=True, check=True)


def run() -> Iterator[str]:
    """Yield how long commands take to start, and by how much that is Python itself."""
    seconds = best_seconds(
        {
            "python -c pass": _command("-c", "pass"),
            "spinney --help": _command("-m", "spinney", "--help"),
            "spinney validate": _command("-m", "spinney", "validate", str(EXAMPLE)),
            "spinney fields": _command("-m", "spinney", "fields", "pcs.spec.template"),
        },
        rounds=20,
    )
    bare = seconds["python -c pass"]
    for name, value in seconds.items():
        verdict = "" if name.startswith("python") else f", target {TARGET_SECONDS:.2f} s"
        yield f"{name:<20} {value:.3f} s  ({value / bare:.1f} x python alone{verdict})"
    yield from _worlds(bare)


def _worlds(bare: float) -> Iterator[str]:
    """Yield how long it takes until a world answers, and until it is answered for."""
    with tempfile.TemporaryDirectory() as folder:
        data = ("--data", os.path.join(folder, "data"))
        up = _command("-m", "spinney", *data, "up", "--detach", "--listen", "127.0.0.1:0")
        down = _command("-m", "spinney", *data, "down")
        get = _command("-m", "spinney", *data, "get", "namespaces")

        seconds: dict[str, float] = {}
        for _ in range(UP_ROUNDS):
            taken = best_seconds({UP: up}, rounds=1)[UP]
            seconds[UP] = min(taken, seconds.get(UP, taken))
            down()
        up()
        try:
            seconds |= best_seconds({"spinney get": get}, rounds=10)
        finally:
            down()
    for name, value in seconds.items():
        target = f", target {UP_TARGET_SECONDS:.2f} s" if name == UP else ""
        yield f"{name:<20} {value:.3f} s  ({value / bare:.1f} x python alone{target})"
