"""Preemption: whole gangs of lower priority, all that are needed and none besides.

Laws: with the victims gone the gang fits where it is said to; with any one of them kept it does
not; none is of its priority or a higher one; none of a higher priority goes where those of lower
ones are enough; where none is named, none would help; the cluster is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.placement import placing, preempting
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.machines import Machine, Resident
from spinney.decisions.placement.outcomes import Placement, Refusal
from spinney.meta.references import Ref
from tests.decisions.placement import small
from tests.decisions.placement.small import LEVELS

Occupied = tuple[tuple[Machine, ...], tuple[tuple[str, Resident], ...], GangDemand]


@st.composite
def occupied(draw: st.DrawFn) -> Occupied:
    """Machines full of gangs of several priorities, and a gang of priority 2."""
    machines = draw(small.machines(4, plain=True))
    names = [machine.name for machine in machines]
    residents = [
        (
            draw(st.sampled_from(names)),
            small.resident(
                f"x{at}",
                draw(small.shapes(plain=True)),
                priority=draw(st.integers(0, 3)),
                whole=draw(st.sampled_from(["", "one", "two", "three"])),
                age=draw(st.integers(0, 3)),
                leaving=draw(st.integers(0, 7)) == 0,
            ),
        )
        for at in range(draw(st.integers(1, 7)))
    ]
    asked = draw(small.gangs((), 3, plain=True, exact=True))
    gang = GangDemand(
        ref=asked.ref,
        uid=asked.uid,
        groups=asked.groups,
        pack=asked.pack,
        configs=asked.configs,
        priority=2,
    )
    return machines, tuple(residents), gang


def without(world: Occupied, gone: Iterable[Ref], *, leaving: bool = False) -> Cluster:
    machines, residents, _ = world
    away = {*gone}
    kept = [
        (node, found)
        for node, found in residents
        if found.whole not in away and (leaving or not found.is_leaving)
    ]
    return small.cluster(machines, kept)


def fits(cluster: Cluster, gang: GangDemand) -> bool:
    return isinstance(placing.place(cluster, gang, LEVELS), Placement)


def priority(world: Occupied, whole: Ref) -> int:
    return max(found.priority for _, found in world[1] if found.whole == whole)


@pytest.mark.law
@given(occupied())
def test_victims_are_enough_and_none_is_too_many(world: Occupied) -> None:
    machines, residents, gang = world
    cluster = small.cluster(machines, residents)
    found = preempting.victims(cluster, gang, LEVELS)
    lower = {
        resident.whole
        for _, resident in residents
        if not resident.is_leaving and priority(_staying(world), resident.whole) < gang.priority
    }
    if found is None:
        assert not residents or not lower or not fits(without(world, lower), gang)
        return
    assert {*found.victims} <= lower
    assert placing.place(without(world, found.victims), gang, LEVELS) == found.placement
    for spared in found.victims:
        assert not fits(without(world, {*found.victims} - {spared}), gang)
    staying = [resident for _, resident in residents if not resident.is_leaving]
    assert found.pods == tuple(
        sorted(resident.ref for resident in staying if resident.whole in found.victims)
    )


def _staying(world: Occupied) -> Occupied:
    return world[0], tuple(pair for pair in world[1] if not pair[1].is_leaving), world[2]


@pytest.mark.law
@given(occupied())
def test_no_gang_goes_where_less_important_ones_are_enough(world: Occupied) -> None:
    machines, residents, gang = world
    found = preempting.victims(small.cluster(machines, residents), gang, LEVELS)
    if found is None or not found.victims:
        return
    staying = _staying(world)
    highest = max(priority(staying, whole) for whole in found.victims)
    less = {
        resident.whole for _, resident in staying[1] if priority(staying, resident.whole) < highest
    }
    assert not fits(without(world, less), gang)


@pytest.mark.law
@given(occupied())
def test_the_cluster_is_left_as_it_was(world: Occupied) -> None:
    machines, residents, gang = world
    cluster = small.cluster(machines, residents)
    before = [*cluster.residents()], [dict(spot.free) for spot in cluster.spots()]
    first = preempting.victims(cluster, gang, LEVELS)
    after = [*cluster.residents()], [dict(spot.free) for spot in cluster.spots()]
    assert after[0] == before[0]
    for now, then in zip(after[1], before[1], strict=True):
        assert {key: now[key] for key in then} == then
    assert preempting.victims(cluster, gang, LEVELS) == first


def one_machine(*residents: Resident) -> Cluster:
    return small.cluster([small.machine("n", cpu=4)], [("n", found) for found in residents])


def asking(cpu: int, **more: object) -> GangDemand:
    part = small.group("g", [small.shape(cpu)], priority=5)
    return small.gang(part, priority=5, **more)  # type: ignore[arg-type]


def test_of_one_priority_the_gang_of_fewer_pods_goes() -> None:
    cluster = one_machine(
        small.resident("a", small.shape(2), whole="one"),
        small.resident("b", small.shape(1), whole="two"),
        small.resident("c", small.shape(1), whole="two"),
    )
    found = preempting.victims(cluster, asking(2), LEVELS)
    assert found is not None
    assert found.victims == (small.gang_ref("one"),)


def test_of_equals_the_younger_goes() -> None:
    cluster = one_machine(
        small.resident("a", small.shape(2), whole="old", age=1),
        small.resident("b", small.shape(2), whole="young", age=9),
    )
    found = preempting.victims(cluster, asking(2), LEVELS)
    assert found is not None
    assert found.victims == (small.gang_ref("young"),)


def test_a_gang_goes_with_all_its_pods_wherever_they_are() -> None:
    cluster = small.cluster(
        [small.machine("n", cpu=4), small.machine("m", cpu=1)],
        [
            ("n", small.resident("a", small.shape(4), whole="one")),
            ("m", small.resident("b", small.shape(1), whole="one")),
        ],
    )
    found = preempting.victims(cluster, asking(4), LEVELS)
    assert found is not None
    assert found.pods == (small.pod_ref("a"), small.pod_ref("b"))


def test_a_gang_with_one_important_pod_stays() -> None:
    cluster = one_machine(
        small.resident("a", small.shape(2), priority=1, whole="one"),
        small.resident("b", small.shape(2), priority=9, whole="one"),
    )
    assert preempting.victims(cluster, asking(2), LEVELS) is None


def test_nobody_goes_for_pods_that_never_preempt() -> None:
    waiting = small.pod("p", small.shape(2), 5, can_preempt=False)
    part = small.group("g", [])
    part = type(part)(name="g", min_replicas=1, waiting=(waiting,))
    cluster = one_machine(small.resident("a", small.shape(4)))
    gang = small.gang(part, priority=5)
    assert isinstance(placing.place(cluster, gang, LEVELS), Refusal)
    assert preempting.victims(cluster, gang, LEVELS) is None


def test_nobody_goes_where_those_leaving_make_room() -> None:
    cluster = one_machine(
        small.resident("a", small.shape(2)),
        small.resident("b", small.shape(2), leaving=True),
    )
    found = preempting.victims(cluster, asking(2), LEVELS)
    assert found is not None
    assert found.victims == ()
    assert found.placement.bindings[0].node == "n"
