"""Cold starts: what a person waits for after typing a command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring import best_seconds

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
