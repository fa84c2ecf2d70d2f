"""Coherent updates: within a set replica, all that changes moves together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.decisions import pods
from spinney.decisions.actions import Action, Delete
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.references import Ref
from tests import laws
from tests.decisions.shapes import Clique, Group, Small
from tests.decisions.test_updates import SET, change, condition, images, progress
from tests.decisions.worlds import World

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=1, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=5, min_available=2),
        Clique(name="d", replicas=1, min_available=1),
    ),
    groups=(Group(name="g", replicas=3, min_available=1),),
)


class Watched(World):
    """A world that writes down which step each unit was taken in, and how far the others were."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[int, str]] = []
        self.faults: list[str] = []
        self.units: set[tuple[str, str, str]] = set()

    def act(self, action: Action) -> None:
        if isinstance(action, Delete) and action.target in self.documents:
            self._look(action.target, self.documents[action.target])
        super().act(action)

    def _look(self, ref: Ref, document: Document) -> None:
        if ref.kind not in (groupkinds.POD, groupkinds.CLIQUE):
            return
        if string_at(document, ["metadata", "deletionTimestamp"]):
            return
        carried = object_at(document, ["metadata", "labels"])
        chosen = object_at(progress(self), ["currentlyUpdating"])
        step, steps = chosen.get("step", 0), chosen.get("steps", 0)
        assert isinstance(step, int)
        assert isinstance(steps, int)
        self.taken.append((step, ref.name))
        if not is_served_by(self, ref, document):
            return
        index = str(carried[labels.SET_REPLICA_INDEX])
        if not step:
            self.faults.append(f"{ref.name} goes before anybody knows what changes")
        component = "g" if "-g-" in ref.name else "c"
        self.units.add((index, component, ref.name.split("-")[3]))
        gone = sum(unit[:2] == (index, component) for unit in self.units)
        whole = {"c": 5, "g": 3}[component]
        if gone > whole * step // max(1, steps):
            self.faults.append(f"{ref.name} goes in step {step}, as number {gone}")
        for name, whole, new in self.shares(index):
            if new < whole * (step - 1) // max(1, steps):
                self.faults.append(f"{ref.name} goes in step {step}, {name} has {new} new ones")

    def shares(self, index: str) -> list[tuple[str, int, int]]:
        """Return how many of each changed component of a replica are new and ready."""
        found = []
        ready = {
            ref.name
            for ref in self.pods()
            if (pod := self.get(Pod, ref.namespace, ref.name)) is not None and pods.is_ready(pod)
        }
        new = {name for name, image in images(self).items() if image == "2" and name in ready}
        found.append(("c", 5, sum(name.startswith(f"small-{index}-c-") for name in new)))
        copies = [
            copy
            for copy in range(3)
            if {f"small-{index}-g-{copy}-a-0", f"small-{index}-g-{copy}-b-0"} <= new
        ]
        found.append(("g", 3, len(copies)))
        return found


def is_served_by(world: World, ref: Ref, document: Document) -> bool:
    """Whether what goes serves."""
    if ref.kind == groupkinds.POD:
        pod = world.get(Pod, ref.namespace, ref.name)
        return pod is not None and pods.is_ready(pod)
    clique = world.get(PodClique, ref.namespace, ref.name)
    return clique is not None and clique.status.ready_replicas > 0 and bool(document)


def coherent(shape: Small = SHAPE) -> Watched:
    world = Watched()
    world.apply(shape.document())
    world.live()
    world.change(SET, ["spec", "updateStrategy"], {"type": "Coherent"})
    world.settle()
    return world


def test_what_changes_moves_together_and_the_rest_stays() -> None:
    world = coherent()
    kept = {ref: world.documents[ref] for ref in world.pods() if "-d-" in ref.name}
    change(world, 2, "a", "b", "c")
    world.live()
    assert not world.faults, world.faults
    assert condition(world)[1] == "UpdateComplete"
    assert {name[-3:-2] for name, image in images(world).items() if image == "1"} == {"d"}
    assert {ref: world.documents[ref] for ref in kept} == kept
    first = [(step, name) for step, name in world.taken if name.startswith("small-1-")]
    assert first == [
        (1, "small-1-c-0"),
        (1, "small-1-c-1"),
        (1, "small-1-g-0-a"),
        (1, "small-1-g-0-b"),
        (2, "small-1-c-2"),
        (2, "small-1-c-3"),
        (2, "small-1-c-4"),
        (2, "small-1-g-1-a"),
        (2, "small-1-g-1-b"),
        (2, "small-1-g-2-a"),
        (2, "small-1-g-2-b"),
    ]


def test_one_that_needs_all_it_has_makes_everything_move_at_once() -> None:
    world = coherent()
    change(world, 2)
    world.live()
    assert {step for step, _ in world.taken} == {1}, "d has one pod, and needs it"
    assert condition(world)[1] == "UpdateComplete"
    assert set(images(world).values()) == {"2"}


@pytest.mark.rule("3.7")
def test_scaling_and_a_change_of_mind_are_possible_in_a_coherent_update() -> None:
    world = coherent()
    change(world, 2, "a", "b", "c")
    while "2" not in images(world).values():
        world.settle()
        world.end_pods()
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-1-c")
    group = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-1-g")
    world.change(clique, ["spec", "replicas"], 7)
    world.change(group, ["spec", "replicas"], 2)
    world.live()
    assert condition(world)[1] == "UpdateComplete"
    assert {name[-3:-2] for name, image in images(world).items() if image == "1"} == {"d"}
    change(world, 3, "a")
    while "3" not in images(world).values():
        world.settle()
        world.end_pods()
    change(world, 3, "c")
    world.live()
    assert condition(world)[1] == "UpdateComplete"
    found = images(world)
    assert {image for name, image in found.items() if name[-3] in "ac"} == {"3"}


@pytest.mark.rule("3.10")
def test_the_type_may_change_in_mid_update() -> None:
    world = coherent()
    change(world, 2, "a", "b", "c")
    while "2" not in images(world).values():
        world.settle()
        world.end_pods()
    world.change(SET, ["spec", "updateStrategy"], {"type": "RollingRecreate"})
    world.settle()
    assert object_at(progress(world), ["currentlyUpdating"])["steps"] == 0
    world.change(SET, ["spec", "updateStrategy"], {"type": "Coherent"})
    world.live()
    assert condition(world)[1] == "UpdateComplete"


@pytest.mark.law
@laws.examples(4)
@given(st.data(), st.integers(0, 40))
def test_lock_step_is_kept_whatever_happens_meanwhile(data: st.DataObject, count: int) -> None:
    world = coherent()
    change(world, 2, "a", "b", "c")
    for _ in range(count):
        world.look(data.draw(st.sampled_from(world.subjects())))
        if data.draw(st.integers(0, 4)) == 0:
            world.end_pods()
        if data.draw(st.integers(0, 4)) == 0:
            world.run_pods()
    world.live()
    assert not world.faults, world.faults
    assert condition(world)[1] == "UpdateComplete"
