"""Cliques: what a PodClique does about its pods.

Pods are made by index, so that a name is held once; a pod that is being deleted holds its name
until it is gone. Which pods leave in a scale-in is written down before one is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from spinney.api import groupkinds, labels, names
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique, PodCliqueStatus, PodCliqueUpdateProgress
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.status import LastError
from spinney.decisions import (
    clique_status,
    disruption,
    places,
    pods,
    reporting,
    revisions,
    sharing,
    startup,
    termination,
)
from spinney.decisions.actions import ACTIONS_MAX, Action, Create, Decision, Delete, Emit, Patch
from spinney.decisions.clique_status import COUNTERS
from spinney.decisions.making import claims, owning
from spinney.decisions.making import cliques as clique_documents
from spinney.decisions.making import pods as pod_documents
from spinney.decisions.making.claims import Claim
from spinney.decisions.making.pods import Wait
from spinney.decisions.places import CliquePlace
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.decisions.sharing import Shared
from spinney.decisions.updates import groups as group_updates
from spinney.decisions.updates import lockstep
from spinney.decisions.updates import pods as pod_updates
from spinney.decisions.updates import replicas as replica_updates
from spinney.meta import conditions
from spinney.meta.documents import Document, Json
from spinney.meta.metadata import ObjectMeta
from spinney.meta.quantities import IntOrString
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

REPLACED_AFTER = timedelta(seconds=10)
"""How long an ended pod of an inference clique stays before it is replaced, counted from its end,
so that one that ends at once is not made anew all the time."""


class Observation(Record):
    """What is seen of one PodClique."""

    now: datetime
    clique: PodClique
    set_: PodCliqueSet | None = None
    """The set it was made for, with the template its set replica runs."""

    revision: str = ""
    """The revision its set replica runs."""

    place: CliquePlace | None = None
    """Where it stands in that set; None where the set knows of no such clique."""

    group: PodCliqueScalingGroup | None = None
    """The group it belongs to, where it is in one."""

    pods: tuple[Pod, ...] = ()
    """Its pods, sorted by name, those being deleted too."""

    holders: tuple[ObjectMeta, ...] = ()
    """Pods at names it needs that are not its own."""

    gang: PodGang | None = None
    base_gang: PodGang | None = None
    """For a PodClique of a scaled gang: the gang that must be placed first."""

    group_replicas: Mapping[str, int] = startup.NO_GROUPS
    """The counts of the groups of its set replica, where somebody may wait for them."""

    shared: Shared = Shared()
    settings: Settings = DEFAULTS


def decide(seen: Observation) -> Decision:
    """Return what to do about one PodClique now."""
    clique = seen.clique
    if clique.metadata.deletion_timestamp is not None:
        return _let_go(seen)
    if seen.set_ is None or seen.place is None:
        return Decision(reasons=("its PodCliqueSet is not there: its owner will be collected",))
    leaving = _leaving(seen)
    if leaving != clique.status.leaving_pods:
        status = _status(seen, leaving)
        return Decision(intent=reporting.document(status, COUNTERS), reasons=(_told(leaving),))
    turn = _turn(seen, seen.set_, seen.place)
    if turn.progress != clique.status.rolling_update_progress:
        status = _status(_with_progress(seen, turn.progress), leaving)
        return Decision(intent=reporting.document(status, COUNTERS), reasons=(turn.reason,))
    shares = sharing.decide(
        wanted_claims(seen),
        seen.shared,
        seen.set_.spec.template,
        groupkinds.CLIQUE,
        clique.metadata,
        seen.now,
        in_use=_claims_in_use(seen, seen.set_, seen.place),
    )
    actions: list[Action] = [*shares.actions]
    reasons: list[str] = [*shares.reasons]
    _delete_leaving(seen, actions, reasons)
    _delete_outdated(seen, turn, actions, reasons)
    wake = _replace_ended(seen, actions, reasons)
    _open_gates(seen, actions, reasons)
    _create_missing(seen, actions, reasons)
    status = _status(seen, leaving, shares.errors)
    changed = status != clique.status
    if changed and reporting.must_go_first(clique.status.conditions):
        intent = reporting.document(status, COUNTERS)
        return Decision(intent=intent, reasons=(reporting.TOLD_FIRST,))
    before, after = clique.status.scheduled_replicas, status.scheduled_replicas
    lost = reporting.losses(ref_of(clique), before, after, clique.spec.replicas, "pods")
    return Decision(
        actions=(*_turns(seen, seen.set_, seen.place, status), *lost, *actions)[:ACTIONS_MAX],
        status=reporting.document(status, COUNTERS) if changed else None,
        wake_after=wake,
        reasons=tuple(reasons),
    )


def _turns(
    seen: Observation, set_: PodCliqueSet, place: CliquePlace, status: PodCliqueStatus
) -> Iterator[Action]:
    """Yield the events of what turned for better or worse."""
    clique = seen.clique
    delay = termination.delay_of(set_, place.group.config if place.group is not None else None)
    yield from termination.turns(
        ref_of(clique),
        clique.metadata,
        clique.status.conditions,
        status.conditions,
        delay,
        seen.now,
    )


def wanted_claims(seen: Observation) -> tuple[Claim, ...]:
    """Return the claims that the pods of a PodClique should share."""
    if seen.set_ is None or seen.place is None:
        return ()
    return tuple(claims.of_clique(seen.set_, seen.place, seen.clique.spec.replicas))


def _claims_in_use(seen: Observation, set_: PodCliqueSet, place: CliquePlace) -> set[str]:
    """Return the claims of pods that are there, those at indexes beyond `replicas` too."""
    return {
        name
        for pod in seen.pods
        if (index := pods.index_of(pod)) is not None and index >= seen.clique.spec.replicas
        for name in claims.held_by(set_, place, index)
    }


def _let_go(seen: Observation) -> Decision:
    """Take our finalizer off a PodClique that is being deleted; its pods go with it."""
    metadata = seen.clique.metadata
    if labels.CLIQUE_FINALIZER not in metadata.finalizers:
        return Decision()
    left: list[Json] = [item for item in metadata.finalizers if item != labels.CLIQUE_FINALIZER]
    return Decision(
        actions=(
            Patch(
                target=ref_of(seen.clique),
                merge={"metadata": {"finalizers": left or None}},
                only_if=_as_seen(metadata),
            ),
        ),
        reasons=("it is being deleted: its pods go with it",),
    )


def ref_of(clique: PodClique) -> Ref:
    """Return how a PodClique is referred to."""
    return Ref(
        kind=groupkinds.CLIQUE, namespace=clique.metadata.namespace, name=clique.metadata.name
    )


def _as_seen(metadata: ObjectMeta) -> Precondition:
    return Precondition(uid=metadata.uid, resource_version=metadata.resource_version)


def _told(leaving: Sequence[str]) -> str:
    return f"pods chosen to leave: {', '.join(leaving)}" if leaving else "no pod has to leave"


# Scale-in


def removal_order(pod: Pod, wanted_hash: str) -> tuple[bool, int, bool, bool, timedelta, int]:
    """Return by what pods are sorted for removal: the first goes first.

    Without a node before with one, Pending before Unknown before Running, not ready before ready,
    outdated before current, newer before older; of equal ones, the higher index.
    """
    created = pod.metadata.creation_timestamp
    phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.status.phase, 0)
    index = pods.index_of(pod)
    return (
        pods.is_scheduled(pod),
        phase,
        pods.is_ready(pod),
        pods.template_hash(pod) == wanted_hash,
        timedelta() if created is None else _END_OF_TIME - created,
        -(index if index is not None else 0),
    )


_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def _leaving(seen: Observation) -> tuple[str, ...]:
    """Return the pods that have to leave: those chosen before that are still there, then more."""
    clique = seen.clique
    staying = [pod for pod in seen.pods if not pods.is_terminating(pod)]
    excess = len(staying) - clique.spec.replicas
    if excess <= 0:
        return ()
    by_name = {pod.metadata.name: pod for pod in staying}
    chosen = [name for name in clique.status.leaving_pods if name in by_name][:excess]
    wanted = clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    others = sorted(
        (pod for pod in staying if pod.metadata.name not in chosen),
        key=lambda pod: removal_order(pod, wanted),
    )
    more = [pod.metadata.name for pod in others[: excess - len(chosen)]]
    return tuple(sorted([*chosen, *more]))


def _delete_leaving(seen: Observation, actions: list[Action], reasons: list[str]) -> None:
    going = [
        pod
        for pod in seen.pods
        if pod.metadata.name in seen.clique.status.leaving_pods and not pods.is_terminating(pod)
    ]
    actions.extend(
        Delete(target=_pod_ref(pod), only_if=Precondition(uid=pod.metadata.uid)) for pod in going
    )
    if going:
        reasons.append(
            f"scaled to {seen.clique.spec.replicas}: "
            f"{', '.join(pod.metadata.name for pod in going)} leaves"
        )


def _pod_ref(pod: Pod) -> Ref:
    return Ref(kind=groupkinds.POD, namespace=pod.metadata.namespace, name=pod.metadata.name)


# Following the template


class Turn(Record):
    """What an update does with a clique now."""

    progress: PodCliqueUpdateProgress | None = None
    """As it has to be stored before anything is deleted."""

    goes: tuple[str, ...] = ()
    reason: str = ""


def _turn(seen: Observation, set_: PodCliqueSet, place: CliquePlace) -> Turn:
    """Return what an update does now; nothing, where it is not this clique's turn (rule 3.6)."""
    clique = seen.clique
    stored = clique.status.rolling_update_progress
    if place.group is not None and not replica_updates.is_on_delete(set_):
        return Turn(progress=stored)
    if replica_updates.is_on_delete(set_):
        if stored is not None and pod_updates.is_open(stored):
            reason = "its update ends: pods follow their template when they are deleted"
            return Turn(progress=pod_updates.ended(stored, seen.now), reason=reason)
        if seen.revision != set_.status.current_generation_hash:
            return Turn(progress=stored)
        marked = pod_updates.marked_on_delete(clique, seen.pods, seen.revision, seen.now)
        reason = "its template changed: pods follow it when they are deleted"
        return Turn(progress=marked or stored, reason=reason)
    if not replica_updates.is_turn_of(set_, place.set_replica_index, seen.revision):
        return Turn(progress=stored)
    begun = pod_updates.begun(clique, seen.pods, seen.revision, seen.now)
    if begun is not None:
        return Turn(progress=begun, reason="its pods are to follow a changed template")
    if stored is None or not pod_updates.is_open(stored):
        return Turn(progress=stored)
    strategy = set_.spec.update_strategy
    step = pod_updates.step(
        clique,
        seen.pods,
        stored,
        most=disruption.most_at_once(max_unavailable(set_), clique.spec.replicas),
        due=lockstep.due(set_, clique.spec.replicas),
        hold=_hold(seen, is_paused=strategy.paused),
    )
    progress = pod_updates.advanced(clique, seen.pods, stored, step, seen.now)
    goes = () if strategy.paused else tuple(dict.fromkeys((*step.forced, *step.taken)))
    return Turn(progress=progress, goes=goes, reason=f"its update: {step.waits_for or 'goes on'}")


