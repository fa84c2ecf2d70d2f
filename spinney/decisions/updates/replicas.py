"""Which replica of a set is in update: one at a time, the least useful ones first (rule 3.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

import msgspec

from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import (
    ON_DELETE,
    PodCliqueSet,
    PodCliqueSetUpdateProgress,
    SetReplicaUpdateProgress,
)
from spinney.api.podgang import PodGang
from spinney.decisions import clique_status, copies
from spinney.decisions.places import Layout
from spinney.decisions.updates import groups as group_updates
from spinney.decisions.updates import lockstep
from spinney.decisions.updates import pods as pod_updates
from spinney.decisions.updates.lockstep import Stand
from spinney.meta.records import Record

STARTED = "ReplicaUpdateStarted"
"""The event that a replica's turn has come."""


class Scene(Record):
    """What is seen of a set in update."""

    set_: PodCliqueSet
    layout: Layout
    running: Mapping[int, str]
    """The revision of each replica."""

    cliques: Mapping[str, PodClique]
    """Its PodCliques outside groups, by name."""

    groups: Mapping[str, PodCliqueScalingGroup]
    gangs: Mapping[str, PodGang] = {}

    @property
    def target(self) -> str:
        """The revision an update leads to."""
        return self.set_.status.current_generation_hash


def is_on_delete(set_: PodCliqueSet) -> bool:
    """Whether pods follow the template when somebody deletes them, and not before."""
    return set_.spec.update_strategy.type == ON_DELETE


def is_open(set_: PodCliqueSet) -> bool:
    """Whether an update of a set is under way, and leads to what its template says."""
    progress = set_.status.rolling_update_progress
    return (
        progress is not None
        and progress.update_ended_at is None
        and progress.pod_clique_set_generation_hash == set_.status.current_generation_hash
    )


def current(set_: PodCliqueSet) -> int | None:
    """Return the replica in update."""
    progress = set_.status.rolling_update_progress
    if progress is None or progress.currently_updating is None or not is_open(set_):
        return None
    return progress.currently_updating.replica_index


def in_turn(
    progress: PodCliqueSetUpdateProgress | None,
) -> tuple[str, SetReplicaUpdateProgress | None] | None:
    """Return whose turn it is in which update: a choice that has to be stored before it acts."""
    if progress is None:
        return None
    return progress.pod_clique_set_generation_hash, progress.currently_updating


def is_new_turn(set_: PodCliqueSet, progress: PodCliqueSetUpdateProgress | None) -> bool:
    """Whether a replica's turn comes that is not written down yet."""
    if progress is None or progress.currently_updating is None:
        return False
    return in_turn(progress) != in_turn(set_.status.rolling_update_progress)


def is_turn_of(set_: PodCliqueSet, index: int, revision: str) -> bool:
    """Whether what belongs to a replica may be replaced by an update now (rule 3.6)."""
    return revision == set_.status.current_generation_hash and current(set_) == index


def begun(set_: PodCliqueSet, target: str, now: datetime) -> PodCliqueSetUpdateProgress:
    """Return the progress of an update that begins.

    The replica that was in update before stays so until it is whole on the new target (rule 3.6).
    """
    at = now.replace(microsecond=0)
    before = set_.status.rolling_update_progress
    was_open = before is not None and before.update_ended_at is None
    return PodCliqueSetUpdateProgress(
        update_started_at=at,
        update_ended_at=at if is_on_delete(set_) else None,
        pod_clique_set_generation_hash=target,
        currently_updating=(
            lockstep.anew(before.currently_updating)
            if before is not None and was_open and not is_on_delete(set_)
            else None
        ),
        last_progress_at=at,
    )


