"""Rolling updates in a small world: what goes, in which order, what never happens (section 3)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.controllers import podcliqueset
from spinney.decisions import pods, sets
from spinney.decisions.actions import Action, Delete
from spinney.decisions.updates import progressing
from spinney.decisions.updates.replicas import Scene
from spinney.meta.documents import Document, is_object, list_at, object_at, string_at
from spinney.meta.references import Ref
from tests import laws
from tests.decisions.shapes import Clique, Group, Small
from tests.decisions.worlds import World

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=3, min_available=2),
    ),
    groups=(Group(name="g", replicas=3, min_available=1),),
)
SET = Ref(kind=groupkinds.SET, namespace="default", name="small")


def living(shape: Small = SHAPE) -> World:
    world = World()
    world.apply(shape.document())
    world.live()
    return world


def change(world: World, version: int, *cliques: str) -> None:
    """Give the containers of some cliques another image."""
    template = object_at(world.documents[SET], ["spec", "template"])
    changed = []
    for clique in list_at(template, ["cliques"]):
        text = json.dumps(clique)
        if not cliques or json.loads(text)["name"] in cliques:
            text = text.replace("main:1", f"main:{version}").replace("main:2", f"main:{version}")
        changed.append(json.loads(text))
    world.change(SET, ["spec", "template", "cliques"], changed)


def images(world: World) -> dict[str, str]:
    found = {}
    for ref in world.pods():
        (container,) = list_at(world.documents[ref], ["spec", "containers"])
        assert isinstance(container, dict)
        found[ref.name] = string_at(container, ["image"]).rsplit(":", 1)[1]
    return found


def progress(world: World) -> Document:
    return object_at(world.documents[SET], ["status", "rollingUpdateProgress"])


def test_a_change_reaches_every_pod_and_the_update_ends() -> None:
    world = living()
    world.wait(timedelta(minutes=1))
    change(world, 2)
    world.live()
    assert set(images(world).values()) == {"2"}
    assert sorted(images(world)) == SHAPE.pods()
    assert string_at(progress(world), ["updateEndedAt"])
    status = object_at(world.documents[SET], ["status"])
    assert (status["updatedReplicas"], status["availableReplicas"]) == (2, 2)


def test_only_what_changed_rolls() -> None:
    world = living()
    before = {ref: string_at(world.documents[ref], ["metadata", "uid"]) for ref in world.pods()}
    change(world, 2, "c")
    world.live()
    for ref, uid in before.items():
        is_same = string_at(world.documents[ref], ["metadata", "uid"]) == uid
        assert is_same is ("-c-" not in ref.name), ref.name
    assert string_at(progress(world), ["updateEndedAt"])


# Whatever happens meanwhile

TINY = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=1, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)


class Watched(World):
    """A world that looks at every deletion by our doing, just before it."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.lost: set[str] = set()
        self.taken: dict[str, set[str]] = {}

    def act(self, action: Action) -> None:
        if isinstance(action, Delete) and action.target in self.documents:
            document = self.documents[action.target]
            is_going = bool(string_at(document, ["metadata", "deletionTimestamp"]))
            uid = string_at(document, ["metadata", "uid"])
            if not is_going and action.only_if.uid in (None, uid):
                if action.target.kind == groupkinds.POD:
                    self._look_at_pod(action.target, document)
                elif action.target.kind == groupkinds.CLIQUE:
                    self._look_at_clique(action.target, document)
        super().act(action)

    def in_update(self) -> int | None:
        chosen = object_at(progress(self), ["currentlyUpdating"])
        index = chosen.get("replicaIndex", 0) if chosen else None
        assert index is None or isinstance(index, int)
        return index

    def is_ready(self, ref: Ref) -> bool:
        view = self.get(Pod, ref.namespace, ref.name)
        return view is not None and pods.is_ready(view)

    def _look_at_pod(self, ref: Ref, document: Document) -> None:
        carried = object_at(document, ["metadata", "labels"])
        name = str(carried[labels.PODCLIQUE])
        clique = self.get(PodClique, "default", name)
        assert clique is not None
        leaving = clique.status.leaving_pods
        if ref.name in leaving:
            return
        self.lost.add(ref.name)
        if carried[labels.SET_REPLICA_INDEX] != str(self.in_update()):
            self.faults.append(f"{ref.name} goes, and its replica is not in update")
        if not self.is_ready(ref):
            return
        members = [r for r in self.pods() if r.name.rsplit("-", 1)[0] == name]
        ready = sum(map(self.is_ready, members))
        floor = min(clique.spec.min_available or 0, clique.spec.replicas)
        if ready < floor:
            self.faults.append(f"{ref.name} is taken while {ready} of {floor} are ready")
        target = clique.metadata.labels[labels.POD_TEMPLATE_HASH]
        earlier = self.taken.setdefault(name, set())
        for other in [*earlier]:
            at = Ref(kind=groupkinds.POD, namespace="default", name=other)
            view = self.get(Pod, "default", other)
            back = view is not None and pods.template_hash(view) == target and self.is_ready(at)
            if back or (view is None and len(members) >= clique.spec.replicas):
                earlier.discard(other)
        if earlier:
            self.faults.append(f"{ref.name} is taken before {sorted(earlier)} is back")
        earlier.add(ref.name)

    def _look_at_clique(self, ref: Ref, document: Document) -> None:
        carried = object_at(document, ["metadata", "labels"])
        self.lost.update(pod.name for pod in self.pods() if pod.name.rsplit("-", 1)[0] == ref.name)
        if carried[labels.SET_REPLICA_INDEX] != str(self.in_update()):
            self.faults.append(f"{ref.name} goes, and its replica is not in update")

    def check_unselected(self) -> None:
        """No replica whose turn has not come has pods of the new template."""
        for index in range(SHAPE.replicas):
            gang = self.documents.get(
                Ref(kind=groupkinds.GANG, namespace="default", name=f"small-{index}")
            )
            told = "" if gang is None else string_at(gang, ["metadata", "labels", labels.REVISION])
            target = string_at(self.documents[SET], ["status", "currentGenerationHash"])
            if told == target:
                continue
            new = [
                name
                for name, image in images(self).items()
                if name.startswith(f"small-{index}-") and image == "2"
            ]
            if new:
                self.faults.append(f"{new} are new, and their replica runs {told}")


