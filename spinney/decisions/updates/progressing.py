"""Whether an update gets on, and what blocks one that does not (rules 3.9 and 3.10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.api.podcliqueset import (
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueSetUpdateProgress,
)
from spinney.decisions import clique_status, deadlines, evidence, pods
from spinney.decisions.actions import Action, Emit
from spinney.decisions.updates import groups as group_updates
from spinney.decisions.updates import pods as pod_updates
from spinney.decisions.updates import replicas
from spinney.decisions.updates.replicas import Scene
from spinney.meta import conditions
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN, Condition
from spinney.meta.records import Record
from spinney.meta.references import Ref

PROGRESSING = "Progressing"
PAUSED = "Paused"
EXCEEDED = "ProgressDeadlineExceeded"

RESOURCES = "ResourcesUnavailable"
MIN_AVAILABLE = "MinAvailableConstraint"
SCHEDULING = "PodSchedulingFailed"
NOT_READY = "PodNotReady"

_TOO_LITTLE = ("insufficient", "too little", "too few", "not enough")
"""What schedulers say where nodes are full, rather than unsuitable."""


class Blocker(Record):
    """What an update waits for."""

    word: str
    sentence: str


def deadline(set_: PodCliqueSet) -> timedelta:
    """Return after how long without progress an update counts as stuck."""
    return timedelta(seconds=set_.spec.update_strategy.progress_deadline_seconds)


def left(set_: PodCliqueSet, now: datetime) -> timedelta | None:
    """Return how long an update has left to get on; None where no clock runs."""
    progress = set_.status.rolling_update_progress
    if not replicas.is_open(set_) or set_.spec.update_strategy.paused:
        return None
    assert progress is not None
    since = progress.last_progress_at or progress.update_started_at
    return None if since is None else deadlines.left(since, deadline(set_), now)


def resumed(
    set_: PodCliqueSet, progress: PodCliqueSetUpdateProgress | None, now: datetime
) -> PodCliqueSetUpdateProgress | None:
    """Return the progress of an update whose clock stood still and runs again from now."""
    said = conditions.find(set_.status.conditions, PROGRESSING)
    if progress is None or said is None or said.reason != PAUSED:
        return progress
    if set_.spec.update_strategy.paused:
        return progress
    return msgspec.structs.replace(progress, last_progress_at=now.replace(microsecond=0))


def condition(
    scene: Scene,
    progress: PodCliqueSetUpdateProgress | None,
    members: Sequence[Pod],
    now: datetime,
) -> tuple[str, str, str] | None:
    """Return status, reason and sentence of `Progressing`; None where there never was an update.

    `members` are the pods of the replica in update, looked at where the time is up.
    """
    set_ = scene.set_
    if progress is None:
        return None
    if progress.update_ended_at is not None:
        if replicas.is_on_delete(set_):
            return TRUE, "OnDelete", "pods follow the template when they are deleted"
        return TRUE, "UpdateComplete", "every replica runs what the template says"
    if set_.spec.update_strategy.paused:
        return UNKNOWN, PAUSED, "the update is paused: nothing is taken until it is resumed"
    time_left = left(set_, now)
    if time_left is not None and not time_left:
        found = blocker(scene, members)
        text = f"nothing was newly complete for {_seconds(deadline(set_))}: {found.sentence}"
        return FALSE, EXCEEDED, f"{found.word}: {text}"
    index = replicas.current(set_)
    where = "" if index is None else f": replica {index} is in update"
    return TRUE, "UpdateInProgress", f"the update gets on{where}"


def with_condition(
    found: tuple[Condition, ...], said: tuple[str, str, str] | None, now: datetime
) -> tuple[Condition, ...]:
    """Return conditions that tell whether an update gets on."""
    if said is None:
        return found
    return conditions.set_condition(found, PROGRESSING, *said, now)


def _seconds(duration: timedelta) -> str:
    return f"{duration // timedelta(seconds=1)} s"


def blocker(scene: Scene, members: Sequence[Pod]) -> Blocker:
    """Return what the replica in update waits for: the first thing, in order of its names."""
    index = replicas.current(scene.set_)
    if index is None:
        return Blocker(word=NOT_READY, sentence="no replica is in update yet")
    for found in (*_pods(scene, index, members), *_gates(scene, index)):
        return found
    return Blocker(
        word=NOT_READY, sentence=f"replica {index} is not whole, and every pod of it is ready"
    )


def _pods(scene: Scene, index: int, members: Sequence[Pod]) -> Iterator[Blocker]:
    """Yield pods that are not ready: those without a node first."""
    waiting = [pod for pod in members if not pods.is_ready(pod) and not pods.is_terminating(pod)]
    for pod in waiting:
        if pods.is_scheduled(pod):
            continue
        clique = pod.metadata.labels.get(labels.PODCLIQUE, "")
        message = why_no_node(scene, pod)
        is_full = any(word in message.lower() for word in _TOO_LITTLE)
        yield Blocker(
            word=RESOURCES if is_full else SCHEDULING,
            sentence=f"pod {pod.metadata.name} of {clique} in replica {index}: {message}",
        )
    for pod in waiting:
        clique = pod.metadata.labels.get(labels.PODCLIQUE, "")
        yield Blocker(
            word=NOT_READY,
            sentence=f"pod of {clique} in replica {index}: {evidence.of_pod(pod)}",
        )


def why_no_node(scene: Scene, pod: Pod) -> str:
    """Return why a pod was not placed: what its gang says, else what it says itself."""
    gang = scene.gangs.get(pod.metadata.labels.get(labels.PODGANG, ""))
    if gang is not None:
        said = conditions.find(gang.status.conditions, "Schedulable")
        if said is not None and said.message and said.reason != "Placed":
            return said.message
    said = conditions.find(pod.status.conditions, "PodScheduled")
    return said.message if said is not None and said.message else "it has no node yet"


def _gates(scene: Scene, index: int) -> Iterator[Blocker]:
    """Yield what may take nothing because too little is ready."""
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        if clique is None or not pod_updates.is_open(clique.status.rolling_update_progress):
            continue
        ready, least = clique.status.ready_replicas, clique_status.floor(clique)
        if ready < least:
            yield Blocker(
                word=MIN_AVAILABLE,
                sentence=f"{place.name} in replica {index} has {ready} ready pods and needs "
                f"{least}: no ready one is taken",
            )
    for group_place in scene.layout.group_places(index):
        group = scene.groups.get(group_place.name)
        if group is None or not group_updates.is_open(group.status.rolling_update_progress):
            continue
        available = group.status.available_replicas
        least = min(group.spec.min_available, group.spec.replicas)
        if available < least:
            yield Blocker(
                word=MIN_AVAILABLE,
                sentence=f"{group_place.name} has {available} whole copies and needs {least}: "
                "no whole one is taken",
            )


def turns(about: Ref, set_: PodCliqueSet, status: PodCliqueSetStatus) -> Iterator[Action]:
    """Yield the event that an update is complete, stuck, or gets on again, as that turns."""
    was = conditions.find(set_.status.conditions, PROGRESSING)
    is_ = conditions.find(status.conditions, PROGRESSING)
    progress = status.rolling_update_progress
    if is_ is None or progress is None or (was is not None and was.reason == is_.reason):
        return
    if is_.reason not in _TOLD:
        return
    key = f"{set_.metadata.uid}/{is_.reason}/{progress.pod_clique_set_generation_hash}"
    note = f"{is_.message} (revision {progress.pod_clique_set_generation_hash})"
    kind = "Warning" if is_.status == FALSE else "Normal"
    yield Emit(about=about, type=kind, reason=_TOLD[is_.reason], note=note, key=key)


_TOLD = {
    "UpdateComplete": "UpdateComplete",
    "UpdateInProgress": "UpdateInProgress",
    PAUSED: "UpdatePaused",
    EXCEEDED: EXCEEDED,
}
"""What is told in an event, by the reason of the condition."""


def begins(about: Ref, set_: PodCliqueSet, index: int) -> Emit:
    """Return the event that a replica begins to follow the template."""
    target = set_.status.current_generation_hash
    return Emit(
        about=about,
        type="Normal",
        reason=replicas.STARTED,
        note=f"replica {index} is updated to revision {target}",
        key=f"{set_.metadata.uid}/{replicas.STARTED}/{target}/{index}",
    )
