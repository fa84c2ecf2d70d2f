"""`spinney up --nodes sim:…`: gangs run on simulated nodes, by real commands alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from worlds import World

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.end()


def pods(world):
    found = json.loads(world.run("get", "pods", "-o", "json").stdout)["items"]
    return {each["metadata"]["name"]: each for each in found}


def test_a_set_becomes_ready_on_simulated_nodes_and_survives_a_restart(world):
    flags = ("--nodes", "sim:100,cpu=64,memory=512Gi,nvidia.com/gpu=8,topology=zone:2/rack:5")
    up = world.up(*flags)
    assert f"  nodes        {flags[1]}\n" in up.stdout
    nodes = json.loads(world.run("get", "nodes", "-o", "json").stdout)["items"]
    assert len(nodes) == 100
    racks = {node["metadata"]["labels"]["topology.spinney.dev/rack"] for node in nodes}
    assert len(racks) == 10
    done = world.run("apply", "-f", EXAMPLES / "startup-order.yaml")
    assert done.returncode == 0, done.stderr
    done = world.run("wait", "podgangs", "--all", "--for=condition=Ready", "--timeout=30s")
    assert done.returncode == 0, done.stderr
    before = pods(world)
    assert before
    assert all(each["status"]["phase"] == "Running" for each in before.values())
    assert json.loads(world.run("status", "-o", "json").stdout)["nodes"] == [flags[1]]
    world.run("down")
    world.up(*flags)
    after = pods(world)
    assert {name: each["metadata"]["resourceVersion"] for name, each in after.items()} == {
        name: each["metadata"]["resourceVersion"] for name, each in before.items()
    }
    done = world.run("delete", "pods", "--all", "--timeout=20s")
    assert done.returncode == 0, done.stderr
    done = world.run("wait", "podgangs", "--all", "--for=condition=Ready", "--timeout=30s")
    assert done.returncode == 0, done.stderr