def odd_things(world: Watched, data: st.DataObject, count: int) -> None:
    """Let looks, nodes and failures happen in any order."""
    for _ in range(count):
        subjects, members = world.subjects(), [*world.pods()]
        kind = data.draw(st.sampled_from("lllllrrreeb"))
        if kind == "l" and subjects:
            world.look(data.draw(st.sampled_from(subjects)))
        elif kind == "r":
            waiting = [
                ref
                for ref in members
                if not list_at(world.documents[ref], ["spec", "schedulingGates"])
                and not string_at(world.documents[ref], ["metadata", "deletionTimestamp"])
                and not world.is_ready(ref)
            ]
            if waiting:
                ref = data.draw(st.sampled_from(waiting))
                if not string_at(world.documents[ref], ["spec", "nodeName"]):
                    world.place(ref)
                world.say(ref, ready=True)
        elif kind == "e":
            world.end_pods()
        elif kind == "b":
            running = [ref for ref in members if world.is_ready(ref)]
            if running:
                world.say(data.draw(st.sampled_from(running)), ready=False)
        world.check_unselected()


def heal(world: World) -> None:
    for ref in [*world.pods()]:
        document = world.documents[ref]
        if string_at(document, ["spec", "nodeName"]) and not string_at(
            document, ["metadata", "deletionTimestamp"]
        ):
            world.say(ref, ready=True)


@pytest.mark.law
@pytest.mark.rule("3.1")
@pytest.mark.rule("3.2")
@pytest.mark.rule("3.3")
@pytest.mark.rule("3.4")
@pytest.mark.rule("3.5")
@laws.examples(4)
@given(st.data(), st.sampled_from([(), ("c",), ("a",), ("b", "c")]), st.integers(0, 60))
def test_an_update_keeps_its_promises_whatever_happens_meanwhile(
    data: st.DataObject, changed: tuple[str, ...], count: int
) -> None:
    world = Watched()
    world.apply(TINY.document())
    world.live()
    change(world, 2, *changed)
    odd_things(world, data, count)
    for _ in range(60):
        heal(world)
        before = world.version
        world.settle()
        world.check_unselected()
        world.run_pods()
        world.end_pods()
        if world.version == before:
            break
    assert not world.faults, world.faults
    rolled = set(changed or "abc")
    expected = {
        name
        for name in TINY.pods()
        if (("-c-" in name and "c" in rolled) or ("-g-" in name and rolled & {"a", "b"}))
    }
    assert world.lost == expected
    for name, image in images(world).items():
        clique = name.split("-")[-2]
        assert image == ("2" if clique in rolled else "1"), name
    assert sorted(images(world)) == TINY.pods()
    assert string_at(progress(world), ["updateEndedAt"])
    status = object_at(world.documents[SET], ["status"])
    assert (status["updatedReplicas"], status["availableReplicas"]) == (2, 2)


