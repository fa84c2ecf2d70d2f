"""The status of a PodClique: a function of its pods, and of the little that must be remembered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique, PodCliqueStatus
from spinney.decisions import evidence, pods
from spinney.decisions.making import cliques as clique_documents
from spinney.meta import conditions, selectors
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN, Condition

COUNTERS = (
    "replicas",
    "readyReplicas",
    "scheduledReplicas",
    "scheduleGatedReplicas",
    "updatedReplicas",
)
SCHEDULED = "PodCliqueScheduled"
BREACHED = "MinAvailableBreached"
NAME_CONFLICT = "NameConflict"
NAMES_TOLD = 5
NEEDS_NONE = "it is scaled to 0 and needs no pod"


def floor(clique: PodClique) -> int:
    """Return how many pods the clique needs now: none while it is scaled to 0 (rule 2.7)."""
    return min(clique_documents.min_available(clique), clique.spec.replicas)


def is_updating(clique: PodClique) -> bool:
    """Whether its own update is under way."""
    progress = clique.status.rolling_update_progress
    return progress is not None and progress.update_ended_at is None


def status_of(
    clique: PodClique, members: Sequence[Pod], now: datetime, *, is_in_update: bool = False
) -> PodCliqueStatus:
    """Return the status of a PodClique with these pods.

    `is_in_update` says that its group is replacing it; its own update it knows.
    """
    is_in_update = is_in_update or is_updating(clique)
    staying = [pod for pod in members if not pods.is_terminating(pod)]
    ready = sum(map(pods.is_ready, staying))
    scheduled = sum(map(pods.is_scheduled, staying))
    was_available = clique.status.was_available or (
        ready >= max(1, floor(clique)) and not is_in_update
    )
    target = target_hash(clique)
    updated = sum(pods.template_hash(pod) == target for pod in staying)
    status = msgspec.structs.replace(
        clique.status,
        observed_generation=clique.metadata.generation,
        replicas=len(staying),
        ready_replicas=ready,
        scheduled_replicas=scheduled,
        schedule_gated_replicas=sum(map(pods.is_gated, staying)),
        updated_replicas=updated,
        hpa_pod_selector=_selector(clique),
        was_available=was_available,
    )
    status = msgspec.structs.replace(
        status,
        conditions=_conditions(clique, status, members, now, is_in_update=is_in_update),
    )
    if not is_updating(clique) and updated == len(staying):
        status = msgspec.structs.replace(status, current_pod_template_hash=target)
    return status


def target_hash(clique: PodClique) -> str:
    """Return the pod template that all pods should be of."""
    progress = clique.status.rolling_update_progress
    if progress is not None and progress.update_ended_at is None and progress.pod_template_hash:
        return progress.pod_template_hash
    return clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")


def _selector(clique: PodClique) -> str:
    """Return what selects its pods, for autoscalers; those of groups are scaled as a whole."""
    if labels.SCALING_GROUP in clique.metadata.labels:
        return ""
    part_of = clique.metadata.labels.get(labels.PART_OF, "")
    chosen = labels.clique_selector(part_of, clique.metadata.name)
    return str(selectors.from_labels(chosen))


def _conditions(
    clique: PodClique,
    status: PodCliqueStatus,
    members: Sequence[Pod],
    now: datetime,
    *,
    is_in_update: bool,
) -> tuple[Condition, ...]:
    least, generation = floor(clique), clique.metadata.generation
    scheduled = status.scheduled_replicas
    if clique.spec.replicas == 0:
        placed = TRUE, "Idle", "it is scaled to 0 and needs no pod"
    elif scheduled < least:
        placed = (
            FALSE,
            "InsufficientScheduledPods",
            f"{scheduled} of {least} needed pods are placed",
        )
    else:
        placed = TRUE, "SufficientScheduledPods", f"{scheduled} pods are placed, {least} are needed"
    found = conditions.set_condition(status.conditions, SCHEDULED, *placed, now, generation)
    breach = _breach(clique, status, members, is_in_update=is_in_update)
    return conditions.set_condition(found, BREACHED, *breach, now, generation)


def _breach(
    clique: PodClique, status: PodCliqueStatus, members: Sequence[Pod], *, is_in_update: bool
) -> tuple[str, str, str]:
    """Return whether too few are ready, in the order of rule 4.1."""
    least, ready = floor(clique), status.ready_replicas
    if clique.spec.replicas == 0:
        return FALSE, "Idle", "it is scaled to 0 and needs no pod"
    if ready >= least:
        return FALSE, "SufficientReadyPods", f"{ready} pods are ready, {least} are needed"
    if not status.was_available:
        return FALSE, "NeverAvailable", f"{ready} of {least} needed pods are ready, not yet enough"
    if is_in_update:
        return (
            UNKNOWN,
            "UpdateInProgress",
            f"{ready} of {least} needed pods are ready in its update",
        )
    lost = evidence.of_clique(clique, members)
    text = f"{ready} of {least} needed pods are ready"
    return TRUE, "InsufficientReadyPods", f"{text}: {lost}" if lost else text


def with_name_conflict(
    found: tuple[Condition, ...], held: Sequence[str], now: datetime
) -> tuple[Condition, ...]:
    """Return conditions that tell of names held by others (rule 1.5), where there are any."""
    if not held:
        return tuple(each for each in found if each.type != NAME_CONFLICT)
    shown = ", ".join(held[:NAMES_TOLD]) + (", …" if len(held) > NAMES_TOLD else "")
    message = f"names it needs are held by objects of others: {shown}; delete or rename those"
    return conditions.set_condition(found, NAME_CONFLICT, TRUE, "NameHeld", message, now)
