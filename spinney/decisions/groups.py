"""Groups: what a PodCliqueScalingGroup does about the copies of its cliques.

Copies are numbered from 0 without gaps; a scale-in takes the highest. A copy is built from the
revision its set replica runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from spinney.api import groupkinds, labels
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.status import LastError
from spinney.decisions import (
    clique_status,
    copies,
    disruption,
    places,
    reporting,
    sharing,
    termination,
)
from spinney.decisions.actions import ACTIONS_MAX, Action, Create, Decision, Delete, Emit, Patch
from spinney.decisions.clique_status import BREACHED, NEEDS_NONE
from spinney.decisions.copies import Copy
from spinney.decisions.making import claims, owning
from spinney.decisions.making import cliques as clique_documents
from spinney.decisions.making.claims import Claim
from spinney.decisions.places import CliquePlace, GroupPlace
from spinney.decisions.sharing import Shared
from spinney.decisions.termination import Fate
from spinney.decisions.updates import groups as group_updates
from spinney.decisions.updates import lockstep
from spinney.decisions.updates import replicas as replica_updates
from spinney.meta import conditions, selectors
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN, Condition
from spinney.meta.documents import Json
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

COUNTERS = ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")


class Observation(Record):
    """What is seen of one scaling group."""

    now: datetime
    group: PodCliqueScalingGroup
    set_: PodCliqueSet | None = None
    """The set it was made for, with the template its set replica runs."""

    revision: str = ""
    """The revision its set replica runs; "" while it is not known: then nothing is built."""

    place: GroupPlace | None = None
    """Where it stands in that set; None where the set knows of no such group."""

    cliques: tuple[PodClique, ...] = ()
    """Its PodCliques, sorted by name."""

    gangs: tuple[PodGang, ...] = ()
    """The gangs its copies are placed with, looked at while it is in update."""

    holders: tuple[ObjectMeta, ...] = ()
    """PodCliques at names it needs that are not its own."""

    shared: Shared = Shared()


def decide(seen: Observation) -> Decision:
    """Return what to do about one scaling group now."""
    group = seen.group
    if group.metadata.deletion_timestamp is not None:
        return _let_go(group)
    if seen.set_ is None or seen.place is None:
        return Decision(reasons=("its PodCliqueSet is not there: its owner will be collected",))
    turn = _turn(seen, seen.set_, seen.place)
    if turn.progress != group.status.rolling_update_progress:
        status = status_of(_with_progress(seen, turn.progress))
        return Decision(intent=reporting.document(status, COUNTERS), reasons=(turn.reason,))
    wanted = {place.name: place for place in _places(seen.place, group.spec.replicas)}
    shares = sharing.decide(
        wanted_claims(seen),
        seen.shared,
        seen.set_.spec.template,
        groupkinds.SCALING_GROUP,
        group.metadata,
        seen.now,
    )
    actions: list[Action] = [*shares.actions]
    reasons: list[str] = [*shares.reasons]
    _delete_excess(seen, wanted, actions, reasons)
    actions.extend(turn.actions)
    reasons.extend(filter(None, [turn.reason]))
    fate = _fate(seen, seen.set_, seen.place)
    actions.extend(termination.actions_of(ref_of(group), group.metadata, fate))
    reasons.extend(fate.reasons)
    _create_missing(seen, seen.set_, wanted, actions, reasons)
    status = status_of(seen, shares.errors)
    changed = status != group.status
    if changed and reporting.must_go_first(group.status.conditions):
        intent = reporting.document(status, COUNTERS)
        return Decision(intent=intent, reasons=(reporting.TOLD_FIRST,))
    before, after = group.status.scheduled_replicas, status.scheduled_replicas
    lost = reporting.losses(ref_of(group), before, after, group.spec.replicas, "copies")
    return Decision(
        actions=(*_turns(seen, seen.set_, status), *lost, *actions)[:ACTIONS_MAX],
        status=reporting.document(status, COUNTERS) if changed else None,
        wake_after=fate.wake_after,
        reasons=tuple(reasons),
    )


# Following the template


class Turn(Record):
    """What an update does with a group now."""

    progress: PodCliqueScalingGroupUpdateProgress | None = None
    """As it has to be stored before anything is deleted."""

    actions: tuple[Action, ...] = ()
    reason: str = ""


def _turn(seen: Observation, set_: PodCliqueSet, place: GroupPlace) -> Turn:
    """Return what an update does now; nothing, where it is not this group's turn (rule 3.6)."""
    group = seen.group
    stored = group.status.rolling_update_progress
    on_delete = replica_updates.is_on_delete(set_)
    if on_delete and stored is not None and group_updates.is_open(stored):
        reason = "its update ends: pods follow their template when they are deleted"
        return Turn(progress=group_updates.ended(stored, seen.now), reason=reason)
    is_target = seen.revision == set_.status.current_generation_hash
    is_turn = replica_updates.is_turn_of(set_, place.set_replica_index, seen.revision)
    if not (is_turn or (on_delete and is_target)):
        return Turn(progress=stored)
    found, target = copies_of(seen), group_updates.targets(set_.spec.template, place)
    begun = group_updates.begun(group, found, target, seen.revision, seen.now)
    if begun is not None:
        if on_delete:
            begun = msgspec.structs.replace(begun, update_ended_at=begun.update_started_at)
        return Turn(progress=begun, reason="its copies are to follow a changed template")
    if on_delete:
        return Turn(progress=stored, actions=tuple(_stamped(seen, set_, found)))
    if stored is None or not group_updates.is_open(stored):
        return Turn(progress=stored)
    strategy = set_.spec.update_strategy
    rolling = strategy.rolling_recreate
    most = disruption.most_at_once(
        None if rolling is None else rolling.max_unavailable, group.spec.replicas
    )
    hold = "the update is paused" if strategy.paused else _hold(seen)
    due = lockstep.due(set_, group.spec.replicas)
    step = group_updates.step(group, found, target, stored, most=most, due=due, hold=hold)
    progress = group_updates.advanced(group, found, target, stored, step, seen.now)
    goes = set() if strategy.paused else {*step.forced, *step.taken}
    return Turn(
        progress=progress,
        actions=tuple(
            Delete(target=_clique_ref(clique), only_if=Precondition(uid=clique.metadata.uid))
            for copy_ in found
            for clique in copy_.cliques
            if str(copy_.index) in goes and not copies.is_going(clique)
        ),
        reason=f"its update: {step.waits_for or 'goes on'}",
    )


