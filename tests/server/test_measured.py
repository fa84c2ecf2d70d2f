"""metrics.k8s.io: what is known of usage, and that what is not known is left out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.decisions.usage import NodeUsage, PodUsage
from tests.server.machines import NODE
from tests.server.manned import manned, place
from tests.server.served import READER, TABLE

BASE = "/apis/metrics.k8s.io/v1beta1"
PODS_USED = f"{BASE}/namespaces/default/pods"
MILLI, MEBI = 10**6, 2**20 * 10**9


async def measured(client, machine):
    """Make three pods, of which two are measured, and two nodes, of which one is."""
    for name in (NODE, "silent"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        assert (await client.post("/api/v1/nodes", node)).status == 201
    now = client.clock.now()
    machine.node_usages[NODE] = NodeUsage(
        measured_at=now, values={"cpu": 1500 * MILLI, "memory": 512 * MEBI, "nvidia.com/gpu": 1}
    )
    for name, label in (("one", "a"), ("two", "b"), ("unknown", "a")):
        uid = await place(client, name, containers=("main", "side"), labels={"app": label})
        if name != "unknown":
            machine.usages[uid] = PodUsage(
                measured_at=now,
                window=timedelta(seconds=10),
                containers={
                    "main": {"cpu": 12_345_678, "memory": 34 * MEBI},
                    "side": {"cpu": 0, "memory": 1000 * 10**9},
                },
            )


@manned
async def test_a_pods_usage_is_told_by_container(client, machine):
    await measured(client, machine)
    answer = await client.get(f"{PODS_USED}/one", token=READER)
    assert answer.json == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {
            "name": "one",
            "namespace": "default",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "a"},
        },
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "10s",
        "containers": [
            {"name": "main", "usage": {"cpu": "12345678n", "memory": "34Mi"}},
            {"name": "side", "usage": {"cpu": "0", "memory": "1k"}},
        ],
    }


@manned
async def test_a_nodes_usage_is_told(client, machine):
    await measured(client, machine)
    answer = await client.get(f"{BASE}/nodes/{NODE}")
    assert answer.json["usage"] == {"cpu": "1500m", "memory": "512Mi"}
    assert (answer.json["kind"], answer.json["window"]) == ("NodeMetrics", "15s")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (PODS_USED, ["one", "two"]),
        (f"{BASE}/pods", ["one", "two"]),
        (f"{PODS_USED}?labelSelector=app%3Da", ["one"]),
        (f"{PODS_USED}?fieldSelector=metadata.name%3Dtwo", ["two"]),
        (f"{BASE}/namespaces/other/pods", []),
        (f"{BASE}/nodes", [NODE]),
    ],
)
@manned
async def test_lists_hold_what_is_known(client, machine, path, names):
    await measured(client, machine)
    answer = await client.get(path)
    assert answer.json["kind"].endswith("MetricsList")
    assert [item["metadata"]["name"] for item in answer.json["items"]] == names


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{PODS_USED}/unknown", 'podmetrics.metrics.k8s.io "default/unknown" not found'),
        (f"{PODS_USED}/absent", 'podmetrics.metrics.k8s.io "default/absent" not found'),
        (f"{BASE}/nodes/silent", 'nodemetrics.metrics.k8s.io "silent" not found'),
    ],
)
@manned
async def test_what_is_not_known_is_not_there(client, machine, path, message):
    await measured(client, machine)
    answer = await client.get(path)
    assert (answer.status, answer.json["message"]) == (404, message)


@manned
async def test_usage_as_tables_and_metadata(client, machine):
    await measured(client, machine)
    answer = await client.get(PODS_USED, Accept=TABLE)
    assert [column["name"] for column in answer.json["columnDefinitions"]] == [
        *("Name", "cpu", "memory", "Window")
    ]
    assert [row["cells"] for row in answer.json["rows"]] == [
        ["one", "12345678n", "35652584", "10s"],
        ["two", "12345678n", "35652584", "10s"],
    ]
    one = await client.get(f"{BASE}/nodes/{NODE}", Accept=TABLE)
    assert [row["cells"] for row in one.json["rows"]] == [[NODE, "1500m", "512Mi", "15s"]]
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    partial = await client.get(PODS_USED, Accept=accept)
    assert [item["metadata"]["name"] for item in partial.json["items"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", PODS_USED, 405),
        ("DELETE", f"{PODS_USED}/one", 405),
        ("GET", f"{PODS_USED}?watch=true", 405),
        ("GET", f"{BASE}/watch/pods", 405),
        ("GET", f"{PODS_USED}/one/status", 404),
        ("GET", f"{BASE}/pods/one", 404),
        ("GET", f"{BASE}/namespaces/default/nodes", 404),
        ("GET", f"{BASE}/services", 404),
        ("GET", "/apis/metrics.k8s.io/v1/nodes", 404),
        ("GET", f"{PODS_USED}?labelSelector=(", 400),
    ],
)
@manned
async def test_nothing_else_can_be_asked(client, machine, method, path, code):
    await measured(client, machine)
    answer = await client.do(method, path)
    assert (answer.status, answer.json["kind"]) == (code, "Status")


@manned
async def test_the_group_is_told_of(client, machine):
    answer = await client.get("/apis/metrics.k8s.io/v1beta1")
    assert [(item["name"], item["kind"]) for item in answer.json["resources"]] == [
        *(("nodes", "NodeMetrics"), ("pods", "PodMetrics"))
    ]
    groups = (await client.get("/apis")).json["groups"]
    assert "metrics.k8s.io" in [group["name"] for group in groups]
