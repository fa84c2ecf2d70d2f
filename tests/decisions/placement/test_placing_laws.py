"""Placing keeps its word in every small world; judged by brute force, which shares no code with it.

Laws: a gang is placed if and only if there is a way; what is placed is all that is needed, over no
machine's capacity and within all constraints; no way meets more preferences; a node more takes no
place away; the order of what is given does not matter; the cluster is left as it was.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.placement import placing
from spinney.decisions.placement.demands import GangDemand, GroupDemand, Pack
from spinney.decisions.placement.machines import Machine, Resident
from spinney.decisions.placement.outcomes import Placement, Refusal
from tests.decisions.placement import brute, small
from tests.decisions.placement.small import LEVELS

World = tuple[tuple[Machine, ...], tuple[tuple[str, Resident], ...], GangDemand]


def assigned(placement: Placement) -> dict[str, str]:
    return {binding.uid: binding.node for binding in placement.bindings}


@pytest.mark.law
@given(small.worlds())
def test_a_gang_is_placed_if_and_only_if_there_is_a_way(world: World) -> None:
    machines, residents, gang = world
    by_name = {machine.name: machine for machine in machines}
    way = next(brute.assignments(gang, by_name, residents, LEVELS), None)
    outcome = placing.place(small.cluster(machines, residents), gang, LEVELS)
    if isinstance(outcome, Placement):
        assert brute.holds(gang, by_name, residents, assigned(outcome), LEVELS)
        assert outcome.score == brute.score(gang, by_name, assigned(outcome), LEVELS)
    else:
        assert way is None
        assert outcome.is_proven


@pytest.mark.law
@given(small.worlds(exact=True))
def test_as_many_preferences_are_met_as_can_be(world: World) -> None:
    """So it is never worse than any greedy way, or any other."""
    machines, residents, gang = world
    by_name = {machine.name: machine for machine in machines}
    ways = brute.assignments(gang, by_name, residents, LEVELS)
    best = max((brute.score(gang, by_name, way, LEVELS) for way in ways), default=None)
    outcome = placing.place(small.cluster(machines, residents), gang, LEVELS)
    if best is None:
        assert isinstance(outcome, Refusal)
    else:
        assert isinstance(outcome, Placement)
        assert outcome.score == best


@pytest.mark.law
@given(small.worlds(), st.data())
def test_a_node_more_takes_no_place_away(world: World, data: st.DataObject) -> None:
    machines, residents, gang = world
    made = small.cluster(machines, residents)
    before = placing.place(made, gang, LEVELS)
    more = data.draw(small.machines(most=1))[0]
    made.put_machine(
        Machine(
            name="another",
            labels={**more.labels, "kubernetes.io/hostname": "another"},
            allocatable=more.allocatable,
        )
    )
    after = placing.place(made, gang, LEVELS)
    if isinstance(before, Placement):
        assert isinstance(after, Placement)


@pytest.mark.law
@given(small.worlds(), st.randoms(use_true_random=False))
def test_order_does_not_matter(world: World, chance: random.Random) -> None:
    machines, residents, gang = world
    first = placing.place(small.cluster(machines, residents), gang, LEVELS)
    shuffled_machines, shuffled_residents = [*machines], [*residents]
    chance.shuffle(shuffled_machines)
    chance.shuffle(shuffled_residents)
    second = placing.place(
        small.cluster(shuffled_machines, shuffled_residents), _shuffled(gang, chance), LEVELS
    )
    assert second == first


def _shuffled(gang: GangDemand, chance: random.Random) -> GangDemand:
    groups = []
    for group in gang.groups:
        waiting, bound = [*group.waiting], [*group.bound]
        chance.shuffle(waiting)
        chance.shuffle(bound)
        groups.append(
            GroupDemand(
                name=group.name,
                min_replicas=group.min_replicas,
                waiting=tuple(waiting),
                bound=tuple(bound),
                pack=group.pack,
            )
        )
    configs = [*gang.configs]
    chance.shuffle(groups)
    chance.shuffle(configs)
    return GangDemand(
        ref=gang.ref,
        uid=gang.uid,
        groups=tuple(groups),
        pack=gang.pack,
        configs=tuple(configs),
        priority=gang.priority,
        created=gang.created,
    )


@pytest.mark.law
@given(small.worlds())
def test_the_cluster_is_left_as_it_was(world: World) -> None:
    """The same question gives the same answer, and every amount is what it was."""
    machines, residents, gang = world
    made = small.cluster(machines, residents)
    before = [(spot.name, dict(spot.free), [*spot.ports]) for spot in made.spots()]
    first = placing.place(made, gang, LEVELS)
    after = [
        (spot.name, {key: spot.free[key] for key in free}, [*spot.ports])
        for spot, (_, free, _) in zip(made.spots(), before, strict=True)
    ]
    assert after == before
    assert placing.place(made, gang, LEVELS) == first


@pytest.mark.law
@given(small.worlds(most=6, plain=True))
def test_surplus_goes_wherever_one_more_pod_may(world: World) -> None:
    """No pod is left that could simply be added to what was placed."""
    machines, residents, gang = world
    by_name = {machine.name: machine for machine in machines}
    outcome = placing.place(small.cluster(machines, residents), gang, LEVELS)
    if not isinstance(outcome, Placement):
        return
    placed = assigned(outcome)
    left = [pod for group in gang.groups for pod in group.waiting if pod.uid not in placed]
    assert sorted(pod.ref for pod in left) == [*outcome.left]
    assert (outcome.shortfall is not None) == bool(left)
    for pod in left:
        for node in by_name:
            more = {**placed, pod.uid: node}
            assert not brute.holds(gang, by_name, residents, more, LEVELS)


# Beyond brute force


@st.composite
def halls(draw: st.DrawFn) -> World:
    """Thirty machines of four makes in six racks, partly full, and a gang of several shapes."""
    makes = [(draw(st.integers(2, 12)), draw(st.sampled_from([0, 4, 8]))) for _ in range(4)]
    machines = []
    residents = []
    for at in range(30):
        cpu, gpu = makes[draw(st.integers(0, 3))]
        labels = {"zone": f"z{at // 15}", "rack": f"r{at // 5}"}
        machines.append(small.machine(f"n{at:02}", cpu, gpu, labels))
        used = draw(st.integers(0, cpu))
        if used:
            residents.append((f"n{at:02}", small.resident(f"x{at}", small.shape(used))))
    key = draw(st.sampled_from(["", "zone", "rack"]))
    groups = [
        small.group(
            f"g{at}",
            [small.shape(draw(st.integers(1, 6)), draw(st.sampled_from([0, 0, 1, 4])))]
            * draw(st.integers(1, 6)),
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    return tuple(machines), tuple(residents), small.gang(*groups, pack=Pack(required_key=key))


def first_fit(world: World) -> bool:
    """Whether the plain greedy way finds a place: large pods first, on the first machine."""
    machines, residents, gang = world
    key = gang.pack.required_key
    pods = sorted(
        (dict(pod.shape.requests) for group in gang.groups for pod in group.waiting),
        key=lambda asked: (-asked.get(small.GPU, 0), -asked.get("cpu", 0)),
    )
    for value in sorted({machine.labels.get(key, "") for machine in machines}):
        inside = [machine for machine in machines if machine.labels.get(key, "") == value]
        free = {machine.name: dict(machine.allocatable) for machine in inside}
        for node, found in residents:
            for name, amount in found.requests if node in free else ():
                free[node][name] -= amount
        for asked in pods:
            for left in free.values():
                if all(left.get(name, 0) >= amount for name, amount in asked.items()):
                    for name, amount in asked.items():
                        left[name] -= amount
                    break
            else:
                break
        else:
            return True
    return False


@pytest.mark.law
@given(halls())
def test_a_larger_gang_is_placed_wherever_a_plain_way_finds_a_place(world: World) -> None:
    """And then rightly: over no capacity, within its domain, all of it."""
    machines, residents, gang = world
    by_name = {machine.name: machine for machine in machines}
    outcome = placing.place(small.cluster(machines, residents), gang, LEVELS)
    if isinstance(outcome, Placement):
        assert brute.holds(gang, by_name, residents, assigned(outcome), LEVELS)
    else:
        assert not first_fit(world)
