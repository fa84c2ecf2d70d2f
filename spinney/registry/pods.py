"""What only pods do: wait behind gates, get a node, be evicted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from spinney.api.kinds import KINDS, Kind
from spinney.meta import selectors
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    strings,
    value_at,
    with_value,
)
from spinney.meta.errors import FieldError, Internal, TooManyRequests
from spinney.meta.references import GroupKind, Precondition
from spinney.meta.times import format_time
from spinney.registry import marking, requests
from spinney.registry.requests import DeleteOptions

BUDGET = GroupKind(group="policy", kind="PodDisruptionBudget")
RETRY_SECONDS = 10
DISRUPTED_MAX = 2000
"""How many evictions a budget may hold that its controller has not yet seen."""

_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def pod_kind() -> Kind:
    """Return the kind of pods."""
    return KINDS[marking.POD]


def budget_kind() -> Kind:
    """Return the kind of disruption budgets."""
    return KINDS[BUDGET]


def bound(document: Document, node: str, annotations: Json, now: datetime) -> Document:
    """Return a pod with its node; raises Conflict where it has one or may not have one yet."""
    kind, name = pod_kind(), string_at(document, ("metadata", "name"))
    if not node:
        fault = FieldError(path="target.name", reason="FieldValueRequired", message="")
        raise requests.invalid(kind, name, fault)
    why = ""
    if marking.is_marked(document):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif held := string_at(document, ("spec", "nodeName")):
        why = f'pod {name} is already assigned to node "{held}"'
    elif list_at(document, ("spec", "schedulingGates")):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise requests.conflict(kind, name, why, subresource="binding")
    condition: Document = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": format_time(now),
    }
    others: list[Json] = [
        item
        for item in list_at(document, ("status", "conditions"))
        if string_at(item, ("type",)) != "PodScheduled"
    ]
    placed = with_value(document, ("spec", "nodeName"), node)
    placed = with_value(placed, ("status", "conditions"), [*others, condition])
    added = strings(annotations)
    if added:
        before = object_at(document, ("metadata", "annotations"))
        placed = with_value(placed, ("metadata", "annotations"), {**before, **added})
    return placed


def spent_budget(pod: Document, budgets: Sequence[Document], now: datetime) -> Document | None:
    """Return the pod's budget with its eviction taken off; None where none has to be asked.

    Raises TooManyRequests where the budget forbids to evict the pod now.
    """
    phase = string_at(pod, ("status", "phase"))
    if phase in ("", "Succeeded", "Failed", "Pending") or marking.is_marked(pod):
        return None
    carried = strings(object_at(pod, ("metadata", "labels")))
    asked = [
        budget
        for budget in budgets
        if selectors.from_document(value_at(budget, ("spec", "selector"))).matches(carried)
    ]
    if not asked:
        return None
    if len(asked) > 1:
        raise Internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
    budget = asked[0]
    if not _is_ready(pod) and _spares_unhealthy(budget):
        return None
    return _spent(budget, string_at(pod, ("metadata", "name")), now)


def _spent(budget: Document, pod: str, now: datetime) -> Document:
    kind, name = budget_kind(), string_at(budget, ("metadata", "name"))
    if _count(budget, "status", "observedGeneration") < _count(budget, "metadata", "generation"):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(text, retry_after_seconds=RETRY_SECONDS)
    allowed = _count(budget, "status", "disruptionsAllowed")
    if allowed < 0:
        raise requests.forbidden(kind, name, "pdb disruptions allowed is negative")
    disrupted = object_at(budget, ("status", "disruptedPods"))
    if len(disrupted) > DISRUPTED_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise requests.forbidden(kind, name, why)
    if allowed == 0:
        raise _too_many(
            f"The disruption budget {name} needs {_count(budget, 'status', 'desiredHealthy')} "
            f"healthy pods and has {_count(budget, 'status', 'currentHealthy')} currently"
        )
    status: Document = {
        **object_at(budget, ("status",)),
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod: format_time(now)},
    }
    return {**budget, "status": status}


def _too_many(text: str, *, retry_after_seconds: int | None = None) -> TooManyRequests:
    cause: Json = {"reason": "DisruptionBudget", "message": text}
    return TooManyRequests(
        _VIOLATED, details={"causes": [cause]}, retry_after_seconds=retry_after_seconds
    )


def _spares_unhealthy(budget: Document) -> bool:
    """Whether a budget lets a pod go that is not ready, and so guards nothing."""
    if string_at(budget, ("spec", "unhealthyPodEvictionPolicy")) == "AlwaysAllow":
        return True
    desired = _count(budget, "status", "desiredHealthy")
    return desired > 0 and _count(budget, "status", "currentHealthy") >= desired


def _is_ready(pod: Document) -> bool:
    return any(
        string_at(item, ("type",)) == "Ready" and string_at(item, ("status",)) == "True"
        for item in list_at(pod, ("status", "conditions"))
    )


def _count(document: Document, *path: str) -> int:
    value = value_at(document, path)
    return value if is_integer(value) else 0


def of_same(options: DeleteOptions, uid: str) -> DeleteOptions:
    """Return deletion options that mean one pod and no later one of its name."""
    return DeleteOptions(
        only_if=Precondition(uid=uid),
        grace_seconds=options.grace_seconds,
        propagation=options.propagation,
    )


SCHEDULING_GATED = "SchedulingGated"


def gated(pod: Document) -> Document:
    """Return a pod whose status tells that gates hold it back, as long as any does."""
    held = bool(list_at(pod, ("spec", "schedulingGates")))
    conditions = list_at(pod, ("status", "conditions"))
    told = [item for item in conditions if string_at(item, ("reason",)) == SCHEDULING_GATED]
    if held == bool(told):
        return pod
    others = [item for item in conditions if item not in told]
    if held:
        condition: Document = {
            "type": "PodScheduled",
            "status": "False",
            "reason": SCHEDULING_GATED,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        others = [*others, condition]
    status = {**object_at(pod, ("status",)), "conditions": others}
    if not others:
        del status["conditions"]
    return {**pod, "status": status}