def advanced(
    scene: Scene, torn_down: Collection[int], now: datetime
) -> PodCliqueSetUpdateProgress | None:
    """Return the progress of a set's update as it is now; None where it never was updated.

    One that is under way ends where pods are to follow only when somebody deletes them.
    """
    progress = scene.set_.status.rolling_update_progress
    if progress is None:
        return None
    at = now.replace(microsecond=0)
    if not is_open(scene.set_):
        return msgspec.structs.replace(progress, **_counts(scene))
    if is_on_delete(scene.set_):
        return msgspec.structs.replace(
            progress,
            currently_updating=None,
            update_ended_at=at,
            updated_pod_cliques=(),
            updated_pod_clique_scaling_groups=(),
            **_counts(scene),
        )
    index = current(scene.set_)
    if index is not None and (index >= scene.set_.spec.replicas or is_done(scene, index)):
        index = None
    is_paused = scene.set_.spec.update_strategy.paused
    left = [each for each in _outdated(scene) if each not in torn_down]
    if index is None and left and not is_paused:
        index = min(left, key=lambda each: (_class(scene, each), -each))
    ended = index is None and not any(True for _ in _outdated(scene))
    chosen = None
    if index is not None:
        same = index == current(scene.set_)
        chosen = (
            progress.currently_updating
            if same and progress.currently_updating is not None
            else SetReplicaUpdateProgress(replica_index=index, update_started_at=at)
        )
        chosen = lockstep.advanced(scene.set_, chosen, _stands(scene, index))
    turned = chosen != progress.currently_updating or ended
    return msgspec.structs.replace(
        progress,
        currently_updating=chosen,
        update_ended_at=at if ended else None,
        updated_pod_cliques=() if index is None else tuple(updated_cliques(scene, index)),
        updated_pod_clique_scaling_groups=(
            () if index is None else tuple(updated_groups(scene, index))
        ),
        last_progress_at=at if turned else _latest(scene, index, progress.last_progress_at),
        **_counts(scene),
    )


def _stands(scene: Scene, index: int) -> Iterator[Stand]:
    """Yield how far what a replica consists of has come: outside groups first."""
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        if clique is None or copies.is_going(clique):
            yield Stand()
            continue
        status, progress = clique.status, clique.status.rolling_update_progress
        is_open = progress is not None and pod_updates.is_open(progress)
        leads = progress is not None and progress.pod_clique_set_generation_hash == scene.target
        in_flight = () if progress is None else pod_updates.chosen_in(progress).in_flight
        yield Stand(
            is_done=not is_open and status.current_pod_clique_set_generation_hash == scene.target,
            is_changing=is_open and leads,
            is_at_rest=not in_flight,
            updated=status.updated_replicas,
            replicas=clique.spec.replicas,
            least=clique_status.floor(clique),
        )
    for group_place in scene.layout.group_places(index):
        group = scene.groups.get(group_place.name)
        if group is None or group.metadata.deletion_timestamp is not None:
            yield Stand()
            continue
        told, moves = group.status, group.status.rolling_update_progress
        is_open = moves is not None and group_updates.is_open(moves)
        leads = moves is not None and moves.pod_clique_set_generation_hash == scene.target
        in_flight = () if moves is None else group_updates.chosen_in(moves).in_flight
        yield Stand(
            is_done=not is_open and told.current_pod_clique_set_generation_hash == scene.target,
            is_changing=is_open and leads,
            is_at_rest=not in_flight,
            updated=told.updated_replicas,
            replicas=group.spec.replicas,
            least=min(group.spec.min_available, group.spec.replicas),
        )


def _outdated(scene: Scene) -> Iterator[int]:
    for index in range(scene.set_.spec.replicas):
        if scene.running.get(index) != scene.target:
            yield index


def updated_count(scene: Scene, progress: PodCliqueSetUpdateProgress) -> int:
    """Return how many replicas are complete on the target; it stays until that changes (3.8)."""
    chosen = progress.currently_updating
    in_update = None if chosen is None else chosen.replica_index
    return sum(
        scene.running.get(index) == scene.target
        and index != in_update
        and not _has_older(scene, index)
        for index in range(scene.set_.spec.replicas)
    )