# What a person is told


def condition(world: World) -> tuple[str, str, str]:
    found = [
        each
        for each in list_at(world.documents[SET], ["status", "conditions"])
        if is_object(each) and each["type"] == "Progressing"
    ]
    (said,) = found
    return string_at(said, ["status"]), string_at(said, ["reason"]), string_at(said, ["message"])


def roll_until_stuck(world: World) -> None:
    """Let the update go on; pods of the new template are never ready."""
    for _ in range(10):
        world.settle()
        world.end_pods()
        for ref in world.pods():
            document = world.documents[ref]
            if not list_at(document, ["spec", "schedulingGates"]) and not string_at(
                document, ["spec", "nodeName"]
            ):
                world.place(ref)
                world.say(ref, ready=False)


@pytest.mark.rule("3.9")
def test_an_update_that_gets_on_no_more_names_what_blocks_it_and_clears_by_itself() -> None:
    world = living()
    change(world, 2, "c")
    roll_until_stuck(world)
    assert condition(world)[:2] == ("True", "UpdateInProgress")
    world.wait(timedelta(seconds=602))
    world.settle()
    status, reason, message = condition(world)
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert message.startswith("PodNotReady: nothing was newly complete for 600 s: pod of")
    assert "small-1-c-0 is not ready" in message
    for ref in world.pods():
        world.say(ref, ready=True)
    world.live()
    assert condition(world)[:2] == ("True", "UpdateComplete")
    told = [event.reason for event in world.events if event.about == SET]
    assert told == [
        "ReplicaUpdateStarted",
        "ProgressDeadlineExceeded",
        "UpdateInProgress",
        "ReplicaUpdateStarted",
        "UpdateComplete",
    ]


@pytest.mark.rule("3.9")
@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu", "ResourcesUnavailable"),
        ("0/3 nodes match the node selector", "PodSchedulingFailed"),
    ],
)
def test_a_pod_without_a_node_is_named_with_what_the_scheduler_says(
    message: str, word: str
) -> None:
    world = living()
    change(world, 2, "c")
    for _ in range(10):
        world.settle()
        world.end_pods()
    (pod,) = [
        ref for ref in world.pods() if not string_at(world.documents[ref], ["spec", "nodeName"])
    ]
    said: Document = {"type": "PodScheduled", "status": "False", "message": message}
    world.put_status(pod, {"phase": "Pending", "conditions": [said]})
    world.wait(timedelta(seconds=602))
    world.settle()
    assert condition(world)[2].startswith(f"{word}: ")
    assert message in condition(world)[2]


