"""Disruption: may something healthy be taken away now? One answer for all who ask (rule 2.8).

A level has one writer, which stores its choice before anything is deleted; so what was chosen
counts as gone from then on, here and in the next look.
"""

from __future__ import annotations

from spinney.meta import quantities
from spinney.meta.quantities import IntOrString


def may_take(*, ready: int, least: int, taken: int, most: int) -> bool:
    """Whether one more that is ready may be taken.

    `ready` are those not chosen yet, `least` how many are needed, `taken` those chosen that are not
    back yet, `most` how many may be down at once. The first may cost one below `least`, further
    ones nothing (rule 3.3).
    """
    if taken == 0:
        return ready >= least
    return taken < most and ready > least


def most_at_once(max_unavailable: IntOrString | None, replicas: int) -> int:
    """Return how many may be down at once: a count, or a share rounded down; at least one."""
    if max_unavailable is None:
        return 1
    return max(1, quantities.resolve(max_unavailable, replicas, round_up=False))
