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
from spinney.decisions import pods
from spinney.decisions.actions import Action, Delete
from spinney.meta.documents import Document, list_at, object_at, string_at
from spinney.meta.references import Ref
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
@given(st.data(), st.sampled_from([(), ("c",), ("a",), ("b", "c")]), st.integers(0, 60))
def test_an_update_keeps_its_promises_whatever_happens_meanwhile(
    data: st.DataObject, changed: tuple[str, ...], count: int
) -> None:
    world = Watched()
    world.apply(SHAPE.document())
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
        for name in SHAPE.pods()
        if (("-c-" in name and "c" in rolled) or ("-g-" in name and rolled & {"a", "b"}))
    }
    assert world.lost == expected
    for name, image in images(world).items():
        clique = name.split("-")[-2]
        assert image == ("2" if clique in rolled else "1"), name
    assert sorted(images(world)) == SHAPE.pods()
    assert string_at(progress(world), ["updateEndedAt"])
    status = object_at(world.documents[SET], ["status"])
    assert (status["updatedReplicas"], status["availableReplicas"]) == (2, 2)