def max_unavailable(set_: PodCliqueSet) -> IntOrString | None:
    """Return how many may be down at once, as the set's strategy says."""
    rolling = set_.spec.update_strategy.rolling_recreate
    return None if rolling is None else rolling.max_unavailable


def _hold(seen: Observation, *, is_paused: bool) -> str:
    """Return why an update takes nothing that is ready now (rule 2.8)."""
    if is_paused:
        return "the update is paused"
    if seen.clique.status.leaving_pods:
        return "a scale-in is under way"
    gang = seen.gang
    if gang is not None and disruption.is_marked(gang):
        return "its gang is about to be preempted"
    return ""


def _with_progress(seen: Observation, progress: PodCliqueUpdateProgress | None) -> Observation:
    status = msgspec.structs.replace(seen.clique.status, rolling_update_progress=progress)
    clique = msgspec.structs.replace(seen.clique, status=status)
    return msgspec.structs.replace(seen, clique=clique)


def _delete_outdated(
    seen: Observation, turn: Turn, actions: list[Action], reasons: list[str]
) -> None:
    there = {pod.metadata.name: pod for pod in seen.pods if not pods.is_terminating(pod)}
    for name in turn.goes:
        pod = there[name]
        actions.append(Delete(target=_pod_ref(pod), only_if=Precondition(uid=pod.metadata.uid)))
        reasons.append(f"pod {name} is of an older template and is replaced")
    if turn.reason and not turn.goes:
        reasons.append(turn.reason)


