"""Simulated nodes: their objects, and what becomes of the pods bound to them."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest

from spinney.api import groupkinds
from spinney.meta.errors import BadRequest, Unavailable
from spinney.meta.references import Ref
from spinney.nodes.fleet import machines
from spinney.nodes.roster import Roster
from tests.nodes.fleet.fleets import condition, ref, within

NODE = groupkinds.NODE


def test_nodes_are_made_once_and_nothing_is_written_at_rest():
    async def story(yard):
        await yard.fleet(
            "sim:5,cpu=64,nvidia.com/gpu=8,topology=zone:2,label.team=a,taint=x:NoSchedule"
        )
        node = yard.node("sim-4")
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-1"
        assert node["metadata"]["labels"]["team"] == "a"
        assert node["spec"]["taints"] == [{"key": "x", "effect": "NoSchedule"}]
        assert condition(node, "Ready") == "True"
        assert yard.writes["Node", "ADDED"] == 5
        assert yard.writes["Node", "MODIFIED"] == 0
        version = yard.store.version
        await yard.passes(hours=24)
        await yard.end()
        await yard.fleet(
            "sim:5,cpu=64,nvidia.com/gpu=8,topology=zone:2,label.team=a,taint=x:NoSchedule"
        )
        assert yard.store.version == version

    within(story)


def test_nodes_follow_what_is_asked_for_at_the_next_start():
    async def story(yard):
        await yard.fleet("sim:3,cpu=64")
        await yard.patch(
            Ref(kind=NODE, namespace="", name="sim-0"), {"spec": {"unschedulable": True}}
        )
        await yard.end()
        await yard.fleet("sim:2,cpu=32", "sim:1,name=gpu")
        await yard.passes(seconds=1)
        assert yard.node("sim-0")["status"]["capacity"]["cpu"] == "32"
        assert yard.node("sim-0")["spec"]["unschedulable"] is True
        assert yard.node("sim-2") is None
        assert yard.node("gpu-0") is not None
        await yard.end()
        await yard.fleet()
        await yard.passes(seconds=1)
        assert yard.store.list(NODE) == []

    within(story)


def test_a_pod_without_delays_runs_after_one_write():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        await yard.pod("a", containers=("main", "side"))
        await fleet.wait_quiet()
        assert yard.seen("a") == ("Running", True)
        assert yard.writes["Pod", "MODIFIED"] == 1
        status = yard.document(groupkinds.POD, "a")["status"]
        assert [each["ready"] for each in status["containerStatuses"]] == [True, True]
        assert status["hostIP"] == yard.node("sim-0")["status"]["addresses"][0]["address"]
        assert ipaddress.ip_address(status["podIP"]) in ipaddress.ip_network("241.0.0.0/8")
        assert {each["type"] for each in status["conditions"]} >= {
            "PodScheduled",
            "Initialized",
            "ContainersReady",
            "Ready",
        }

    within(story)


def test_pods_of_other_nodes_and_of_none_are_left_alone():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        await yard.pod("elsewhere", node="other")
        await yard.pod("nowhere", node="")
        await yard.passes(minutes=1)
        assert yard.writes["Pod", "MODIFIED"] == 0
        assert fleet.statistics().pods == 0

    within(story)


def test_delays_are_those_of_the_shape_unless_the_pod_says_otherwise():
    async def story(yard):
        await yard.fleet("sim:1,start=200ms,ready=1s")
        await yard.pod("a")
        await yard.pod("b", annotations={"sim.spinney.dev/start-delay": "2s"})
        await yard.pod("c", annotations={"sim.spinney.dev/never-ready": "true"})
        seen = []
        for _ in range(4):
            await yard.passes(milliseconds=900)
            seen.append([yard.seen(name) for name in "abc"])
        waiting, running, ready = ("Pending", False), ("Running", False), ("Running", True)
        assert seen == [
            [running, waiting, running],
            [ready, waiting, running],
            [ready, running, running],
            [ready, ready, running],
        ]
        assert yard.writes["Pod", "MODIFIED"] == 5

    within(story)


def test_a_deleted_pod_is_gone_once_it_ended_and_never_waits_longer_than_its_grace():
    async def story(yard):
        await yard.fleet("sim:1,stop=2s")
        await yard.pod("a")
        await yard.pod("b")
        await yard.passes(seconds=1)
        await yard.delete("a")
        await yard.delete("b", grace_seconds=1)
        await yard.passes(milliseconds=1500)
        assert yard.seen("a") is not None
        assert yard.seen("b") is None
        await yard.passes(seconds=1)
        assert yard.seen("a") is None
        assert yard.writes["Pod", "DELETED"] == 2

    within(story)


def test_a_pod_that_somebody_keeps_tells_how_it_ended():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        target = await yard.pod("a", finalizers=("example.com/keep",), restartPolicy="Never")
        await fleet.wait_quiet()
        await yard.delete("a")
        await yard.passes(seconds=1)
        assert yard.seen("a") == ("Failed", False)
        (status,) = yard.document(groupkinds.POD, "a")["status"]["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 143
        await yard.patch(target, {"metadata": {"finalizers": None}})
        await fleet.wait_quiet()
        assert yard.seen("a") is None

    within(story)


@pytest.mark.parametrize(
    ("policy", "marks", "phase", "restarts"),
    [
        ("Never", {"run-for": "5s"}, "Succeeded", 0),
        ("Never", {"run-for": "5s", "exit-code": "3"}, "Failed", 0),
        ("Never", {"fails-after": "5s"}, "Failed", 0),
        ("Never", {"exit-code": "0"}, "Succeeded", 0),
        ("OnFailure", {"run-for": "5s"}, "Succeeded", 0),
        ("OnFailure", {"fails-after": "5s"}, "Running", 2),
        ("Always", {"run-for": "5s"}, "Running", 2),
    ],
)
def test_pods_end_as_they_are_told(policy, marks, phase, restarts):
    async def story(yard):
        await yard.fleet("sim:1")
        annotations = {f"sim.spinney.dev/{key}": value for key, value in marks.items()}
        await yard.pod("a", annotations=annotations, restartPolicy=policy)
        await yard.passes(seconds=42)
        assert yard.seen("a")[0] == phase
        (status,) = yard.document(groupkinds.POD, "a")["status"]["containerStatuses"]
        assert status["restartCount"] == restarts

    within(story)


def test_a_pod_past_its_deadline_is_ended():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        target = await yard.pod("a")
        await fleet.wait_quiet()
        await yard.patch(target, {"spec": {"activeDeadlineSeconds": 1}})
        await yard.passes(seconds=3)
        assert yard.seen("a") == ("Failed", False)
        found = yard.document(groupkinds.POD, "a")["status"]
        assert found["reason"] == "DeadlineExceeded"
        version = yard.store.version
        await yard.passes(minutes=10)
        assert yard.store.version == version

    within(story)


def test_failures_are_as_frequent_as_asked():
    async def story(yard):
        await yard.fleet("sim:1,failures=20%")
        for index in range(300):
            await yard.pod(f"p-{index}", restartPolicy="Never")
        await yard.passes(seconds=1)
        phases = [yard.seen(f"p-{index}")[0] for index in range(300)]
        assert 30 <= phases.count("Failed") <= 90
        assert phases.count("Running") == 300 - phases.count("Failed")

    within(story)


def test_a_pod_whose_annotation_is_wrong_says_so_and_starts_once_it_is_mended():
    async def story(yard):
        await yard.fleet("sim:1")
        target = await yard.pod("a", annotations={"sim.spinney.dev/run-for": "soon"})
        await yard.passes(seconds=1)
        (status,) = yard.document(groupkinds.POD, "a")["status"]["containerStatuses"]
        assert status["state"]["waiting"]["reason"] == "BadAnnotation"
        assert "sim.spinney.dev/run-for" in status["state"]["waiting"]["message"]
        await yard.patch(target, {"metadata": {"annotations": {"sim.spinney.dev/run-for": None}}})
        await yard.passes(seconds=1)
        assert yard.seen("a") == ("Running", True)

    within(story)


@pytest.mark.rule("2.3")
def test_a_pod_starts_only_after_those_it_waits_for_and_says_for_whom():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        after = {"spinney.dev/starts-after": "chat-0-leader=2"}
        await yard.pod("worker", annotations=after)
        await yard.pod("leader-0", labels={"grove.io/podclique": "chat-0-leader"})
        await yard.passes(minutes=1)
        assert yard.seen("worker") == ("Pending", False)
        (status,) = yard.document(groupkinds.POD, "worker")["status"]["containerStatuses"]
        assert "chat-0-leader" in status["state"]["waiting"]["message"]
        assert fleet.statistics().waiting == 1
        await yard.pod("leader-1", labels={"grove.io/podclique": "chat-0-leader"})
        await yard.passes(seconds=1)
        assert yard.seen("worker") == ("Running", True)
        assert fleet.statistics().waiting == 0
        await yard.delete("leader-0")
        await yard.passes(seconds=1)
        assert yard.seen("worker") == ("Running", True)

    within(story)


def test_a_node_that_vanished_does_nothing_until_it_is_back():
    async def story(yard):
        fleet = await yard.fleet("sim:2")
        await yard.pod("a")
        await yard.pod("b", node="sim-1")
        await fleet.wait_quiet()
        await yard.annotate_node("sim-0", **{machines.VANISHED: "true"})
        await yard.passes(seconds=1)
        assert condition(yard.node("sim-0"), "Ready") == "Unknown"
        assert condition(yard.node("sim-1"), "Ready") == "True"
        await yard.delete("a")
        await yard.pod("c")
        await yard.passes(minutes=5)
        assert yard.seen("a") is not None
        assert yard.seen("c") == ("Pending", False)
        roster = Roster(fleet)
        with pytest.raises(Unavailable, match="sim-0"):
            roster.runtime("sim-0")
        await yard.annotate_node("sim-0", **{machines.VANISHED: None})
        await yard.passes(seconds=1)
        assert condition(yard.node("sim-0"), "Ready") == "True"
        assert yard.seen("a") is None
        assert yard.seen("c") == ("Running", True)

    within(story)


def test_a_node_that_is_deleted_stays_away_until_the_next_start():
    async def story(yard):
        await yard.fleet("sim:1")
        await yard.pod("a")
        await yard.passes(seconds=1)
        await yard.delete_node("sim-0")
        await yard.delete("a")
        await yard.passes(minutes=5)
        assert yard.node("sim-0") is None
        assert yard.seen("a") is not None
        await yard.end()
        await yard.fleet("sim:1")
        await yard.passes(seconds=1)
        assert yard.node("sim-0") is not None
        assert yard.seen("a") is None

    within(story)


def test_pods_go_on_where_they_were_when_the_process_is_started_again():
    async def story(yard):
        await yard.fleet("sim:1,ready=10s")
        await yard.pod("a")
        await yard.pod("b", annotations={"sim.spinney.dev/run-for": "1m"}, restartPolicy="Never")
        await yard.passes(seconds=5)
        address = yard.document(groupkinds.POD, "a")["status"]["podIP"]
        await yard.end()
        await yard.passes(seconds=30)
        fleet = await yard.fleet("sim:1,ready=10s")
        await yard.passes(milliseconds=10)
        assert yard.seen("a") == ("Running", True)
        await yard.pod("c")
        await fleet.wait_quiet()
        await yard.passes(seconds=26)
        assert yard.seen("b")[0] == "Succeeded"
        assert yard.document(groupkinds.POD, "a")["status"]["podIP"] == address
        found = {yard.document(groupkinds.POD, name)["status"]["podIP"] for name in "abc"}
        assert len(found) == 3

    within(story)


def test_what_simulated_pods_say_when_asked():
    async def story(yard):
        fleet = await yard.fleet("sim:1")
        await yard.pod("a", annotations={"sim.spinney.dev/usage": "cpu=2,memory=1Gi"})
        await yard.pod("b")
        await fleet.wait_quiet()
        roster = Roster(fleet)
        runtime = roster.runtime("sim-0")
        uid = yard.document(groupkinds.POD, "a")["metadata"]["uid"]
        lines = [part async for part in runtime.logs(uid, "main", None)]
        assert b"simulated" in lines[0]
        with pytest.raises(BadRequest, match="simulated"):
            await runtime.exec(uid, "main", ("ls",), None)
        with pytest.raises(BadRequest, match="simulated"):
            await runtime.connect(uid, 80)
        with pytest.raises(Unavailable):
            roster.runtime("other")
        usage = roster.usage(uid)
        assert usage.containers == {"main": {"cpu": 2 * 10**9, "memory": 2**30 * 10**9}}
        assert roster.usage("nobody") is None
        assert roster.node_usage("sim-0").values["cpu"] == 2 * 10**9 + 10**7

    within(story)


def test_a_thousand_pods_leave_nothing_behind():
    async def story(yard):
        fleet = await yard.fleet("sim:10")
        for index in range(1000):
            await yard.pod(f"p-{index}", node=f"sim-{index % 10}")
        await fleet.wait_quiet()
        assert fleet.statistics().pods == 1000
        assert yard.writes["Pod", "MODIFIED"] == 1000
        await asyncio.gather(*(yard.delete(f"p-{index}") for index in range(1000)))
        await yard.passes(seconds=1)
        assert fleet.statistics().pods == 0
        assert yard.store.list(groupkinds.POD) == []
        fleet.validate()
        assert ref("p-0") not in fleet._lives
        assert len(fleet._addresses) == 0

    within(story)
