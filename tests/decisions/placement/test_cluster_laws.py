"""The snapshot: after any changes it is what one made anew would be.

Law: whatever was put, replaced, moved and removed, and whatever was asked in between, every answer
is that of a cluster that has just been made of what is there now.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from spinney.decisions.placement import fitness, placing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import Pack
from spinney.decisions.placement.machines import HOSTNAME, Machine, Resident
from tests.decisions.placement import small
from tests.decisions.placement.small import LEVELS, RACK, ZONE

NAMES = ("n0", "n1", "n2")
SHAPES = (small.shape(1), small.shape(2, 1), small.shape(0, node_selector=((ZONE, "a"),)))
PATHS = ((), (ZONE,), LEVELS, (*LEVELS, HOSTNAME))


class Changes(RuleBasedStateMachine):
    """A cluster and what it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.machines: dict[str, Machine] = {}
        self.residents: dict[str, tuple[str, Resident]] = {}

    @rule(
        name=st.sampled_from(NAMES),
        cpu=st.integers(0, 4),
        gpu=st.integers(0, 2),
        zone=st.sampled_from("ab"),
        rack=st.sampled_from(["", "r", "s"]),
        schedulable=st.booleans(),
    )
    def put_machine(
        self, name: str, cpu: int, gpu: int, zone: str, rack: str, schedulable: bool
    ) -> None:
        labels = {ZONE: zone} | ({RACK: rack} if rack else {})
        made = small.machine(name, cpu, gpu, labels, is_schedulable=schedulable)
        self.cluster.put_machine(made)
        self.machines[name] = made

    @rule(name=st.sampled_from(NAMES))
    def remove_machine(self, name: str) -> None:
        self.cluster.remove_machine(name)
        self.machines.pop(name, None)

    @rule(
        at=st.integers(0, 4),
        node=st.sampled_from(NAMES),
        shape=st.sampled_from(SHAPES),
        priority=st.integers(0, 2),
        leaving=st.booleans(),
        whole=st.sampled_from(["", "one", "two"]),
    )
    def put_resident(
        self, at: int, node: str, shape: object, priority: int, leaving: bool, whole: str
    ) -> None:
        made = small.resident(f"x{at}", shape, priority, whole, leaving=leaving)  # type: ignore[arg-type]
        self.cluster.put_resident(node, made)
        self.residents[made.uid] = (node, made)

    @rule(at=st.integers(0, 4))
    def remove_resident(self, at: int) -> None:
        self.cluster.remove_resident(f"uid-x{at}")
        self.residents.pop(f"uid-x{at}", None)

    @rule(shape=st.sampled_from(SHAPES), path=st.sampled_from(PATHS))
    def ask(self, shape: object, path: fitness.Path) -> None:
        """Have a pool and a tally made, to be kept up to date from here on."""
        self.cluster.pool(shape, path)  # type: ignore[arg-type]
        self.cluster.tally(shape, path)  # type: ignore[arg-type]
        self.cluster.emptied.pool(shape, path)  # type: ignore[arg-type]

    def teardown(self) -> None:
        """It is as if made anew."""
        fresh = small.cluster(self.machines.values(), self.residents.values())
        for one, other in (
            (self.cluster, fresh),
            (self.cluster.emptied, small.cluster(self.machines.values())),
        ):
            assert one.machine_count == other.machine_count
            assert [*one.machines] == [*other.machines]
            assert [*one.residents()] == [*other.residents()]
            assert [*one.leaving()] == [*other.leaving()]
            assert one.lowest_priority == other.lowest_priority
            assert {*one.wholes()} == {*other.wholes()}
            for whole in other.wholes():
                assert [*one.residents(whole)] == [*other.residents(whole)]
            for shape in SHAPES:
                for path in PATHS:
                    assert pool(one, shape, path) == pool(other, shape, path)
                    assert tally(one, shape, path) == tally(other, shape, path)


def pool(cluster: Cluster, shape: object, path: fitness.Path) -> object:
    found = cluster.pool(shape, path)  # type: ignore[arg-type]
    rooms = {
        domain: sorted(
            (tier, name, shelf.number(name))
            for tier, shelf in room.shelves.items()
            for name in shelf.names()
        )
        for domain, room in found.rooms.items()
        if room.total
    }
    return rooms, {domain: found.totals.number(domain) for domain in rooms}, [*found.domains(1)]


def tally(cluster: Cluster, shape: object, path: fitness.Path) -> object:
    found = cluster.tally(shape, path)  # type: ignore[arg-type]
    most = {name: shelf.largest for name, shelf in found.free.items() if shelf.largest}
    return +found.reasons, +found.shortages, most, +found.capacities, found.empty_capacities.largest


Changes.TestCase.settings = settings(settings.default, stateful_step_count=25)
TestChanges = pytest.mark.law(Changes.TestCase)


def test_a_log_that_was_cut_is_no_loss() -> None:
    """A pool that was not asked for long is made anew from what there is."""
    cluster = small.cluster([small.machine("n", cpu=9)])
    gang = small.gang(small.group("g", [small.shape(4)]), pack=Pack(required_key=HOSTNAME))
    first = placing.place(cluster, gang, LEVELS)
    for _ in range(700):
        cluster.put_resident("n", small.resident("x", small.shape(7)))
        cluster.remove_resident("uid-x")
    assert placing.place(cluster, gang, LEVELS) == first
    cluster.put_resident("n", small.resident("x", small.shape(7)))
    assert placing.place(cluster, gang, LEVELS) != first
