"""Rooms: what is kept for gangs that wait, so that nobody behind them takes it.

A *nomination* is the place of a gang for which others are going. A *reservation* is where the first
gang that has no place will go as room comes free; who comes behind it is placed beside it only.
Both stand in the snapshot like pods that have their nodes, so others are placed around them, and a
machine that changes keeps them. Both are in memory only: after a restart the same gangs come to the
same, more important ones first.
"""

from __future__ import annotations

from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.machines import Resident
from spinney.decisions.placement.outcomes import Placement
from spinney.decisions.placement.queueing import Reservation
from spinney.meta.references import Ref
from spinney.scheduler.line import Turn


class Rooms:
    """What is kept for gangs that wait."""

    def __init__(self, cluster: Cluster) -> None:
        """Keep it in a snapshot."""
        self._cluster = cluster
        self._nominated: dict[Ref, tuple[str, ...]] = {}
        self._reserved: tuple[str, ...] = ()
        self._last: Reservation | None = None
        self.reserved_for: Turn | None = None
        """The gang that room is reserved for, by its turn."""

    def nominate(self, demand: GangDemand, placement: Placement) -> None:
        """Keep for a gang the place it will have once others are gone."""
        self.withdraw(demand.ref)
        asked = {pod.uid: pod for group in demand.groups for pod in group.waiting}
        kept: list[str] = []
        for binding in placement.bindings:
            pod = asked[binding.uid]
            uid = f"nominated/{binding.uid}"
            self._cluster.put_resident(
                binding.node,
                Resident(
                    ref=binding.pod,
                    uid=uid,
                    requests=pod.shape.requests,
                    host_ports=pod.shape.host_ports,
                    priority=demand.priority,
                    gang=demand.ref,
                    created=demand.created,
                ),
            )
            kept.append(uid)
        self._nominated[demand.ref] = tuple(kept)

    def withdraw(self, whole: Ref) -> bool:
        """Keep nothing for a gang any more; returns whether something was kept."""
        had_any = self.has(whole)
        for uid in self._nominated.pop(whole, ()):
            self._cluster.remove_resident(uid)
        if self.reserved_for is not None and self.reserved_for.whole == whole:
            self._withdraw_reservation()
        return had_any

    def has(self, whole: Ref) -> bool:
        """Whether something is kept for a gang."""
        reserved = self.reserved_for
        return whole in self._nominated or (reserved is not None and reserved.whole == whole)

    def reserve(self, turn: Turn, reservation: Reservation, priority: int) -> None:
        """Keep room for the first gang that has no place."""
        self._withdraw_reservation()
        self._last = reservation
        kept: list[str] = []
        for index, hold in enumerate(reservation.holds):
            uid = f"reserved/{index}"
            self._cluster.put_resident(
                hold.node,
                Resident(
                    ref=turn.whole,
                    uid=uid,
                    requests=hold.requests,
                    host_ports=hold.host_ports,
                    priority=priority,
                    gang=turn.whole,
                ),
            )
            kept.append(uid)
        self._reserved = tuple(kept)
        self.reserved_for = turn

    def last_reservation(self, whole: Ref) -> Reservation | None:
        """Return the reservation a gang had when it last had one, if nobody had one since."""
        return self._last if self._last is not None and self._last.gang == whole else None

    def _withdraw_reservation(self) -> None:
        for uid in self._reserved:
            self._cluster.remove_resident(uid)
        self.reserved_for, self._reserved = None, ()