# Making and replacing


def _replace_ended(
    seen: Observation, actions: list[Action], reasons: list[str]
) -> timedelta | None:
    """Delete ended pods, after a while, so that others take their names; returns when to look."""
    wake: timedelta | None = None
    for pod in seen.pods:
        if pods.is_terminating(pod) or not pods.is_ended(pod):
            continue
        if pod.metadata.name in seen.clique.status.leaving_pods:
            continue
        left = _ended_at(pod) + REPLACED_AFTER + timedelta(seconds=1) - seen.now
        if left > timedelta():
            wake = left if wake is None else min(wake, left)
            continue
        only_if = Precondition(uid=pod.metadata.uid)
        actions.append(Delete(target=_pod_ref(pod), only_if=only_if))
        reasons.append(f"pod {pod.metadata.name} ended ({pod.status.phase}) and is replaced")
    return wake


def _ended_at(pod: Pod) -> datetime:
    """Return when the last container of a pod ended; its creation, where nothing says."""
    ends = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at is not None
    ]
    created = pod.metadata.creation_timestamp
    assert created is not None, "a stored pod has a creation time"
    return max([*ends, created])


def _create_missing(seen: Observation, actions: list[Action], reasons: list[str]) -> None:
    assert seen.set_ is not None
    assert seen.place is not None
    clique = seen.clique
    held = {holder.name for holder in seen.holders}
    claims_held = {holder.name for holder in seen.shared.holders}
    wanted = [
        index
        for index in pods.planned_indexes(seen.pods, clique.spec.replicas)
        if names.pod(clique.metadata.name, index) not in held
        and claims_held.isdisjoint(claims.held_by(seen.set_, seen.place, index))
    ]
    actions.extend(Create(document=_pod_document(seen, index)) for index in wanted)
    if wanted:
        reasons.append(f"{len(wanted)} of {clique.spec.replicas} pods are missing")
    for kind, holder in _strangers(seen):
        note = (
            f'the name "{holder.name}" is held by a {kind} that is not this PodClique\'s; '
            "delete or rename it"
        )
        reasons.append(note)
        actions.append(
            Emit(
                about=ref_of(clique),
                type="Warning",
                reason="NameConflict",
                note=note,
                key=f"{clique.metadata.uid}/NameConflict/{holder.name}",
            )
        )


