"""The picture of an update: what is done, what changes now, what it waits for, how long it takes.

Told from what is seen, as the decisions see it; nothing here decides.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.decisions import evidence, pods, revisions
from spinney.decisions.updates import groups as group_updates
from spinney.decisions.updates import pods as pod_updates
from spinney.decisions.updates import progressing, replicas
from spinney.decisions.updates.replicas import Scene
from spinney.meta import conditions
from spinney.meta.conditions import FALSE
from spinney.meta.records import Record


class Verdict(enum.Enum):
    """How an update stands."""

    DONE = "done"
    GOING = "going"
    STUCK = "stuck"
    PAUSED = "paused"
    UNSEEN = "unseen"
    """The newest change was not looked at yet."""


class Part(Record):
    """A clique or group of the replica in update, and how far it is."""

    name: str
    sort: str
    """`clique` or `group`."""

    done: int
    total: int
    is_updated: bool = False


class Wait(Record):
    """One thing an update waits for."""

    subject: str
    text: str
    since: datetime | None = None


class Picture(Record):
    """How an update stands at one moment."""

    verdict: Verdict
    sentence: str
    updated: tuple[int, ...] = ()
    """Set replicas that are done."""

    current: int | None = None
    """The one in update."""

    since: datetime | None = None
    """When its turn came."""

    left: tuple[int, ...] = ()
    """Those whose turn comes yet."""

    parts: tuple[Part, ...] = ()
    waits: tuple[Wait, ...] = ()
    pods_done: int = 0
    pods_left: int = 0
    remaining: timedelta | None = None
    """How long it will still take, at its pace so far; None while that cannot be told."""


def picture(
    scene: Scene, grouped: Sequence[PodClique], members: Sequence[Pod], now: datetime
) -> Picture:
    """Return how the update of a set stands.

    `grouped` are the PodCliques of its groups, `members` its pods.
    """
    set_ = scene.set_
    verdict, sentence = _verdict(scene)
    if set_.status.rolling_update_progress is None or not replicas.is_open(set_):
        return Picture(verdict=verdict, sentence=sentence)
    current = replicas.current(set_)
    chosen = set_.status.rolling_update_progress.currently_updating
    indexes = range(set_.spec.replicas)
    updated = tuple(
        index for index in indexes if scene.running.get(index) == scene.target and index != current
    )
    done, left = _pods(scene, grouped, members)
    return Picture(
        verdict=verdict,
        sentence=sentence,
        updated=updated,
        current=current,
        since=chosen.update_started_at if chosen is not None else None,
        left=tuple(index for index in indexes if index != current and index not in updated),
        parts=() if current is None else tuple(_parts(scene, members, current)),
        waits=() if current is None else tuple(_waits(scene, grouped, members, current)),
        pods_done=done,
        pods_left=left,
        remaining=_remaining(scene, done, left, now),
    )


def _verdict(scene: Scene) -> tuple[Verdict, str]:
    set_ = scene.set_
    status, progress = set_.status, set_.status.rolling_update_progress
    hash_ = status.current_generation_hash
    if (status.observed_generation or 0) < set_.metadata.generation or (
        not hash_ or not revisions.is_generation_hash(hash_, set_.spec.template)
    ):
        return Verdict.UNSEEN, "its newest change was not looked at yet"
    if progress is None:
        wanted, there = set_.spec.replicas, status.available_replicas
        if there >= wanted:
            return Verdict.DONE, f"never updated yet; {there} of {wanted} replicas are available"
        return Verdict.GOING, f"{there} of {wanted} replicas are available for the first time"
    said = conditions.find(status.conditions, progressing.PROGRESSING)
    if progress.update_ended_at is not None:
        text = said.message if said is not None else "the update is complete"
        return Verdict.DONE, f"{status.updated_replicas} of {set_.spec.replicas} updated: {text}"
    if set_.spec.update_strategy.paused:
        return Verdict.PAUSED, "the update is paused: nothing is taken until it is resumed"
    if said is not None and said.status == FALSE:
        return Verdict.STUCK, said.message
    return Verdict.GOING, f"{status.updated_replicas} of {set_.spec.replicas} replicas are updated"


def _parts(scene: Scene, members: Sequence[Pod], index: int) -> Iterator[Part]:
    updated = {*replicas.updated_cliques(scene, index), *replicas.updated_groups(scene, index)}
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        target = "" if clique is None else clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
        yield Part(
            name=place.name,
            sort="clique",
            done=sum(
                pods.is_ready(pod) and pods.template_hash(pod) == target
                for pod in members
                if _clique(pod) == place.name
            ),
            total=0 if clique is None else clique.spec.replicas,
            is_updated=place.name in updated,
        )
    for group_place in scene.layout.group_places(index):
        group = scene.groups.get(group_place.name)
        is_updated = group_place.name in updated
        total = 0 if group is None else group.spec.replicas
        progress = None if group is None else group.status.rolling_update_progress
        done = total if is_updated else 0
        if progress is not None and group_updates.is_open(progress) and group is not None:
            done = len(group_updates.chosen_in(progress).completed)
        yield Part(
            name=group_place.name, sort="group", done=done, total=total, is_updated=is_updated
        )


# What is waited for


def _waits(
    scene: Scene, grouped: Sequence[PodClique], members: Sequence[Pod], index: int
) -> Iterator[Wait]:
    """Yield what the replica in update waits for, the most telling first."""
    mine = {
        pod.metadata.name: pod
        for pod in members
        if labels.number(pod.metadata.labels, labels.SET_REPLICA_INDEX) == index
    }
    told: set[str] = set()
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        progress = None if clique is None else clique.status.rolling_update_progress
        if clique is None:
            yield Wait(subject=f"clique {place.name}", text="is not made yet")
        elif progress is not None and pod_updates.is_open(progress):
            for name in pod_updates.chosen_in(progress).in_flight:
                told.add(name)
                yield _of_pod(scene, name, mine.get(name), progress.last_progress_at)
    for group_place in scene.layout.group_places(index):
        group = scene.groups.get(group_place.name)
        group_progress = None if group is None else group.status.rolling_update_progress
        if group_progress is None or not group_updates.is_open(group_progress):
            continue
        for copy in group_updates.chosen_in(group_progress).in_flight:
            inside = [
                clique.metadata.name
                for clique in grouped
                if clique.metadata.labels.get(labels.SCALING_GROUP) == group_place.name
                and clique.metadata.labels.get(labels.GROUP_REPLICA_INDEX) == copy
            ]
            told |= {name for name, pod in mine.items() if _clique(pod) in inside}
            yield from _of_copy(scene, group_place.name, copy, inside, mine)
    for name, pod in sorted(mine.items()):
        if name not in told and not pods.is_ready(pod):
            yield _of_pod(scene, name, pod, None)


def _clique(pod: Pod) -> str:
    return pod.metadata.labels.get(labels.PODCLIQUE, "")


def _of_copy(
    scene: Scene, group: str, copy: str, inside: Sequence[str], mine: Mapping[str, Pod]
) -> Iterator[Wait]:
    waiting = [pod for pod in mine.values() if _clique(pod) in inside and not pods.is_ready(pod)]
    if not waiting:
        yield Wait(subject=f"copy {copy} of {group}", text="is replaced whole")
    for pod in sorted(waiting, key=lambda each: each.metadata.name):
        yield _of_pod(scene, pod.metadata.name, pod, None)


def _of_pod(scene: Scene, name: str, pod: Pod | None, since: datetime | None) -> Wait:
    subject = f"pod {name}"
    if pod is None:
        return Wait(subject=subject, text="is gone, its successor is not made yet", since=since)
    if pods.is_terminating(pod):
        going = pod.metadata.deletion_timestamp
        return Wait(subject=subject, text="is ending, to be replaced", since=going)
    if pods.is_ready(pod):
        return Wait(subject=subject, text="is chosen to be replaced", since=since)
    if not pods.is_scheduled(pod):
        text = f"has no node: {progressing.why_no_node(scene, pod)}"
        return Wait(subject=subject, text=text, since=pod.metadata.creation_timestamp)
    text = evidence.of_pod(pod).removeprefix(name).lstrip(": ")
    return Wait(subject=subject, text=text, since=pod.metadata.creation_timestamp)


# How long it takes


def _pods(scene: Scene, grouped: Sequence[PodClique], members: Sequence[Pod]) -> tuple[int, int]:
    """Return how many pods the update has replaced, and how many it has still to."""
    template = scene.set_.spec.template
    known = {revisions.pod_template_hash(template, clique) for clique in template.cliques}
    copies = {
        clique.metadata.name: (
            clique.metadata.labels.get(labels.SCALING_GROUP, ""),
            clique.metadata.labels.get(labels.GROUP_REPLICA_INDEX, ""),
        )
        for clique in grouped
    }
    done = left = 0
    for pod in members:
        name = _clique(pod)
        takes_part = (
            _has_replaced_copy(scene, *copies[name])
            if name in copies
            else _is_in_this_update(scene, name)
        )
        if pods.template_hash(pod) not in known or pods.is_terminating(pod):
            left += 1
        elif takes_part:
            done += pods.is_ready(pod)
            left += not pods.is_ready(pod)
    return done, left


def _is_in_this_update(scene: Scene, name: str) -> bool:
    clique = scene.cliques.get(name)
    progress = None if clique is None else clique.status.rolling_update_progress
    return progress is not None and progress.pod_clique_set_generation_hash == scene.target


def _has_replaced_copy(scene: Scene, name: str, copy: str) -> bool:
    group = scene.groups.get(name)
    progress = None if group is None else group.status.rolling_update_progress
    if progress is None or progress.pod_clique_set_generation_hash != scene.target:
        return False
    chosen = group_updates.chosen_in(progress)
    return not group_updates.is_open(progress) or copy in (*chosen.completed, *chosen.in_flight)


def _remaining(scene: Scene, done: int, left: int, now: datetime) -> timedelta | None:
    progress = scene.set_.status.rolling_update_progress
    if progress is None or progress.update_started_at is None or not done:
        return None
    passed = max(now - progress.update_started_at, timedelta())
    return passed * left // done