def _hold(seen: Observation) -> str:
    """Return why an update takes nothing that is ready now (rule 2.8)."""
    about_to_go = [gang.metadata.name for gang in seen.gangs if disruption.is_marked(gang)]
    return f"gang {about_to_go[0]} is about to be preempted" if about_to_go else ""


def _stamped(seen: Observation, set_: PodCliqueSet, found: Sequence[Copy]) -> Iterator[Action]:
    """Yield what makes PodCliques say what their pods are to follow once they are deleted."""
    for copy_ in found:
        for place, clique in zip(copy_.places, copy_.cliques, strict=False):
            if place.name == clique.metadata.name and not copies.is_going(clique):
                wanted = clique_documents.podclique(
                    set_, set_.spec.template, place, seen.group.metadata
                )
                change = clique_documents.template_change(clique, wanted)
                if change:
                    only_if = Precondition(uid=clique.metadata.uid)
                    yield Patch(target=_clique_ref(clique), merge=change, only_if=only_if)


def _clique_ref(clique: PodClique) -> Ref:
    metadata = clique.metadata
    return Ref(kind=groupkinds.CLIQUE, namespace=metadata.namespace, name=metadata.name)


def _with_progress(
    seen: Observation, progress: PodCliqueScalingGroupUpdateProgress | None
) -> Observation:
    status = msgspec.structs.replace(seen.group.status, rolling_update_progress=progress)
    group = msgspec.structs.replace(seen.group, status=status)
    return msgspec.structs.replace(seen, group=group)


