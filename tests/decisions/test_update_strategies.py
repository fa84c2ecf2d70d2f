"""Changes of mind about how to update, and sets of sizes that leave little room (section 3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.decisions import disruption
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.references import Ref
from tests.decisions.shapes import Clique, Group, Small
from tests.decisions.test_updates import SET, SHAPE, change, condition, images, living, progress
from tests.decisions.worlds import World

STRATEGY = ["spec", "updateStrategy"]


def status(world: World) -> Document:
    return object_at(world.documents[SET], ["status"])


def delete_pods(world: World) -> None:
    for ref in [*world.pods()]:
        world.delete(ref)


def in_the_middle(shape: Small = SHAPE) -> World:
    """Return a world in which the first pods of a new template were made."""
    world = living(shape)
    change(world, 2)
    while "2" not in images(world).values():
        world.settle()
        world.end_pods()
    return world


@pytest.mark.rule("3.4")
@pytest.mark.parametrize(
    "strategy",
    [
        {"type": "OnDelete"},
        {"type": "Coherent"},
        {"rollingRecreate": {"maxUnavailable": 2}},
        {"paused": True},
        {"progressDeadlineSeconds": 5},
    ],
)
def test_a_change_of_the_strategy_alone_rolls_nothing(strategy: Document) -> None:
    world = living()
    before = {ref: world.documents[ref] for ref in world.pods()}
    world.change(SET, STRATEGY, strategy)
    world.live()
    assert {ref: world.documents[ref] for ref in world.pods()} == before
    assert not progress(world)


@pytest.mark.rule("3.10")
def test_on_delete_ends_an_update_where_it_stands_and_back_nothing_rolls_by_itself() -> None:
    world = in_the_middle()
    world.change(SET, [*STRATEGY, "type"], "OnDelete")
    world.live()
    older = {name for name, image in images(world).items() if image == "1"}
    assert older
    assert string_at(progress(world), ["updateEndedAt"])
    assert condition(world)[:2] == ("True", "OnDelete")
    for kind in (groupkinds.CLIQUE, groupkinds.SCALING_GROUP):
        for name in world.names(kind):
            told = object_at(world.at(kind, name), ["status", "rollingUpdateProgress"])
            assert not told or told.get("updateEndedAt"), name
    assert status(world)["updatedReplicas"] == 0
    world.wait(timedelta(days=1))
    world.change(SET, [*STRATEGY, "type"], "RollingRecreate")
    world.live()
    assert {name for name, image in images(world).items() if image == "1"} == older
    assert status(world)["updatedReplicas"] == 0, "pods of the older template are still there"
    change(world, 3)
    world.live()
    assert set(images(world).values()) == {"3"}
    assert (status(world)["updatedReplicas"], condition(world)[1]) == (2, "UpdateComplete")


@pytest.mark.rule("3.8")
def test_on_delete_the_counts_follow_what_is_deleted() -> None:
    world = living()
    world.change(SET, [*STRATEGY, "type"], "OnDelete")
    change(world, 2)
    world.live()
    assert status(world)["updatedReplicas"] == 0
    assert progress(world)["updatedPodCliquesCount"] == 0
    assert progress(world)["totalPodCliquesCount"] == 2
    delete_pods(world)
    world.live()
    assert set(images(world).values()) == {"2"}
    assert status(world)["updatedReplicas"] == 2
    assert progress(world)["updatedPodCliquesCount"] == 2
    assert progress(world)["updatedPodCliqueScalingGroupsCount"] == 2


@pytest.mark.rule("3.8")
def test_a_set_without_replicas_is_updated_at_once_and_comes_back_new() -> None:
    world = living()
    world.change(SET, ["spec", "replicas"], 0)
    world.live()
    change(world, 2)
    world.live()
    assert (condition(world)[1], status(world)["updatedReplicas"]) == ("UpdateComplete", 0)
    world.change(SET, ["spec", "replicas"], 2)
    world.live()
    assert set(images(world).values()) == {"2"}
    assert status(world)["updatedReplicas"] == 2


@pytest.mark.rule("3.3")
def test_one_replica_of_which_every_pod_is_needed_is_updated_one_pod_at_a_time() -> None:
    shape = Small(
        replicas=1,
        cliques=(
            Clique(name="a", replicas=1, min_available=1, group="g"),
            Clique(name="c", replicas=3, min_available=3),
        ),
        groups=(Group(name="g", replicas=2, min_available=2),),
    )
    world = living(shape)
    change(world, 2)
    fewest = {"c": 3, "a": 2}
    for _ in range(100):
        before = world.version
        for ref in world.subjects():
            world.look(ref)
            world.end_pods()
            for clique in fewest:
                there = [name for name in images(world) if f"-{clique}-" in name]
                fewest[clique] = min(fewest[clique], len(there))
        world.run_pods()
        if world.version == before:
            break
    assert fewest == {"c": 2, "a": 1}
    assert set(images(world).values()) == {"2"}
    assert condition(world)[1] == "UpdateComplete"


@pytest.mark.rule("3.3")
@pytest.mark.parametrize(("most", "fewest"), [(None, 3), (1, 3), (2, 2), ("75%", 2), ("10%", 3)])
def test_more_are_down_at_once_where_that_is_allowed_but_never_below_the_least(
    most: int | str | None, fewest: int
) -> None:
    shape = Small(replicas=1, cliques=(Clique(name="c", replicas=4, min_available=2),), groups=())
    world = living(shape)
    if most is not None:
        told: Json = {"maxUnavailable": most}
        world.change(SET, [*STRATEGY, "rollingRecreate"], told)
    change(world, 2)
    seen = 4
    for _ in range(60):
        before = world.version
        for ref in world.subjects():
            world.look(ref)
            world.end_pods()
            seen = min(seen, len(images(world)))
        world.run_pods()
        if world.version == before:
            break
    assert seen == fewest
    assert set(images(world).values()) == {"2"}


@pytest.mark.rule("2.8")
def test_no_copy_that_is_whole_is_taken_while_a_gang_of_the_group_is_about_to_be_preempted() -> (
    None
):
    world = living()
    gang = Ref(kind=groupkinds.GANG, namespace="default", name="small-1-g-1")
    told = object_at(world.documents[gang], ["status"])
    marked: Document = {
        "type": disruption.DISRUPTION_TARGET,
        "status": "True",
        "reason": disruption.PREEMPTED,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    world.put_status(gang, {**told, "conditions": [*list_at(told, ["conditions"]), marked]})
    change(world, 2, "a")
    world.live()
    assert set(images(world).values()) == {"1"}
    world.put_status(gang, told)
    world.live()
    assert "2" in images(world).values()
    assert condition(world)[1] == "UpdateComplete"