def _strangers(seen: Observation) -> list[tuple[str, ObjectMeta]]:
    """Return what holds names the PodClique needs, but for what one of its name left behind."""
    held = [("pod", each) for each in seen.holders]
    held += [("ResourceClaim", each) for each in seen.shared.holders]
    owner = seen.clique.metadata
    return [
        (kind, each)
        for kind, each in held
        if not owning.is_left_over(each, groupkinds.CLIQUE, owner)
    ]


def _pod_document(seen: Observation, index: int) -> Document:
    set_, place = seen.set_, seen.place
    assert set_ is not None
    assert place is not None
    return pod_documents.pod(
        seen.clique,
        index,
        set_name=place.set_name,
        set_replica_index=place.set_replica_index,
        waits=_waits(set_, place, seen.group_replicas),
        claims=claims.held_by(set_, place, index),
        settings=seen.settings,
    )


def _waits(set_: PodCliqueSet, place: CliquePlace, group_replicas: Mapping[str, int]) -> list[Wait]:
    template = set_.spec.template
    counts = {clique.name: clique_documents.min_available(clique) for clique in template.cliques}
    return [
        Wait(clique=full_name, ready_count=counts.get(parent, 1))
        for parent in startup.parents(template, place.clique)
        for full_name in startup.full_names(template, place, parent, group_replicas)
    ]


