"""The status of a set: counts over its replicas, its gangs, and what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from spinney.api import labels, names
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet, PodCliqueSetStatus, PodGangStatusSummary
from spinney.api.podgang import PodGang
from spinney.api.status import LastError
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.decisions import clique_status, copies, gangs, places, reporting, sharing
from spinney.decisions.making import gangs as gang_documents
from spinney.decisions.places import Layout
from spinney.decisions.settings import Settings
from spinney.meta import conditions, selectors
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN, Condition
from spinney.meta.records import Record

COUNTERS = ("replicas", "updatedReplicas", "availableReplicas")
TOPOLOGY = "TopologyLevelsUnavailable"
GANGS_TOLD = 50
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Parts(Record):
    """What a set's status is made of."""

    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    held: tuple[str, ...] = ()
    """Names it needs that others hold."""

    running: Mapping[int, str] = {}
    """The revision of each set replica."""

    binding: ClusterTopologyBinding | None = None
    errors: tuple[LastError, ...] = ()


def status_of(
    set_: PodCliqueSet, parts: Parts, settings: Settings, now: datetime
) -> PodCliqueSetStatus:
    """Return the status of a set."""
    layout = places.layout(set_)
    cliques = {clique.metadata.name: clique for clique in parts.cliques}
    grouped = {group.metadata.name: group for group in parts.groups}
    available = {
        index
        for index in range(set_.spec.replicas)
        if _is_available(layout, index, cliques, grouped)
    }
    target = set_.status.current_generation_hash
    updated = {
        index
        for index in available
        if parts.running.get(index) == target and _is_updated(layout, index, cliques, grouped)
    }
    there = {gang.metadata.name for gang in parts.gangs if not _is_going(gang)}
    generation = set_.metadata.generation
    told = _topology(set_, parts.binding, settings, set_.status.conditions, now)
    told = clique_status.with_name_conflict(told, parts.held, now)
    errors = sharing.same_errors(set_.status.last_errors, parts.errors)
    told = reporting.with_blocked(told, errors, now)
    return msgspec.structs.replace(
        set_.status,
        observed_generation=generation,
        last_errors=errors,
        conditions=told,
        replicas=sum(
            names.base_podgang(set_.metadata.name, index) in there
            for index in range(set_.spec.replicas)
        ),
        available_replicas=len(available),
        updated_replicas=len(updated),
        hpa_pod_selector=str(selectors.from_labels(labels.defaults(set_.metadata.name))),
        phase=_phase(parts.gangs),
        pod_gang_statuses=_summaries(parts.gangs),
        pod_gang_counts=_counts(parts.gangs),
    )


def _is_going(gang: PodGang) -> bool:
    return gang.metadata.deletion_timestamp is not None


def _is_available(
    layout: Layout,
    index: int,
    cliques: Mapping[str, PodClique],
    grouped: Mapping[str, PodCliqueScalingGroup],
) -> bool:
    """Whether every PodClique and group of a replica has as much ready as it needs."""
    for place in layout.standalone_places(index):
        clique = cliques.get(place.name)
        if clique is None or copies.is_going(clique) or not copies.has_enough_ready(clique):
            return False
    for group_place in layout.group_places(index):
        group = grouped.get(group_place.name)
        if group is None or group.metadata.deletion_timestamp is not None:
            return False
        least = min(group.spec.min_available, group.spec.replicas)
        if group.status.available_replicas < least:
            return False
    return True


def _is_updated(
    layout: Layout,
    index: int,
    cliques: Mapping[str, PodClique],
    grouped: Mapping[str, PodCliqueScalingGroup],
) -> bool:
    """Whether every pod of a replica that is available follows the template."""
    return all(
        copies.is_updated(cliques[place.name]) for place in layout.standalone_places(index)
    ) and all(
        grouped[place.name].status.updated_replicas >= grouped[place.name].spec.replicas
        for place in layout.group_places(index)
    )


def _phase(found: Sequence[PodGang]) -> str:
    return (
        gangs.RUNNING
        if any(gang.status.phase in (gangs.STARTING, gangs.RUNNING) for gang in found)
        else gangs.PENDING
    )


def _counts(found: Sequence[PodGang]) -> dict[str, int]:
    return dict(sorted(Counter(gang.status.phase or gangs.PENDING for gang in found).items()))


def _summaries(found: Sequence[PodGang]) -> tuple[PodGangStatusSummary, ...]:
    """Return the newest gangs that are not running."""
    waiting = [gang for gang in found if gang.status.phase != gangs.RUNNING]
    newest = sorted(waiting, key=_creation, reverse=True)[:GANGS_TOLD]
    return tuple(
        PodGangStatusSummary(
            name=gang.metadata.name,
            phase=gang.status.phase or gangs.PENDING,
            conditions=gang.status.conditions,
        )
        for gang in newest
    )


def _creation(gang: PodGang) -> datetime:
    return gang.metadata.creation_timestamp or _LONG_AGO


def _topology(
    set_: PodCliqueSet,
    binding: ClusterTopologyBinding | None,
    settings: Settings,
    found: tuple[Condition, ...],
    now: datetime,
) -> tuple[Condition, ...]:
    judged = judged_topology(set_.spec.template, binding, settings)
    if judged is None:
        return tuple(each for each in found if each.type != TOPOLOGY)
    return conditions.set_condition(found, TOPOLOGY, *judged, now, set_.metadata.generation)


def domains(template: PodCliqueSetTemplateSpec) -> tuple[str, ...]:
    """Return the domains a template's constraints speak of, each once, in order."""
    constraints = (
        template.topology_constraint,
        *(group.topology_constraint for group in template.pod_clique_scaling_groups),
        *(clique.topology_constraint for clique in template.cliques),
    )
    spoken = (
        domain
        for constraint in constraints
        if constraint is not None
        for domain in (constraint.required_domain, constraint.preferred_domain)
    )
    return tuple(dict.fromkeys(filter(None, spoken)))


def judged_topology(
    template: PodCliqueSetTemplateSpec,
    binding: ClusterTopologyBinding | None,
    settings: Settings,
) -> tuple[str, str, str] | None:
    """Return whether levels are missing, why, and in a sentence; None where it is no question."""
    wanted = domains(template)
    if not settings.topology_aware:
        if not wanted:
            return None
        text = "topology-aware scheduling is disabled: constraints are not honoured"
        return UNKNOWN, "TopologyAwareSchedulingDisabled", text
    available = "AllClusterTopologyLevelsAvailable"
    if not wanted:
        return FALSE, available, "no topology constraints are given"
    name = gang_documents.topology_name(template)
    if not name:
        return UNKNOWN, "TopologyNameMissing", "no constraint names a ClusterTopologyBinding"
    if binding is None:
        text = f'there is no ClusterTopologyBinding "{name}": create it'
        return UNKNOWN, "ClusterTopologyNotFound", text
    known = {level.domain for level in binding.spec.levels}
    missing = [domain for domain in wanted if domain not in known]
    if missing:
        text = f'ClusterTopologyBinding "{name}" has no level {", ".join(missing)}'
        return TRUE, "ClusterTopologyLevelsUnavailable", text
    return FALSE, available, f'ClusterTopologyBinding "{name}" has every level'
