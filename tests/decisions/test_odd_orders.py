"""What happens in odd orders: things scaled to nothing, deleted by hand, held, made again."""

from __future__ import annotations

import json

import pytest

from spinney.api import groupkinds, labels
from spinney.decisions.actions import Action, Create
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    string_at,
    value_at,
    with_value,
)
from spinney.meta.references import GroupKind, Ref
from tests.decisions.shapes import Clique, Group, Small
from tests.decisions.worlds import Moved, World

SHAPE = Small(
    replicas=1,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=3, min_available=2),),
)
BASE = Ref(kind=groupkinds.GANG, namespace="default", name="small-0")
GROUP = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-0-g")


def living(shape: Small = SHAPE) -> World:
    world = World()
    world.apply(shape.document())
    world.live()
    return world


def pod_groups(world: World) -> list[str]:
    return [
        string_at(group, ["name"])
        for group in list_at(world.documents[BASE], ["spec", "podgroups"])
    ]


def told(world: World, ref: Ref) -> dict[str, str]:
    return {
        string_at(each, ["type"]): string_at(each, ["status"])
        for each in list_at(world.documents[ref], ["status", "conditions"])
    }


def gated(world: World) -> list[str]:
    return [
        ref.name
        for ref in world.pods()
        if list_at(world.documents[ref], ["spec", "schedulingGates"])
    ]


# A group at 0


@pytest.mark.rule("2.7")
def test_a_gang_asks_nothing_of_a_group_at_0() -> None:
    """What is left of the gang stays whole: a pod that is lost meanwhile gets its node."""
    world = living()
    world.change(GROUP, ["spec", "replicas"], 0)
    world.live()
    assert pod_groups(world) == ["small-0-c"]
    assert told(world, BASE)["Initialized"] == "True"
    assert string_at(world.documents[BASE], ["status", "phase"]) == "Running"
    world.delete(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-1"))
    world.live()
    assert world.names(groupkinds.POD) == ["small-0-c-0", "small-0-c-1"]
    assert not gated(world)


@pytest.mark.rule("2.7")
def test_a_group_comes_back_from_0_with_its_gang_first() -> None:
    """Copies above the floor wait until those of the base gang are placed, as at the beginning."""
    world = living()
    world.change(GROUP, ["spec", "replicas"], 0)
    world.live()
    before = value_at(world.documents[BASE], ["status", "incarnation"])
    world.change(GROUP, ["spec", "replicas"], 3)
    world.settle()
    assert pod_groups(world) == ["small-0-c", "small-0-g-0-a", "small-0-g-1-a"]
    assert gated(world) == ["small-0-g-2-a-0", "small-0-g-2-a-1"]
    world.live()
    assert world.names(groupkinds.POD) == SHAPE.pods()
    assert not gated(world)
    after = value_at(world.documents[BASE], ["status", "incarnation"])
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after > before


@pytest.mark.rule("2.7")
def test_a_set_can_begin_with_a_group_at_0() -> None:
    shape = Small(
        replicas=1,
        cliques=SHAPE.cliques,
        groups=(Group(name="g", replicas=0, min_available=2),),
    )
    world = living(shape)
    assert world.names(groupkinds.POD) == shape.pods()
    assert string_at(world.documents[BASE], ["status", "phase"]) == "Running"


@pytest.mark.rule("2.7")
def test_nobody_waits_for_a_group_at_0() -> None:
    shape = Small(
        replicas=1,
        cliques=SHAPE.cliques,
        groups=(Group(name="g", replicas=2, min_available=2),),
    )
    document = with_value(
        shape.document(), ["spec", "template", "cliqueStartupType"], "CliqueStartupTypeInOrder"
    )
    world = World()
    world.apply(document)
    world.live()
    pod = Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0")
    after = ["metadata", "annotations", "spinney.dev/starts-after"]
    assert string_at(world.documents[pod], after) == "small-0-g-0-a=1,small-0-g-1-a=1"
    world.change(GROUP, ["spec", "replicas"], 0)
    world.live()
    world.delete(pod)
    world.live()
    assert string_at(world.documents[pod], after) == ""


# Claims


CLAIM: Document = {
    "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}]}
}


def sharing_shape(scope: str, level: str) -> Document:
    """Return a set of three pods in one clique that shares claims at a level."""
    shape = Small(replicas=1, cliques=(Clique(name="c", replicas=3, min_available=1),))
    template: Document = {
        **object_at(shape.document(), ["spec", "template"]),
        "resourceClaimTemplates": [{"name": "t", "templateSpec": {"spec": CLAIM}}],
    }
    sharing: list[Json] = [{"name": "t", "scope": scope}]
    if level == "set":
        template["resourceSharing"] = sharing
    else:
        (clique,) = list_at(template, ["cliques"])
        assert isinstance(clique, dict)
        template["cliques"] = [{**clique, "resourceSharing": sharing}]
    return with_value(shape.document(), ["spec", "template"], template)


def test_a_pod_that_stays_keeps_its_claim() -> None:
    """A scale-in takes the pod that is not ready; the highest index stays, with what it holds."""
    world = World()
    world.apply(sharing_shape("PerReplica", "clique"))
    world.live()
    world.say(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-0"), ready=False)
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    world.change(clique, ["spec", "replicas"], 2)
    world.live()
    assert world.names(groupkinds.POD) == ["small-0-c-1", "small-0-c-2"]
    assert {"small-0-c-1-t", "small-0-c-2-t"} <= set(world.names(groupkinds.CLAIM))
    world.delete(Ref(kind=groupkinds.POD, namespace="default", name="small-0-c-2"))
    world.live()
    assert world.names(groupkinds.POD) == ["small-0-c-0", "small-0-c-1"]
    assert world.names(groupkinds.CLAIM) == ["small-0-c-0-t", "small-0-c-1-t"]


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("level", "name", "teller"),
    [
        ("clique", "small-0-c-all-t", (groupkinds.CLIQUE, "small-0-c")),
        ("set", "small-all-t", (groupkinds.SET, "small")),
    ],
)
def test_a_claim_of_another_is_not_adopted_and_told_of(
    level: str, name: str, teller: tuple[GroupKind, str]
) -> None:
    world = World()
    foreign = world.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": CLAIM,
        }
    )
    world.apply(sharing_shape("AllReplicas", level))
    world.settle()
    ref = Ref(kind=teller[0], namespace="default", name=teller[1])
    assert told(world, ref)["NameConflict"] == "True"
    assert name in str(value_at(world.documents[ref], ["status", "conditions"]))
    assert not world.names(groupkinds.POD)
    world.delete(foreign)
    world.live()
    assert "NameConflict" not in told(world, ref)
    assert len(world.names(groupkinds.POD)) == 3


