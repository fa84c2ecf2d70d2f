"""Gangs: what a PodGang names, and how far it has come.

The gang's PodCliques make its pods; the gang says which they are, and, once all are there, that it
is whole. Pods wait for that behind their gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from spinney.api import groupkinds, names
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import GangMember, PodGang, PodGangSpec, PodGangStatus
from spinney.decisions import clique_status, disruption, pods
from spinney.decisions.actions import Action, Decision, Emit, Patch
from spinney.decisions.making import gangs as gang_documents
from spinney.decisions.places import CliquePlace
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.documents import Document
from spinney.meta.patches import merge_patch
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

INITIALIZED = "Initialized"
SCHEDULED = "Scheduled"
READY = "Ready"
UNHEALTHY = "Unhealthy"
REBUILT = "GangRebuilt"

PENDING, STARTING, RUNNING = "Pending", "Starting", "Running"


class Member(Record):
    """One PodClique of a gang, with its pods."""

    place: CliquePlace
    clique: PodClique | None = None
    pods: tuple[Pod, ...] = ()
    """Its pods, sorted by name, those being deleted too."""


class Observation(Record):
    """What is seen of one PodGang."""

    now: datetime
    gang: PodGang
    set_: PodCliqueSet | None = None
    """The set it was made for, with the template its set replica runs."""

    members: tuple[Member, ...] = ()
    """The PodCliques it should have, in its order; none where the set knows of no such gang."""

    binding: ClusterTopologyBinding | None = None
    revision: str = ""
    """For a base gang: the revision its set replica runs."""

    settings: Settings = DEFAULTS


def decide(seen: Observation) -> Decision:
    """Return what to do about one PodGang now."""
    if seen.gang.metadata.deletion_timestamp is not None:
        return Decision()
    if seen.set_ is None or not seen.members:
        return Decision(reasons=("its PodCliqueSet has no such gang any more",))
    change = _change(seen, seen.set_)
    status = status_of(seen)
    changed = status != seen.gang.status
    actions: list[Action] = [*_rebuilt(seen.gang, status)]
    if change:
        only_if = Precondition(uid=seen.gang.metadata.uid)
        actions.append(Patch(target=ref_of(seen.gang), merge=change, only_if=only_if))
    return Decision(
        actions=tuple(actions),
        status=records.encode(status) if changed else None,
        reasons=tuple(_waits_for(seen)),
    )


def _rebuilt(gang: PodGang, status: PodGangStatus) -> Iterator[Action]:
    """Yield the event that a gang whose PodCliques were replaced serves again."""
    if status.incarnation and status.phase == RUNNING and gang.status.phase != RUNNING:
        note = f"enough pods of every PodClique are ready, after {status.incarnation} rebuilds"
        key = f"{gang.metadata.uid}/{REBUILT}/{status.incarnation}"
        yield Emit(about=ref_of(gang), type="Normal", reason=REBUILT, note=note, key=key)


def ref_of(gang: PodGang) -> Ref:
    """Return how a PodGang is referred to."""
    return Ref(kind=groupkinds.GANG, namespace=gang.metadata.namespace, name=gang.metadata.name)


# What it names


def member_names(member: Member) -> list[str]:
    """Return the pods a gang names of a PodClique: those that stay, and those about to be made.

    A pod that is being deleted gives its name to its successor, so a replacement changes nothing.
    """
    clique = member.clique
    if clique is None:
        return []
    leaving = set(clique.status.leaving_pods)
    kept = [pod.metadata.name for pod in member.pods if pod.metadata.name not in leaving]
    planned = (
        names.pod(clique.metadata.name, index)
        for index in pods.planned_indexes(member.pods, clique.spec.replicas)
    )
    return sorted([*kept, *planned])


def wanted_spec(seen: Observation, set_: PodCliqueSet) -> Document:
    """Return what the gang should say."""
    return gang_documents.spec(
        set_.spec.template,
        [member.place for member in seen.members],
        {member.place.name: member_names(member) for member in seen.members},
        seen.gang.metadata.namespace,
        gang_documents.keys_by_domain(seen.binding, seen.settings),
    )


def _change(seen: Observation, set_: PodCliqueSet) -> Document:
    """Return the merge patch that makes the gang say what it should; empty where it does."""
    metadata, template = seen.gang.metadata, set_.spec.template
    spec = wanted_spec(seen, set_)
    carried = {
        **_ours(metadata.labels),
        **gang_documents.gang_labels(set_, template, seen.revision, seen.settings),
    }
    annotations = {
        **_ours(metadata.annotations),
        **gang_documents.gang_annotations(set_, spec),
    }
    if (
        carried == metadata.labels
        and annotations == metadata.annotations
        and records.decode(PodGangSpec, spec) == seen.gang.spec
    ):
        return {}
    wanted: Document = {
        "metadata": {"labels": {**carried}, "annotations": {**annotations}},
        "spec": spec,
    }
    held: Document = {
        "metadata": {"labels": {**metadata.labels}, "annotations": {**metadata.annotations}},
        "spec": records.encode(seen.gang.spec),
    }
    return merge_patch.diff(held, wanted)


def _ours(carried: Mapping[str, str]) -> dict[str, str]:
    """Return what is kept of a gang's labels or annotations: Grove's keys, ours, back ends'."""
    return {key: value for key, value in carried.items() if _is_kept(key)}