def _has_older(scene: Scene, index: int) -> bool:
    """Whether something of a replica still is of an older template, as where nobody deleted it.

    What is missing is not older: it is made of the target.
    """
    cliques = (scene.cliques.get(place.name) for place in scene.layout.standalone_places(index))
    groups = (scene.groups.get(place.name) for place in scene.layout.group_places(index))
    return any(
        clique is not None and clique.status.updated_replicas < clique.status.replicas
        for clique in cliques
    ) or any(
        group is not None
        and group.status.current_pod_clique_set_generation_hash not in ("", scene.target)
        for group in groups
    )


def is_done(scene: Scene, index: int) -> bool:
    """Whether everything of a replica is updated."""
    if scene.running.get(index) != scene.target:
        return False
    cliques = sum(1 for _ in scene.layout.standalone_places(index))
    groups = sum(1 for _ in scene.layout.group_places(index))
    return (
        len([*updated_cliques(scene, index)]) == cliques
        and len([*updated_groups(scene, index)]) == groups
    )


def updated_cliques(scene: Scene, index: int) -> Iterator[str]:
    """Yield the PodCliques outside groups that are updated in a replica."""
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        if clique is not None and _is_clique_updated(clique, scene.target):
            yield place.name


def _is_clique_updated(clique: PodClique, target: str) -> bool:
    return (
        not copies.is_going(clique)
        and not pod_updates.is_open(clique.status.rolling_update_progress)
        and clique.status.current_pod_clique_set_generation_hash == target
        and copies.is_updated(clique)
    )


def updated_groups(scene: Scene, index: int) -> Iterator[str]:
    """Yield the groups that are updated in a replica."""
    for place in scene.layout.group_places(index):
        group = scene.groups.get(place.name)
        if group is not None and _is_group_updated(group, scene.target):
            yield place.name


def _is_group_updated(group: PodCliqueScalingGroup, target: str) -> bool:
    least = min(group.spec.min_available, group.spec.replicas)
    return (
        group.metadata.deletion_timestamp is None
        and not group_updates.is_open(group.status.rolling_update_progress)
        and group.status.current_pod_clique_set_generation_hash == target
        and group.status.available_replicas >= least
    )


def _class(scene: Scene, index: int) -> int:
    """Return how soon a replica's turn comes: nothing placed, too little ready, healthy."""
    cliques = [scene.cliques.get(place.name) for place in scene.layout.standalone_places(index)]
    groups = [scene.groups.get(place.name) for place in scene.layout.group_places(index)]
    placed = sum(each.status.scheduled_replicas for each in (*cliques, *groups) if each is not None)
    if not placed:
        return 0
    is_whole = all(
        clique is not None and not copies.is_going(clique) and copies.has_enough_ready(clique)
        for clique in cliques
    ) and all(
        group is not None
        and group.status.available_replicas >= min(group.spec.min_available, group.spec.replicas)
        for group in groups
    )
    return 2 if is_whole else 1


def _latest(scene: Scene, index: int | None, before: datetime | None) -> datetime | None:
    """Return when something of the replica in update was last newly complete."""
    if index is None:
        return before
    told = [before]
    for place in scene.layout.standalone_places(index):
        clique = scene.cliques.get(place.name)
        if clique is not None and clique.status.rolling_update_progress is not None:
            told.append(clique.status.rolling_update_progress.last_progress_at)
    for group_place in scene.layout.group_places(index):
        group = scene.groups.get(group_place.name)
        if group is not None and group.status.rolling_update_progress is not None:
            told.append(group.status.rolling_update_progress.last_progress_at)
    return max((each for each in told if each is not None), default=None)


def _counts(scene: Scene) -> dict[str, int]:
    replicas = range(scene.set_.spec.replicas)
    return {
        "updated_pod_cliques_count": sum(
            len([*updated_cliques(scene, index)]) for index in replicas
        ),
        "total_pod_cliques_count": len(scene.layout.cliques) * len(replicas),
        "updated_pod_clique_scaling_groups_count": sum(
            len([*updated_groups(scene, index)]) for index in replicas
        ),
        "total_pod_clique_scaling_groups_count": len(scene.layout.groups) * len(replicas),
    }