# Revisions

SET = Ref(kind=groupkinds.SET, namespace="default", name="small")


def updating() -> tuple[World, str]:
    """Return a world whose replicas run the revision before the template's, and that revision."""
    world = living()
    running = string_at(world.documents[BASE], ["metadata", "labels", labels.REVISION])
    world.change(SET, ["spec", "updateStrategy", "paused"], True)
    template = object_at(world.documents[SET], ["spec", "template"])
    text = json.dumps(template).replace("main:1", "main:2")
    world.change(SET, ["spec", "template"], json.loads(text))
    world.live()
    return world, running


def images(world: World) -> set[str]:
    return {
        string_at(container, ["image"])
        for ref in world.documents
        if ref.kind == groupkinds.CLIQUE
        for container in list_at(world.documents[ref], ["spec", "podSpec", "containers"])
        if isinstance(container, dict)
    }


def lose(world: World, group_kind: GroupKind, name: str) -> None:
    world.delete(Ref(kind=group_kind, namespace="default", name=name))


def revision_numbers(world: World) -> dict[str, int]:
    found = {}
    for ref, document in world.documents.items():
        if ref.kind == groupkinds.REVISION:
            number = document["revision"]
            assert isinstance(number, int)
            found[ref.name.removeprefix("small-")] = number
    return found


OLD = "registry.example/main:1"


@pytest.mark.rule("3.5")
@pytest.mark.parametrize("first_looks", ["set", "group"])
def test_a_gang_deleted_by_hand_takes_no_revision_with_it(first_looks: str) -> None:
    world, running = updating()
    lose(world, groupkinds.GANG, "small-0")
    lose(world, groupkinds.CLIQUE, "small-0-g-1-a")
    if first_looks == "group":
        world.look(GROUP)
        world.look(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-g-1-a"))
        world.end_pods()
        world.look(GROUP)
    world.live()
    found = string_at(world.documents[BASE], ["metadata", "labels", labels.REVISION])
    assert found == running
    assert world.names(groupkinds.POD) == SHAPE.pods()
    assert images(world) == {OLD}


@pytest.mark.rule("1.10")
@pytest.mark.rule("3.5")
def test_without_its_revision_nothing_lost_is_built_from_another() -> None:
    world, running = updating()
    (revision,) = [
        ref
        for ref in world.documents
        if ref.kind == groupkinds.REVISION and ref.name.endswith(running)
    ]
    held = world.documents[revision]
    world.delete(revision)
    lose(world, groupkinds.CLIQUE, "small-0-g-1-a")
    lose(world, groupkinds.CLIQUE, "small-0-c")
    world.live()
    assert images(world) == {OLD}
    assert world.names(groupkinds.CLIQUE) == ["small-0-g-0-a", "small-0-g-2-a"]
    errors = str(list_at(world.documents[SET], ["status", "lastErrors"]))
    assert f"small-{running}" in errors
    assert told(world, SET)["Blocked"] == "True"
    metadata = object_at(held, ["metadata"])
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "ownerReferences")}
    world.apply({**held, "metadata": kept})
    world.live()
    assert world.names(groupkinds.POD) == SHAPE.pods()
    assert images(world) == {OLD}
    assert not list_at(world.documents[SET], ["status", "lastErrors"])
    assert "Blocked" not in told(world, SET)


