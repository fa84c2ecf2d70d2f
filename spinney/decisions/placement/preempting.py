"""Preempting: which gangs would have to go so that a more important one fits.

Only whole gangs of strictly lower priority. The dearest are spared first: of higher priority, of
more pods, older. So no gang goes while less important ones are enough, and none that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from spinney.decisions.placement import placing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.machines import Resident
from spinney.decisions.placement.outcomes import Placement
from spinney.meta.records import Record
from spinney.meta.references import Ref

STEPS_MAX = 2_000
"""How many steps the exact search takes for each of the many tries."""

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


class Preemption(Record):
    """What makes room for a gang, and where it then goes."""

    victims: tuple[Ref, ...]
    """Whole gangs, or pods that are in none; none where those leaving already make the room."""

    pods: tuple[Ref, ...]
    """All their pods that are not leaving yet."""

    placement: Placement


def victims(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Preemption | None:
    """Return which gangs of lower priority must go for this one to fit; None where none helps.

    None too where some pod of it has the preemption policy `Never`. Leaving pods count as gone.
    The cluster is left as it was.
    """
    lowest = cluster.lowest_priority
    if not gang.can_preempt or lowest is None or lowest >= gang.priority:
        return None
    return room_made(
        cluster, gang, levels, lambda there: max(found.priority for found in there) < gang.priority
    )


def room_made(
    cluster: Cluster,
    gang: GangDemand,
    levels: tuple[str, ...],
    may_go: Callable[[Sequence[Resident]], bool],
) -> Preemption | None:
    """Return the least that must go, of what may, for a gang to fit; None where that is not enough.

    Gangs are asked about with all their pods.
    """
    if _placement(cluster.emptied, gang, levels) is None:
        return None
    absent = _Absent(cluster)
    try:
        absent.send_leaving()
        placement = _placement(cluster, gang, levels)
        if placement is not None:
            return Preemption(victims=(), pods=(), placement=placement)
        wholes = [
            whole
            for whole in sorted(cluster.wholes())
            if whole != gang.ref and may_go([resident for _, resident in cluster.residents(whole)])
        ]
        wholes.sort(key=lambda whole: _dearness(cluster, whole), reverse=True)
        for whole in wholes:
            absent.send(whole)
        if not wholes or _placement(cluster, gang, levels) is None:
            return None
        gone = _not_spared(absent, wholes, lambda: _placement(cluster, gang, levels) is not None)
        pods = tuple(sorted(found.ref for whole in gone for found in absent.members(whole)))
        placement = _placement(cluster, gang, levels)
        assert placement is not None, "what was sent away made room"
        return Preemption(victims=tuple(sorted(gone)), pods=pods, placement=placement)
    finally:
        absent.recall_all()


def _placement(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Placement | None:
    outcome = placing.place(cluster, gang, levels, steps_max=STEPS_MAX)
    return outcome if isinstance(outcome, Placement) else None


def _dearness(cluster: Cluster, whole: Ref) -> tuple[int, int, int, Ref]:
    members = [resident for _, resident in cluster.residents(whole)]
    created = min((found.created for found in members if found.created), default=_LONG_AGO)
    age = -int((created - _LONG_AGO).total_seconds())
    return max(found.priority for found in members), len(members), age, whole


def _not_spared(absent: _Absent, wholes: Sequence[Ref], has_room: Callable[[], bool]) -> list[Ref]:
    """Return what must stay away, having called back all others; the first are spared first.

    Halves are called back at once. What holds for a half by that holds for each of it, if room
    never hinders; in the end each is tried by itself, in case it did.
    """
    needed: list[Ref] = []
    parts = _halves(wholes)
    while parts:
        part = parts.pop()
        for whole in part:
            absent.recall(whole)
        if has_room():
            continue
        for whole in part:
            absent.send(whole)
        if len(part) == 1:
            needed += part
        else:
            parts += _halves(part)
    gone = []
    for whole in needed:
        absent.recall(whole)
        if not has_room():
            absent.send(whole)
            gone.append(whole)
    return gone


def _halves(wholes: Sequence[Ref]) -> list[Sequence[Ref]]:
    """Return both halves, the one that is looked at first last."""
    middle = -(-len(wholes) // 2)
    return [half for half in (wholes[middle:], wholes[:middle]) if half]


class _Absent:
    """Residents sent away from a cluster for a while."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._leaving: list[tuple[str, Resident]] = []
        self._gone: dict[Ref, list[tuple[str, Resident]]] = {}

    def send_leaving(self) -> None:
        """Send away what is leaving anyhow."""
        self._leaving = [*self._cluster.leaving()]
        for _, resident in self._leaving:
            self._cluster.remove_resident(resident.uid)

    def send(self, whole: Ref) -> None:
        """Send away a gang."""
        self._gone[whole] = [*self._cluster.residents(whole)]
        for _, resident in self._gone[whole]:
            self._cluster.remove_resident(resident.uid)

    def recall(self, whole: Ref) -> None:
        """Call a gang back."""
        for node, resident in self._gone.pop(whole):
            self._cluster.put_resident(node, resident)

    def members(self, whole: Ref) -> list[Resident]:
        """Return the pods of a gang that was sent away."""
        return [resident for _, resident in self._gone[whole]]

    def recall_all(self) -> None:
        """Call back all that were sent away."""
        for whole in [*self._gone]:
            self.recall(whole)
        for node, resident in self._leaving:
            self._cluster.put_resident(node, resident)
        self._leaving = []
