"""What people read where a gang has no place: which group, which nodes and why, what helps."""

from __future__ import annotations

import pytest

from spinney.api.core.node import Taint
from spinney.decisions.placement import placing
from spinney.decisions.placement.attraction import NodeRequirement, NodeTerm
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand, GroupDemand, Pack
from spinney.decisions.placement.machines import HOSTNAME
from spinney.decisions.placement.outcomes import SUMMARY_BYTES_MAX, Refusal
from spinney.decisions.placement.requesting import HostPort
from tests.decisions.placement import small
from tests.decisions.placement.small import GPU, LEVELS, RACK, ZONE

DISK = NodeTerm(requirements=(NodeRequirement(key="disk", operator="Exists"),))


def refusal(cluster: Cluster, gang: GangDemand) -> Refusal:
    outcome = placing.place(cluster, gang, LEVELS)
    assert isinstance(outcome, Refusal)
    return outcome


def one(cpu: int = 1, gpu: int = 0, count: int = 1, **more: object) -> GangDemand:
    pack = more.pop("pack", small.NO_PACK)
    assert isinstance(pack, Pack)
    return small.gang(small.group("decode", [small.shape(cpu, gpu, **more)] * count), pack=pack)


def test_nodes_are_counted_by_what_is_wrong_with_them() -> None:
    busy = [small.machine(f"b{at}", gpu=8) for at in range(3)]
    cordoned = [small.machine(f"c{at}", gpu=8, is_schedulable=False) for at in range(2)]
    cluster = small.cluster(
        [*busy, *cordoned, small.machine("d", is_ready=False)],
        [(f"b{at}", small.resident(f"x{at}", small.shape(0, 4 + at))) for at in range(3)],
    )
    found = refusal(cluster, one(gpu=8, count=2))
    assert found.summary == (
        "0/6 nodes fit pods of decode: 3 have too little nvidia.com/gpu (want 8, most free 4), "
        "2 are cordoned, 1 is not ready. It would fit if cordoned nodes were uncordoned."
    )
    assert [(removal.reason, removal.nodes) for removal in found.removals] == [
        ("Insufficient", 3),
        ("Cordoned", 2),
        ("NotReady", 1),
    ]
    assert (found.group, found.pods_wanted, found.pods_possible, found.nodes) == ("decode", 2, 0, 6)
    assert found.is_proven


def test_nodes_that_are_missing_are_counted() -> None:
    cluster = small.cluster([small.machine("a", gpu=8), small.machine("b", gpu=8)])
    assert refusal(cluster, one(gpu=4, count=9)).summary == (
        "There is room for 4 of 9 pods of decode: of 2 nodes 2 fit one. "
        "It would fit with 3 more nodes with 8 nvidia.com/gpu free."
    )


def test_the_domain_that_comes_closest_is_named() -> None:
    machines = [
        small.machine(f"{zone}{at}", gpu=8, labels={ZONE: zone})
        for zone, count in (("a", 1), ("b", 2))
        for at in range(count)
    ]
    found = refusal(
        small.cluster([*machines, small.machine("c", gpu=8)]),
        one(gpu=8, count=3, pack=Pack(required_key=ZONE)),
    )
    assert (found.key, found.domain, found.pods_possible) == (ZONE, "b", 2)
    assert found.summary == (
        "There is room for 2 of 3 pods of decode in zone=b, which comes closest: of 4 nodes 3 fit "
        "one, 1 is without the label zone. It would fit with 1 more node with 8 nvidia.com/gpu "
        "free in zone=b."
    )


def test_pods_that_must_be_on_one_node_need_one_node() -> None:
    cluster = small.cluster([small.machine("a", 4), small.machine("b", 3)])
    found = refusal(cluster, one(2, count=3, pack=Pack(required_key=HOSTNAME)))
    assert found.summary.endswith("It would fit with a node with 6m cpu free.")


def test_groups_that_fit_one_by_one_are_told_so() -> None:
    groups = [small.group("a", [small.shape(3)]), small.group("b", [small.shape(2)])]
    found = refusal(small.cluster([small.machine("n", 4)]), small.gang(*groups))
    assert found.group == "b"
    assert found.summary == (
        "There is room for 0 of 1 pods of b beside the rest of its gang: of 1 node 1 fits one. "
        "It would fit with 1 more node with 2m cpu free."
    )


