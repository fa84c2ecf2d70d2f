"""Upkeep in a living world: nodes that vanish and come back, and what becomes of their pods."""

from __future__ import annotations

import pytest

from spinney.api import groupkinds
from spinney.controllers import catalog, upkeep
from spinney.meta.errors import TooManyRequests
from spinney.meta.references import Precondition, Ref
from spinney.nodes.fleet import machines
from spinney.testing import build
from tests.nodes.fleet.fleets import condition, within

TOLERATION = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
}


def tainted(yard, name):
    taints = yard.node(name)["spec"].get("taints", [])
    return {(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in taints}


async def begun(yard, *texts):
    fleet = await yard.fleet(*texts)
    await yard.manager(*upkeep.controllers(yard.reader))
    return fleet


def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not():
    async def story(yard):
        await begun(yard, "sim:2,taint=x:NoSchedule")
        node = Ref(kind=groupkinds.NODE, namespace="", name="sim-0")
        await yard.patch(node, {"spec": {"unschedulable": True}})
        await yard.passes(seconds=1)
        assert tainted(yard, "sim-0") == {("x", "NoSchedule"), ("unschedulable", "NoSchedule")}
        await yard.patch(node, {"spec": {"unschedulable": None}})
        await yard.passes(seconds=1)
        assert tainted(yard, "sim-0") == tainted(yard, "sim-1") == {("x", "NoSchedule")}

    within(story)


def test_pods_of_a_node_that_vanished_are_not_ready_and_are_ready_again_when_it_is_back():
    async def story(yard):
        await begun(yard, "sim:2")
        await yard.pod("a")
        await yard.pod("b", node="sim-1")
        await yard.passes(seconds=1)
        await yard.annotate_node("sim-0", **{machines.VANISHED: "true"})
        await yard.passes(seconds=1)
        assert tainted(yard, "sim-0") == {
            ("unreachable", "NoSchedule"),
            ("unreachable", "NoExecute"),
        }
        assert yard.seen("a") == ("Running", False)
        assert yard.seen("b") == ("Running", True)
        reason = condition(yard.document(groupkinds.POD, "a"), "Ready", "reason")
        assert reason == "NodeNotReady"
        version = yard.store.version
        await yard.passes(minutes=4)
        assert yard.store.version == version
        await yard.annotate_node("sim-0", **{machines.VANISHED: None})
        await yard.passes(seconds=1)
        assert tainted(yard, "sim-0") == set()
        assert yard.seen("a") == ("Running", True)
        version = yard.store.version
        await yard.passes(hours=1)
        assert yard.store.version == version

    within(story)


@pytest.mark.rule("2.5")
def test_pods_leave_a_vanished_node_when_their_toleration_is_over():
    async def story(yard):
        await begun(yard, "sim:1")
        await yard.pod("usual")
        await yard.pod("patient", tolerations=[TOLERATION])
        await yard.pod("hasty", tolerations=[{**TOLERATION, "tolerationSeconds": 5}])
        await yard.passes(seconds=1)
        await yard.annotate_node("sim-0", **{machines.VANISHED: "true"})
        await yard.passes(seconds=8)
        going = {
            name: "deletionTimestamp" in yard.document(groupkinds.POD, name)["metadata"]
            for name in ("usual", "patient", "hasty")
        }
        assert going == {"usual": False, "patient": False, "hasty": True}
        await yard.passes(seconds=300)
        assert "deletionTimestamp" in yard.document(groupkinds.POD, "usual")["metadata"]
        assert "deletionTimestamp" not in yard.document(groupkinds.POD, "patient")["metadata"]
        await yard.passes(hours=1)
        assert yard.seen("usual") is not None, "it may still run: nobody removes it by force"
        await yard.delete_node("sim-0")
        await yard.passes(seconds=40)
        assert yard.seen("usual") is None
        assert yard.seen("patient") is None

    within(story)


@pytest.mark.rule("2.5")
def test_pods_bound_to_a_node_that_is_not_there_are_lost_also_after_a_restart():
    async def story(yard):
        await yard.pod("a", node="nowhere")
        await begun(yard, "sim:1")
        await yard.pod("b", node="nowhere")
        await yard.pod("c")
        await yard.passes(seconds=1)
        going = "deletionTimestamp"
        assert going in yard.document(groupkinds.POD, "a")["metadata"]
        assert going in yard.document(groupkinds.POD, "b")["metadata"]
        await yard.end()
        await yard.passes(seconds=5)
        await begun(yard, "sim:1")
        await yard.passes(seconds=31)
        assert yard.seen("a") is None
        assert yard.seen("b") is None
        assert yard.seen("c") == ("Running", True)

    within(story)


@pytest.mark.rule("2.5")
@pytest.mark.parametrize("loss", ["vanishes", "is deleted"])
def test_a_gang_is_whole_again_after_its_node_is_lost(loss):
    """A node is lost with half a gang on it; its pods go and are made anew."""

    async def story(yard):
        fleet = await yard.fleet("sim:2")
        await yard.manager(*catalog.controllers(yard.reader), *upkeep.controllers(yard.reader))
        document = build.podcliqueset("chat").with_clique("a", replicas=2).document()
        await yard.user.create({**document, "spec": {**document["spec"], "replicas": 1}})
        await yard.passes(seconds=5)
        uids = {}
        for index in range(2):
            name = f"chat-0-a-{index}"
            await yard.user.bind(_ref(name), f"sim-{index}", Precondition())
            uids[name] = yard.document(groupkinds.POD, name)["metadata"]["uid"]
        await fleet.wait_quiet()
        await yard.passes(seconds=1)
        assert yard.seen("chat-0-a-0") == ("Running", True)
        if loss == "vanishes":
            await yard.annotate_node("sim-0", **{machines.VANISHED: "true"})
            await yard.passes(seconds=301)
        else:
            await yard.delete_node("sim-0")
        await yard.passes(seconds=35)
        found = yard.document(groupkinds.POD, "chat-0-a-0")
        assert found["metadata"]["uid"] != uids["chat-0-a-0"]
        other = yard.document(groupkinds.POD, "chat-0-a-1")
        assert other["metadata"]["uid"] == uids["chat-0-a-1"]

    within(story)


def _ref(name):
    return Ref(kind=groupkinds.POD, namespace="default", name=name)


def test_a_service_finds_its_pods_as_they_come_and_go():
    async def story(yard):
        await begun(yard, "sim:1,ready=5s")
        await yard.user.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
            }
        )
        for index in range(3):
            await yard.pod(f"web-{index}", labels={"app": "web"})
        await yard.pod("other", labels={"app": "other"})
        await yard.passes(seconds=3)
        assert found(yard) == {"web-0": False, "web-1": False, "web-2": False}
        assert yard.writes["EndpointSlice", "ADDED"] == yard.writes["Endpoints", "ADDED"] == 1
        await yard.passes(seconds=3)
        assert found(yard) == {"web-0": True, "web-1": True, "web-2": True}
        await yard.delete("web-1")
        await yard.passes(seconds=1)
        assert found(yard) == {"web-0": True, "web-2": True}
        web = Ref(kind=groupkinds.SERVICE, namespace="default", name="web")
        await yard.patch(web, {"spec": {"selector": {"app": "other"}}})
        await yard.passes(seconds=1)
        assert found(yard) == {"other": True}
        version = yard.store.version
        await yard.passes(hours=1)
        assert yard.store.version == version
        await yard.user.delete(web, Precondition(), grace_seconds=None, propagation="Background")
        await yard.passes(seconds=1)
        assert found(yard) == {}
        assert yard.document(groupkinds.ENDPOINTS, "web") is None

    within(story)


def found(yard):
    return {
        endpoint["targetRef"]["name"]: endpoint["conditions"]["ready"]
        for stored in yard.store.list(groupkinds.ENDPOINT_SLICE)
        for endpoint in stored.document()["endpoints"]
    }


def test_evictions_go_as_far_as_a_budget_lets_them_and_on_once_pods_are_back():
    async def story(yard):
        await begun(yard, "sim:1")
        await yard.user.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
            }
        )
        for index in range(3):
            await yard.pod(f"web-{index}", labels={"app": "web"})
        await yard.passes(seconds=1)
        await yard.user.evict(_ref("web-0"), Precondition())
        with pytest.raises(TooManyRequests):
            await yard.user.evict(_ref("web-1"), Precondition())
        await yard.passes(seconds=1)
        with pytest.raises(TooManyRequests):
            await yard.user.evict(_ref("web-1"), Precondition())
        await yard.pod("web-3", labels={"app": "web"})
        await yard.passes(seconds=1)
        await yard.user.evict(_ref("web-1"), Precondition())
        version = yard.store.version
        await yard.passes(hours=1)
        assert yard.store.version - version < 5

    within(story)
