"""Preempting: which gangs would have to go so that a more important one fits."""

from __future__ import annotations

from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.outcomes import Placement
from spinney.meta.records import Record
from spinney.meta.references import Ref


class Preemption(Record):
    """What makes room for a gang, and where it then goes."""

    victims: tuple[Ref, ...]
    """Whole gangs, or pods that are in none; none where those leaving already make the room."""

    pods: tuple[Ref, ...]
    """All their pods."""

    placement: Placement


def victims(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Preemption | None:
    """Return which gangs of lower priority must go for this one to fit; None where none helps."""
    raise NotImplementedError
