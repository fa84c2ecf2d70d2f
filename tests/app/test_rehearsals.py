"""Plans: what is rehearsed is what happens."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from spinney.api import groupkinds, kinds, labels
from spinney.api.kinds import KINDS
from spinney.app.rehearsing import plans
from spinney.app.rehearsing.availability import Level
from spinney.app.rehearsing.plans import Plan
from spinney.app.rehearsing.rehearsal import Rehearsal
from spinney.meta.documents import Document, Json, list_at, object_at, string_at, with_value
from spinney.meta.references import Ref
from spinney.ports import Change
from tests.controllers.living import Life, live
from tests.decisions.shapes import Clique, Group, Small

SHAPE = Small(
    replicas=3,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=3, min_available=2),
        Clique(name="d", replicas=1, min_available=1),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)
SET = Ref(kind=groupkinds.SET, namespace="default", name="small")
MINUTE = timedelta(minutes=1)


def changed(document: Document, *cliques: str) -> Document:
    """Return a set with another image in some of its cliques."""
    told: list[Json] = []
    for clique in list_at(document, ["spec", "template", "cliques"]):
        text = json.dumps(clique)
        if not cliques or json.loads(text)["name"] in cliques:
            text = text.replace("main:1", "main:2")
        told.append(json.loads(text))
    return with_value(document, ["spec", "template", "cliques"], told)


def everything(life: Life) -> list[Document]:
    return [
        stored.document()
        for kind in KINDS
        if kind not in (groupkinds.EVENT, groupkinds.LEASE)
        for stored in life.store.list(kind)
    ]


class Deletions:
    """Writes down from the log alone what is taken away, in order."""

    def __init__(self, life: Life) -> None:
        self.seen: list[tuple[str, str]] = []
        self._uids: set[str] = set()
        life.store.attach(None, life.store.version, self)

    def deliver(self, events: object) -> None:
        for event in events:  # type: ignore[attr-defined]
            document = event.stored.document()
            kind = event.stored.ref.kind
            carried = object_at(document, ["metadata", "labels"])
            is_going = event.change is Change.DELETED or string_at(
                document, ["metadata", "deletionTimestamp"]
            )
            is_single = kind == groupkinds.POD and labels.SCALING_GROUP not in carried
            if not is_going or not (is_single or kind == groupkinds.CLIQUE):
                continue
            uid = string_at(document, ["metadata", "uid"])
            if uid not in self._uids:
                self._uids.add(uid)
                component = carried.get(labels.SCALING_GROUP) or carried[labels.PODCLIQUE]
                self.seen.append((str(component), event.stored.ref.name))

    def cut(self) -> None:
        raise AssertionError("deletions were missed")


def by_component(found: list[tuple[str, str]]) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for component, name in found:
        told.setdefault(component, []).append(name)
    return told


def replicas(found: list[tuple[str, str]]) -> list[str]:
    """Return the set replicas in the order in which something of them was taken."""
    order = [name.split("-")[1] for _, name in found]
    return [each for index, each in enumerate(order) if index == 0 or order[index - 1] != each]


def taken(plan: Plan) -> list[tuple[str, str]]:
    return [(step.component, step.subject) for step in plan.steps if step.sort != "replica"]


def is_complete(life: Life) -> bool:
    status = object_at(life.document(groupkinds.SET, "small"), ["status"])
    progress = object_at(status, ["rollingUpdateProgress"])
    replicas_ = object_at(life.document(groupkinds.SET, "small"), ["spec"])["replicas"]
    return bool(progress.get("updateEndedAt")) and status.get("availableReplicas") == replicas_


@pytest.mark.rule("3.1")
@pytest.mark.rule("3.3")
@pytest.mark.parametrize(
    ("cliques", "strategy"),
    [
        ((), {}),
        (("c",), {}),
        (("a",), {}),
        (("b", "d"), {}),
        (("c",), {"rollingRecreate": {"maxUnavailable": 2}}),
        ((), {"type": "OnDelete"}),
        ((), {"paused": True}),
        (("a", "b", "c"), {"type": "Coherent"}),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_plan_is_what_happens(cliques: tuple[str, ...], strategy: Document, seed: int) -> None:
    async def story(life: Life) -> None:
        first = with_value(SHAPE.document(), ["spec", "updateStrategy"], strategy)
        async with life.running() as manager:
            await life.apply(first)
            await life.until(lambda: life.is_available("small", SHAPE.replicas), MINUTE)
            await life.until(lambda: life.names(groupkinds.POD) == SHAPE.pods(), MINUTE)
            await life.nodes.wait_quiet()
            await manager.settle()
            there = everything(life)
            stored = life.document(groupkinds.SET, "small")
            planned = plans.plan(there, changed(stored, *cliques), life.clock.now())
            assert plans.plan(there, changed(stored, *cliques), life.clock.now()) == planned
            deletions = Deletions(life)
            await life.apply(changed(first, *cliques))
            if strategy.get("paused"):
                await life.rest()
            else:
                await life.until(lambda: is_complete(life), 5 * MINUTE)
            assert by_component(taken(planned)) == by_component(deletions.seen)
            assert replicas(taken(planned)) == replicas(deletions.seen)
            rolls = not strategy.get("paused") and strategy.get("type") != "OnDelete"
            assert bool(taken(planned)) == rolls
            assert planned.is_complete == (not strategy.get("paused"))

    live(story, seed)


START = datetime(2026, 1, 1, tzinfo=UTC)
ONE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=1, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=3, min_available=2),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)


def asking(document: Document, gpus: int, *cliques: str) -> Document:
    """Return a set whose pods ask for GPUs."""
    told: list[Json] = []
    for clique in list_at(document, ["spec", "template", "cliques"]):
        entry = object_at(clique, [])
        if not cliques or entry["name"] in cliques:
            (container,) = list_at(entry, ["spec", "podSpec", "containers"])
            asks: Json = {"limits": {"nvidia.com/gpu": str(gpus)}}
            main = {**object_at(container, []), "resources": asks}
            entry = with_value(entry, ["spec", "podSpec", "containers"], [main])
        told.append(entry)
    return with_value(document, ["spec", "template", "cliques"], told)


def node(name: str, gpus: int) -> Document:
    room: Document = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def world(document: Document, *nodes: Document) -> list[Document]:
    """Return the objects of a set that runs on some nodes, else on any."""
    kind = KINDS[groupkinds.SET]
    admitted, faults = kinds.admit(kind, document)
    assert not faults
    made = Rehearsal(nodes, START)
    made.change(plans.stored(None, admitted))
    assert made.run(START + MINUTE)
    return [*made.objects.documents()]


def the_set(there: list[Document]) -> Document:
    return next(each for each in there if each["kind"] == "PodCliqueSet")


def plan_of(there: list[Document], document: Document) -> Plan:
    return plans.plan(there, document, START + MINUTE)


def test_a_plan_tells_what_rolls_what_does_not_and_why() -> None:
    there = world(ONE.document())
    was = the_set(there)
    new = with_value(changed(was, "a"), ["spec", "template", "terminationDelay"], "1h")
    plan = plan_of(there, new)
    told = {roll.clique: (roll.is_replaced, roll.why) for roll in plan.rolls}
    assert told == {
        "a": (True, "its pod template changes"),
        "b": (True, "copies of group g are replaced whole, and a changes"),
        "c": (False, "its pod template stays as it is"),
    }
    (change,) = plan.rolls[0].changes
    assert change.path == "spec.podSpec.containers[main].image"
    assert [each.path for each in plan.other_changes] == ["template.terminationDelay"]
    assert {step.component for step in plan.steps if step.sort == "copy"} == {
        "small-0-g",
        "small-1-g",
    }
    assert [step.replica for step in plan.steps if step.sort == "replica"] == [1, 0]
    assert plan.is_complete


def test_a_change_that_replaces_nothing_says_so() -> None:
    there = world(ONE.document())
    new = with_value(the_set(there), ["spec", "template", "terminationDelay"], "1h")
    plan = plan_of(there, new)
    assert (plan.steps, plan.pods_away_most, plan.is_complete) == ((), 0, True)
    assert not any(roll.is_replaced for roll in plan.rolls)
    assert plan_of(there, the_set(there)).other_changes == ()


def test_a_plan_tells_how_low_each_level_comes_and_what_is_away_at_once() -> None:
    there = world(asking(ONE.document(), 4), node("one", 100))
    plan = plan_of(there, changed(the_set(there)))
    lowest = {level.name: (level.before, level.lowest, level.needed) for level in plan.levels}
    assert lowest["small"] == (2, 2, 0)
    assert lowest["small-0-c"] == (3, 2, 2)
    assert lowest["small-1-g"] == (2, 1, 1)
    assert plan.pods_away_most == 3, "one pod of c, and a copy of g, which has two"
    assert plan.resources_away_most == {"nvidia.com/gpu": 12}


def test_a_replica_that_needs_all_its_pods_is_told_to_be_away() -> None:
    shape = Small(replicas=2, cliques=(Clique(name="c", replicas=2, min_available=2),), groups=())
    there = world(shape.document())
    plan = plan_of(there, changed(the_set(there)))
    assert next(iter(plan.levels)) == Level(sort="set", name="small", needed=0, before=2, lowest=1)


@pytest.mark.rule("3.9")
def test_what_finds_no_place_on_the_nodes_is_told_to_block() -> None:
    shape = Small(replicas=1, cliques=(Clique(name="c", replicas=2, min_available=1),), groups=())
    there = world(asking(shape.document(), 4), node("one", 8))
    fits = plan_of(there, changed(the_set(there)))
    assert (fits.is_complete, len(fits.steps)) == (True, 3)
    plan = plan_of(there, asking(the_set(there), 9))
    assert not plan.is_complete
    assert any("nvidia.com/gpu" in text for text in plan.blocked)
    assert any(text.startswith("ResourcesUnavailable: ") for text in plan.blocked)
    assert [step.subject for step in plan.steps if step.sort == "pod"] == ["small-0-c-0"]
    assert plan.are_nodes_known
    assert not plan_of(world(shape.document()), changed(shape.document())).are_nodes_known


def test_a_set_that_is_new_takes_nothing_and_is_told_whether_it_fits() -> None:
    document = the_set(world(asking(ONE.document(), 4)))
    bare = {key: value for key, value in document.items() if key != "status"}
    plan = plan_of([node("one", 100)], bare)
    assert (plan.is_new, plan.steps, plan.pods_made, plan.is_complete) == (True, (), 14, True)
    assert any("nvidia.com/gpu" in text for text in plan_of([node("one", 8)], bare).blocked)


def test_a_plan_changes_nothing_of_what_it_was_given() -> None:
    there = world(ONE.document())
    before = json.dumps(there)
    plan_of(there, changed(the_set(there)))
    assert json.dumps(there) == before