@pytest.mark.rule("3.9")
def test_a_gate_that_stays_shut_is_named() -> None:
    """Pods of the new template were ready and broke: of the old one, none may go any more."""
    world = living()
    change(world, 2, "c")
    while list(images(world).values()).count("2") < 1:
        world.settle()
        world.end_pods()
    world.run_pods()
    world.look(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-1-c"))
    world.end_pods()
    world.settle()
    blocker = progressing.blocker(scene_of(world), ())
    assert blocker.word in ("MinAvailableConstraint", "PodNotReady")
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-1-c")
    status = object_at(world.documents[clique], ["status"])
    world.put_status(clique, {**status, "readyReplicas": 1})
    blocker = progressing.blocker(scene_of(world), ())
    assert blocker.word == "MinAvailableConstraint"
    assert "small-1-c in replica 1 has 1 ready pods and needs 2" in blocker.sentence


def scene_of(world: World) -> Scene:
    seen = podcliqueset.observe(world, SET, world.now)
    assert seen is not None
    return sets.scene_of(seen)


@pytest.mark.rule("3.10")
def test_a_paused_update_takes_nothing_rebuilds_what_is_lost_and_stops_its_clock() -> None:
    world = living()
    change(world, 2, "c")
    world.settle()
    world.end_pods()
    world.settle()
    world.change(SET, ["spec", "updateStrategy", "paused"], True)
    world.live()
    before = images(world)
    assert condition(world)[:2] == ("Unknown", "Paused")
    world.delete(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-2"))
    world.wait(timedelta(days=1))
    world.live()
    assert condition(world)[:2] == ("Unknown", "Paused")
    assert {**images(world), "small-0-c-2": "1"} == before
    assert sorted(images(world)) == SHAPE.pods()
    world.change(SET, ["spec", "updateStrategy", "paused"], False)
    world.settle()
    assert condition(world)[:2] == ("True", "UpdateInProgress")
    world.live()
    assert condition(world)[:2] == ("True", "UpdateComplete")


@pytest.mark.rule("3.10")
def test_on_delete_nothing_goes_and_what_is_deleted_comes_back_new() -> None:
    world = living()
    world.change(SET, ["spec", "updateStrategy", "type"], "OnDelete")
    change(world, 2)
    world.live()
    assert set(images(world).values()) == {"1"}
    assert string_at(progress(world), ["updateEndedAt"])
    for name in ("small-0-c-1", "small-1-g-2-a-0"):
        world.delete(Ref(kind=groupkinds.POD, namespace="default", name=name))
    world.live()
    assert {name for name, image in images(world).items() if image == "2"} == {
        "small-0-c-1",
        "small-1-g-2-a-0",
    }


# Changes of mind


@pytest.mark.rule("3.6")
def test_a_second_change_supersedes_and_the_replica_in_update_stays_so_until_it_is_whole() -> None:
    world = living()
    change(world, 2)
    while not any(image == "2" for image in images(world).values()):
        world.settle()
        world.end_pods()
    before = object_at(progress(world), ["currentlyUpdating"])["replicaIndex"]
    change(world, 3)
    world.settle()
    assert object_at(progress(world), ["currentlyUpdating"])["replicaIndex"] == before
    world.live()
    assert set(images(world).values()) == {"3"}
    assert condition(world)[:2] == ("True", "UpdateComplete")


@pytest.mark.rule("3.6")
def test_a_change_back_in_mid_update_takes_only_what_had_changed() -> None:
    world = living()
    untouched = {
        ref.name: string_at(world.documents[ref], ["metadata", "uid"])
        for ref in world.pods()
        if ref.name.startswith("small-0-")
    }
    change(world, 2)
    while not any(image == "2" for image in images(world).values()):
        world.settle()
        world.end_pods()
    change(world, 1)
    world.live()
    assert set(images(world).values()) == {"1"}
    for name, uid in untouched.items():
        ref = Ref(kind=groupkinds.POD, namespace="default", name=name)
        assert string_at(world.documents[ref], ["metadata", "uid"]) == uid
    assert condition(world)[:2] == ("True", "UpdateComplete")
    assert sorted(images(world)) == SHAPE.pods()


@pytest.mark.rule("3.7")
def test_scaling_works_in_mid_update() -> None:
    world = living()
    change(world, 2)
    while not any(image == "2" for image in images(world).values()):
        world.settle()
        world.end_pods()
    world.change(SET, ["spec", "replicas"], 3)
    group = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-0-g")
    world.change(group, ["spec", "replicas"], 4)
    world.settle()
    born = {name: image for name, image in images(world).items() if name.startswith("small-2-")}
    assert set(born.values()) == {"2"}
    grown = {name: image for name, image in images(world).items() if "small-0-g-3-" in name}
    assert grown
    assert set(grown.values()) == {"1"}, "its replica's turn has not come"
    world.change(
        Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-1-c"), ["spec", "replicas"], 2
    )
    world.live()
    assert set(images(world).values()) == {"2"}
    assert condition(world)[:2] == ("True", "UpdateComplete")
    assert object_at(world.documents[SET], ["status"])["updatedReplicas"] == 3


@pytest.mark.rule("3.1")
def test_the_least_useful_replica_goes_first_then_the_highest() -> None:
    world = living(Small(replicas=4, cliques=SHAPE.cliques, groups=SHAPE.groups))
    for name in ("small-1-c-0", "small-1-c-1"):
        world.say(Ref(kind=groupkinds.POD, namespace="default", name=name), ready=False)
    world.settle()
    order: list[object] = []
    change(world, 2, "c")
    for _ in range(200):
        before = world.version
        for ref in world.subjects():
            world.look(ref)
            chosen = object_at(progress(world), ["currentlyUpdating"]).get("replicaIndex", 0)
            if object_at(progress(world), ["currentlyUpdating"]) and (
                not order or order[-1] != chosen
            ):
                order.append(chosen)
        world.end_pods()
        world.run_pods()
        if world.version == before:
            break
    assert order == [1, 3, 2, 0]
