"""Every small set, in a small world: it comes to be, stays at rest, and changes as it is asked to.

Laws: convergence in a bounded number of rounds; fixpoint (at rest nothing is written); order
blindness; no pod too many at any moment (2.6); stopped anywhere, the same end (7.1).
"""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, labels
from spinney.decisions.actions import Create, Decision
from spinney.meta.documents import Document, list_at, object_at, string_at, value_at
from spinney.meta.references import Ref
from tests.decisions.shapes import Clique, Group, Small, every_shape
from tests.decisions.worlds import LOOKS, Moved, World

SHAPES = list(every_shape())
GROUPED = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=2, min_available=2, group="g"),
        Clique(name="c", replicas=3, min_available=2),
    ),
    groups=(Group(name="g", replicas=3, min_available=1),),
)
TINY = Small(
    replicas=1,
    cliques=(
        Clique(name="a", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)
ROUNDS_MAX = 12
"""Within how many rounds of looks a set comes to rest between two changes of its pods."""


class Watched(World):
    """A world in which nobody may make a pod too many, at any moment."""

    def act(self, action: object) -> None:  # type: ignore[override]
        super().act(action)  # type: ignore[arg-type]
        if isinstance(action, Create) and action.document["kind"] == "Pod":
            self._check_pods(action.document)

    def _check_pods(self, pod: Document) -> None:
        name = string_at(pod, ["metadata", "labels", labels.PODCLIQUE])
        clique = self.at(groupkinds.CLIQUE, name)
        replicas = value_at(clique, ["spec", "replicas"])
        uid = string_at(clique, ["metadata", "uid"])
        there = [ref for ref in self.pods() if self._matches(ref, ("owner", uid))]
        assert isinstance(replicas, int)
        assert len(there) <= replicas, f"{name} has {len(there)} pods, wanted are {replicas}"


def living(shape: Small) -> Watched:
    world = Watched()
    world.apply(shape.document())
    world.live()
    return world


def content(world: World) -> dict[Ref, Document]:
    """Return what a world holds, without what differs between two ways to the same end."""
    return {ref: _bare(document) for ref, document in world.documents.items()}


def _bare(document: Document) -> Document:
    metadata = object_at(document, ["metadata"])
    kept = {key: metadata.get(key) for key in ("name", "labels", "annotations", "finalizers")}
    status = object_at(document, ["status"])
    told = [
        (string_at(each, ["type"]), string_at(each, ["status"]), string_at(each, ["reason"]))
        for each in list_at(status, ["conditions"])
    ]
    counts = {key: value for key, value in status.items() if isinstance(value, (int, str))}
    return {"metadata": kept, "spec": document.get("spec"), "status": {**counts, "told": told}}  # type: ignore[dict-item]


@pytest.mark.rule("2.1")
@pytest.mark.rule("2.6")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_set_comes_to_be_and_rests(shape: Small) -> None:
    world = living(shape)
    assert world.names(groupkinds.POD) == shape.pods()
    assert world.names(groupkinds.GANG) == shape.gangs()
    status = object_at(world.at(groupkinds.SET, "small"), ["status"])
    assert status["availableReplicas"] == status["replicas"] == shape.replicas
    assert status["updatedReplicas"] == shape.replicas
    for name in shape.gangs():
        assert string_at(world.at(groupkinds.GANG, name), ["status", "phase"]) == "Running"
    before = len(world.writes)
    assert world.settle() == 0
    assert len(world.writes) == before


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_looks_changes_nothing(seed: int) -> None:
    """Controllers work side by side: whoever looks first, the end is the same."""
    reference = content(living(GROUPED))
    chance = random.Random(seed)

    def shuffled(keys: list[Ref]) -> list[Ref]:
        return chance.sample(keys, len(keys))

    world = Watched()
    world.apply(GROUPED.document())
    for _ in range(ROUNDS_MAX):
        world.settle(order=shuffled)
        world.run_pods()
    assert content(world) == reference


def test_a_set_settles_within_bounded_rounds() -> None:
    world = Watched()
    world.apply(GROUPED.document())
    assert world.settle() <= ROUNDS_MAX
    world.run_pods()
    assert world.settle() <= ROUNDS_MAX


@pytest.mark.rule("7.1")
@given(data=st.data())
def test_controllers_stopped_anywhere_come_to_the_same_end(data: st.DataObject) -> None:
    """Each look is cut off after a drawn number of writes, again and again; then all goes on."""
    reference = content(living(TINY))
    world = Watched()
    world.apply(TINY.document())
    for _ in range(data.draw(st.integers(1, 12), label="cut looks")):
        keys = world.subjects()
        key = keys[data.draw(st.integers(0, len(keys) - 1), label="key")]
        decision = LOOKS[key.kind](world, key)
        assert decision is not None
        done = data.draw(st.integers(0, 3), label="writes before the cut")
        cut = Decision(actions=decision.actions[:done], intent=decision.intent)
        world.carry_out(key, cut)
        if data.draw(st.booleans(), label="pods run"):
            world.run_pods()
    world.live()
    assert content(world) == reference


@pytest.mark.rule("2.6")
@given(data=st.data())
def test_decisions_on_an_old_view_do_no_harm(data: st.DataObject) -> None:
    """Looks that were decided before others wrote are carried out after: no pod too many."""
    world = Watched()
    world.apply(TINY.document())
    late: list[tuple[Ref, Decision]] = []
    for _ in range(data.draw(st.integers(2, 25), label="steps")):
        keys = world.subjects()
        key = keys[data.draw(st.integers(0, len(keys) - 1), label="key")]
        decision = LOOKS[key.kind](world, key)
        assert decision is not None
        late.append((key, decision))
        if data.draw(st.booleans(), label="carry out now"):
            world.carry_out(key, decision)
        if late and data.draw(st.booleans(), label="carry out an old one"):
            at = data.draw(st.integers(0, len(late) - 1), label="which")
            key, old = late.pop(at)
            for action in old.actions:
                try:
                    world.act(action)
                except Moved:
                    break
        if data.draw(st.booleans(), label="pods run"):
            world.run_pods()
    world.live()
    assert world.names(groupkinds.POD) == TINY.pods()


# Scaling


@pytest.mark.rule("2.7")
@pytest.mark.parametrize("replicas", [0, 1, 3, 5])
def test_a_set_is_scaled(replicas: int) -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.SET, namespace="default", name="small")
    world.change(ref, ["spec", "replicas"], replicas)
    world.live()
    wanted = Small(replicas=replicas, cliques=GROUPED.cliques, groups=GROUPED.groups)
    assert world.names(groupkinds.POD) == wanted.pods()
    assert world.names(groupkinds.GANG) == wanted.gangs()
    assert len(world.names(groupkinds.SERVICE)) == replicas
    world.change(ref, ["spec", "replicas"], GROUPED.replicas)
    world.live()
    assert world.names(groupkinds.POD) == GROUPED.pods()


@pytest.mark.parametrize("replicas", [0, 1, 2, 5])
def test_a_group_is_scaled_and_takes_the_highest_copies(replicas: int) -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-1-g")
    world.change(ref, ["spec", "replicas"], replicas)
    world.live()
    copies = {
        string_at(world.documents[pod], ["metadata", "labels", labels.GROUP_REPLICA_INDEX])
        for pod in world.pods()
        if pod.name.startswith("small-1-g-")
    }
    assert copies == {str(index) for index in range(replicas)}
    scaled = [name for name in world.names(groupkinds.GANG) if name.startswith("small-1-g-")]
    assert len(scaled) == max(0, replicas - 1)
    status = object_at(world.documents[ref], ["status"])
    assert status["replicas"] == status["availableReplicas"] == replicas


def test_a_clique_is_scaled_out_and_in() -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    world.change(ref, ["spec", "replicas"], 5)
    world.live()
    pods = [name for name in world.names(groupkinds.POD) if name.startswith("small-0-c-")]
    assert pods == [f"small-0-c-{index}" for index in range(5)]
    world.change(ref, ["spec", "replicas"], 2)
    world.live()
    assert len([n for n in world.names(groupkinds.POD) if n.startswith("small-0-c-")]) == 2


def test_a_scale_in_takes_what_is_not_ready_before_what_is() -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    world.say(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0"), ready=False)
    world.change(ref, ["spec", "replicas"], 2)
    world.live()
    assert [name for name in world.names(groupkinds.POD) if name.startswith("small-0-c-")] == [
        "small-0-c-1",
        "small-0-c-2",
    ]


def test_a_scale_in_is_written_down_before_a_pod_is_deleted() -> None:
    """Two leaders for a moment: what the first chose is what the second finds chosen."""
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    world.change(ref, ["spec", "replicas"], 2)
    decision = LOOKS[groupkinds.CLIQUE](world, ref)
    assert decision is not None
    assert decision.intent is not None
    assert not decision.actions
    world.carry_out(ref, decision)
    chosen = list_at(world.documents[ref], ["status", "leavingPods"])
    assert len(chosen) == 1
    world.say(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0"), ready=False)
    world.live()
    assert chosen[0] not in world.names(groupkinds.POD)


# Losing things


@pytest.mark.rule("2.5")
def test_a_pod_that_is_deleted_comes_back_under_its_name() -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-1")
    before = string_at(world.documents[ref], ["metadata", "uid"])
    world.delete(ref)
    world.settle()
    assert string_at(world.documents[ref], ["metadata", "uid"]) == before
    world.live()
    assert string_at(world.documents[ref], ["metadata", "uid"]) != before
    assert world.names(groupkinds.POD) == GROUPED.pods()


@pytest.mark.parametrize(
    ("group_kind", "name"),
    [
        (groupkinds.CLIQUE, "small-0-c"),
        (groupkinds.CLIQUE, "small-1-g-0-b"),
        (groupkinds.SCALING_GROUP, "small-1-g"),
        (groupkinds.GANG, "small-0"),
        (groupkinds.GANG, "small-0-g-1"),
        (groupkinds.SERVICE, "small-1"),
        (groupkinds.SERVICE_ACCOUNT, "small"),
        (groupkinds.ROLE, "grove.io:pcs:small"),
    ],
)
def test_what_is_deleted_by_hand_is_made_again(group_kind: object, name: str) -> None:
    world = living(GROUPED)
    reference = set(content(world))
    world.delete(Ref(kind=group_kind, namespace="default", name=name))  # type: ignore[arg-type]
    world.live()
    assert set(content(world)) == reference


@pytest.mark.rule("2.2")
def test_a_gang_whose_cliques_were_replaced_begins_anew() -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.GANG, namespace="default", name="small-0")
    before = value_at(world.documents[ref], ["status", "incarnation"]) or 0
    assert isinstance(before, int)
    world.delete(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c"))
    world.end_pods()
    told: list[str] = []
    for _ in range(ROUNDS_MAX):
        for key in world.subjects():
            world.look(key)
            condition = list_at(world.documents[ref], ["status", "conditions"])[0]
            told.append(string_at(condition, ["status"]))
    assert "False" in told
    world.live()
    assert value_at(world.documents[ref], ["status", "incarnation"]) == before + 1
    assert string_at(world.documents[ref], ["status", "phase"]) == "Running"


@pytest.mark.parametrize("after", range(0, 60, 3))
def test_a_set_deleted_in_the_middle_of_its_creation_leaves_nothing(after: int) -> None:
    world = Watched()
    ref = world.apply(GROUPED.document())
    while len(world.writes) < after:
        if not any(world.look(key) for key in world.subjects() if len(world.writes) < after):
            world.run_pods()
            break
    world.delete(ref)
    for _ in range(ROUNDS_MAX):
        world.settle()
        world.end_pods()
    assert not world.documents


def test_an_ended_pod_is_replaced_after_a_while() -> None:
    world = living(GROUPED)
    ref = Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-1")
    world.say(ref, ready=False, phase="Failed")
    before = string_at(world.documents[ref], ["metadata", "uid"])
    key = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    decision = LOOKS[key.kind](world, key)
    assert decision is not None
    assert decision.wake_after == timedelta(seconds=11)
    world.wait(decision.wake_after)
    world.live()
    assert string_at(world.documents[ref], ["metadata", "uid"]) != before


# Gates


def _gated(world: World) -> set[str]:
    return {
        ref.name
        for ref in world.pods()
        if list_at(world.documents[ref], ["spec", "schedulingGates"])
    }


@pytest.mark.rule("2.2")
def test_no_gate_opens_before_the_whole_gang_is_there() -> None:
    """A look at a PodClique alone makes its pods, and not one is let go before all are made."""
    world = Watched()
    world.apply(GROUPED.document())
    for _ in range(200):
        for key in world.subjects():
            gang_whole = {
                ref.name
                for ref in world.documents
                if ref.kind == groupkinds.GANG
                and any(
                    string_at(each, ["type"]) == "Initialized"
                    and string_at(each, ["status"]) == "True"
                    for each in list_at(world.documents[ref], ["status", "conditions"])
                )
            }
            held = _gated(world)
            world.look(key)
            for name in held - _gated(world):
                pod = world.at(groupkinds.POD, name)
                assert string_at(pod, ["metadata", "labels", labels.PODGANG]) in gang_whole
        if not _gated(world) and world.names(groupkinds.POD):
            return
        world.run_pods()
    raise AssertionError("the gates never opened")


@pytest.mark.rule("2.2")
def test_a_scaled_gang_waits_for_its_base_gang() -> None:
    world = Watched()
    world.apply(GROUPED.document())
    world.settle()
    scaled = {name for name in GROUPED.pods() if "-g-1-" in name or "-g-2-" in name}
    assert _gated(world) == scaled
    world.run_pods()
    world.settle()
    assert not _gated(world)


# Names


@pytest.mark.rule("1.5")
def test_a_name_held_by_another_is_not_adopted_and_told_of() -> None:
    world = Watched()
    world.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "small-0-c-0", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "other"}]},
        }
    )
    world.apply(GROUPED.document())
    world.settle()
    world.run_pods()
    clique = world.at(groupkinds.CLIQUE, "small-0-c")
    told = {
        string_at(each, ["type"]): string_at(each, ["message"])
        for each in list_at(clique, ["status", "conditions"])
    }
    assert "small-0-c-0" in told["NameConflict"]
    assert any(event.reason == "NameConflict" for event in world.events)
    world.delete(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0"))
    world.end_pods()
    world.live()
    assert world.names(groupkinds.POD) == GROUPED.pods()
    clique = world.at(groupkinds.CLIQUE, "small-0-c")
    kinds = [string_at(each, ["type"]) for each in list_at(clique, ["status", "conditions"])]
    assert "NameConflict" not in kinds
