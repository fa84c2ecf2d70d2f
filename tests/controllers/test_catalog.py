"""The catalog: which controllers an installation runs."""

from __future__ import annotations

from spinney.api import groupkinds
from spinney.controllers import catalog
from spinney.controllers.horizontalpodautoscaler import Unmeasured
from spinney.testing import build
from tests.decisions.worlds import World

OURS = {
    groupkinds.SET,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.TOPOLOGY,
}


def test_autoscalers_are_served_where_pods_are_measured() -> None:
    world = World()
    alone = catalog.controllers(world)
    assert {controller.kind for controller in alone} == OURS
    embedded = catalog.controllers(world, metrics=Unmeasured())
    assert {controller.kind for controller in embedded} == {*OURS, groupkinds.AUTOSCALER}
    names = [controller.name for controller in embedded]
    assert len(set(names)) == len(names)


def test_every_controller_of_the_catalog_brings_its_kind_to_rest() -> None:
    world = World()
    set_ = build.podcliqueset("it").with_clique("a").with_("metadata.namespace", "default")
    document = set_.document()
    template = document["spec"]["template"]  # type: ignore[index,call-overload]
    template["cliques"][0]["spec"]["autoScalingConfig"] = {"maxReplicas": 3}  # type: ignore[index,call-overload]
    world.apply(document)
    world.apply(build.clustertopologybinding().with_level("rack", "example.com/rack").document())
    found = catalog.controllers(world, metrics=Unmeasured())
    for _ in range(12):
        before = world.version
        for controller in found:
            for key in [ref for ref in world.documents if ref.kind == controller.kind]:
                seen = controller.observe(world, key, world.now)
                assert seen is not None
                decision = controller.decide(seen)
                decision.check()
                world.carry_out(key, decision)
    assert world.version == before
    assert world.names(groupkinds.POD) == ["it-0-a-0"]
    autoscaler = world.at(groupkinds.AUTOSCALER, "it-0-a")
    reasons = [c["reason"] for c in autoscaler["status"]["conditions"]]  # type: ignore[index,call-overload,union-attr]
    assert reasons == ["SucceededGetScale", "FailedGetResourceMetric"]
