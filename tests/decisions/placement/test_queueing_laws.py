"""Queueing: turns, reservations, and what may go ahead meanwhile.

Laws: a big gang gets its place as soon as those are gone who were there when its turn came, however
many small ones come after it; nothing behind it takes room that is kept for it; a gang that could
never fit keeps nobody waiting; looking changes nothing, and the order of what is given neither.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.placement import machines, placing, queueing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand, Pack
from spinney.decisions.placement.machines import Resident
from spinney.decisions.placement.outcomes import Placement, Refusal
from tests.decisions.placement import small
from tests.decisions.placement.small import LEVELS, RACK

LIFETIME_MAX = 3


def alone(name: str, cpu: int, priority: int = 0, age: int = 0) -> GangDemand:
    part = small.group(f"{name}-g", [small.shape(cpu)], priority=priority)
    return small.gang(part, name=name, priority=priority, age=age)


@pytest.mark.law
@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=4),
    st.lists(st.lists(st.tuples(st.integers(1, 2), st.integers(1, LIFETIME_MAX)), max_size=4)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(["", RACK]),
)
def test_a_big_gang_is_not_starved_by_small_ones(
    sizes: list[int],
    arrivals: list[list[tuple[int, int]]],
    pod_count: int,
    cpu: int,
    key: str,
) -> None:
    """Small jobs come and go all the time; none of them runs longer than three ticks."""
    cluster = small.cluster(
        small.machine(f"n{at}", cpu=size, labels={RACK: "rs"[at % 2]})
        for at, size in enumerate(sizes)
    )
    big = small.gang(
        small.group("big", [small.shape(cpu)] * pod_count),
        name="big",
        pack=Pack(required_key=key),
    )
    could = isinstance(placing.place(cluster, big, LEVELS), Placement)
    waiting: dict[str, tuple[GangDemand, int]] = {}
    ends: dict[str, int] = {}
    kept: queueing.Reservation | None = None
    busy = [[(1, LIFETIME_MAX)] * 9, *arrivals]
    for tick in range(len(busy) + LIFETIME_MAX + 2):
        for uid, end in [*ends.items()]:
            if end <= tick:
                cluster.remove_resident(uid)
                del ends[uid]
        for at, (size, life) in enumerate(busy[tick] if tick < len(busy) else ()):
            gang = alone(f"s{tick}-{at}", size, age=tick)
            waiting[gang.ref.name] = (gang, life)
        queue = [gang for gang, _ in waiting.values()]
        # The big one is there from the second tick on, when others run already.
        found = queueing.look(cluster, [big, *queue] if tick else queue, LEVELS, kept)
        kept = found.reservation
        for outcome in found.outcomes:
            if not isinstance(outcome, Placement):
                continue
            if outcome.gang == big.ref:
                assert tick <= LIFETIME_MAX
                return
            gang, life = waiting.pop(outcome.gang.name)
            small.taken(cluster, gang, outcome)
            for binding in outcome.bindings:
                ends[binding.uid] = tick + life
        if tick and tick <= LIFETIME_MAX:
            assert (kept is not None and kept.gang == big.ref) == could
    assert not could


@pytest.mark.law
@given(st.data())
def test_nothing_behind_takes_what_is_kept(data: st.DataObject) -> None:
    made = data.draw(small.machines(4, plain=True))
    names = [machine.name for machine in made]
    residents = [
        (
            data.draw(st.sampled_from(names)),
            small.resident(f"x{at}", small.shape(data.draw(st.integers(1, 3)))),
        )
        for at in range(data.draw(st.integers(0, 5)))
    ]
    first = data.draw(small.gangs((), 3, plain=True, exact=True))
    others = [
        alone(f"s{at}", data.draw(st.integers(1, 3)), age=1 + at)
        for at in range(data.draw(st.integers(1, 4)))
    ]
    cluster = small.cluster(made, residents)
    before = free(cluster)
    found = queueing.look(cluster, [*others, first], LEVELS)
    assert free(cluster) == before
    shuffled = [*others, first]
    random.Random(1).shuffle(shuffled)
    assert queueing.look(cluster, shuffled, LEVELS) == found
    if found.reservation is None or found.reservation.gang != first.ref:
        return
    held: dict[str, int] = {}
    for hold in found.reservation.holds:
        held[hold.node] = dict(hold.requests).get("cpu", 0)
    for gang, outcome in zip(queueing.order([*others, first]), found.outcomes, strict=True):
        if isinstance(outcome, Placement):
            small.taken(cluster, gang, outcome)
    for name, amount in held.items():
        assert free(cluster)[name] >= min(before[name], amount)


def free(cluster: Cluster) -> dict[str, int]:
    return {spot.name: spot.free.get("cpu", 0) for spot in cluster.spots()}


def test_turns_are_by_priority_then_by_who_runs_then_by_age() -> None:
    running = small.gang(small.group("g", [small.shape()], bound=["n"]), name="running", age=9)
    gangs = [
        alone("young", 1, age=5),
        alone("old", 1, age=1),
        running,
        alone("important", 1, priority=7, age=8),
    ]
    names = [gang.ref.name for gang in queueing.order(gangs)]
    assert names == ["important", "running", "old", "young"]


def full(*residents: Resident) -> Cluster:
    return small.cluster(
        [small.machine("n", cpu=4), small.machine("m", cpu=2)],
        [("n", found) for found in residents],
    )


def test_small_ones_go_where_nothing_is_kept() -> None:
    cluster = full(small.resident("x", small.shape(2)))
    gangs = [alone("big", 4), alone("a", 2, age=1), alone("b", 2, age=2)]
    found = queueing.look(cluster, gangs, LEVELS)
    big, first, second = found.outcomes
    assert isinstance(big, Refusal)
    assert isinstance(first, Placement)
    assert first.bindings[0].node == "m"
    assert isinstance(second, Refusal)
    assert found.reservation is not None
    assert {hold.node for hold in found.reservation.holds} == {"n"}


def test_nothing_is_kept_for_a_gang_that_could_never_fit() -> None:
    cluster = full(small.resident("x", small.shape(2)))
    found = queueing.look(cluster, [alone("huge", 9), alone("a", 2, age=1)], LEVELS)
    assert found.reservation is None
    assert isinstance(found.outcomes[1], Placement)
    assert found.outcomes[1].bindings[0].node == "m"


def test_a_reservation_stays_where_it_was() -> None:
    """Another machine comes to be as near; to move there would be to wait anew."""
    cluster = full(small.resident("x", small.shape(2)))
    big = alone("big", 4)
    first = queueing.look(cluster, [big], LEVELS)
    cluster.put_machine(small.machine("a", cpu=4))
    cluster.put_resident("a", small.resident("y", small.shape(1), age=9))
    again = queueing.look(cluster, [big], LEVELS, first.reservation)
    assert again.reservation == first.reservation
    assert queueing.look(cluster, [big], LEVELS).reservation != first.reservation


@pytest.mark.parametrize(
    "change", [{"is_schedulable": False}, {"is_ready": False}, {"allocatable": {"cpu": 3}}]
)
def test_a_reservation_moves_where_its_machine_will_not_do(change: dict[str, object]) -> None:
    cluster = full(small.resident("x", small.shape(2)))
    big = alone("big", 4)
    first = queueing.look(cluster, [big], LEVELS)
    cluster.put_machine(small.machine("a", cpu=4))
    cluster.put_resident("a", small.resident("y", small.shape(1), age=9))
    old = small.machine("n", cpu=4)
    changed = {"name": "n", "labels": old.labels, "allocatable": old.allocatable, **change}
    cluster.put_machine(machines.Machine(**changed))  # type: ignore[arg-type]
    again = queueing.look(cluster, [big], LEVELS, first.reservation)
    assert again.reservation is not None
    assert {hold.node for hold in again.reservation.holds} == {"a"}


def test_a_more_important_gang_takes_the_reservation_over() -> None:
    cluster = full(small.resident("x", small.shape(2)))
    first = queueing.look(cluster, [alone("big", 4)], LEVELS)
    gangs = [alone("big", 4), alone("bigger", 3, priority=1, age=5)]
    found = queueing.look(cluster, gangs, LEVELS, first.reservation)
    assert found.reservation is not None
    assert found.reservation.gang.name == "bigger"
