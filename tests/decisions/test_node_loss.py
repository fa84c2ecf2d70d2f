"""What becomes of pods whose node does not answer, drives them away, or is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.node import Node, NodeSpec, NodeStatus, Taint
from spinney.api.core.pod import Pod, PodSpec, PodStatus
from spinney.decisions import node_loss, node_taints
from spinney.decisions.actions import Delete, Emit, Patch
from spinney.meta.conditions import Condition
from spinney.meta.metadata import ObjectMeta

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
READY = (Condition(type="Ready", status="True"),)
UNKNOWN = (Condition(type="Ready", status="Unknown"),)


def node(*taints, conditions=READY, unschedulable=False):
    return Node(
        metadata=ObjectMeta(name="one", uid="n"),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(conditions=conditions),
    )


def silent(since=LONG_AGO):
    """Return a node that has not answered for a while, with the taints that follow."""
    tainted = node_taints.taints(node(conditions=UNKNOWN), since)
    return node(*tainted, conditions=UNKNOWN)


def out_of_service(since=LONG_AGO):
    taint = Taint(key=node_taints.OUT_OF_SERVICE, effect="NoExecute", time_added=since)
    return node(taint, *silent(since).spec.taints, conditions=UNKNOWN)


def pod(*, tolerations=(), deleted_at=None, grace=30, phase="Running", conditions=READY):
    gone_at = None if deleted_at is None else deleted_at + timedelta(seconds=grace)
    return Pod(
        metadata=ObjectMeta(
            name="a",
            namespace="default",
            uid="p",
            resource_version="7",
            deletion_timestamp=gone_at,
            deletion_grace_period_seconds=None if deleted_at is None else grace,
        ),
        spec=PodSpec(node_name="one", tolerations=tolerations),
        status=PodStatus(phase=phase, conditions=conditions),
    )


def decided(found, where, workload="Inference", now=NOW):
    """Return what is done, in short: `delete`, `force`, `unready`; and when it is looked at."""
    decision = node_loss.decide(
        node_loss.Observation(now=now, pod=found, node=where, workload_type=workload)
    )
    words = []
    for action in decision.actions:
        match action:
            case Delete(grace_seconds=grace):
                words.append("delete" if grace is None else "force")
                assert action.only_if.uid == "p"
            case Patch():
                words.append("unready")
                assert action.subresource == "status"
            case Emit():
                pass
    return words, decision.wake_after


TOLERATES = {"key": node_taints.UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.rule("2.5")
@pytest.mark.parametrize("workload", ["Inference", "Training", ""])
def test_a_pod_whose_node_is_deleted_is_deleted_and_after_its_grace_removed(workload):
    assert decided(pod(), None, workload) == (["delete"], None)
    going = pod(deleted_at=NOW)
    assert decided(going, None, workload) == ([], timedelta(seconds=31))
    assert decided(going, None, workload, NOW + timedelta(seconds=31)) == (["force"], None)


@pytest.mark.rule("2.5")
@pytest.mark.parametrize("workload", ["Inference", "Training", ""])
def test_a_node_out_of_service_is_as_good_as_deleted(workload):
    assert decided(pod(), out_of_service(), workload) == (["delete"], None)
    going = pod(deleted_at=NOW - timedelta(minutes=1))
    assert decided(going, out_of_service(), workload) == (["force"], None)


@pytest.mark.rule("2.5")
def test_on_a_node_that_does_not_answer_only_inference_is_removed_by_force():
    going = pod(deleted_at=NOW - timedelta(minutes=1))
    assert decided(going, silent(), "Inference") == (["force"], None)
    assert decided(going, silent(), "Training") == ([], None)
    assert decided(going, silent(), "") == ([], None)


@pytest.mark.rule("2.5")
def test_force_waits_for_the_toleration_as_well_as_for_the_grace():
    since = NOW - timedelta(seconds=100)
    going = pod(deleted_at=NOW - timedelta(minutes=1))
    assert decided(going, silent(since)) == ([], timedelta(seconds=201))
    forever = pod(deleted_at=NOW - timedelta(minutes=1), tolerations=(TOLERATES,))
    assert decided(forever, silent(since)) == ([], None)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ((), 300),
        ((TOLERATES,), None),
        (({**TOLERATES, "tolerationSeconds": 20},), 20),
        (({**TOLERATES, "tolerationSeconds": 20}, {**TOLERATES, "tolerationSeconds": 5}), 5),
        (({**TOLERATES, "tolerationSeconds": -5},), 0),
        (({"operator": "Exists", "tolerationSeconds": 60},), 60),
        (({"operator": "Exists"},), None),
        (({"key": "other", "operator": "Exists", "tolerationSeconds": 1},), 300),
    ],
)
def test_a_pod_stays_for_as_long_as_it_puts_up_with_a_silent_node(tolerations, seconds):
    found = pod(tolerations=tolerations, conditions=())
    if seconds is None:
        assert decided(found, silent(NOW - timedelta(days=9))) == ([], None)
        return
    until = timedelta(seconds=seconds + 1)
    assert decided(found, silent(NOW)) == ([], until)
    assert decided(found, silent(NOW), now=NOW + until) == (["delete"], None)


def test_a_taint_of_a_user_drives_pods_away_at_once_unless_they_tolerate_it():
    tainted = node(Taint(key="gpu-broken", effect="NoExecute", time_added=NOW))
    assert decided(pod(), tainted) == (["delete"], None)
    tolerant = pod(tolerations=({"key": "gpu-broken", "operator": "Exists"},))
    assert decided(tolerant, tainted) == ([], None)


def test_a_taint_whose_time_is_not_written_yet_does_nothing():
    assert decided(pod(), node(Taint(key="x", effect="NoExecute"))) == ([], None)


def test_a_pod_on_a_silent_node_is_said_to_be_not_ready_once():
    words, wake = decided(pod(), silent(NOW))
    assert (words, wake) == (["unready"], timedelta(seconds=301))
    unready = pod(conditions=(Condition(type="Ready", status="False"),))
    assert decided(unready, silent(NOW)) == ([], timedelta(seconds=301))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_has_ended_stays_where_it_was(phase):
    assert decided(pod(phase=phase), None) == ([], None)


def test_a_pod_removed_by_force_that_somebody_keeps_is_not_removed_again():
    held = msgspec.structs.replace(
        pod().metadata, deletion_timestamp=LONG_AGO, deletion_grace_period_seconds=0
    )
    assert decided(msgspec.structs.replace(pod(), metadata=held), None) == ([], None)


def test_pods_on_nodes_that_answer_are_of_no_concern():
    assert decided(pod(), node()) == ([], None)
    assert decided(pod(deleted_at=LONG_AGO), node()) == ([], None)


# Taints


def keys(found):
    return [(each.key.partition("/")[2] or each.key, each.effect) for each in found]


@pytest.mark.parametrize(
    ("status", "cordoned", "wanted"),
    [
        ("True", False, []),
        ("True", True, [("unschedulable", "NoSchedule")]),
        ("False", False, [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
        ("Unknown", False, [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
        ("", False, []),
    ],
)
def test_taints_follow_what_a_node_tells(status, cordoned, wanted):
    told = (Condition(type="Ready", status=status),) if status else ()
    found = node_taints.taints(node(conditions=told, unschedulable=cordoned), NOW)
    assert keys(found) == wanted
    assert all((each.time_added is not None) == (each.effect == "NoExecute") for each in found)


TAINTS = st.lists(
    st.builds(
        Taint,
        key=st.sampled_from(["x", node_taints.NOT_READY, node_taints.UNREACHABLE, "y"]),
        effect=st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        time_added=st.none() | st.just(LONG_AGO),
    ),
    unique_by=lambda taint: (taint.key, taint.effect),
)


def told_by(taints, status, cordoned):
    told = (Condition(type="Ready", status=status),) if status else ()
    return node(*taints, conditions=told, unschedulable=cordoned)


NODES = st.builds(told_by, TAINTS, st.sampled_from(["True", "False", "Unknown", ""]), st.booleans())


@pytest.mark.law
@given(NODES)
def test_taints_that_were_written_are_right(found):
    """Fixpoint: what was decided, once written, leads to nothing more."""
    written = node_taints.taints(found, NOW)
    again = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, taints=written))
    later = node_taints.Observation(now=NOW + timedelta(hours=1), node=again)
    assert node_taints.decide(later).actions == ()
    others = [each for each in found.spec.taints if each.key in ("x", "y")]
    assert keys(each for each in written if each.key in ("x", "y")) == keys(others)


@pytest.mark.law
@given(
    NODES | st.none(),
    st.sampled_from([(), (TOLERATES,), ({**TOLERATES, "tolerationSeconds": 9},)]),
    st.none() | st.integers(-1000, 1000),
    st.sampled_from(["Inference", "Training", ""]),
)
def test_nothing_is_removed_by_force_that_may_still_run(where, tolerations, deleted, workload):
    """Safety: force never comes before the grace is over, nor to a node that answers."""
    at = None if deleted is None else NOW + timedelta(seconds=deleted)
    found = pod(tolerations=tolerations, deleted_at=at)
    words, wake = decided(found, where, workload)
    if "force" in words:
        assert found.metadata.deletion_timestamp < NOW
        assert where is None or where.status.conditions != READY
        if workload != "Inference":
            assert where is None
    if wake is not None:
        assert wake > timedelta()
