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
from spinney.decisions.placement.demands import GangDemand, GroupDemand
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
