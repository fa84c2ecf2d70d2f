"""How gangs stand, and which of them may be taken away."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions import disruption, schedulability, standing
from spinney.decisions.schedulability import ALL_PLACED, Opinion
from spinney.decisions.standing import Standing
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.documents import Document, Json
from spinney.meta.times import format_time
from spinney.testing import build
from spinney.testing.clock import START

STATES = ("waiting", "gated", "placed", "leaving", "failed", "succeeded", "theirs")


def member(name: str, state: str) -> Pod:
    """Return a pod in one of the states a pod of a gang may be in."""
    metadata: Document = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec: Document = {"schedulerName": "theirs" if state == "theirs" else "ours"}
    phase = {"failed": "Failed", "succeeded": "Succeeded"}.get(state, "Pending")
    if state == "gated":
        spec["schedulingGates"] = [{"name": "held"}]
    if state in ("placed", "leaving", "failed", "succeeded"):
        spec["nodeName"] = "one"
    if state == "leaving":
        metadata["deletionTimestamp"] = format_time(START)
    return records.decode(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def gang_of(*needed: int, of: int = 2, status: Document | None = None) -> PodGang:
    """Return a gang of groups a, b … that need so many of their pods."""
    made = build.podgang("g").with_("metadata.namespace", "default")
    for letter, count in zip("abc", needed, strict=False):
        names = (f"{letter}{index}" for index in range(of))
        made = made.with_pods(letter, *names, min_replicas=count)
    return (made if status is None else made.with_("status", status)).record()


def stands(gang: PodGang, **states: str) -> Standing:
    pods = {name: member(name, state) for name, state in states.items()}
    return standing.of_gang(
        gang,
        pods,
        lambda pod: pod.spec.scheduler_name == "ours",
        lambda pod: bool(pod.spec.node_name),
    )


def said(type_: str, status: str) -> Document:
    found: list[Json] = [{"type": type_, "status": status}]
    return {"conditions": found}


@pytest.mark.parametrize(
    ("states", "held_back", "waiting"),
    [
        ({"a0": "waiting", "a1": "waiting"}, "", ["a0", "a1"]),
        ({"a0": "waiting", "a1": "placed"}, "", ["a0"]),
        ({"a0": "waiting", "a1": "succeeded"}, "", ["a0"]),
        ({"a0": "waiting"}, "a has 1 of 2 pods that may be placed; not a1", ["a0"]),
        (
            {"a0": "waiting", "a1": "gated"},
            "a has 1 of 2 pods that may be placed; not a1",
            ["a0"],
        ),
        (
            {"a0": "leaving", "a1": "theirs"},
            "a has 0 of 2 pods that may be placed; not a0, a1",
            [],
        ),
        ({"a0": "failed", "a1": "placed"}, "a has 1 of 2 pods that may be placed; not a0", []),
    ],
)
def test_a_gang_may_be_placed_once_enough_of_it_can_be(
    states: dict[str, str], held_back: str, waiting: list[str]
) -> None:
    found = stands(gang_of(2), **states)
    assert found.held_back == held_back
    assert [pod.metadata.name for pod in found.waiting] == waiting


def test_a_gang_that_is_not_whole_yet_or_goes_is_held_back() -> None:
    both = {"a0": "waiting", "a1": "waiting"}
    assert stands(gang_of(2, status=said("Initialized", "False")), **both).held_back
    assert stands(gang_of(2, status=said("DisruptionTarget", "True")), **both).held_back
    assert not stands(gang_of(2, status=said("Initialized", "True")), **both).held_back


def test_a_group_that_is_scaled_to_nothing_needs_nothing() -> None:
    """It names no pods. Before the gang is whole that only says that they are not there yet."""
    idle = build.podgang("g").with_pods("a", min_replicas=1).with_pods("b", "b0", min_replicas=1)
    whole = idle.with_("status", said("Initialized", "True")).record()
    assert stands(whole, b0="waiting").held_back == ""
    assert stands(idle.record(), b0="waiting").held_back


def test_a_gang_is_partial_while_it_has_nodes_for_some_of_what_it_needs() -> None:
    assert stands(gang_of(2, 1), a0="placed", a1="placed", b0="waiting").is_partial
    assert not stands(gang_of(2, 1), a0="waiting", a1="waiting", b0="waiting").is_partial
    assert not stands(gang_of(1, 1), a0="placed", a1="waiting", b0="placed").is_partial


@pytest.mark.law
@given(
    st.dictionaries(st.sampled_from(("a0", "a1", "b0", "b1")), st.sampled_from(STATES)),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_every_pod_counts_once_and_nobody_waits_who_may_not(
    states: dict[str, str], first: int, second: int
) -> None:
    found = stands(gang_of(first, second), **states)
    for group in found.groups:
        named = [pod.metadata.name for pod in (*group.waiting, *group.placed)] + [*group.lacks]
        assert len(named) == len(set(named))
        assert len(named) + group.succeeded_count == 2
        assert all(states[pod.metadata.name] == "waiting" for pod in group.waiting)
        assert all(states[pod.metadata.name] == "placed" for pod in group.placed)
    assert not (found.is_placed and found.is_partial)
    if found.is_placed:
        assert found.held_back == ""


@pytest.mark.rule("2.8")
def test_only_a_gang_that_never_was_whole_is_taken_back() -> None:
    pending, running = member("a0", "placed"), member("a1", "placed")
    started = records.decode(Pod, {**records.encode(running), "status": {"phase": "Running"}})
    assert disruption.may_be_undone(gang_of(2, status=said("Scheduled", "False")), [started])
    assert not disruption.may_be_undone(gang_of(2, status=said("Scheduled", "True")), [pending])
    assert disruption.may_be_undone(gang_of(2), [pending])
    assert not disruption.may_be_undone(gang_of(2), [pending, started])
    assert not disruption.may_be_undone(gang_of(2, status=said("DisruptionTarget", "True")), [])


@pytest.mark.rule("2.8")
def test_a_marked_gang_loses_all_that_has_a_node_and_nothing_else() -> None:
    members = [member(state, state) for state in STATES]
    assert [pod.metadata.name for pod in disruption.to_delete(members)] == ["placed"]
    assert not disruption.is_over(members)
    assert disruption.is_over(
        member(state, state) for state in STATES if state not in ("placed", "leaving")
    )


REFUSED = Opinion(status=FALSE, reason="Unschedulable", message="no room")


@pytest.mark.parametrize(
    ("before", "opinion", "after"),
    [
        (None, None, None),
        (None, ALL_PLACED, None),
        (None, REFUSED, (FALSE, "Unschedulable")),
        ((FALSE, "Unschedulable"), None, (TRUE, "Placed")),
        ((FALSE, "Unschedulable"), ALL_PLACED, (TRUE, "Placed")),
        ((TRUE, "Placed"), ALL_PLACED, (TRUE, "Placed")),
        ((TRUE, "Placed"), REFUSED, (FALSE, "Unschedulable")),
        ((TRUE, "SurplusUnschedulable"), None, (TRUE, "Placed")),
    ],
)
def test_what_is_said_of_a_gang(
    before: tuple[str, str] | None, opinion: Opinion | None, after: tuple[str, str] | None
) -> None:
    """Nothing, until it was refused once; and what is said already is not said again."""
    had: tuple[Condition, ...] = ()
    if before is not None:
        had = conditions.set_condition((), "Schedulable", *before, "its pods have nodes", START)
    told = schedulability.gang_conditions(had, opinion, START + timedelta(hours=1))
    found = conditions.find(told, "Schedulable")
    assert (None if found is None else (found.status, found.reason)) == after
    again = schedulability.gang_conditions(told, opinion, START + timedelta(hours=2))
    assert again is told
    if before == after:
        assert told is had
