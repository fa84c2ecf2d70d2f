"""ResourceClaims that pods of a set share: which there are, what they say, and who holds them.

Claims belong to a level: the set, a scaling group, or a PodClique. At each level an entry makes
one claim for all replicas, or one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from spinney.api import labels, names
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.resourcesharing import (
    ALL_REPLICAS,
    GroupResourceSharing,
    ResourceSharing,
    SetResourceSharing,
)
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.decisions import places
from spinney.decisions.making import owning
from spinney.decisions.places import CliquePlace, GroupPlace
from spinney.meta.documents import Document, object_at
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind


class Template(Record):
    """Which claim template an entry means: one of the set's own, or one that stands beside it."""

    name: str
    namespace: str = ""
    """Where it stands; "" for one of the set's own."""


class Claim(Record):
    """One claim there should be."""

    name: str
    template: Template
    labels: Mapping[str, str]


def template_of(
    template: PodCliqueSetTemplateSpec, entry: ResourceSharing, namespace: str
) -> Template:
    """Return which claim template an entry of a set in a namespace means."""
    own = {config.name for config in template.resource_claim_templates}
    if not entry.namespace and entry.name in own:
        return Template(name=entry.name)
    return Template(name=entry.name, namespace=entry.namespace or namespace)


def _claims(
    set_: PodCliqueSet,
    entries: Sequence[ResourceSharing],
    owner: str,
    count: int,
    carried: Callable[[int | None], dict[str, str]],
) -> Iterator[Claim]:
    for entry in entries:
        template = template_of(set_.spec.template, entry, set_.metadata.namespace)
        if entry.scope == ALL_REPLICAS:
            name = names.claim_for_all(owner, entry.name)
            yield Claim(name=name, template=template, labels=carried(None))
            continue
        for index in range(count):
            name = names.claim_for_replica(owner, index, entry.name)
            yield Claim(name=name, template=template, labels=carried(index))


def of_set(set_: PodCliqueSet) -> Iterator[Claim]:
    """Yield the claims of a set itself."""
    name, count = set_.metadata.name, set_.spec.replicas
    entries = set_.spec.template.resource_sharing
    yield from _claims(set_, entries, name, count, partial(labels.set_claim, name))


def of_group(set_: PodCliqueSet, place: GroupPlace, count: int) -> Iterator[Claim]:
    """Yield the claims of a scaling group of so many replicas."""
    carried = partial(labels.group_claim, set_.metadata.name, place.name)
    yield from _claims(set_, place.config.resource_sharing, place.name, count, carried)


def of_clique(set_: PodCliqueSet, place: CliquePlace, count: int) -> Iterator[Claim]:
    """Yield the claims of a PodClique of so many pods."""
    clique = places.clique_of(set_.spec.template, place.clique)
    if clique is not None:
        carried = partial(labels.clique_claim, set_.metadata.name, place.name)
        yield from _claims(set_, clique.resource_sharing, place.name, count, carried)


def held_by(set_: PodCliqueSet, place: CliquePlace, pod_index: int) -> tuple[str, ...]:
    """Return the claims that one pod holds: the set's, its group's, its PodClique's."""
    of_whole_set = (
        entry for entry in set_.spec.template.resource_sharing if _set_entry_is_for(entry, place)
    )
    found = _names(of_whole_set, place.set_name, place.set_replica_index)
    if place.group is not None:
        of_whole_group = (
            entry
            for entry in place.group.config.resource_sharing
            if _group_entry_is_for(entry, place)
        )
        found += _names(of_whole_group, place.group.name, place.group_replica_index)
    clique = places.clique_of(set_.spec.template, place.clique)
    if clique is not None:
        found += _names(clique.resource_sharing, place.name, pod_index)
    return tuple(found)


def _names(entries: Iterable[ResourceSharing], owner: str, index: int) -> list[str]:
    """Return the claims of a level: first those all replicas share, then the replica's own."""
    known = tuple(entries)
    shared = [names.claim_for_all(owner, e.name) for e in known if e.scope == ALL_REPLICAS]
    own = [names.claim_for_replica(owner, index, e.name) for e in known if e.scope != ALL_REPLICAS]
    return [*shared, *own]


def _set_entry_is_for(entry: SetResourceSharing, place: CliquePlace) -> bool:
    if entry.filter is None:
        return True
    listed = {*entry.filter.child_clique_names, *entry.filter.child_scaling_group_names}
    mine = {place.clique}
    if place.group is not None:
        mine.add(place.group.config.name)
    return not mine.isdisjoint(listed)


def _group_entry_is_for(entry: GroupResourceSharing, place: CliquePlace) -> bool:
    return entry.filter is None or place.clique in entry.filter.child_clique_names


def document(claim: Claim, kind: GroupKind, owner: ObjectMeta, claim_spec: Document) -> Document:
    """Return a claim as it is made; `claim_spec` comes from its template."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim.name,
            "namespace": owner.namespace,
            "labels": {**claim.labels},
            "ownerReferences": [owning.owner_reference(kind, owner)],
        },
        "spec": claim_spec,
    }


def own_spec(template: PodCliqueSetTemplateSpec, name: str) -> Document:
    """Return the claim spec of one of a set's own claim templates."""
    for config in template.resource_claim_templates:
        if config.name == name:
            return object_at(config.template_spec, ["spec"])
    return {}