@pytest.mark.parametrize(
    ("machine", "shape", "reason", "words"),
    [
        ({"is_ready": False}, {}, "NotReady", "if the nodes that are not ready came back"),
        ({"is_schedulable": False}, {}, "Cordoned", "if cordoned nodes were uncordoned"),
        ({}, {"node_selector": (("disk", "ssd"),)}, "NodeSelector", "without its node selector"),
        ({}, {"required_terms": (DISK,)}, "Affinity", "without its required node affinity"),
        (
            {"taints": (Taint(key="k", effect="NoExecute"),)},
            {},
            "Taint",
            "if it tolerated the taints",
        ),
    ],
)
def test_what_alone_keeps_pods_off_is_what_would_help(
    machine: dict[str, object], shape: dict[str, object], reason: str, words: str
) -> None:
    found = refusal(small.cluster([small.machine("n", **machine)]), one(**shape))  # type: ignore[arg-type]
    assert [removal.reason for removal in found.removals] == [reason]
    assert words in found.advice


def test_a_node_with_two_faults_is_helped_by_no_single_remedy() -> None:
    cluster = small.cluster([small.machine("n", is_ready=False, is_schedulable=False)])
    found = refusal(cluster, one())
    assert [(removal.reason, removal.nodes) for removal in found.removals] == [("NotReady", 1)]
    assert found.advice == "with 1 more node with 1m cpu"


def test_ports_and_places_for_pods_are_told_as_what_they_are() -> None:
    port = (HostPort(port=80),)
    there = [("n", small.resident("x", small.shape(0, host_ports=port)))]
    found = refusal(small.cluster([small.machine("n")], there), one(host_ports=port))
    assert [removal.reason for removal in found.removals] == ["HostPort"]
    found = refusal(small.cluster([small.machine("n", pods=1)], there), one())
    assert found.removals[0].text == "1 has as many pods as may run there"


def test_a_cluster_without_nodes_needs_some() -> None:
    shape = {"node_selector": (("disk", "ssd"),)}
    found = refusal(Cluster(), one(2, 8, count=4, **shape))
    assert found.summary == (
        "0/0 nodes fit pods of decode. It would fit with 4 more nodes with 8 nvidia.com/gpu, "
        "2m cpu and label disk=ssd."
    )


def test_pods_that_are_not_there_yet_are_waited_for() -> None:
    gated = small.pod("decode-1", small.shape(), is_gated=True)
    there = small.pod("decode-0", small.shape())
    group = GroupDemand(name="decode", min_replicas=3, waiting=(there, gated))
    found = refusal(small.cluster([small.machine("n")]), small.gang(group))
    assert found.summary == (
        "decode needs 3 more pods on nodes, and 1 can be placed, 1 behind a scheduling gate. "
        "The gang is placed when they are all there."
    )


def test_a_gang_torn_apart_says_where_it_is() -> None:
    machines = [small.machine(f"n{at}", labels={RACK: f"r{at}"}) for at in range(3)]
    group = small.group("decode", [small.shape()], bound=["n0", "n1"])
    found = refusal(small.cluster(machines), small.gang(group, pack=Pack(required_key=RACK)))
    assert found.summary == (
        "All pods of gang must share one rack, and those that run are in r0, r1 already. "
        "Its pods must be replaced for it to be whole again."
    )


def test_a_summary_is_never_longer_than_a_status_may_say() -> None:
    long = "ä" * 400
    selector = tuple((f"{long}{at}", long) for at in range(4))
    group = small.group(long, [small.shape(node_selector=selector)])
    found = refusal(small.cluster([small.machine("n", cpu=0)]), small.gang(group))
    assert len(found.summary.encode()) <= SUMMARY_BYTES_MAX
    assert found.summary.endswith(" …")


def test_words_are_the_same_whatever_the_gang_is_called_or_came_before() -> None:
    """Looked at again, after others were looked at, nothing in a status would change."""
    cluster = small.cluster([small.machine(f"n{at}", gpu=2) for at in range(4)])
    first = refusal(cluster, one(gpu=4))
    refusal(cluster, one(gpu=3, count=2))
    placing.place(cluster, one(gpu=1), LEVELS)
    assert refusal(cluster, one(gpu=4)) == first
    assert GPU in first.summary
