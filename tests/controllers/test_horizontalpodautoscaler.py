"""The HorizontalPodAutoscaler controller finds its target, its pods, and what is measured."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from spinney.api import groupkinds
from spinney.api.core.pod import Pod
from spinney.controllers import horizontalpodautoscaler
from spinney.decisions import autoscaling
from spinney.decisions.actions import Decision
from spinney.decisions.demand import Shape
from spinney.decisions.usage import PodUsage
from spinney.meta.documents import Document, Json, list_at, string_at, value_at, with_value
from spinney.meta.quantities import NANO
from spinney.meta.references import GroupKind, Ref
from spinney.testing import build
from tests.decisions.worlds import World


class Measured:
    """Pods whose only container uses so many bytes."""

    def __init__(self, world: World, amounts: Mapping[str, int]) -> None:
        self._world = world
        self._amounts = amounts

    def usage(self, pod_uid: str) -> PodUsage | None:
        for pod in self._world.list(Pod):
            amount = self._amounts.get(pod.metadata.name)
            if pod.metadata.uid == pod_uid and amount is not None:
                containers = {"main": {"memory": amount * NANO}}
                return PodUsage(measured_at=self._world.now, containers=containers)
        return None


def ref(kind: GroupKind, name: str) -> Ref:
    return Ref(kind=kind, namespace="default", name=name)


METRIC: Document = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "50"}},
}
SCALED: Document = {"maxReplicas": 9, "metrics": [METRIC]}


def living(workload: str = "Inference") -> World:
    """Return a set with a scaled clique and a scaled group of two cliques, with three pods."""
    made = (
        build.podcliqueset("it")
        .with_clique("web", replicas=2)
        .with_clique("lead", replicas=1)
        .with_clique("work", replicas=2)
        .with_group("unit", "lead", "work", replicas=2)
        .with_("metadata.namespace", "default")
    )
    document = made.document()
    cliques = list_at(document, ["spec", "template", "cliques"])
    groups = list_at(document, ["spec", "template", "podCliqueScalingGroups"])
    if workload == "Inference":
        cliques[0] = with_value(cliques[0], ["spec", "autoScalingConfig"], SCALED)  # type: ignore[arg-type]
        groups[0] = {**groups[0], "scaleConfig": SCALED}  # type: ignore[dict-item]
    document = with_value(document, ["spec", "template", "cliques"], cliques)
    document = with_value(document, ["spec", "template", "podCliqueScalingGroups"], groups)
    document = with_value(document, ["spec", "workloadType"], workload)
    world = World()
    world.apply(document)
    world.live()
    return world


def look(world: World, name: str, amounts: Mapping[str, int]) -> Decision:
    key = ref(groupkinds.AUTOSCALER, name)
    seen = horizontalpodautoscaler.observe(world, key, world.now, Measured(world, amounts))
    assert seen is not None
    decision = autoscaling.decide(seen)
    world.carry_out(key, decision)
    return decision


def replicas(world: World, kind: GroupKind, name: str) -> Json:
    return value_at(world.at(kind, name), ["spec", "replicas"])


def test_a_busy_clique_is_scaled_out_and_its_pods_come() -> None:
    world = living()
    busy = {"it-0-web-0": 90, "it-0-web-1": 90, "it-0-unit-0-work-0": 5000}
    look(world, "it-0-web", busy)
    assert replicas(world, groupkinds.CLIQUE, "it-0-web") == 4
    world.live()
    assert [n for n in world.names(groupkinds.POD) if "web" in n] == [
        f"it-0-web-{index}" for index in range(4)
    ]


def test_a_busy_group_is_scaled_by_copies_not_by_pods() -> None:
    """Six pods in two copies are twice as busy as wanted: four copies."""
    world = living()
    busy = {name: 100 for name in world.names(groupkinds.POD) if "unit" in name}
    assert len(busy) == 6
    look(world, "it-0-unit", busy)
    assert replicas(world, groupkinds.SCALING_GROUP, "it-0-unit") == 4
    world.live()
    assert len([n for n in world.names(groupkinds.POD) if "unit" in n]) == 12


def test_after_a_look_nothing_is_left_to_write() -> None:
    world = living()
    calm = dict.fromkeys(world.names(groupkinds.POD), 50)
    for name in ("it-0-web", "it-0-unit"):
        look(world, name, calm)
        before = len(world.writes)
        decision = look(world, name, calm)
        assert len(world.writes) == before
        assert decision.wake_after == autoscaling.PERIOD


def autoscaler(target: Document, name: str = "mine") -> Document:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [METRIC]},
    }


def target(kind: str, name: str) -> Document:
    return {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": name}


def told(world: World, name: str, kind: str) -> tuple[str, str, str]:
    (found,) = (
        condition
        for condition in list_at(world.at(groupkinds.AUTOSCALER, name), ["status", "conditions"])
        if string_at(condition, ["type"]) == kind
    )
    return (
        string_at(found, ["status"]),
        string_at(found, ["reason"]),
        string_at(found, ["message"]),
    )


def test_a_set_is_scaled_by_replicas() -> None:
    world = living()
    world.apply(autoscaler(target("PodCliqueSet", "it")))
    key = ref(groupkinds.AUTOSCALER, "mine")
    busy = dict.fromkeys(world.names(groupkinds.POD), 100)
    seen = horizontalpodautoscaler.observe(world, key, world.now, Measured(world, busy))
    assert seen is not None
    assert seen.target is not None
    assert seen.target.shape == Shape(replicas=1, pods=8)
    look(world, "mine", busy)
    assert replicas(world, groupkinds.SET, "it") == 2


@pytest.mark.parametrize(
    ("aim", "says"),
    [
        (target("PodClique", "gone"), 'podcliques.grove.io "gone" not found'),
        (target("PodGang", "it-0"), "can be scaled by an autoscaler here"),
        ({**target("Deployment", "it"), "apiVersion": "apps/v1"}, "known are PodClique"),
    ],
)
def test_a_target_that_is_not_there_is_told(aim: Document, says: str) -> None:
    world = living()
    world.apply(autoscaler(aim))
    look(world, "mine", {})
    status, reason, message = told(world, "mine", autoscaling.ABLE)
    assert (status, reason) == ("False", "FailedGetScale")
    assert says in message


def test_pods_of_a_group_are_not_scaled_by_themselves() -> None:
    world = living()
    world.apply(autoscaler(target("PodClique", "it-0-unit-0-work")))
    look(world, "mine", {})
    assert told(world, "mine", autoscaling.ACTIVE)[:2] == ("False", "InvalidSelector")


def test_of_two_autoscalers_the_one_of_the_set_goes_first() -> None:
    world = living()
    world.apply(autoscaler(target("PodClique", "it-0-web")))
    busy = dict.fromkeys(world.names(groupkinds.POD), 100)
    look(world, "mine", busy)
    assert told(world, "mine", autoscaling.ACTIVE)[:2] == ("False", "AmbiguousSelector")
    assert replicas(world, groupkinds.CLIQUE, "it-0-web") == 2
    look(world, "it-0-web", busy)
    assert replicas(world, groupkinds.CLIQUE, "it-0-web") == 4


@pytest.mark.rule("5.8")
def test_a_training_workload_keeps_its_size() -> None:
    world = living("Training")
    world.apply(autoscaler(target("PodClique", "it-0-web")))
    look(world, "mine", dict.fromkeys(world.names(groupkinds.POD), 100))
    status, reason, message = told(world, "mine", autoscaling.ABLE)
    assert (status, reason) == ("False", "FailedUpdateScale")
    assert "a Training workload has a fixed size" in message
    assert replicas(world, groupkinds.CLIQUE, "it-0-web") == 2


def test_a_target_that_is_new_is_given_time() -> None:
    """A set makes a clique and its autoscaler together: nothing is wrong with either."""
    world = World()
    world.apply(living().at(groupkinds.SET, "it"))
    while "it-0-web" not in world.names(groupkinds.AUTOSCALER):
        for key in world.subjects():
            if key.kind == groupkinds.SET:
                world.look(key)
    decision = look(world, "it-0-web", {})
    assert decision.status is None
    assert decision.actions == ()
    assert decision.wake_after == autoscaling.PERIOD


def test_an_autoscaler_that_is_gone_is_not_looked_at() -> None:
    world = living()
    key = ref(groupkinds.AUTOSCALER, "gone")
    assert horizontalpodautoscaler.observe(world, key, world.now, Measured(world, {})) is None
