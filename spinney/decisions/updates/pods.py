"""How the pods of one PodClique follow its template, one after the other (rule 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from spinney.api import labels, names
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique, PodCliqueUpdateProgress, PodsSelectedToUpdate
from spinney.decisions import clique_status, pods
from spinney.decisions.updates import taking
from spinney.decisions.updates.taking import Chosen, Step, Unit

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def is_open(progress: PodCliqueUpdateProgress | None) -> bool:
    """Whether an update is under way."""
    return progress is not None and progress.update_ended_at is None


def begun(
    clique: PodClique, members: Sequence[Pod], revision: str, now: datetime
) -> PodCliqueUpdateProgress | None:
    """Return the progress of an update that has to begin, or begin anew; None where none has to.

    It has to where pods are of another template than the PodClique, and no update leads there yet.
    One that leads elsewhere is superseded, also where no pod is outdated any more (rule 3.6).
    """
    target = clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    progress = clique.status.rolling_update_progress
    outdated = any(pods.template_hash(pod) != target for pod in members)
    if progress is not None and _leads_to(progress, revision, target):
        return None
    if not outdated and not is_open(progress):
        return None
    at = now.replace(microsecond=0)
    staying = sum(not pods.is_terminating(pod) for pod in members)
    return PodCliqueUpdateProgress(
        update_started_at=at,
        pod_clique_set_generation_hash=revision,
        pod_template_hash=target,
        replicas_at_start=staying,
        last_progress_at=at,
    )


def _leads_to(progress: PodCliqueUpdateProgress, revision: str, target: str) -> bool:
    return (progress.pod_clique_set_generation_hash, progress.pod_template_hash) == (
        revision,
        target,
    )


def marked_on_delete(
    clique: PodClique, members: Sequence[Pod], revision: str, now: datetime
) -> PodCliqueUpdateProgress | None:
    """Return the progress where pods follow when somebody deletes them: it ends as it begins."""
    progress = begun(clique, members, revision, now)
    if progress is None:
        return None
    return msgspec.structs.replace(progress, update_ended_at=progress.update_started_at)


def ended(progress: PodCliqueUpdateProgress, now: datetime) -> PodCliqueUpdateProgress:
    """Return the progress of an update that is given up where it stands."""
    return msgspec.structs.replace(
        progress,
        ready_pods_selected_to_update=None,
        update_ended_at=now.replace(microsecond=0),
    )


def step(
    clique: PodClique,
    members: Sequence[Pod],
    progress: PodCliqueUpdateProgress,
    *,
    most: int,
    due: int | None = None,
    hold: str = "",
) -> Step:
    """Return the next step of an open update."""
    units = [_unit(pod, progress.pod_template_hash) for pod in members]
    wanted = {names.pod(clique.metadata.name, index) for index in range(clique.spec.replicas)}
    return taking.step(
        units,
        chosen_in(progress),
        wanted=wanted,
        least=clique_status.floor(clique),
        most=most,
        due=due,
        hold=hold,
    )


def _unit(pod: Pod, target: str) -> Unit:
    return Unit(
        name=pod.metadata.name,
        born=pod.metadata.creation_timestamp or _LONG_AGO,
        index=pods.index_of(pod) or 0,
        is_outdated=pods.template_hash(pod) != target,
        is_ready=pods.is_ready(pod),
        is_going=pods.is_terminating(pod),
    )


def chosen_in(progress: PodCliqueUpdateProgress) -> Chosen:
    """Return which pods an update took."""
    selected = progress.ready_pods_selected_to_update
    if selected is None:
        return Chosen()
    current = (selected.current,) if selected.current else ()
    return Chosen(in_flight=(*current, *selected.others), completed=selected.completed)


def advanced(
    clique: PodClique,
    members: Sequence[Pod],
    progress: PodCliqueUpdateProgress,
    found: Step,
    now: datetime,
) -> PodCliqueUpdateProgress:
    """Return the progress after a step; the same one where nothing changed."""
    before, chosen = chosen_in(progress), found.chosen
    ended = is_complete(clique, members, progress)
    if chosen == before and not ended:
        return progress
    at = now.replace(microsecond=0)
    is_further = ended or len(chosen.completed) > len(before.completed)
    selected = None
    if chosen.in_flight or chosen.completed:
        selected = PodsSelectedToUpdate(
            current=chosen.in_flight[0] if chosen.in_flight else "",
            others=chosen.in_flight[1:],
            completed=chosen.completed,
        )
    return msgspec.structs.replace(
        progress,
        ready_pods_selected_to_update=None if ended else selected,
        update_ended_at=at if ended else None,
        last_progress_at=at if is_further else progress.last_progress_at,
    )


def is_complete(
    clique: PodClique, members: Sequence[Pod], progress: PodCliqueUpdateProgress
) -> bool:
    """Whether every pod is of the template, and as many are ready as there were (rule 3.8)."""
    if any(pods.template_hash(pod) != progress.pod_template_hash for pod in members):
        return False
    ready = sum(map(pods.is_ready, members))
    there_were = min(progress.replicas_at_start, clique.spec.replicas)
    return ready >= max(there_were, clique_status.floor(clique))
