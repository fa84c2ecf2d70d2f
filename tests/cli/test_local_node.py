"""This machine as a node: real processes, from `spinney up` to `down`; and what is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from worlds import World

from spinney.app.datafolder import AgentFolder
from spinney.nodes.processes import leftovers

WAIT_SECONDS = 40

SERVER = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_):
        print("asked", flush=True)
print("hello from", os.environ["GROVE_PCLQ_NAME"], flush=True)
http.server.HTTPServer((os.environ["POD_IP"], 8000), Answer).serve_forever()
"""


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.end()
    assert processes(made) == []


def clique(name, command, starts_after=(), **fields):
    """Return a clique whose pods run a command."""
    container = {"name": "main", "image": "local", "command": command, **fields}
    spec = {
        "roleName": name,
        "replicas": 1,
        "startsAfter": [*starts_after],
        "podSpec": {"containers": [container], "terminationGracePeriodSeconds": 2},
    }
    return {"name": name, "spec": spec}


def system():
    """Return a set of a leader that serves, and a worker that starts after it."""
    probe = {"httpGet": {"port": 8000, "path": "/"}, "periodSeconds": 1}
    leader = clique("lead", ["python3", "-c", SERVER], readinessProbe=probe)
    worker = clique("work", ["sh", "-c", "echo here; exec sleep 1000"], starts_after=["lead"])
    template = {"cliques": [leader, worker], "cliqueStartupType": "CliqueStartupTypeExplicit"}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"replicas": 1, "template": template},
    }


def until(world, holds):
    """Wait for something to hold of the pods, by name; returns them."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        done = world.run("get", "pods", "-o", "json")
        items = json.loads(done.stdout)["items"] if done.returncode == 0 else []
        pods = {pod["metadata"]["name"]: pod for pod in items}
        if holds(pods):
            return pods
        assert time.monotonic() < end, json.dumps([pod["status"] for pod in pods.values()])


def is_ready(pod):
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in pod["status"].get("conditions", ())
    )


def both_ready(pods):
    return len(pods) == 2 and all(map(is_ready, pods.values()))


def first(pod):
    return pod["status"]["containerStatuses"][0]


def processes(world):
    """Return all processes of containers of this world."""
    named = world.root / "pods" / ".shared" / "world"
    return leftovers.marked(named.read_text().strip()) if named.exists() else []


def agent(world):
    return AgentFolder(Path(world.root)).holder()


def holder(world):
    return json.loads((world.root / "holder").read_text())["pid"]


def kill(pid):
    """Kill a process, and wait until it is gone."""
    descriptor = os.pidfd_open(pid)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(20_000)
    os.close(descriptor)


@pytest.mark.rule("2.3")
def test_a_gang_runs_as_processes_and_nothing_is_left_of_it(world):
    """Placed, started in order, ready, deleted; after `down` no process is left."""
    world.up("--nodes", "local")
    assert world.run("apply", "-f", "-", stdin=json.dumps(system())).returncode == 0
    pods = until(world, both_ready)
    began = {name: first(pod)["state"]["running"]["startedAt"] for name, pod in pods.items()}
    assert began["demo-0-lead-0"] <= began["demo-0-work-0"]
    log = (world.root / "pods" / pods["demo-0-lead-0"]["metadata"]["uid"]).rglob("0.log")
    assert "hello from demo-0-lead" in next(log).read_text()
    assert len(processes(world)) >= 2
    told = world.run("status")
    assert "agent        process" in told.stdout
    held = agent(world)
    down = world.run("down")
    assert (down.returncode, agent(world)) == (0, None)
    assert processes(world) == []
    with pytest.raises(ProcessLookupError):
        os.kill(held.pid, 0)


def test_pods_outlive_the_control_plane_and_not_the_agent(world):
    """The one is killed: pods run on, and the next takes them on. The other: they are ended."""
    world.up("--nodes", "local")
    world.run("apply", "-f", "-", stdin=json.dumps(system()))
    until(world, both_ready)
    running, held = processes(world), agent(world)
    kill(holder(world))
    assert processes(world) == running
    world.up("--nodes", "local")
    pods = until(world, both_ready)
    assert agent(world).pid == held.pid
    assert [first(pod)["restartCount"] for pod in pods.values()] == [0, 0]
    assert processes(world) == running

    kill(held.pid)
    pods = until(world, lambda pods: both_ready(pods) and all(map(restarted, pods.values())))
    lasts = [first(pod)["lastState"]["terminated"] for pod in pods.values()]
    assert [last["reason"] for last in lasts] == ["ContainerStatusUnknown"] * 2
    assert agent(world).pid != held.pid
    assert not set(running) & set(processes(world))

    kill(holder(world))
    assert len(processes(world)) >= 2
    down = world.run("down")
    assert (down.returncode, agent(world)) == (0, None)


def restarted(pod):
    return first(pod)["restartCount"] == 1


def test_an_agent_of_another_world_ends_with_its_pods(world):
    """The world was kept in memory and is gone: the next one knows nothing of its processes."""
    memory = ("--nodes", "local", "--durability", "memory")
    world.up(*memory)
    world.run("apply", "-f", "-", stdin=json.dumps(system()))
    until(world, both_ready)
    held = agent(world)
    kill(holder(world))
    world.up(*memory)
    assert agent(world).pid != held.pid
    assert processes(world) == []
    world.run("apply", "-f", "-", stdin=json.dumps(system()))
    until(world, both_ready)
