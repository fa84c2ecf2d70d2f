"""Collecting: how often Python looks for cycles in a process that serves.

What a store holds is reached from the start, forms no cycles, and is large: each look visits what
is decoded of it and finds nothing. A request makes some hundreds of dicts and lets them go again.
So there is a look once there is much that is new, rather than some times in every request.
"""

from __future__ import annotations

import gc

NEW_OBJECTS = 50_000
"""How many more objects there must be than there were before the youngest are looked at."""


def collect_seldom() -> None:
    """Leave out of every look what is there now; look at what comes after it seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