def _is_kept(key: str) -> bool:
    return key.startswith(("grove.io/", "spinney.dev/", "kai.scheduler/")) and key not in (
        "grove.io/topology-name",
    )


# How far it has come


def status_of(seen: Observation) -> PodGangStatus:
    """Return the status of a gang."""
    before = seen.gang.status
    present = _present(seen.members)
    begun_anew = _is_new_incarnation(before, present)
    status = before
    if begun_anew:
        status = msgspec.structs.replace(
            before,
            incarnation=before.incarnation + 1,
            conditions=tuple(
                each for each in before.conditions if each.type == disruption.DISRUPTION_TARGET
            ),
        )
    status = msgspec.structs.replace(status, members=present)
    found = _initialized(seen, status)
    initialized = conditions.is_true(found, INITIALIZED)
    found = _scheduled(seen, found, initialized=initialized)
    scheduled = conditions.is_true(found, SCHEDULED)
    found = _ready(seen, found, scheduled=scheduled)
    found = _unhealthy(seen, found)
    phase = PENDING
    if scheduled:
        phase = RUNNING if conditions.is_true(found, READY) else STARTING
    return msgspec.structs.replace(status, phase=phase, conditions=found)


def _present(members: Sequence[Member]) -> tuple[GangMember, ...]:
    return tuple(
        GangMember(name=member.clique.metadata.name, uid=member.clique.metadata.uid)
        for member in members
        if member.clique is not None and member.clique.metadata.deletion_timestamp is None
    )


def _is_new_incarnation(before: PodGangStatus, present: Sequence[GangMember]) -> bool:
    """Whether a PodClique that was counted is not there any more, or another took its name.

    A gang that was whole begins anew too when more belongs to it: a group came back from 0.
    """
    there = {member.uid for member in present}
    counted = {member.uid for member in before.members}
    if conditions.is_true(before.conditions, INITIALIZED):
        return there != counted
    return not counted <= there


def missing(seen: Observation) -> list[str]:
    """Return what is missing for the gang to be whole, in sentences."""
    referenced = {
        reference.name for group in seen.gang.spec.pod_groups for reference in group.pod_references
    }
    found: list[str] = []
    for member in seen.members:
        clique = member.clique
        if clique is None or clique.metadata.deletion_timestamp is not None:
            found.append(f"PodClique {member.place.name} is not there")
            continue
        there = [pod for pod in member.pods if not pods.is_terminating(pod)]
        if len(there) < clique.spec.replicas:
            found.append(
                f"PodClique {clique.metadata.name} has {len(there)} of {clique.spec.replicas} pods"
            )
        elif any(pod.metadata.name not in referenced for pod in there):
            found.append(f"not all pods of PodClique {clique.metadata.name} are named yet")
    return found


