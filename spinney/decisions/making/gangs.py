"""The documents of PodGangs: which pods are placed together, and how close."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spinney.api import groupkinds, labels
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.api.topology import TopologyConstraint
from spinney.decisions import places
from spinney.decisions.making import cliques, owning
from spinney.decisions.places import CliquePlace
from spinney.decisions.settings import Settings
from spinney.meta.documents import Document, Json

API_VERSION = "scheduler.grove.io/v1alpha1"


def topology_name(template: PodCliqueSetTemplateSpec) -> str:
    """Return which topology a set's constraints mean: the first that is named."""
    constraints = (
        template.topology_constraint,
        *(group.topology_constraint for group in template.pod_clique_scaling_groups),
        *(clique.topology_constraint for clique in template.cliques),
    )
    return next((found.topology_name for found in constraints if found and found.topology_name), "")


def keys_by_domain(binding: ClusterTopologyBinding | None, settings: Settings) -> dict[str, str]:
    """Return the node label of every level; nothing where constraints are not honoured."""
    if binding is None or not settings.topology_aware:
        return {}
    return {level.domain: level.key for level in binding.spec.levels}


def _translated(constraint: TopologyConstraint | None, keys: Mapping[str, str]) -> Document | None:
    """Return a constraint in node labels; None where there is none, or nothing of it is known."""
    if constraint is None:
        return None
    packed: Document = {}
    for field, domain in (
        ("required", constraint.required_domain),
        ("preferred", constraint.preferred_domain),
    ):
        if domain in keys:
            packed[field] = keys[domain]
    return {"packConstraint": packed} if packed else None


def spec(
    template: PodCliqueSetTemplateSpec,
    members: Sequence[CliquePlace],
    pods: Mapping[str, Sequence[str]],
    namespace: str,
    keys: Mapping[str, str],
) -> Document:
    """Return what a gang is.

    `members` are its PodCliques in order, `pods` the names of the pods of each, as far as they
    are there.
    """
    groups: list[Json] = []
    for place in members:
        clique = places.clique_of(template, place.clique)
        assert clique is not None, f"{place.name} is of no clique of its set"
        references: list[Json] = [
            {"namespace": namespace, "name": name} for name in sorted(pods.get(place.name, ()))
        ]
        group: Document = {
            "name": place.name,
            "podReferences": references,
            "minReplicas": cliques.min_available(clique),
        }
        constraint = _translated(clique.topology_constraint, keys)
        if constraint is not None:
            group["topologyConstraint"] = constraint
        groups.append(group)
    made: Document = {"podgroups": groups}
    whole = _translated(_outer_constraint(template, members), keys)
    if whole is not None:
        made["topologyConstraint"] = whole
    copies: list[Json] = [] if _is_scaled(members) else [*_copy_constraints(members, keys)]
    if copies:
        made["topologyConstraintGroupConfigs"] = copies
    if template.priority_class_name:
        made["priorityClassName"] = template.priority_class_name
    return made


def _is_scaled(members: Sequence[CliquePlace]) -> bool:
    return any(place.is_scaled for place in members)


def _outer_constraint(
    template: PodCliqueSetTemplateSpec, members: Sequence[CliquePlace]
) -> TopologyConstraint | None:
    """Return what holds for a whole gang: a scaled one's group may have its own."""
    if _is_scaled(members):
        group = members[0].group
        if group is not None and group.config.topology_constraint is not None:
            return group.config.topology_constraint
    return template.topology_constraint


def _copy_constraints(
    members: Sequence[CliquePlace], keys: Mapping[str, str]
) -> Iterable[Document]:
    """Yield what holds for each copy of a group within a base gang."""
    copies: dict[str, list[CliquePlace]] = {}
    for place in members:
        if place.group is not None and place.group.config.topology_constraint is not None:
            copies.setdefault(f"{place.group.name}-{place.group_replica_index}", []).append(place)
    for name, inside in copies.items():
        group = inside[0].group
        assert group is not None, "only PodCliques in groups are among the copies"
        made: Document = {"name": name, "podGroupNames": [place.name for place in inside]}
        constraint = _translated(group.config.topology_constraint, keys)
        if constraint is not None:
            made["topologyConstraint"] = constraint
        yield made


def is_constrained(gang_spec: Document) -> bool:
    """Whether anything of a gang's spec says how close its pods must be."""
    groups = gang_spec.get("podgroups")
    inner = gang_spec.get("topologyConstraintGroupConfigs")
    below = [*(groups if isinstance(groups, list) else [])]
    below += [*(inner if isinstance(inner, list) else [])]
    return "topologyConstraint" in gang_spec or any(
        isinstance(item, dict) and "topologyConstraint" in item for item in below
    )


def gang_labels(
    set_: PodCliqueSet, template: PodCliqueSetTemplateSpec, revision: str, settings: Settings
) -> dict[str, str]:
    """Return a gang's labels: the set's that are not Grove's, and ours."""
    scheduler = next(
        (
            name
            for clique in template.cliques
            if isinstance(name := clique.spec.pod_spec.get("schedulerName"), str) and name
        ),
        settings.default_scheduler,
    )
    found = labels.podgang(set_.metadata.labels, set_.metadata.name, scheduler)
    if revision:
        found[labels.REVISION] = revision
    return found


def gang_annotations(set_: PodCliqueSet, gang_spec: Document) -> dict[str, str]:
    """Return a gang's annotations: the set's that are not Grove's, and which topology is meant."""
    name = topology_name(set_.spec.template) if is_constrained(gang_spec) else ""
    return labels.podgang_annotations(set_.metadata.annotations, name)


def podgang(
    set_: PodCliqueSet,
    name: str,
    gang_spec: Document,
    carried: Mapping[str, str],
    annotations: Mapping[str, str],
) -> Document:
    """Return a gang as it is made."""
    metadata: Document = {
        "name": name,
        "namespace": set_.metadata.namespace,
        "labels": {**carried},
        "ownerReferences": [owning.owner_reference(groupkinds.SET, set_.metadata)],
    }
    if annotations:
        metadata["annotations"] = {**annotations}
    return {
        "apiVersion": API_VERSION,
        "kind": groupkinds.GANG.kind,
        "metadata": metadata,
        "spec": gang_spec,
    }