def _turns(
    seen: Observation, set_: PodCliqueSet, status: PodCliqueScalingGroupStatus
) -> Iterator[Action]:
    """Yield the events of what turned for better or worse."""
    group = seen.group
    delay = termination.delay_of(set_, seen.place.config if seen.place is not None else None)
    yield from termination.turns(
        ref_of(group),
        group.metadata,
        group.status.conditions,
        status.conditions,
        delay,
        seen.now,
    )


def _fate(seen: Observation, set_: PodCliqueSet, place: GroupPlace) -> Fate:
    """Return which copies are torn down now; none while the group is in update."""
    if is_updating(seen.group):
        return Fate()
    least = seen.group.spec.min_available
    return termination.fate_of_copies(set_, place, copies_of(seen), least, seen.now)


def wanted_claims(seen: Observation) -> tuple[Claim, ...]:
    """Return the claims that the pods of a group should share."""
    if seen.set_ is None or seen.place is None:
        return ()
    return tuple(claims.of_group(seen.set_, seen.place, seen.group.spec.replicas))


def _let_go(group: PodCliqueScalingGroup) -> Decision:
    metadata = group.metadata
    if labels.GROUP_FINALIZER not in metadata.finalizers:
        return Decision()
    left: list[Json] = [item for item in metadata.finalizers if item != labels.GROUP_FINALIZER]
    only_if = Precondition(uid=metadata.uid, resource_version=metadata.resource_version)
    merge: Json = {"finalizers": left or None}
    return Decision(
        actions=(Patch(target=ref_of(group), merge={"metadata": merge}, only_if=only_if),),
        reasons=("it is being deleted: its PodCliques go with it",),
    )


def ref_of(group: PodCliqueScalingGroup) -> Ref:
    """Return how a scaling group is referred to."""
    return Ref(
        kind=groupkinds.SCALING_GROUP, namespace=group.metadata.namespace, name=group.metadata.name
    )


def _places(place: GroupPlace, replicas: int) -> Iterator[CliquePlace]:
    return places.grouped_places(place, range(replicas))


def _delete_excess(
    seen: Observation, wanted: dict[str, CliquePlace], actions: list[Action], reasons: list[str]
) -> None:
    excess = [
        clique
        for clique in seen.cliques
        if clique.metadata.name not in wanted and not copies.is_going(clique)
    ]
    actions.extend(
        Delete(
            target=Ref(
                kind=groupkinds.CLIQUE, namespace=c.metadata.namespace, name=c.metadata.name
            ),
            only_if=Precondition(uid=c.metadata.uid),
        )
        for c in excess
    )
    if excess:
        reasons.append(f"scaled to {seen.group.spec.replicas}: {len(excess)} PodCliques leave")


def _create_missing(
    seen: Observation,
    set_: PodCliqueSet,
    wanted: dict[str, CliquePlace],
    actions: list[Action],
    reasons: list[str],
) -> None:
    there = {clique.metadata.name for clique in seen.cliques}
    there |= {holder.name for holder in seen.holders}
    missing = [
        place for name, place in wanted.items() if name not in there and not seen.shared.holders
    ]
    if missing and not seen.revision:
        reasons.append("which revision its set replica runs is not known: nothing is built")
        missing = []
    actions.extend(
        Create(
            document=clique_documents.podclique(
                set_, set_.spec.template, place, seen.group.metadata
            )
        )
        for place in missing
    )
    if missing:
        reasons.append(f"{len(missing)} of {len(wanted)} PodCliques are missing")
    for holder in _strangers(seen):
        actions.append(conflict(ref_of(seen.group), seen.group.metadata.uid, holder))
        reasons.append(f'the name "{holder.name}" is held by another')


def _strangers(seen: Observation) -> list[ObjectMeta]:
    """Return what holds names the group needs, but for what a group of its name left behind."""
    return [
        holder
        for holder in (*seen.holders, *seen.shared.holders)
        if not owning.is_left_over(holder, groupkinds.SCALING_GROUP, seen.group.metadata)
    ]


