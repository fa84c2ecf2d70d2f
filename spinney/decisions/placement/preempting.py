"""Preempting: which gangs would have to go so that a more important one fits.

Only whole gangs of strictly lower priority. The dearest are spared first: of higher priority, of
more pods, older. So no gang goes while less important ones are enough, and none that is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from spinney.decisions.placement import placing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.machines import Resident
from spinney.decisions.placement.outcomes import Placement
from spinney.meta.records import Record
from spinney.meta.references import Ref

STEPS_MAX = 2_000
"""How many steps the exact search takes for each of the many tries."""

SPARED_MAX = 64
"""For so many gangs it is tried whether the place could be found elsewhere were they to stay; of
more, only whether they are in the way of the place that was found."""

FIRST_SENT = 16
GROWTH = 4
"""How many are sent away at first, and how many times as many when that is not enough."""

_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_LEAST_PRIORITY: Final = -(2**63)


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
    if not gang.can_preempt or lowest is None:
        return None
    if lowest >= gang.priority and next(cluster.leaving(), None) is None:
        return None
    return room_made(cluster, gang, levels, gang.priority)


def room_made(
    cluster: Cluster, gang: GangDemand, levels: tuple[str, ...], below: int | None = None
) -> Preemption | None:
    """Return the least that must go for a gang to fit; None where it would not fit all the same.

    Only gangs below a priority go, if one is given.
    """
    best = cluster.emptied if below is None else cluster.at_least(below)
    if _placement(best, gang, levels) is None:
        return None
    absent = _Absent(cluster)
    try:
        absent.send_leaving()
        placement = _placement(cluster, gang, levels)
        if placement is not None:
            return Preemption(victims=(), pods=(), placement=placement)
        return _Making(absent, gang, levels).room(_candidates(cluster, gang.ref, below))
    finally:
        absent.recall_all()


def _candidates(cluster: Cluster, own: Ref, below: int | None) -> list[Ref]:
    """Return who may go, the cheapest first."""
    found = []
    for whole in cluster.wholes():
        dearness = _dearness(cluster.members(whole))
        if whole != own and (below is None or dearness[0] < below):
            found.append((dearness, whole))
    return [whole for _, whole in sorted(found)]


def _dearness(members: Iterable[Resident]) -> tuple[int, int, timedelta]:
    """Return by what gangs are spared: the highest priority, the most pods, the oldest."""
    priority, count, created = _LEAST_PRIORITY, 0, None
    for member in members:
        priority = max(priority, member.priority)
        count += 1
        if member.created is not None and (created is None or member.created < created):
            created = member.created
    return priority, count, _LATEST - (created or _LONG_AGO)


def _placement(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Placement | None:
    return placing.find(cluster, gang, levels, steps_max=STEPS_MAX)


class _Making:
    """Making room for one gang."""

    def __init__(self, absent: _Absent, gang: GangDemand, levels: tuple[str, ...]) -> None:
        self._absent = absent
        self._gang = gang
        self._levels = levels

    def room(self, wholes: Sequence[Ref]) -> Preemption | None:
        """Send away what must go, the cheapest first; then spare what can be, the dearest first."""
        found = self._cheapest(wholes)
        if found is None:
            return None
        gone, placement = found
        nodes = {binding.node for binding in placement.bindings}
        kept = []
        for whole in gone:
            if nodes.isdisjoint(self._absent.nodes(whole)):
                self._absent.recall(whole)
            else:
                kept.append(whole)
        needed: list[Ref] = []
        for number, whole in enumerate(reversed(kept)):
            self._absent.recall(whole)
            again = self._place() if number < SPARED_MAX else self._beside(placement)
            if again is None:
                self._absent.send(whole)
                needed.append(whole)
            else:
                placement = again
        pods = sorted(found.ref for whole in needed for found in self._absent.members(whole))
        final = self._place() or placement
        return Preemption(victims=tuple(sorted(needed)), pods=tuple(pods), placement=final)

    def _cheapest(self, wholes: Sequence[Ref]) -> tuple[Sequence[Ref], Placement] | None:
        """Send away the fewest of the first that make room; return them, and the place there is."""
        enough, few = 0, 0
        placement = None
        while placement is None and enough < len(wholes):
            few, enough = enough, min(len(wholes), max(FIRST_SENT, GROWTH * enough))
            for whole in wholes[few:enough]:
                self._absent.send(whole)
            placement = self._place()
        if placement is None:
            return None
        while enough - few > 1:
            middle = (few + enough) // 2
            for whole in wholes[middle:enough]:
                self._absent.recall(whole)
            found = self._place()
            if found is not None:
                placement, enough = found, middle
            else:
                for whole in wholes[middle:enough]:
                    self._absent.send(whole)
                few = middle
        return wholes[:enough], placement

    def _place(self) -> Placement | None:
        return _placement(self._absent.cluster, self._gang, self._levels)

    def _beside(self, placement: Placement) -> Placement | None:
        """Return a placement if it has room beside what is there now; None where it has not."""
        return placement if has_room(self._absent.cluster, self._gang, placement) else None


def has_room(cluster: Cluster, gang: GangDemand, placement: Placement) -> bool:
    """Whether the pods of a placement have room where it says, as things are now."""
    shapes = {pod.uid: pod.shape for group in gang.groups for pod in group.waiting}
    taken = []
    try:
        for binding in placement.bindings:
            shape, spot = shapes[binding.uid], cluster.spot(binding.node)
            if spot is None or not spot.capacity(shape):
                return False
            cluster.take(binding.node, shape, 1)
            taken.append((binding.node, shape))
        return True
    finally:
        for node, shape in taken:
            cluster.take(node, shape, -1)


class _Absent:
    """Residents sent away from a cluster for a while."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._leaving: list[tuple[str, Resident]] = []
        self._gone: dict[Ref, list[tuple[str, Resident]]] = {}

    def send_leaving(self) -> None:
        """Send away what is leaving anyhow."""
        self._leaving = [*self.cluster.leaving()]
        for _, resident in self._leaving:
            self.cluster.remove_resident(resident.uid)

    def send(self, whole: Ref) -> None:
        """Send away a gang."""
        self._gone[whole] = [*self.cluster.residents(whole)]
        for _, resident in self._gone[whole]:
            self.cluster.remove_resident(resident.uid)

    def recall(self, whole: Ref) -> None:
        """Call a gang back."""
        for node, resident in self._gone.pop(whole):
            self.cluster.put_resident(node, resident)

    def members(self, whole: Ref) -> list[Resident]:
        """Return the pods of a gang that was sent away."""
        return [resident for _, resident in self._gone[whole]]

    def nodes(self, whole: Ref) -> set[str]:
        """Return where a gang that was sent away is."""
        return {node for node, _ in self._gone[whole]}

    def recall_all(self) -> None:
        """Call back all that were sent away."""
        for whole in [*self._gone]:
            self.recall(whole)
        for node, resident in self._leaving:
            self.cluster.put_resident(node, resident)
        self._leaving = []
