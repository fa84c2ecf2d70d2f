"""Queueing: whose turn it is, and what is kept free for who waits longest.

Gangs take turns by priority; in one priority those that run and want to be whole again go first,
then who waits longest. The first gang that does not fit, and could if others left, gets a
reservation: room on certain machines, as far as it is free and as it becomes free. Gangs behind it
may go anywhere else, so they never delay it; what it waits for is only that those leave who were
there before. Nothing is reserved for a gang that could never fit, so it holds up nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from spinney.decisions.placement import placing, preempting
from spinney.decisions.placement.amounts import Amounts
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand, PodShape
from spinney.decisions.placement.outcomes import Placement, Refusal
from spinney.decisions.placement.requesting import HostPort
from spinney.meta.records import Record
from spinney.meta.references import Ref

_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


class Hold(Record, order=True):
    """Room on a machine that is kept for pods of a gang."""

    node: str
    requests: Amounts
    """What they ask for together."""

    host_ports: tuple[HostPort, ...] = ()


class Reservation(Record):
    """What is kept free, or will be as it becomes free, for the first gang that does not fit."""

    gang: Ref
    uid: str
    asked: tuple[tuple[PodShape, int], ...]
    """How many pods of which shapes it is for."""

    holds: tuple[Hold, ...]


class Round(Record):
    """What a look at the whole queue gives: outcomes in the order of turns."""

    outcomes: tuple[Placement | Refusal, ...] = ()
    reservation: Reservation | None = None


def order(gangs: Iterable[GangDemand]) -> tuple[GangDemand, ...]:
    """Return gangs in the order of their turns."""
    return tuple(sorted(gangs, key=_turn))


def _turn(gang: GangDemand) -> tuple[int, bool, datetime, Ref]:
    return -gang.priority, not gang.is_running, gang.created or _LONG_AGO, gang.ref


def look(
    cluster: Cluster,
    gangs: Iterable[GangDemand],
    levels: tuple[str, ...],
    before: Reservation | None = None,
) -> Round:
    """Return what becomes of each waiting gang, in the order of turns.

    `before` is the reservation of the last look. The cluster is left as it was.
    """
    outcomes: list[Placement | Refusal] = []
    reserved: Reservation | None = None
    taken: list[Hold] = []
    try:
        for gang in order(gangs):
            outcome = placing.place(cluster, gang, levels)
            outcomes.append(outcome)
            if isinstance(outcome, Placement):
                holds = _holds(gang, outcome)
            elif reserved is None:
                reserved = reservation(cluster, gang, levels, before)
                holds = reserved.holds if reserved is not None else ()
            else:
                holds = ()
            hold(cluster, holds)
            taken += holds
    finally:
        release(cluster, taken)
    return Round(outcomes=tuple(outcomes), reservation=reserved)


def hold(cluster: Cluster, holds: Sequence[Hold]) -> None:
    """Keep room on machines; for those behind it is as if it were taken."""
    for found in holds:
        cluster.take(found.node, _shape(found), 1)


def release(cluster: Cluster, holds: Sequence[Hold]) -> None:
    """Give back the room that was kept."""
    for found in holds:
        cluster.take(found.node, _shape(found), -1)


def _shape(found: Hold) -> PodShape:
    return PodShape(requests=found.requests, host_ports=found.host_ports)


def reservation(
    cluster: Cluster,
    gang: GangDemand,
    levels: tuple[str, ...],
    before: Reservation | None = None,
) -> Reservation | None:
    """Return where a refused gang will go as room becomes free; None where it could never.

    It goes where the least must leave. The reservation it has had stays, as long as it could be
    met: to move it would be to wait anew.
    """
    if _is_kept(cluster, gang, levels, before):
        return before
    made = preempting.room_made(cluster, gang, levels, lambda _: True)
    if made is None:
        return None
    holds = _holds(gang, made.placement)
    return Reservation(gang=gang.ref, uid=gang.uid, asked=_asked(gang), holds=holds)


def _holds(gang: GangDemand, placement: Placement) -> tuple[Hold, ...]:
    shapes = {pod.uid: pod.shape for group in gang.groups for pod in group.waiting}
    amounts: dict[str, Counter[str]] = {}
    ports: dict[str, list[HostPort]] = {}
    for binding in placement.bindings:
        shape = shapes[binding.uid]
        asked = amounts.setdefault(binding.node, Counter())
        for name, amount in shape.requests:
            asked[name] += amount
        ports.setdefault(binding.node, []).extend(shape.host_ports)
    return tuple(
        Hold(
            node=node,
            requests=tuple(sorted(asked.items())),
            host_ports=tuple(sorted(ports[node])),
        )
        for node, asked in sorted(amounts.items())
    )


def _asked(gang: GangDemand) -> tuple[tuple[PodShape, int], ...]:
    counts = Counter(pod.shape for group in gang.groups for pod in group.waiting)
    return tuple(sorted(counts.items()))


def _is_kept(
    cluster: Cluster, gang: GangDemand, levels: tuple[str, ...], before: Reservation | None
) -> bool:
    """Whether a reservation still is one for all that a gang asks, on machines that will do."""
    if before is None or before.uid != gang.uid or before.asked != _asked(gang):
        return False
    alone = Cluster()
    held = {found.node: found.requests for found in before.holds}
    bound = {pod.node for group in gang.groups for pod in group.bound}
    for node in sorted({*held, *bound}):
        spot = cluster.spot(node)
        machine = spot.machine if spot is not None else None
        if machine is None:
            if node in held:
                return False
            continue
        has = machine.allocatable
        if any(has.get(name, 0) < amount for name, amount in held.get(node, ())):
            return False
        alone.put_machine(machine)
    return isinstance(placing.place(alone, gang, levels), Placement)
