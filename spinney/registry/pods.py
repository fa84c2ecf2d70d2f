"""What only pods can be asked: to have a node, and to be evicted."""

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
from spinney.meta.errors import BadRequest, TooManyRequests
from spinney.meta.references import GroupKind
from spinney.meta.times import format_time
from spinney.registry import requests, strategies

BUDGET = GroupKind(group="policy", kind="PodDisruptionBudget")
EVICTION_RETRY_SECONDS = 10


def pod_kind() -> Kind:
    """Return the kind of pods."""
    return KINDS[strategies.POD]


def bound(document: Document, node: str, now: datetime) -> Document:
    """Return a pod with its node; raises Conflict where it has one or may not have one yet."""
    kind, name = pod_kind(), string_at(document, ["metadata", "name"])
    if not node:
        raise BadRequest("target.name: the name of a node must be given")
    if string_at(document, ["metadata", "deletionTimestamp"]):
        raise requests.conflict(kind, name, f"pod {name} is being deleted, cannot be assigned")
    held = string_at(document, ["spec", "nodeName"])
    if held:
        raise requests.conflict(kind, name, f'pod {name} is already assigned to node "{held}"')
    gates = [string_at(gate, ["name"]) for gate in list_at(document, ["spec", "schedulingGates"])]
    if gates:
        raise requests.conflict(kind, name, f"pod {name} has scheduling gates: {', '.join(gates)}")
    condition: Document = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": format_time(now),
    }
    others: list[Json] = [
        item
        for item in list_at(document, ["status", "conditions"])
        if string_at(item, ["type"]) != "PodScheduled"
    ]
    placed = with_value(document, ["spec", "nodeName"], node)
    return with_value(placed, ["status", "conditions"], [*others, condition])


def refuse_eviction(pod: Document, budgets: Sequence[Document]) -> None:
    """Raise TooManyRequests where a disruption budget forbids to evict a pod now."""
    if string_at(pod, ["status", "phase"]) in ("Succeeded", "Failed", "Pending"):
        return
    carried = strings(object_at(pod, ["metadata", "labels"]))
    for budget in budgets:
        selector = selectors.from_document(value_at(budget, ["spec", "selector"]))
        if not selector.matches(carried):
            continue
        allowed = value_at(budget, ["status", "disruptionsAllowed"])
        if not is_integer(allowed) or allowed <= 0:
            name = string_at(budget, ["metadata", "name"])
            cause: Json = {
                "reason": "DisruptionBudget",
                "message": f"The disruption budget {name} needs "
                f"{value_at(budget, ['status', 'desiredHealthy']) or 0} healthy pods and has "
                f"{value_at(budget, ['status', 'currentHealthy']) or 0} currently",
            }
            raise TooManyRequests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"causes": [cause]},
                retry_after_seconds=EVICTION_RETRY_SECONDS,
            )