@pytest.mark.rule("3.5")
def test_the_revision_a_set_goes_back_to_is_its_newest() -> None:
    world, running = updating()
    numbers = revision_numbers(world)
    assert numbers[running] == min(numbers.values())
    template = object_at(world.documents[SET], ["spec", "template"])
    text = json.dumps(template).replace("main:2", "main:1")
    world.change(SET, ["spec", "template"], json.loads(text))
    world.live()
    numbers = revision_numbers(world)
    assert numbers.pop(running) == max(numbers.values()) + 1


@pytest.mark.rule("1.10")
def test_a_clique_and_a_group_tell_that_they_lost_every_place() -> None:
    world = living()
    for ref in list(world.pods()):
        if ref.name.startswith("small-0-g"):
            world.delete(ref)
    world.settle()
    world.end_pods()
    world.settle()
    said = {(event.about.kind, event.about.name, event.reason) for event in world.events}
    assert (groupkinds.CLIQUE, "small-0-g-1-a", "AllScheduledReplicasLost") in said
    assert (groupkinds.SCALING_GROUP, "small-0-g", "AllScheduledReplicasLost") in said
    assert not any(name == "small-0-c" for _, name, _ in said)


# Made again under the same name


@pytest.mark.rule("2.5")
def test_a_set_made_again_waits_for_what_is_left_of_the_old_one() -> None:
    """Its pods still run out when the new set is there: their names are free once they are gone."""
    world = living()
    before = {string_at(world.documents[ref], ["metadata", "uid"]) for ref in world.pods()}
    world.delete(SET)
    world.look(SET)
    world.apply(SHAPE.document())
    world.settle()
    left = {string_at(world.documents[ref], ["metadata", "uid"]) for ref in world.pods()}
    assert left <= before
    world.live()
    after = {string_at(world.documents[ref], ["metadata", "uid"]) for ref in world.pods()}
    assert after.isdisjoint(before)
    assert world.names(groupkinds.POD) == SHAPE.pods()
    assert string_at(world.documents[BASE], ["status", "phase"]) == "Running"
    assert "NameConflict" not in told(world, SET)


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (groupkinds.CLIQUE, "small-0-c"),
        (groupkinds.CLIQUE, "small-0-g-1-a"),
        (groupkinds.SCALING_GROUP, "small-0-g"),
        (groupkinds.SET, "small"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whom_something_replaces_is_nobody_to_complain_of(kind: GroupKind, name: str) -> None:
    """A name held by the children of what was there before is free by itself."""
    world = living()
    lose(world, kind, name)
    world.look(Ref(kind=kind, namespace="default", name=name))
    if kind == groupkinds.SET:
        world.apply(SHAPE.document())
    world.settle()
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    assert "NameConflict" not in told(world, clique)
    assert "NameConflict" not in told(world, GROUP)
    assert not world.events
    world.live()
    assert world.names(groupkinds.POD) == SHAPE.pods()


# Refused


class Strict(World):
    """A world in which some pods are refused, as a quota would."""

    refused: frozenset[str] = frozenset()

    def act(self, action: Action) -> None:
        if isinstance(action, Create):
            name = string_at(action.document, ["metadata", "name"])
            if name in self.refused:
                raise Moved(f"{name} is refused")
        super().act(action)


def test_a_pod_that_is_refused_holds_no_other_back() -> None:
    world = Strict()
    world.apply(SHAPE.document())
    world.live()
    world.refused = frozenset({"small-0-c-3"})
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    world.change(clique, ["spec", "replicas"], 4)
    world.live()
    assert "small-0-c-2" in world.names(groupkinds.POD)
    assert not gated(world)


@pytest.mark.rule("1.5")
def test_a_podclique_of_another_is_no_member_of_a_gang() -> None:
    world = World()
    foreign = world.apply(
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "metadata": {
                "name": "small-0-c",
                "namespace": "default",
                "labels": {
                    labels.PART_OF: "small",
                    labels.PODGANG: "small-0",
                    labels.SET_REPLICA_INDEX: "0",
                },
            },
            "spec": {
                "roleName": "c",
                "replicas": 1,
                "minAvailable": 1,
                "podSpec": {"containers": [{"name": "main", "image": "other"}]},
            },
        }
    )
    world.apply(SHAPE.document())
    world.settle()
    assert told(world, SET)["NameConflict"] == "True"
    assert told(world, BASE)["Initialized"] == "False"
    world.delete(foreign)
    world.end_pods()
    world.live()
    assert world.names(groupkinds.POD) == SHAPE.pods()
    assert string_at(world.documents[BASE], ["status", "phase"]) == "Running"
