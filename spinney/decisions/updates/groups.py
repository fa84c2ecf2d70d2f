"""How the copies of a scaling group follow the template, one after the other (rule 3.2).

A copy is replaced whole where any of its cliques changed; a group none of whose cliques changed is
left as it is (rule 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from spinney.api import labels
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import (
    GroupReplicasSelectedToUpdate,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupUpdateProgress,
)
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.decisions import copies, places, revisions
from spinney.decisions.copies import Copy
from spinney.decisions.places import GroupPlace
from spinney.decisions.updates import taking
from spinney.decisions.updates.taking import Chosen, Step, Unit

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def is_open(progress: PodCliqueScalingGroupUpdateProgress | None) -> bool:
    """Whether an update is under way."""
    return progress is not None and progress.update_ended_at is None


def targets(template: PodCliqueSetTemplateSpec, place: GroupPlace) -> Mapping[str, str]:
    """Return the template hash each clique of a group should be of, by its name in the template."""
    found: dict[str, str] = {}
    for name in place.config.clique_names:
        clique = places.clique_of(template, name)
        assert clique is not None, "a place is of cliques of its template"
        found[name] = revisions.pod_template_hash(template, clique)
    return found


def is_outdated(target: Mapping[str, str], copy_: Copy) -> bool:
    """Whether any PodClique of a copy is of another template."""
    wanted = {place.name: target[place.clique] for place in copy_.places}
    return any(_hash(clique) != wanted[clique.metadata.name] for clique in copy_.cliques)


def _hash(clique: PodClique) -> str:
    return clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")


def begun(
    group: PodCliqueScalingGroup,
    found: Sequence[Copy],
    target: Mapping[str, str],
    revision: str,
    now: datetime,
) -> PodCliqueScalingGroupUpdateProgress | None:
    """Return the progress of an update that has to begin, or begin anew; None where none has to."""
    progress = group.status.rolling_update_progress
    if progress is not None and progress.pod_clique_set_generation_hash == revision:
        return None
    if not any(is_outdated(target, each) for each in found) and not is_open(progress):
        return None
    at = now.replace(microsecond=0)
    return PodCliqueScalingGroupUpdateProgress(
        update_started_at=at,
        pod_clique_set_generation_hash=revision,
        replicas_at_start=sum(bool(each.cliques) for each in found),
        total_pod_cliques_count=sum(len(each.places) for each in found),
        last_progress_at=at,
    )


def ended(
    progress: PodCliqueScalingGroupUpdateProgress, now: datetime
) -> PodCliqueScalingGroupUpdateProgress:
    """Return the progress of an update that is given up where it stands."""
    return msgspec.structs.replace(
        progress,
        ready_replica_indices_selected_to_update=None,
        update_ended_at=now.replace(microsecond=0),
    )


def step(
    group: PodCliqueScalingGroup,
    found: Sequence[Copy],
    target: Mapping[str, str],
    progress: PodCliqueScalingGroupUpdateProgress,
    *,
    most: int,
    due: int | None = None,
    hold: str = "",
) -> Step:
    """Return the next step of an open update."""
    units = [_unit(each, target) for each in found if each.cliques]
    return taking.step(
        units,
        chosen_in(progress),
        wanted={str(index) for index in range(group.spec.replicas)},
        least=min(group.spec.min_available, group.spec.replicas),
        most=most,
        due=due,
        hold=hold,
    )


def _unit(copy_: Copy, target: Mapping[str, str]) -> Unit:
    births = [clique.metadata.creation_timestamp or _LONG_AGO for clique in copy_.cliques]
    return Unit(
        name=str(copy_.index),
        born=min(births),
        index=copy_.index,
        is_outdated=is_outdated(target, copy_),
        is_ready=copies.is_available(copy_),
        is_going=all(map(copies.is_going, copy_.cliques)),
    )


def chosen_in(progress: PodCliqueScalingGroupUpdateProgress) -> Chosen:
    """Return which copies an update took."""
    selected = progress.ready_replica_indices_selected_to_update
    if selected is None:
        return Chosen()
    current = () if selected.current is None else (selected.current,)
    return Chosen(
        in_flight=tuple(map(str, (*current, *selected.others))),
        completed=tuple(map(str, selected.completed)),
    )


def advanced(
    group: PodCliqueScalingGroup,
    found: Sequence[Copy],
    target: Mapping[str, str],
    progress: PodCliqueScalingGroupUpdateProgress,
    next_: Step,
    now: datetime,
) -> PodCliqueScalingGroupUpdateProgress:
    """Return the progress after a step; the same one where nothing changed."""
    before, chosen = chosen_in(progress), next_.chosen
    ended = is_complete(group, found, target, progress)
    updated = sum(
        _hash(clique) == wanted[clique.metadata.name] and copies.is_updated(clique)
        for wanted, each in (
            ({place.name: target[place.clique] for place in each.places}, each) for each in found
        )
        for clique in each.cliques
    )
    at = now.replace(microsecond=0)
    is_further = ended or len(chosen.completed) > len(before.completed)
    in_flight = [int(name) for name in chosen.in_flight]
    selected = None
    if chosen.in_flight or chosen.completed:
        selected = GroupReplicasSelectedToUpdate(
            current=in_flight[0] if in_flight else None,
            others=tuple(in_flight[1:]),
            completed=tuple(map(int, chosen.completed)),
        )
    return msgspec.structs.replace(
        progress,
        ready_replica_indices_selected_to_update=None if ended else selected,
        updated_pod_cliques_count=updated,
        total_pod_cliques_count=sum(len(each.places) for each in found),
        update_ended_at=at if ended else None,
        last_progress_at=at if is_further else progress.last_progress_at,
    )


def is_complete(
    group: PodCliqueScalingGroup,
    found: Sequence[Copy],
    target: Mapping[str, str],
    progress: PodCliqueScalingGroupUpdateProgress,
) -> bool:
    """Whether no copy is outdated, and as many are whole as there were (rule 3.8)."""
    if any(is_outdated(target, each) for each in found):
        return False
    whole = sum(map(copies.is_available, found))
    there_were = min(progress.replicas_at_start, group.spec.replicas)
    return whole >= max(there_were, min(group.spec.min_available, group.spec.replicas))


def is_in_update(clique: PodClique, group: PodCliqueScalingGroup | None, target: str) -> bool:
    """Whether a group's update is about a PodClique of it: it is outdated, or its copy was taken.

    Then too few ready pods of it are no outage (rule 4.1).
    """
    if group is None or not is_open(group.status.rolling_update_progress):
        return False
    progress = group.status.rolling_update_progress
    assert progress is not None
    taken = chosen_in(progress).in_flight
    index = clique.metadata.labels.get(labels.GROUP_REPLICA_INDEX, "")
    return index in taken or _hash(clique) != target
