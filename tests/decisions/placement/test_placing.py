"""Where gangs go, by example: what people expect to see, beyond what the laws say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from spinney.api.core.node import Taint
from spinney.decisions.placement import placing
from spinney.decisions.placement.attraction import NodeRequirement, NodeTerm, Preference
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import (
    GangDemand,
    Pack,
    PackConfig,
    PodShape,
)
from spinney.decisions.placement.machines import HOSTNAME, Machine
from spinney.decisions.placement.outcomes import Home, Placement, Refusal
from spinney.decisions.placement.requesting import HostPort
from tests.decisions.placement import small
from tests.decisions.placement.small import LEVELS, RACK, ZONE


def nodes(outcome: Placement | Refusal) -> dict[str, int]:
    """Return how many pods go where; fails where none do."""
    assert isinstance(outcome, Placement), outcome.summary
    return dict(sorted(Counter(binding.node for binding in outcome.bindings).items()))


def pods(count: int, of: PodShape | None = None, pack: Pack = small.NO_PACK) -> GangDemand:
    return small.gang(small.group("g", [of or small.shape()] * count), pack=pack)


def racks(*sizes: Sequence[int]) -> list[Machine]:
    """Return machines of so much processor time, rack by rack, two racks a zone."""
    return [
        small.machine(f"n{rack}{at}", cpu, labels={ZONE: f"z{rack // 2}", RACK: f"r{rack}"})
        for rack, machines in enumerate(sizes)
        for at, cpu in enumerate(machines)
    ]


def filled(machines: Iterable[Machine], **taken: int) -> Cluster:
    there = [(node, small.resident(f"x-{node}", small.shape(cpu))) for node, cpu in taken.items()]
    return small.cluster(machines, there)


def test_the_tightest_machine_that_takes_all_is_taken() -> None:
    cluster = small.cluster(small.machine(f"n{cpu}", cpu) for cpu in (8, 3, 5, 2))
    assert nodes(placing.place(cluster, pods(3), LEVELS)) == {"n3": 3}


def test_the_fewest_machines_are_taken_where_none_takes_all() -> None:
    cluster = small.cluster(small.machine(f"n{cpu}", cpu) for cpu in (2, 3, 4, 5))
    assert nodes(placing.place(cluster, pods(7), LEVELS)) == {"n2": 2, "n5": 5}


def test_of_equal_machines_the_first_by_name_is_taken() -> None:
    cluster = small.cluster(small.machine(name) for name in "cab")
    assert nodes(placing.place(cluster, pods(1), LEVELS)) == {"a": 1}


def test_machines_with_gpus_are_left_to_those_who_need_them() -> None:
    cluster = small.cluster([small.machine("a", 2, gpu=8), small.machine("b", 9)])
    assert nodes(placing.place(cluster, pods(2), LEVELS)) == {"b": 2}
    assert nodes(placing.place(cluster, pods(2, small.shape(1, 1)), LEVELS)) == {"a": 2}


def test_liked_machines_come_first() -> None:
    liked = NodeTerm(requirements=(NodeRequirement(key="disk", operator="Exists"),))
    shape = small.shape(preferences=(Preference(weight=1, term=liked),))
    cluster = small.cluster([small.machine("a", 2), small.machine("b", 9, labels={"disk": "ssd"})])
    assert nodes(placing.place(cluster, pods(2, shape), LEVELS)) == {"b": 2}


def test_machines_that_would_rather_not_come_last() -> None:
    busy = (Taint(key="busy", effect="PreferNoSchedule"),)
    cluster = small.cluster([small.machine("a", 2, taints=busy), small.machine("b", 9)])
    assert nodes(placing.place(cluster, pods(2), LEVELS)) == {"b": 2}
    assert nodes(placing.place(cluster, pods(10), LEVELS)) == {"a": 1, "b": 9}


def test_two_pods_with_one_host_port_go_apart() -> None:
    shape = small.shape(host_ports=(HostPort(port=80),))
    cluster = small.cluster([small.machine("a"), small.machine("b")])
    assert nodes(placing.place(cluster, pods(2, shape), LEVELS)) == {"a": 1, "b": 1}


def test_the_tightest_rack_that_takes_all_is_taken() -> None:
    cluster = small.cluster(racks([9, 9], [2, 2], [4, 4]))
    outcome = placing.place(cluster, pods(4, pack=Pack(required_key=RACK)), LEVELS)
    assert nodes(outcome) == {"n10": 2, "n11": 2}
    assert isinstance(outcome, Placement)
    assert outcome.homes == (Home(scope="", key=RACK, value="r1"),)


def test_racks_of_one_name_in_two_zones_are_two() -> None:
    machines = [small.machine(f"n{zone}", 2, labels={ZONE: zone, RACK: "r"}) for zone in "ab"]
    assert isinstance(
        placing.place(small.cluster(machines), pods(4, pack=Pack(required_key=RACK)), LEVELS),
        Refusal,
    )


def test_the_fewest_racks_are_taken_where_one_was_preferred_and_none_is_enough() -> None:
    """Alone by machines, the four largest would be one in each rack."""
    cluster = small.cluster(racks([5, 1], [4, 4], [5, 1], [5, 1]))
    outcome = placing.place(cluster, pods(10, pack=Pack(preferred_key=RACK)), LEVELS)
    assert nodes(outcome) == {"n00": 2, "n10": 4, "n11": 4}
    assert isinstance(outcome, Placement)
    assert outcome.score == 0


def test_each_level_keeps_its_own() -> None:
    """The gang in a zone, each copy in a rack, each clique on a machine."""
    own = Pack(required_key=HOSTNAME)
    groups = [
        small.group(f"{copy}-{part}", [small.shape(2)] * 2, pack=own)
        for copy in "ab"
        for part in "xy"
    ]
    configs = tuple(
        PackConfig(name=copy, group_names=(f"{copy}-x", f"{copy}-y"), pack=Pack(required_key=RACK))
        for copy in "ab"
    )
    gang = small.gang(*groups, pack=Pack(required_key=ZONE), configs=configs)
    cluster = small.cluster(racks([3], [4, 4], [4, 4], [4, 4]))
    outcome = placing.place(cluster, gang, LEVELS)
    assert nodes(outcome) == {"n20": 2, "n21": 2, "n30": 2, "n31": 2}
    assert isinstance(outcome, Placement)
    assert [home for home in outcome.homes if home.key == ZONE] == [
        Home(scope="", key=ZONE, value="z1")
    ]


def test_a_pod_that_is_replaced_goes_where_its_gang_is() -> None:
    group = small.group("g", [small.shape()], bound=["n20"])
    cluster = filled(racks([9], [2], [4, 1]), n20=4)
    gang = small.gang(group, pack=Pack(required_key=RACK))
    assert nodes(placing.place(cluster, gang, LEVELS)) == {"n21": 1}


def test_a_pod_that_is_replaced_stays_close_where_that_was_preferred() -> None:
    group = small.group("g", [small.shape()], bound=["n20"])
    cluster = filled(racks([1], [1], [4, 9]), n20=4)
    gang = small.gang(group, pack=Pack(preferred_key=RACK))
    assert nodes(placing.place(cluster, gang, LEVELS)) == {"n21": 1}


def test_what_a_pod_was_bound_to_and_is_gone_binds_nobody() -> None:
    group = small.group("g", [small.shape()], bound=["gone"])
    gang = small.gang(group, pack=Pack(required_key=RACK))
    assert nodes(placing.place(small.cluster(racks([2])), gang, LEVELS)) == {"n00": 1}


def test_all_go_where_all_fit_though_fewer_would_fit_tighter() -> None:
    group = small.group("g", [small.shape()] * 4, least=2)
    gang = small.gang(group, pack=Pack(required_key=RACK))
    outcome = placing.place(small.cluster(racks([2], [5])), gang, LEVELS)
    assert nodes(outcome) == {"n10": 4}


def test_what_is_needed_stays_close_and_the_rest_goes_where_it_may() -> None:
    group = small.group("g", [small.shape()] * 5, least=2)
    gang = small.gang(group, pack=Pack(required_key=ZONE, preferred_key=RACK))
    outcome = placing.place(small.cluster(racks([2], [1], [1])), gang, LEVELS)
    assert nodes(outcome) == {"n00": 2, "n10": 1}
    assert isinstance(outcome, Placement)
    assert [ref.name for ref in outcome.left] == ["g-3", "g-4"]
    assert outcome.shortfall is not None
    assert outcome.shortfall.summary == (
        "There is room for 0 of 2 surplus pods of g in zone=z0, which comes closest: of 3 nodes 1 "
        "fits one, 2 have too little cpu (want 1m, most free 0). It would fit with 1 more node "
        "with 2m cpu free in zone=z0."
    )


CROSSED = (small.group("a", [small.shape(4)]), small.group("b", [small.shape(3)] * 3))
"""Greed puts the large pod on the smaller machine, where it is tightest."""


def test_what_greed_misses_is_found() -> None:
    cluster = small.cluster([small.machine("m", 6), small.machine("n", 8)])
    outcome = placing.place(cluster, small.gang(*CROSSED), LEVELS)
    assert nodes(outcome) == {"m": 2, "n": 2}


@pytest.mark.parametrize("count", [10, 1000])
def test_equal_machines_cost_no_search(count: int) -> None:
    """Every rack has room for each shape, and one unit too little for all; all racks are alike."""
    machines = [small.machine(f"n{at:04}", 5, labels={RACK: f"r{at // 5}"}) for at in range(count)]
    groups = [
        small.group("a", [small.shape(3)] * 5),
        small.group("b", [small.shape(2)] * 5),
        small.group("c", [small.shape(1)]),
    ]
    gang = small.gang(*groups, pack=Pack(required_key=RACK))
    outcome = placing.place(small.cluster(machines), gang, LEVELS)
    assert isinstance(outcome, Refusal)
    assert outcome.is_proven


def test_a_search_that_is_given_up_says_so() -> None:
    cluster = small.cluster([small.machine("m", 6), small.machine("n", 8)])
    outcome = placing.place(cluster, small.gang(*CROSSED), LEVELS, steps_max=2)
    assert isinstance(outcome, Refusal)
    assert not outcome.is_proven
    assert "given up at its limit" in outcome.summary


def test_a_gang_with_nothing_to_place_has_its_place() -> None:
    gang = small.gang(small.group("g", [], bound=["n00"]), pack=Pack(preferred_key=RACK))
    outcome = placing.place(small.cluster(racks([2])), gang, LEVELS)
    assert isinstance(outcome, Placement)
    assert (outcome.bindings, outcome.score) == ((), 1000)


def test_bindings_are_told_by_pod_with_its_uid() -> None:
    outcome = placing.place(small.cluster(racks([2])), pods(2), LEVELS)
    assert isinstance(outcome, Placement)
    assert [(each.pod.name, each.uid) for each in outcome.bindings] == [
        ("g-0", "uid-g-0"),
        ("g-1", "uid-g-1"),
    ]
