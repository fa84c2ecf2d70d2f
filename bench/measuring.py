"""How things are measured: the best of several runs, one after the other in turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping


def best_seconds(
    candidates: Mapping[str, Callable[[], object]], rounds: int = 5
) -> dict[str, float]:
    """Return the best time of each; they take turns, so that a slow minute meets all alike."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, run in candidates.items():
            gc.collect()
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best