def conflict(about: Ref, uid: str, holder: ObjectMeta) -> Emit:
    """Return what tells people that a name is held by an object of somebody else (rule 1.5)."""
    owner = next((o for o in holder.owner_references if o.controller), None)
    whose = f"{owner.kind} {owner.name}" if owner is not None else "nobody we know"
    return Emit(
        about=about,
        type="Warning",
        reason="NameConflict",
        note=f'the name "{holder.name}" is held by an object of {whose}; delete or rename that',
        key=f"{uid}/NameConflict/{holder.name}",
    )


# Status


def copies_of(seen: Observation) -> tuple[Copy, ...]:
    """Return the group's copies, with what is there of each."""
    if seen.place is None:
        return ()
    return copies.copies_of(seen.place, seen.group.spec.replicas, seen.cliques)


def status_of(seen: Observation, errors: tuple[LastError, ...] = ()) -> PodCliqueScalingGroupStatus:
    """Return the status of a scaling group."""
    group = seen.group
    found = copies_of(seen)
    target = _targets(seen)
    told_errors = sharing.same_errors(group.status.last_errors, errors)
    status = msgspec.structs.replace(
        group.status,
        observed_generation=group.metadata.generation,
        last_errors=told_errors,
        replicas=sum(bool(copy.cliques) for copy in found),
        scheduled_replicas=sum(map(copies.is_scheduled, found)),
        available_replicas=sum(map(copies.is_available, found)),
        updated_replicas=sum(
            copies.is_available(copy)
            and not group_updates.is_outdated(target, copy)
            and all(map(copies.is_updated, copy.cliques))
            for copy in found
        ),
        selector=_selector(group),
    )
    told = reporting.with_blocked(_conditions(group, found, seen), told_errors, seen.now)
    status = msgspec.structs.replace(status, conditions=told)
    if seen.revision and not is_updating(group) and all(_follows(seen, copy) for copy in found):
        status = msgspec.structs.replace(
            status, current_pod_clique_set_generation_hash=seen.revision
        )
    return status


def _targets(seen: Observation) -> Mapping[str, str]:
    """Return what the copies should be made from: what their set replica runs."""
    if seen.set_ is None or seen.place is None:
        return {}
    return group_updates.targets(seen.set_.spec.template, seen.place)


def _follows(seen: Observation, copy: Copy) -> bool:
    """Whether every pod of a copy is of the revision its set replica runs."""
    return copy.is_complete and all(
        clique.status.current_pod_clique_set_generation_hash == seen.revision
        and clique.status.current_pod_template_hash
        == clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
        for clique in copy.cliques
    )


def _selector(group: PodCliqueScalingGroup) -> str:
    part_of = group.metadata.labels.get(labels.PART_OF, "")
    chosen = labels.group_selector(part_of, group.metadata.name)
    return str(selectors.from_labels(chosen))


def is_updating(group: PodCliqueScalingGroup) -> bool:
    """Whether its own update is under way."""
    progress = group.status.rolling_update_progress
    return progress is not None and progress.update_ended_at is None


def _conditions(
    group: PodCliqueScalingGroup, found: Sequence[Copy], seen: Observation
) -> tuple[Condition, ...]:
    told = conditions.set_condition(
        group.status.conditions,
        BREACHED,
        *_breach(group, found),
        seen.now,
        group.metadata.generation,
    )
    held = [holder.name for holder in _strangers(seen)]
    return clique_status.with_name_conflict(told, held, seen.now)


def _breach(group: PodCliqueScalingGroup, found: Sequence[Copy]) -> tuple[str, str, str]:
    """Return whether too few copies are whole (rule 4.2)."""
    if group.spec.replicas == 0:
        return FALSE, "Idle", NEEDS_NONE
    if is_updating(group):
        return UNKNOWN, "UpdateInProgress", "its update is under way"
    count = copies.tally(found, group.spec.min_available)
    text = f"copies that are there and not broken: {count.healthy}, needed: {count.floor}"
    if count.is_breached == FALSE:
        return FALSE, "SufficientAvailablePodCliqueScalingGroupReplicas", text
    if count.is_breached == TRUE:
        return TRUE, "InsufficientAvailablePodCliqueScalingGroupReplicas", text
    unknown = f"of {count.unknown} it is not known yet"
    return UNKNOWN, "PodCliqueAvailabilityUnknown", f"{text}; {unknown}"