# Gates


def may_start(seen: Observation) -> str:
    """Return why the pods of a PodClique may not be placed yet; "" where they may."""
    clique, gang = seen.clique, seen.gang
    if gang is None:
        return "its PodGang is not there yet"
    if all(member.uid != clique.metadata.uid for member in gang.status.members):
        return f"PodGang {gang.metadata.name} does not count it among its members yet"
    if not conditions.is_true(gang.status.conditions, "Initialized"):
        return f"PodGang {gang.metadata.name} does not have all its pods yet"
    base = clique.metadata.labels.get(labels.BASE_PODGANG, "")
    if not base:
        return ""
    if seen.base_gang is None:
        return f"base PodGang {base} is not there yet"
    if not conditions.is_true(seen.base_gang.status.conditions, "Scheduled"):
        return f"base PodGang {base} is not placed yet"
    return ""


def _open_gates(seen: Observation, actions: list[Action], reasons: list[str]) -> None:
    gated = [pod for pod in seen.pods if pods.has_our_gate(pod) and not pods.is_terminating(pod)]
    if not gated:
        return
    why_not = may_start(seen)
    if why_not:
        reasons.append(f"{len(gated)} pods are held back: {why_not}")
        return
    assert seen.gang is not None
    referenced = {
        reference.name
        for group in seen.gang.spec.pod_groups
        if group.name == seen.clique.metadata.name
        for reference in group.pod_references
    }
    for pod in gated:
        if pod.metadata.name not in referenced:
            reasons.append(f"pod {pod.metadata.name} is held back: its PodGang does not name it")
            continue
        left: list[Json] = [
            {"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != labels.GATE
        ]
        actions.append(
            Patch(
                target=_pod_ref(pod),
                merge={"spec": {"schedulingGates": left or None}},
                only_if=_as_seen(pod.metadata),
            )
        )


def _status(
    seen: Observation, leaving: tuple[str, ...], errors: tuple[LastError, ...] = ()
) -> PodCliqueStatus:
    status = clique_status.status_of(
        seen.clique, seen.pods, seen.now, is_in_update=_is_in_update(seen)
    )
    conflict = [holder.name for _, holder in _strangers(seen)]
    if _begins_to_follow(seen, status):
        status = msgspec.structs.replace(
            status, current_pod_clique_set_generation_hash=seen.revision
        )
    told = clique_status.with_name_conflict(status.conditions, conflict, seen.now)
    told_errors = sharing.same_errors(seen.clique.status.last_errors, errors)
    return msgspec.structs.replace(
        status,
        leaving_pods=leaving,
        last_errors=told_errors,
        conditions=reporting.with_blocked(told, told_errors, seen.now),
    )


def _is_in_update(seen: Observation) -> bool:
    """Whether the update of its group is about this clique (rule 4.1)."""
    if seen.group is None or seen.set_ is None or seen.place is None:
        return False
    if not group_updates.is_open(seen.group.status.rolling_update_progress):
        return False
    template = seen.set_.spec.template
    found = places.clique_of(template, seen.place.clique)
    target = "" if found is None else revisions.pod_template_hash(template, found)
    return group_updates.is_in_update(seen.clique, seen.group, target)


def _begins_to_follow(seen: Observation, status: PodCliqueStatus) -> bool:
    """Whether every pod is of the revision that its set replica runs, and that is new."""
    if seen.revision in ("", status.current_pod_clique_set_generation_hash):
        return False
    if clique_status.is_updating(seen.clique) or status.updated_replicas != status.replicas:
        return False
    if seen.set_ is None or seen.place is None:
        return False
    label = seen.clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    template = seen.set_.spec.template
    found = places.clique_of(template, seen.place.clique)
    return found is not None and revisions.pod_template_hash(template, found) == label