def _initialized(seen: Observation, status: PodGangStatus) -> tuple[Condition, ...]:
    """Once whole, a gang stays so: single pods are replaced without it (rule 2.2)."""
    if conditions.is_true(status.conditions, INITIALIZED):
        return status.conditions
    lacks = missing(seen)
    if lacks:
        told = FALSE, "PodGangPodsCreationPending", "; ".join(lacks)
    else:
        told = TRUE, "PodGangPodsCreated", "every PodClique has its pods, and all are named"
    return conditions.set_condition(status.conditions, INITIALIZED, *told, seen.now)


def _short(seen: Observation, count: Mapping[str, int]) -> list[str]:
    """Return which PodCliques have fewer than they need, in sentences."""
    found = []
    for member in seen.members:
        if member.clique is None:
            found.append(f"PodClique {member.place.name} is not there")
            continue
        least = clique_status.floor(member.clique)
        there = count[member.place.name]
        if there < least:
            found.append(f"{member.place.name} has {there} of {least}")
    return found


def _scheduled(
    seen: Observation, found: tuple[Condition, ...], *, initialized: bool
) -> tuple[Condition, ...]:
    """A gang is scheduled once enough pods of every PodClique have a node, or ended well.

    Like `Initialized` it stays so for the incarnation: a pod lost later is replaced by itself.
    What is taken away whole has to be placed whole again (rule 2.8).
    """
    target = conditions.find(found, disruption.DISRUPTION_TARGET)
    if target is not None and target.status == TRUE:
        told = FALSE, "DisruptionTarget", f"it is being taken away: {target.message}"
        return conditions.set_condition(found, SCHEDULED, *told, seen.now)
    if conditions.is_true(found, SCHEDULED):
        return found
    if not initialized:
        told = FALSE, "NotInitialized", "its pods are not all there yet"
        return conditions.set_condition(found, SCHEDULED, *told, seen.now)
    counts = {
        member.place.name: sum(
            (pods.is_scheduled(pod) or pod.status.phase == "Succeeded")
            and not pods.is_terminating(pod)
            for pod in member.pods
        )
        for member in seen.members
    }
    short = _short(seen, counts)
    if short:
        told = FALSE, "InsufficientScheduledPods", f"pods on nodes: {'; '.join(short)}"
    else:
        told = TRUE, "SufficientScheduledPods", "enough pods of every PodClique have a node"
    return conditions.set_condition(found, SCHEDULED, *told, seen.now)


def _ready(
    seen: Observation, found: tuple[Condition, ...], *, scheduled: bool
) -> tuple[Condition, ...]:
    if not scheduled:
        told = FALSE, "NotScheduled", "it is not placed"
        return conditions.set_condition(found, READY, *told, seen.now)
    counts = {
        member.place.name: sum(
            pods.is_ready(pod) or pod.status.phase == "Succeeded" for pod in member.pods
        )
        for member in seen.members
    }
    short = _short(seen, counts)
    if short:
        told = FALSE, "InsufficientReadyPods", f"ready pods: {'; '.join(short)}"
    else:
        told = TRUE, "SufficientReadyPods", "enough pods of every PodClique are ready"
    return conditions.set_condition(found, READY, *told, seen.now)


def _unhealthy(seen: Observation, found: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Tell whether some PodClique that was whole has fewer ready pods than it needs."""
    broken = [
        member.clique.metadata.name
        for member in seen.members
        if member.clique is not None
        and conditions.is_true(member.clique.status.conditions, "MinAvailableBreached")
    ]
    if broken:
        told = TRUE, "MinAvailableBreached", f"too few pods are ready in {', '.join(broken)}"
    else:
        told = FALSE, "Healthy", "no PodClique has fewer ready pods than it needs"
    return conditions.set_condition(found, UNHEALTHY, *told, seen.now)


def _waits_for(seen: Observation) -> list[str]:
    if conditions.is_true(seen.gang.status.conditions, INITIALIZED):
        return []
    return missing(seen)
