"""How many pods a disruption budget lets go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod, PodStatus
from spinney.api.core.poddisruptionbudget import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from spinney.decisions import budgets
from spinney.meta import records
from spinney.meta.conditions import Condition
from spinney.meta.metadata import ObjectMeta, OwnerReference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JUST = NOW - timedelta(seconds=10)


def pod(index, *, ready=True, going=False, owner=""):
    owners = (
        OwnerReference(
            api_version="grove.io/v1alpha1", kind="PodClique", name="c", uid=owner, controller=True
        ),
    )
    return Pod(
        metadata=ObjectMeta(
            name=f"a-{index}",
            uid=f"p-{index}",
            deletion_timestamp=NOW if going else None,
            owner_references=owners if owner else (),
        ),
        status=PodStatus(
            phase="Running",
            conditions=(Condition(type="Ready", status="True" if ready else "False"),),
        ),
    )


def budget(*, disrupted=None, **spec):
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="b", uid="b", generation=3),
        spec=PodDisruptionBudgetSpec(**spec),
        status=PodDisruptionBudgetStatus(disrupted_pods=disrupted or {}),
    )


def told(found, *pods, replicas=None):
    decision = budgets.decide(
        budgets.Observation(now=NOW, budget=found, pods=pods, replicas=replicas or {})
    )
    status = decision.status
    assert status["observedGeneration"] == 3
    return (
        status["expectedPods"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["disruptionsAllowed"],
    )


FOUR = [pod(index) for index in range(4)]


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ({"min_available": 3}, (4, 4, 3, 1)),
        ({"min_available": 9}, (4, 4, 9, 0)),
        ({"min_available": "50%"}, (4, 4, 2, 2)),
        ({"min_available": "60%"}, (4, 4, 3, 1)),
        ({"max_unavailable": 1}, (4, 4, 3, 1)),
        ({"max_unavailable": "30%"}, (4, 4, 2, 2)),
        ({"max_unavailable": 9}, (4, 4, 0, 4)),
    ],
)
def test_what_a_budget_lets_go(spec, numbers):
    assert told(budget(**spec), *FOUR) == numbers


def test_pods_that_are_missing_count_against_those_who_made_the_rest():
    there = [pod(0, owner="c"), pod(1, owner="c")]
    assert told(budget(max_unavailable=1), *there, replicas={"c": 4}) == (4, 2, 3, 0)
    assert told(budget(max_unavailable=1), *there) == (2, 2, 1, 1)


def test_unready_and_leaving_pods_are_not_healthy():
    assert told(budget(min_available=1), pod(0), pod(1, ready=False), pod(2, going=True)) == (
        3,
        1,
        1,
        0,
    )


def test_a_budget_of_nothing_allows_nothing():
    assert told(budget(max_unavailable=1)) == (0, 0, 0, 0)


def test_an_eviction_let_through_counts_until_it_is_seen_or_did_not_happen():
    spent = budget(min_available=3, disrupted={"a-0": JUST})
    assert told(spent, *FOUR) == (4, 3, 3, 0)
    decision = budgets.decide(budgets.Observation(now=NOW, budget=spent, pods=tuple(FOUR)))
    assert decision.wake_after == timedelta(seconds=110)
    assert [*decision.status["disruptedPods"]] == ["a-0"]
    late = budget(min_available=3, disrupted={"a-0": NOW - timedelta(minutes=3)})
    assert told(late, *FOUR) == (4, 4, 3, 1)
    assert told(spent, pod(0, going=True), *FOUR[1:]) == (4, 3, 3, 0)


@pytest.mark.law
@given(
    st.lists(
        st.builds(pod, st.integers(0, 9), ready=st.booleans(), going=st.booleans()),
        unique_by=lambda each: each.metadata.name,
    ),
    st.one_of(
        st.builds(dict, min_available=st.integers(0, 12) | st.sampled_from(["0%", "33%", "100%"])),
        st.builds(dict, max_unavailable=st.integers(0, 12) | st.sampled_from(["0%", "33%"])),
        st.just({}),
    ),
)
def test_a_status_once_written_is_right_and_never_lets_too_many_go(pods, spec):
    found = budget(**spec)
    observation = budgets.Observation(now=NOW, budget=found, pods=tuple(pods))
    status = budgets.decide(observation).status
    healthy, desired = status["currentHealthy"], status["desiredHealthy"]
    assert status["disruptionsAllowed"] == 0 or healthy - status["disruptionsAllowed"] >= desired
    written = msgspec.structs.replace(
        found, status=records.decode(PodDisruptionBudgetStatus, status)
    )
    again = budgets.Observation(
        now=NOW + timedelta(hours=1), budget=written, pods=tuple(reversed(pods))
    )
    assert budgets.decide(again).status == status
