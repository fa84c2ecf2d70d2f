"""Autoscaling, as Kubernetes' own: sequences as film strips, and laws.

Laws: never beyond the bounds; never down before the window is over, never up or down faster than
the policies; busier pods never make fewer replicas; at rest nothing is written; stopped after any
write and begun again, the same end (7.1).
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions import autoscaling, demand, metrics, pacing
from spinney.decisions.autoscaling import ABLE, ACTIVE, LIMITED
from spinney.decisions.demand import Load, Shape
from spinney.decisions.usage import Sample
from spinney.meta.documents import Document, Json, object_at
from tests.decisions.strips import START, Strip, busy, cpu, pod

FAST_DOWN: Document = {"scaleDown": {"stabilizationWindowSeconds": 0}}


# One question: how many replicas


@pytest.mark.parametrize(
    ("replicas", "percent", "wanted"),
    [
        (3, 50, 3),  # just what is aimed at
        (3, 55, 3),  # ratio 1.1 is within the tolerance, its edge too
        (3, 56, 4),
        (3, 45, 3),  # ratio 0.9 as well
        (3, 44, 3),  # beyond, but rounded up
        (10, 44, 9),
        (3, 100, 6),
        (2, 75, 3),
        (4, 0, 0),
        (1, 200, 4),
    ],
)
def test_replicas_follow_the_ratio_beyond_the_tolerance(
    replicas: int, percent: int, wanted: int
) -> None:
    strip = Strip(replicas)
    load = Load(now=START, replicas=replicas, samples=strip.equally_busy(percent))
    assert metrics.proposal(cpu(50), load).replicas == wanted


def samples(*told: tuple[str, int | None]) -> tuple[Sample, ...]:
    """Return pods by what is the matter with them, and how busy they are."""
    made = []
    for index, (what, percent) in enumerate(told):
        name = f"it-{index}"
        found = {
            "ready": lambda name=name: pod(name),
            "missing": lambda name=name: pod(name),
            "pending": lambda name=name: pod(name, phase="Pending", ready=False),
            "failed": lambda name=name: pod(name, phase="Failed", ready=False),
            "going": lambda name=name: pod(name, going=True),
            # unready within the first five minutes
            "starting": lambda name=name: pod(
                name, ready=False, began=START - timedelta(seconds=90)
            ),
            # ready, but measured over a window from before that
            "just ready": lambda name=name: pod(
                name, began=START - timedelta(seconds=90), since=START - timedelta(seconds=5)
            ),
            # unready, and never was ready though it started long ago
            "never ready": lambda name=name: pod(name, ready=False),
            # unready after it had been ready: it counts as it is
            "broken": lambda name=name: pod(name, ready=False, since=START - timedelta(seconds=60)),
        }[what]()
        made.append(busy(found, percent, START))
    return tuple(made)


@pytest.mark.parametrize(
    ("told", "replicas", "wanted"),
    [
        # growing: who is not ready counts as using nothing
        ([("ready", 100), ("ready", 100), ("pending", None)], 3, 4),
        ([("ready", 100), ("ready", 100), ("starting", 10)], 3, 4),
        ([("ready", 100), ("ready", 100), ("just ready", 500)], 3, 4),
        ([("ready", 100), ("ready", 100), ("never ready", 500)], 3, 4),
        ([("ready", 80), ("pending", None), ("pending", None)], 3, 3),
        ([("ready", 110), ("pending", None)], 2, 2),
        # growing: who is missing counts as using nothing
        ([("ready", 100), ("ready", 100), ("missing", None)], 3, 4),
        ([("ready", 80), ("missing", None)], 2, 2),
        # shrinking: who is missing counts as using all it asked for
        ([("ready", 10), ("ready", 10), ("missing", None)], 3, 3),
        ([("ready", 10)] * 9 + [("missing", None)], 10, 4),
        # shrinking: who is not ready is left out
        ([("ready", 10), ("ready", 10), ("pending", None)], 3, 1),
        # who ends or failed is no pod at all
        ([("ready", 100), ("going", 0), ("failed", 0)], 1, 2),
        # who was ready once and is not now counts as it is
        ([("ready", 100), ("broken", 100)], 2, 4),
    ],
)
def test_pods_of_which_little_is_known_never_make_the_answer_bolder(
    told: list[tuple[str, int | None]], replicas: int, wanted: int
) -> None:
    load = Load(now=START, replicas=replicas, samples=samples(*told))
    assert metrics.proposal(cpu(50), load).replicas == wanted


def test_a_replica_of_several_pods_is_counted_as_one() -> None:
    """Two copies of four pods, twice as busy as wanted: four copies, not sixteen."""
    strip = Strip(2, pods_per_replica=4)
    load = Load(
        now=START, replicas=2, samples=strip.equally_busy(100), shape=Shape(replicas=2, pods=8)
    )
    assert metrics.proposal(cpu(50), load).replicas == 4
    assert strip.go(100) == 4


def _metric(kind: str, source: Document) -> Document:
    field = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods"}
    return {"type": kind, field[kind]: source}


def _average(value: Json) -> Document:
    return {"type": "AverageValue", "averageValue": value}


@pytest.mark.parametrize(
    ("metric", "wanted", "name", "shown"),
    [
        (
            cpu(50),
            6,
            "cpu resource utilization (percentage of request)",
            {"averageUtilization": 100, "averageValue": "1"},
        ),
        (
            _metric("Resource", {"name": "cpu", "target": _average("250m")}),
            12,
            "cpu resource",
            {"averageValue": "1"},
        ),
        (
            _metric(
                "ContainerResource",
                {
                    "name": "cpu",
                    "container": "main",
                    "target": {"type": "Utilization", "averageUtilization": 20},
                },
            ),
            15,
            "cpu container resource utilization (percentage of request)",
            {"averageUtilization": 100, "averageValue": "1"},
        ),
        (
            _metric("Pods", {"metric": {"name": "calls"}, "target": _average("30")}),
            10,
            "pods metric calls",
            {"averageValue": "100"},
        ),
    ],
)
def test_every_sort_of_metric_is_asked(
    metric: Document, wanted: int, name: str, shown: Document
) -> None:
    load = Load(now=START, replicas=3, samples=Strip(3).equally_busy(100))
    found = metrics.proposal(metric, load)
    assert (found.replicas, found.name) == (wanted, name)
    (source,) = [value for key, value in found.status.items() if key != "type"]
    assert object_at(source, ["current"]) == shown


@pytest.mark.parametrize(
    ("metric", "told", "says"),
    [
        (cpu(), [], "no metrics returned from resource metrics API"),
        (cpu(), [("missing", None)], "no metrics returned from resource metrics API"),
        (
            cpu(),
            [("starting", 10)],
            "failed to get cpu utilization: did not receive metrics for targeted pods",
        ),
        (
            _metric("Pods", {"metric": {"name": "calls"}, "target": _average("1")}),
            [("pending", 10)],
            "failed to get pods metric value: did not receive metrics for targeted pods",
        ),
        (
            _metric(
                "Pods",
                {"metric": {"name": "calls", "selector": {"a": "b"}}, "target": _average("1")},
            ),
            [("ready", 10)],
            "metric calls is served without a selector only",
        ),
        (_metric("Pods", {"metric": {"name": "calls"}}), [("ready", 10)], "no average value"),
        (
            _metric("Resource", {"name": "cpu", "target": {"type": "Value", "value": "1"}}),
            [("ready", 10)],
            "neither an average utilization target nor an average value target was set",
        ),
        (
            _metric(
                "ContainerResource",
                {"name": "cpu", "container": "other", "target": {"averageUtilization": 5}},
            ),
            [("ready", 10)],
            "container other not present in metrics for pod it-0",
        ),
        (
            _metric("Pods", {"metric": {"name": "queue"}, "target": _average("1")}),
            [("ready", 10)],
            "unable to get metric queue: no metrics returned from custom metrics API",
        ),
        ({"type": "External"}, [("ready", 10)], "nobody here serves metrics of type External"),
        ({"type": "Object"}, [("ready", 10)], "nobody here serves metrics of type Object"),
        ({"type": "Moon"}, [("ready", 10)], 'unknown metric source type "Moon"'),
        ({}, [("ready", 10)], 'unknown metric source type ""'),
    ],
)
def test_a_metric_without_an_answer_says_why(
    metric: Document, told: list[tuple[str, int | None]], says: str
) -> None:
    load = Load(now=START, replicas=1, samples=samples(*told))
    with pytest.raises(demand.Failed, match=says):
        metrics.proposal(metric, load)


def test_a_pod_without_a_request_has_no_utilization() -> None:
    load = Load(now=START, replicas=1, samples=(busy(pod("it-0", requests=None), 5, START),))
    with pytest.raises(demand.Failed, match="missing request for cpu in container main of Pod it"):
        metrics.proposal(cpu(), load)


# Sequences


def test_a_burst_grows_at_once_and_stays_through_the_window() -> None:
    """Half a minute of load on an idle target: it grows at once, and is calm when it is over."""
    strip = Strip(2, least=2)
    assert strip.run(50, 2) == [2, 2]
    assert strip.run(200, 2) == [6, 12]  # 8 and 24 are asked for: by four pods, then by doubling
    assert strip.reason(LIMITED) == ("True", "ScaleUpLimit")
    assert strip.run(17, 20) == [12] * 20
    assert strip.run(17, 1) == [5]


@pytest.mark.parametrize(
    ("replicas", "percent", "wanted"),
    [
        (1, 5000, [5, 10, 20, 40]),  # four more, then twice as many
        (8, 5000, [16, 32, 64, 100]),  # never beyond the most
        (3, 100, [6, 12, 24, 48]),
    ],
)
def test_growth_keeps_to_its_policies(replicas: int, percent: int, wanted: list[int]) -> None:
    assert Strip(replicas).run(percent, 4) == wanted


def test_growth_within_one_period_counts_as_one() -> None:
    """Woken in between, an autoscaler does not double twice."""
    strip = Strip(8)
    assert strip.go(5000) == 16
    assert [strip.go(5000, seconds=3) for _ in range(4)] == [16] * 4
    assert strip.reason(LIMITED) == ("True", "ScaleUpLimit")
    assert strip.go(5000, seconds=3) == 32


def test_a_target_shrinks_when_five_minutes_have_passed_and_not_before() -> None:
    strip = Strip(10, most=10)
    assert strip.go(50) == 10
    calm = strip.run(5, 20)
    assert calm == [10] * 20
    assert strip.reason(ABLE) == ("True", "ScaleDownStabilized")
    assert strip.go(5) == 1
    assert strip.reason(ABLE) == ("True", "SucceededRescale")
    assert strip.autoscaler.status.last_scale_time == strip.now


def test_the_highest_of_the_window_counts() -> None:
    """It shrinks to what was asked for at the worst within the last five minutes."""
    strip = Strip(10, most=10)
    strip.go(50)
    strip.run(20, 10)  # asks for 4
    strip.go(35)  # asks for 7
    strip.run(20, 9)
    assert strip.replicas == 10
    assert strip.run(20, 2)[-1] == 7
    shrunk = strip.run(20 * 10 // 7, 20)
    assert shrunk[0] == 7
    assert shrunk[-1] < 7


def test_a_new_autoscaler_does_not_shrink_for_a_window() -> None:
    assert Strip(10).run(1, 20) == [10] * 20


@pytest.mark.parametrize(
    ("behavior", "replicas", "percent", "wanted"),
    [
        (FAST_DOWN, 10, 5, [1, 1]),
        (
            {"scaleDown": {"selectPolicy": "Disabled", **object_at(FAST_DOWN, ["scaleDown"])}},
            9,
            5,
            [9, 9],
        ),
        ({"scaleUp": {"selectPolicy": "Disabled"}}, 3, 200, [3, 3]),
        (
            {
                "scaleDown": {
                    "stabilizationWindowSeconds": 0,
                    "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
                }
            },
            10,
            5,
            [8, 8, 8, 8, 6, 6, 6, 6, 4],
        ),
        (
            {
                "scaleDown": {
                    "stabilizationWindowSeconds": 0,
                    "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}],
                }
            },
            100,
            1,
            [90, 81, 72, 64],
        ),
        (
            {
                "scaleUp": {
                    "selectPolicy": "Min",
                    "policies": [
                        {"type": "Pods", "value": 1, "periodSeconds": 15},
                        {"type": "Percent", "value": 900, "periodSeconds": 15},
                    ],
                }
            },
            3,
            500,
            [4, 5, 6],
        ),
        # a window of growing: the least asked for within it
        ({"scaleUp": {"stabilizationWindowSeconds": 45}}, 3, 100, [3, 3, 3, 6]),
        # a tolerance of its own
        ({"scaleUp": {"tolerance": "0.6"}}, 4, 80, [4, 4]),
        ({"scaleUp": {"tolerance": "0"}}, 4, 51, [5]),
    ],
)
def test_behavior_is_kept_to(
    behavior: Document, replicas: int, percent: int, wanted: list[int]
) -> None:
    strip = Strip(replicas, behavior=behavior)
    assert strip.go(50) == replicas
    assert strip.run(percent, len(wanted)) == wanted


def test_of_several_metrics_the_highest_counts() -> None:
    calls = _metric("Pods", {"metric": {"name": "calls"}, "target": _average("20")})
    assert Strip(2, metrics=[cpu(50), calls]).go(100) == 6
    assert Strip(2, metrics=[calls, cpu(50)]).go(100) == 6


def test_a_failing_metric_holds_shrinking_back_and_not_growing() -> None:
    strip = Strip(4, metrics=[cpu(50), {"type": "External"}], behavior=FAST_DOWN)
    assert strip.go(10) == 4
    assert strip.reason(ACTIVE) == ("False", "FailedGetExternalMetric")
    assert strip.go(100) == 8
    status, reason, message = strip.told(ACTIVE)
    assert (status, reason) == ("True", "ValidMetricFound")
    assert "1 of 2 metrics gave no answer" in message


@pytest.mark.rule("1.10")
def test_without_anybody_who_measures_it_says_so_once() -> None:
    strip = Strip(3)
    assert strip.run(None, 3) == [3, 3, 3]
    assert strip.told(ACTIVE) == (
        "False",
        "FailedGetResourceMetric",
        "the HPA was unable to compute the replica count: failed to get cpu utilization: unable "
        "to get metrics for resource cpu: no metrics returned from resource metrics API",
    )
    assert strip.reason(ABLE) == ("True", "SucceededGetScale")
    assert [event.reason for event in strip.events] == ["FailedGetResourceMetric"]


def test_a_target_out_of_bounds_is_brought_back_whatever_is_measured() -> None:
    above = Strip(12, most=10)
    assert above.go(None) == 10
    assert above.events[0].note == (
        "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"
    )
    below = Strip(1, least=3)
    assert below.go(None) == 3
    assert below.events[0].note == (
        "New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    )


@pytest.mark.rule("2.7")
def test_a_target_at_rest_is_left_alone() -> None:
    strip = Strip(0)
    assert strip.run(100, 2) == [0, 0]
    assert strip.told(ACTIVE) == (
        "False",
        "ScalingDisabled",
        "scaling is disabled since the replica count of the target is zero",
    )


@pytest.mark.rule("2.7")
def test_a_target_is_never_brought_below_its_own_floor() -> None:
    strip = Strip(5, least=1, floor=3, behavior=FAST_DOWN)
    assert strip.go(1) == 3
    assert strip.reason(LIMITED) == ("True", "TooFewReplicas")


def test_bounds_that_a_target_cannot_keep_are_told() -> None:
    strip = Strip(5, least=1, most=2, floor=3)
    assert strip.run(10, 2) == [5, 5]
    status, reason, message = strip.told(ABLE)
    assert (status, reason) == ("False", "FailedUpdateScale")
    assert message.endswith("the target needs at least 3 replicas, maxReplicas is 2")


def test_an_autoscaler_beside_another_keeps_out_of_its_bounds_too() -> None:
    """Two with bounds apart would pull a target to and fro."""
    strip = Strip(5, least=8)
    seen = msgspec.structs.replace(strip.seen(strip.equally_busy(50)), rival="other")
    strip.carry_out(autoscaling.decide(seen))
    assert strip.replicas == 5
    assert strip.reason(ACTIVE) == ("False", "AmbiguousSelector")


@pytest.mark.rule("5.8")
def test_a_target_of_a_fixed_size_is_not_scaled() -> None:
    strip = Strip(3, refusal="a Training workload has a fixed size")
    assert strip.run(200, 2) == [3, 3]
    status, reason, message = strip.told(ABLE)
    assert (status, reason) == ("False", "FailedUpdateScale")
    assert message.endswith("a Training workload has a fixed size")
    assert len(strip.events) == 1


def test_what_stands_in_the_way_is_told() -> None:
    strip = Strip(3)
    seen = strip.seen(strip.equally_busy(100))
    gone = msgspec.structs.replace(seen, target=None, why_no_target='podcliques "it" not found')
    strip.carry_out(autoscaling.decide(gone))
    assert strip.told(ABLE) == (
        "False",
        "FailedGetScale",
        "the HPA controller was unable to get the target's current scale: "
        'podcliques "it" not found',
    )
    assert seen.target is not None
    blind = msgspec.structs.replace(seen, target=msgspec.structs.replace(seen.target, selector=""))
    strip.carry_out(autoscaling.decide(blind))
    assert strip.reason(ACTIVE) == ("False", "InvalidSelector")
    strip.carry_out(autoscaling.decide(msgspec.structs.replace(seen, rival="other")))
    assert strip.told(ACTIVE) == (
        "False",
        "AmbiguousSelector",
        "pods by selector app=it are controlled by multiple HPAs: other, it",
    )
    assert strip.replicas == 3


def test_a_rescale_is_told() -> None:
    strip = Strip(2)
    assert strip.go(100) == 4
    assert [event.note for event in strip.events] == [
        "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    ]
    status = strip.autoscaler.status
    assert (status.current_replicas, status.desired_replicas) == (2, 4)
    assert strip.go(50) == 4
    status = strip.autoscaler.status
    assert (status.current_replicas, status.desired_replicas) == (4, 4)
    assert strip.reason(ABLE) == ("True", "ReadyForNewScale")
    assert strip.reason(ACTIVE) == ("True", "ValidMetricFound")
    assert strip.reason(LIMITED) == ("False", "DesiredWithinRange")


def test_an_autoscaler_that_is_being_deleted_does_nothing() -> None:
    strip = Strip(2)
    metadata = object_at(strip.document, ["metadata"])
    strip.document = {
        **strip.document,
        "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    assert strip.decide(strip.equally_busy(100)) == autoscaling.Decision()


# Laws

PERCENTS = st.one_of(st.integers(0, 400), st.none())
STORIES = st.lists(st.tuples(st.integers(1, 40), PERCENTS), min_size=1, max_size=40)


@pytest.mark.law
@given(st.integers(0, 30), st.integers(1, 10), st.integers(0, 20), STORIES)
def test_never_beyond_the_bounds(
    replicas: int, least: int, more: int, story: list[tuple[int, int | None]]
) -> None:
    strip = Strip(replicas, least=least, most=least + more)
    for seconds, percent in story:
        after = strip.go(percent, seconds)
        assert after == 0 if replicas == 0 else least <= after <= least + more


@pytest.mark.law
@given(st.integers(1, 30), st.integers(0, 90), STORIES)
def test_never_down_before_the_window_is_over(
    replicas: int, window_seconds: int, story: list[tuple[int, int | None]]
) -> None:
    """Replicas never go below what was asked for, by any look within the window."""
    behavior: Document = {"scaleDown": {"stabilizationWindowSeconds": window_seconds}}
    strip = Strip(replicas, behavior=behavior)
    asked = [(strip.now + timedelta(seconds=story[0][0]), replicas)]
    for seconds, percent in story:
        strip.now += timedelta(seconds=seconds)
        before, found = strip.replicas, strip.equally_busy(percent)
        if percent is not None:
            load = Load(now=strip.now, replicas=before, samples=found)
            asked.append((strip.now, metrics.proposal(cpu(), load).replicas))
        strip.look(found)
        if strip.replicas < before:
            since = strip.now - timedelta(seconds=window_seconds)
            assert strip.replicas >= max([1, *(n for at, n in asked if at > since)])


@pytest.mark.law
@given(st.integers(1, 20), STORIES)
def test_never_faster_than_the_policies(replicas: int, story: list[tuple[int, int | None]]) -> None:
    """Within any 15 seconds, at most by four pods or twice as many."""
    strip = Strip(replicas, most=10_000)
    path = [(strip.now, replicas)]
    for seconds, percent in story:
        strip.go(percent, seconds)
        path.append((strip.now, strip.replicas))
        for at, count in path:
            if strip.now - at < timedelta(seconds=15):
                assert strip.replicas <= max(count + 4, 2 * count)


WHATS = st.sampled_from(["ready", "missing", "pending", "starting", "broken"])


@pytest.mark.law
@given(st.lists(st.tuples(WHATS, st.integers(0, 300)), min_size=1, max_size=8), st.data())
def test_busier_pods_never_make_fewer_replicas(
    told: list[tuple[str, int]], data: st.DataObject
) -> None:
    known = [(w, None if w in ("missing", "pending") else p) for w, p in told]
    more = [(w, None if p is None else p + data.draw(st.integers(0, 100))) for w, p in known]
    found = []
    for each in (known, more):
        load = Load(now=START, replicas=len(told), samples=samples(*each))
        try:
            found.append(metrics.proposal(cpu(50), load).replicas)
        except demand.Failed:
            return
    assert found[0] <= found[1]


@pytest.mark.law
@given(st.integers(1, 20), STORIES, st.integers(0, 200))
def test_at_rest_nothing_is_written(
    replicas: int, story: list[tuple[int, int | None]], percent: int
) -> None:
    strip = Strip(replicas, most=30)
    for seconds, before in story:
        strip.go(before, seconds)
    settled = strip.run(percent, 45)[-1]
    written = strip.write_count
    assert strip.run(percent, 8) == [settled] * 8
    assert strip.write_count == written


@pytest.mark.law
@pytest.mark.rule("7.1")
@given(st.integers(1, 20), STORIES, st.data())
def test_stopped_after_any_write_it_goes_on_as_if_it_had_not_been(
    replicas: int, story: list[tuple[int, int | None]], data: st.DataObject
) -> None:
    steady, cut = Strip(replicas, most=40), Strip(replicas, most=40)
    for seconds, percent in story:
        for strip in (steady, cut):
            strip.now += timedelta(seconds=seconds)
        steady.look(steady.equally_busy(percent))
        found = cut.equally_busy(percent)
        cut.carry_out(cut.decide(found), data.draw(st.integers(0, 3), label="writes"))
        cut = cut.restarted()
        cut.look(found)
        assert cut.replicas == steady.replicas


WORDS = [
    "type",
    "resource",
    "pods",
    "name",
    "target",
    "averageUtilization",
    "metric",
    "averageValue",
    "containerResource",
    "container",
    "scaleUp",
    "scaleDown",
    "policies",
    "periodSeconds",
    "value",
    "tolerance",
    "selectPolicy",
    "stabilizationWindowSeconds",
]


@pytest.mark.law
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(WORDS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.text(max_size=40),
)
def test_whatever_decodes_is_decided(value: Json, memory: str) -> None:
    """Totality: odd metrics, behaviour and memory give a decision, never an exception."""
    document = value if isinstance(value, dict) else {"type": value}
    strip = Strip(3, metrics=[document, {"type": "Resource", **document}], behavior=document)
    annotated = {
        **object_at(strip.document, ["metadata"]),
        "annotations": {autoscaling.MEMORY: memory},
    }
    strip.document = {**strip.document, "metadata": annotated}
    strip.go(100)
    assert 1 <= strip.replicas <= 100


@pytest.mark.law
@given(
    st.integers(),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9999)), max_size=5),
)
def test_a_memory_comes_back_as_it_was(asked: int, rows: list[tuple[int, int]]) -> None:
    earlier = tuple(
        pacing.Asked(replicas=n, until=START + timedelta(milliseconds=at)) for n, at in rows
    )
    changes = tuple(
        pacing.Change(at=START + timedelta(milliseconds=at), before=n, after=n + 1)
        for n, at in rows
    )
    memory = pacing.Memory(asked=asked, earlier=earlier, changes=changes)
    assert pacing.memory_from(pacing.text_of(memory)) == memory


def test_a_memory_stays_small() -> None:
    """An hour of noise: only what can still matter is kept."""
    strip = Strip(10, most=30, behavior={"scaleDown": {"stabilizationWindowSeconds": 3600}})
    for step in range(300):
        strip.go((step * 37) % 120)
    memory = strip.autoscaler.metadata.annotations[autoscaling.MEMORY]
    assert len(memory) < 4000
