"""Disruption budgets: how many of the pods they guard may be evicted now.

The server spends a budget when it lets a pod be evicted, and notes the pod in `disruptedPods`; here
what is left is counted anew, once the pod is seen to go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.pod import Pod
from spinney.api.core.poddisruptionbudget import PodDisruptionBudget, PodDisruptionBudgetStatus
from spinney.decisions import pods
from spinney.decisions.actions import Decision
from spinney.meta import conditions, quantities, records
from spinney.meta.conditions import FALSE, TRUE
from spinney.meta.records import Record

DISRUPTED_FOR: Final = timedelta(minutes=2)
"""How long an eviction that was let through is waited for; then it did not happen."""

DISRUPTION_ALLOWED: Final = "DisruptionAllowed"


class Observation(Record):
    """One budget, and the pods it guards."""

    now: datetime
    budget: PodDisruptionBudget
    pods: tuple[Pod, ...] = ()
    replicas: Mapping[str, int] = {}
    """By the uid of who made some of them: how many it is to have."""


def decide(observation: Observation) -> Decision:
    """Return the status of a budget."""
    budget, now = observation.budget, observation.now
    if budget.metadata.deletion_timestamp is not None:
        return Decision()
    disrupted = _disrupted(observation)
    healthy = sum(
        pods.is_ready(pod) and pod.metadata.name not in disrupted for pod in observation.pods
    )
    expected, desired = _wanted(observation)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    told = conditions.set_condition(
        budget.status.conditions,
        DISRUPTION_ALLOWED,
        TRUE if allowed else FALSE,
        reason,
        f"{healthy} pods are healthy, and {desired} of them must stay",
        now,
        budget.metadata.generation,
    )
    status = PodDisruptionBudgetStatus(
        observed_generation=budget.metadata.generation,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        disrupted_pods=disrupted,
        conditions=told,
    )
    ends = [at + DISRUPTED_FOR - now for at in disrupted.values()]
    document = {
        **records.encode(status),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    }
    return Decision(status=document, wake_after=min(ends, default=None))


def _disrupted(observation: Observation) -> dict[str, datetime]:
    """Return the evictions that were let through and are not seen yet."""
    there = {pod.metadata.name for pod in observation.pods if not pods.is_terminating(pod)}
    return {
        name: at
        for name, at in observation.budget.status.disrupted_pods.items()
        if name in there and at + DISRUPTED_FOR > observation.now
    }


def _wanted(observation: Observation) -> tuple[int, int]:
    """Return how many pods there should be, and how many of them must stay healthy."""
    spec = observation.budget.spec
    if isinstance(spec.min_available, int):
        return len(observation.pods), spec.min_available
    expected = _expected(observation)
    if spec.max_unavailable is not None:
        gone = quantities.resolve(spec.max_unavailable, expected, round_up=True)
        return expected, max(expected - gone, 0)
    if spec.min_available is None:
        return expected, 0
    return expected, quantities.resolve(spec.min_available, expected, round_up=True)


def _expected(observation: Observation) -> int:
    """Return how many pods there should be: as many as those who made them are to have."""
    alone = 0
    made: dict[str, int] = {}
    for pod in observation.pods:
        owner = next((each for each in pod.metadata.owner_references if each.controller), None)
        if owner is None:
            alone += 1
        else:
            made[owner.uid] = made.get(owner.uid, 0) + 1
    return alone + sum(observation.replicas.get(uid, count) for uid, count in made.items())
