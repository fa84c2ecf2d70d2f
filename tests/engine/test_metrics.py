"""Metrics: each is declared, documented, and says what happened."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from pathlib import Path

import pytest

from spinney.api.core.pod import Pod
from spinney.engine import gangs, metrics
from spinney.engine.gangs import GangWaits, UpdateAges
from spinney.engine.metrics import Gauge, NoMetrics, PrometheusMetrics
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.testing import build
from tests.engine.worlds import clique, in_world, seconds, toy

ROOT = Path(__file__).resolve().parents[2]
DECLARED = {**metrics.COUNTERS, **metrics.DURATIONS, **metrics.GAUGES}
POD = GroupKind(group="", kind="Pod")


@pytest.mark.parametrize("name", DECLARED)
def test_each_metric_has_a_row_in_the_reference(name):
    page = (ROOT / "docs/reference/metrics.md").read_text()
    labels = ", ".join(f"`{label}`" for label in DECLARED[name].labels) or "none"
    row = next((line for line in page.splitlines() if line.startswith(f"| `{name}`")), "")
    assert row, f"docs/reference/metrics.md has no row for {name}"
    assert f"| {labels} |" in row
    for word in re.findall(r"[a-z]+", DECLARED[name].doc.partition(": ")[2].lower()):
        assert word in row.lower(), f"{name}: the page does not say {word}"


def test_the_reference_names_no_metric_there_is_not():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    assert {*re.findall(r"`(spinney_\w+)`", page)} == {*DECLARED}


def test_what_has_not_happened_is_there_already():
    text = PrometheusMetrics().text().decode()
    for name in DECLARED:
        assert f"# TYPE {name.removesuffix('_total')}" in text


def test_no_metrics_takes_all_that_metrics_takes():
    for name, method in inspect.getmembers(NoMetrics, inspect.isfunction):
        assert inspect.signature(method) == inspect.signature(getattr(PrometheusMetrics, name))


def test_gauges_are_read_when_asked_for():
    made, now = PrometheusMetrics(), [1]
    made.watch(lambda: [Gauge(name="spinney_leader", value=now[0])])
    assert b"spinney_leader 1.0" in made.text()
    now[0] = 0
    assert b"spinney_leader 0.0" in made.text()


def test_a_run_is_measured():
    async def story(bench):
        await bench.user.create(clique(replicas=2))
        async with bench.running(toy()):
            measured = bench.measured
            assert measured("spinney_actions_total", action="create", result="changed") == 2
            assert measured("spinney_actions_total", action="status", result="changed") == 1
            assert measured("spinney_reconciles_total", controller="toy", result="done") >= 2
            assert measured("spinney_wakeups_total", by="ConfigMap") == 2
            assert measured("spinney_wakeups_total", by="PodClique") == 1
            assert measured("spinney_queue_wait_seconds_count", controller="toy") >= 2
            assert measured("spinney_decide_seconds_count", controller="toy") >= 2
            assert measured("spinney_reconcile_seconds_count", controller="toy") >= 1
            for state in ("ready", "delayed", "under_way", "failing"):
                assert measured("spinney_queue_keys", state=state) == 0

    in_world(story)


def pod(name, gang="chat-0"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"grove.io/podgang": gang}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }


def test_a_gang_waits_until_its_last_pod_has_a_node():
    async def story(bench):
        GangWaits(bench.reader, bench.clock, bench.metrics)
        names = ("a", "b", "c")
        for name in names:
            await bench.user.create(pod(name))
        await bench.user.create(pod("other", gang="chat-1"))
        assert bench.measured("spinney_gangs_waiting") == 2
        for name in names:
            await bench.clock.sleep(seconds(10))
            assert bench.measured("spinney_gang_wait_seconds_count") == 0
            target = Ref(kind=POD, namespace="default", name=name)
            await bench.network.bind(target, "one", Precondition())
        assert bench.measured("spinney_gang_wait_seconds_count") == 1
        assert bench.measured("spinney_gang_wait_seconds_sum") == 30
        assert bench.measured("spinney_gangs_waiting") == 1
        other = Ref(kind=POD, namespace="default", name="other")
        await bench.user.delete(other, Precondition(), grace_seconds=0, propagation="Background")
        assert bench.reader.get(Pod, "default", "other") is None
        assert bench.measured("spinney_gangs_waiting") == 0
        assert bench.measured("spinney_gang_wait_seconds_count") == 1

    in_world(story)


def test_the_age_of_an_update_is_that_of_its_last_progress():
    async def story(bench):
        UpdateAges(bench.reader, bench.clock, bench.metrics)
        document = build.podcliqueset("chat").with_clique("decode", replicas=1).document()
        await bench.user.create(document)
        target = Ref(kind=gangs.SET, namespace="default", name="chat")
        assert bench.measured("spinney_update_step_age_seconds") == 0
        progress = {
            "updateStartedAt": "2026-01-01T00:00:00Z",
            "lastProgressAt": "2026-01-01T00:01:00Z",
        }
        version = bench.document(target)["metadata"]["resourceVersion"]
        written = await bench.network.put_status(
            target, {"rollingUpdateProgress": progress}, version
        )
        await bench.clock.sleep(timedelta(minutes=5))
        age = bench.measured("spinney_update_step_age_seconds", namespace="default", name="chat")
        assert age == 240
        progress["updateEndedAt"] = "2026-01-01T00:02:00Z"
        await bench.network.put_status(
            target, {"rollingUpdateProgress": progress}, written.resource_version
        )
        assert bench.measured("spinney_update_step_age_seconds") == 0

    in_world(story)
