"""Queueing: whose turn it is, and what is kept free for who waits longest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spinney.decisions.placement.amounts import Amounts
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.outcomes import Placement, Refusal
from spinney.meta.records import Record
from spinney.meta.references import Ref


class Hold(Record, order=True):
    """An amount of a machine that is kept for a gang."""

    node: str
    requests: Amounts


class Reservation(Record):
    """What is kept free, or will be as it becomes free, for the first gang that does not fit."""

    gang: Ref
    holds: tuple[Hold, ...]


class Round(Record):
    """What a look at the whole queue gives: outcomes in the order they were found."""

    outcomes: tuple[Placement | Refusal, ...] = ()
    reservation: Reservation | None = None


def order(gangs: Iterable[GangDemand]) -> tuple[GangDemand, ...]:
    """Return gangs in the order of their turns."""
    raise NotImplementedError


def reservation(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Reservation | None:
    """Return where a refused gang will go as room comes free; None where it could never."""
    raise NotImplementedError


def look(cluster: Cluster, gangs: Sequence[GangDemand], levels: tuple[str, ...]) -> Round:
    """Return what becomes of each waiting gang, taken in order; the cluster is left as it was."""
    raise NotImplementedError
