"""Taints of a node that follow from what it tells: whether it answers, whether it is cordoned.

Kubernetes has a controller do this; in the embedded world we do. Taints of others stay as they are,
but for the time since when they drive pods away, which is written where nobody did: so the time a
pod puts up with one is counted from the same moment, whoever asks and whenever.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from spinney.api import groupkinds
from spinney.api.core.node import Node, Taint
from spinney.decisions.actions import Decision, Patch
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, UNKNOWN
from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Set by a person, to say that a node is off and will not come back by itself."""

_OURS: Final = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)


class Observation(Record):
    """One node."""

    now: datetime
    node: Node


def decide(observation: Observation) -> Decision:
    """Return what makes the taints of a node right."""
    node, now = observation.node, observation.now
    if node.metadata.deletion_timestamp is not None:
        return Decision()
    wanted = taints(node, now)
    if wanted == node.spec.taints:
        return Decision()
    told: Document = {"spec": {"taints": [records.encode(taint) for taint in wanted] or None}}
    return Decision(
        actions=(
            Patch(
                target=Ref(kind=groupkinds.NODE, namespace="", name=node.metadata.name),
                merge=told,
                only_if=Precondition(
                    uid=node.metadata.uid, resource_version=node.metadata.resource_version
                ),
            ),
        ),
        reasons=(f"node {node.metadata.name} tells what its taints do not",),
    )


def taints(node: Node, now: datetime) -> tuple[Taint, ...]:
    """Return the taints a node should have, those of others first."""
    since = now.replace(microsecond=0)
    before = {(taint.key, taint.effect): taint for taint in node.spec.taints}
    wanted = [_timed(taint, since) for taint in node.spec.taints if taint.key not in _OURS]
    for key, effect in _own(node):
        wanted.append(_timed(before.get((key, effect), Taint(key=key, effect=effect)), since))
    if {(each.key, each.effect) for each in wanted} != {*before}:
        return tuple(wanted)
    by_place = {(each.key, each.effect): each for each in wanted}
    return tuple(by_place[place] for place in before)


def _own(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the taints that follow from what a node tells."""
    if node.spec.unschedulable:
        yield UNSCHEDULABLE, NO_SCHEDULE
    ready = conditions.find(node.status.conditions, "Ready")
    if ready is not None and ready.status in (FALSE, UNKNOWN):
        key = NOT_READY if ready.status == FALSE else UNREACHABLE
        yield key, NO_SCHEDULE
        yield key, NO_EXECUTE


def _timed(taint: Taint, since: datetime) -> Taint:
    if taint.effect != NO_EXECUTE or taint.time_added is not None:
        return taint
    return msgspec.structs.replace(taint, time_added=since)
