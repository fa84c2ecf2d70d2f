"""Loss: what becomes of a pod whose node does not answer, drives it away, or is gone (rule 2.5).

    its node        a pod that is there       a pod being deleted, once its grace is over
    --------        -------------------       -------------------------------------------
    answers         stays                     its node ends it
    does not        is no longer ready;       is removed by force, for Inference, once its
                    deleted once it puts up   toleration is over; for all else only where
                    with that no longer       the node is deleted or out of service
    is gone         deleted                   is removed by force

A pod that says nothing puts up with a node that does not answer for a while, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from spinney.api import groupkinds
from spinney.api.core.node import Node, Taint
from spinney.api.core.pod import Pod
from spinney.api.templates import INFERENCE
from spinney.decisions import pods
from spinney.decisions.actions import Action, Decision, Delete, Emit, Patch
from spinney.decisions.node_taints import NO_EXECUTE, NOT_READY, OUT_OF_SERVICE, UNREACHABLE
from spinney.decisions.placement import attraction
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, TRUE
from spinney.meta.documents import Json, is_integer
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

SECOND: Final = timedelta(seconds=1)
NODE_LOST: Final = "NodeLost"
NODE_NOT_READY: Final = "NodeNotReady"
EVICTED: Final = "TaintManagerEviction"


class Observation(Record):
    """One pod, and where it is."""

    now: datetime
    pod: Pod
    node: Node | None
    """None: its node is gone."""

    workload_type: str = ""
    """That of the set it was made for; "" where it was made for none."""

    toleration_seconds: int = 300
    """How long a pod that says nothing puts up with a node that does not answer."""


def is_of_concern(pod: Pod, node: Node | None) -> bool:
    """Whether anything is to be decided about a pod on a node; of most there is nothing."""
    return bool(pod.spec.node_name) and (node is None or is_troubled(node))


def is_troubled(node: Node) -> bool:
    """Whether a node does not answer, or drives pods away."""
    return _is_silent(node) or any(taint.effect == NO_EXECUTE for taint in node.spec.taints)


def _is_silent(node: Node) -> bool:
    ready = conditions.find(node.status.conditions, "Ready")
    return ready is not None and ready.status != TRUE


def decide(observation: Observation) -> Decision:
    """Return what becomes of a pod."""
    pod, node = observation.pod, observation.node
    if not is_of_concern(pod, node) or (pods.is_ended(pod) and not pods.is_terminating(pod)):
        return Decision()
    if pods.is_terminating(pod):
        return _forced(observation)
    due = leaves_at(observation)
    if due is not None and due <= observation.now:
        return Decision(
            actions=(_told(observation), _deletion(pod, None)), reasons=(_why(observation),)
        )
    wake_after = None if due is None else due - observation.now
    return Decision(actions=tuple(_unready(observation)), wake_after=wake_after)


def leaves_at(observation: Observation) -> datetime | None:
    """Return when a pod has to leave its node, None for never by what is known now."""
    if observation.node is None:
        return observation.now
    found = [_put_up_with_until(observation, taint) for taint in observation.node.spec.taints]
    return min((each for each in found if each is not None), default=None)


def _put_up_with_until(observation: Observation, taint: Taint) -> datetime | None:
    """Return until when a pod puts up with a taint, None for always; at once is its own time."""
    if taint.effect != NO_EXECUTE:
        return None
    began = taint.time_added
    if began is None:
        return None  # it is not told yet since when it is there; that is written first
    documents = observation.pod.spec.tolerations
    covering = [
        document
        for document in documents
        if any(each.covers(taint) for each in attraction.tolerations((document,)))
    ]
    if not covering:
        if taint.key not in (NOT_READY, UNREACHABLE):
            return began
        return began + timedelta(seconds=observation.toleration_seconds) + SECOND
    seconds = [
        value for document in covering if is_integer(value := document.get("tolerationSeconds"))
    ]
    if not seconds:
        return None
    return began + timedelta(seconds=max(min(seconds), 0)) + SECOND


def _is_confirmed(observation: Observation) -> bool:
    """Whether the pod's node is known to be lost for good."""
    node = observation.node
    return node is None or any(
        taint.key == OUT_OF_SERVICE
        and taint.effect == NO_EXECUTE
        and _put_up_with_until(observation, taint) is not None
        for taint in node.spec.taints
    )


def _forced(observation: Observation) -> Decision:
    """Return what becomes of a pod that is being deleted where nobody may be left to end it."""
    pod, node, now = observation.pod, observation.node, observation.now
    metadata = pod.metadata
    if metadata.deletion_timestamp is None or not metadata.deletion_grace_period_seconds:
        return Decision()
    grace_over = metadata.deletion_timestamp + SECOND
    due: datetime | None = grace_over
    if not _is_confirmed(observation):
        is_lost = observation.workload_type == INFERENCE and node is not None and _is_silent(node)
        left_at = leaves_at(observation) if is_lost else None
        due = None if left_at is None else max(grace_over, left_at)
    if due is None:
        return Decision()
    if due > now:
        return Decision(wake_after=due - now)
    return Decision(actions=(_deletion(pod, 0),), reasons=(_why(observation),))


def _unready(observation: Observation) -> Iterator[Action]:
    """Yield what says that a pod is not ready: nobody can tell that it is."""
    pod, node = observation.pod, observation.node
    if node is None or not _is_silent(node):
        return
    if not conditions.is_true(pod.status.conditions, "Ready"):
        return
    note = f'node "{node.metadata.name}" does not answer'
    changed = conditions.set_condition(
        pod.status.conditions, "Ready", FALSE, NODE_NOT_READY, note, observation.now
    )
    told: list[Json] = [records.encode(each) for each in changed]
    metadata = pod.metadata
    yield Patch(
        target=_ref(pod),
        merge={"status": {"conditions": told}},
        only_if=Precondition(uid=metadata.uid, resource_version=metadata.resource_version),
        subresource="status",
    )


def _why(observation: Observation) -> str:
    pod = observation.pod
    if observation.node is None:
        return f'node "{pod.spec.node_name}" is gone'
    return f'pod puts up with the taints of node "{pod.spec.node_name}" no longer'


def _told(observation: Observation) -> Emit:
    pod = observation.pod
    reason = NODE_LOST if observation.node is None else EVICTED
    return Emit(
        about=_ref(pod),
        type="Warning" if observation.node is None else "Normal",
        reason=reason,
        note=f"deleted: {_why(observation)}",
        key=f"{reason}/{pod.metadata.uid}",
    )


def _deletion(pod: Pod, grace_seconds: int | None) -> Delete:
    only_if = Precondition(uid=pod.metadata.uid)
    return Delete(target=_ref(pod), only_if=only_if, grace_seconds=grace_seconds)


def _ref(pod: Pod) -> Ref:
    metadata = pod.metadata
    return Ref(kind=groupkinds.POD, namespace=metadata.namespace, name=metadata.name)
