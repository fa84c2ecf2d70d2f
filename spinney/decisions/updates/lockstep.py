"""Lock-step: within a set replica, all that changes moves together (update type Coherent).

The set counts the steps, in its status; cliques and groups take what is due by the step there. The
first step begins once each has told whether it changes; the next one once all that is due is back
and ready. There are as many steps as leave every changed clique and group at least `minAvailable`
a step, the smallest part of it that can serve. So after each step, of every changed component the
same share is new: what is new serves with what is new, and what is old with what is old.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from spinney.api.podcliqueset import COHERENT, PodCliqueSet, SetReplicaUpdateProgress
from spinney.meta.records import Record


class Stand(Record):
    """How far one clique or group of the replica in update has come."""

    is_done: bool = False
    """Whether it is wholly of the target, be it that nothing of it changed."""

    is_changing: bool = False
    is_at_rest: bool = False
    """Whether nothing of it was taken that is not back."""

    updated: int = 0
    replicas: int = 0
    least: int = 0

    @property
    def has_told(self) -> bool:
        """Whether it is known if it changes."""
        return self.is_done or self.is_changing


def is_coherent(set_: PodCliqueSet) -> bool:
    """Whether what changes in a replica of a set moves in lock-step."""
    return set_.spec.update_strategy.type == COHERENT


def due(set_: PodCliqueSet, replicas: int) -> int | None:
    """Return how many of a clique's pods or a group's copies are to be taken by now.

    None where nothing moves in lock-step.
    """
    if not is_coherent(set_):
        return None
    progress = set_.status.rolling_update_progress
    chosen = None if progress is None else progress.currently_updating
    if chosen is None or not chosen.steps:
        return 0
    return _share(replicas, chosen.step, chosen.steps)


def _share(replicas: int, step: int, steps: int) -> int:
    return replicas * min(step, steps) // steps


def anew(chosen: SetReplicaUpdateProgress | None) -> SetReplicaUpdateProgress | None:
    """Return a replica in update that begins to follow another template."""
    return None if chosen is None else msgspec.structs.replace(chosen, step=0, steps=0)


def advanced(
    set_: PodCliqueSet, chosen: SetReplicaUpdateProgress, found: Iterable[Stand]
) -> SetReplicaUpdateProgress:
    """Return a replica in update with the step it is in now."""
    if not is_coherent(set_):
        return msgspec.structs.replace(chosen, step=0, steps=0)
    stands = list(found)
    if not all(stand.has_told for stand in stands):
        return chosen
    changing = [stand for stand in stands if stand.is_changing]
    if not changing:
        return chosen
    if not chosen.steps:
        return msgspec.structs.replace(chosen, step=1, steps=_steps(changing))
    if chosen.step < chosen.steps and all(_is_at(stand, chosen) for stand in changing):
        return msgspec.structs.replace(chosen, step=chosen.step + 1)
    return chosen


def _steps(changing: Iterable[Stand]) -> int:
    """Return in how many steps everything moves: none leaves less than the least to any."""
    parts = [stand.replicas // max(1, stand.least) for stand in changing if stand.replicas]
    return max(1, min(parts, default=1))


def _is_at(stand: Stand, chosen: SetReplicaUpdateProgress) -> bool:
    """Whether all that is due of a clique or group in a step is back."""
    return stand.is_at_rest and stand.updated >= _share(stand.replicas, chosen.step, chosen.steps)
