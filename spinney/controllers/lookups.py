"""What several controllers look up: the set an object was made for, and its place there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import labels, names
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.resourceclaims import ResourceClaim, ResourceClaimTemplate
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.decisions import places, revisions, sets, sharing
from spinney.decisions.making import gangs as gang_documents
from spinney.decisions.making import owning
from spinney.decisions.making.claims import Claim
from spinney.decisions.places import CliquePlace, GroupPlace
from spinney.decisions.sharing import Shared
from spinney.meta.metadata import ObjectMeta
from spinney.ports import Reader


def index(metadata: ObjectMeta, key: str) -> int | None:
    """Return an index label's value as a number, None where it is none."""
    return labels.number(metadata.labels, key)


def root_set(reader: Reader, metadata: ObjectMeta) -> PodCliqueSet | None:
    """Return the set an object was made for, as it stands."""
    name = metadata.labels.get(labels.PART_OF, "")
    return reader.get(PodCliqueSet, metadata.namespace, name) if name else None


def base_gang(reader: Reader, set_: PodCliqueSet, set_replica_index: int) -> PodGang | None:
    """Return the base gang of a set replica, if it is this set's."""
    name = names.base_podgang(set_.metadata.name, set_replica_index)
    gang = reader.get(PodGang, set_.metadata.namespace, name)
    if gang is None or not owning.is_owned_by(gang.metadata, set_.metadata.uid):
        return None
    return gang


def set_of_replica(
    reader: Reader, set_: PodCliqueSet, set_replica_index: int
) -> tuple[PodCliqueSet, str]:
    """Return a set with the template one of its replicas runs, and which revision that is.

    The revision is "" while it is not known: its base gang or its ControllerRevision is not there.
    """
    gang = base_gang(reader, set_, set_replica_index)
    revision = gang.metadata.labels.get(labels.REVISION, "") if gang is not None else ""
    if not revision or revision == set_.status.current_generation_hash:
        return set_, revision
    name = revisions.name(set_.metadata.name, revision)
    kept = reader.get(ControllerRevision, set_.metadata.namespace, name)
    if kept is None:
        return set_, ""
    return sets.with_template(set_, sets.template_for(set_, (kept,), revision)), revision


def group_place(set_: PodCliqueSet, metadata: ObjectMeta) -> GroupPlace | None:
    """Return where a scaling group stands in its set, by its name, exactly."""
    replica = index(metadata, labels.SET_REPLICA_INDEX)
    if replica is None:
        return None
    for place in places.layout(set_).group_places(replica):
        if place.name == metadata.name:
            return place
    return None


def clique_place(set_: PodCliqueSet, metadata: ObjectMeta) -> CliquePlace | None:
    """Return where a PodClique stands in its set, by its name, exactly."""
    replica = index(metadata, labels.SET_REPLICA_INDEX)
    if replica is None:
        return None
    copy = index(metadata, labels.GROUP_REPLICA_INDEX)
    if copy is None:
        candidates = places.layout(set_).standalone_places(replica)
        return next((place for place in candidates if place.name == metadata.name), None)
    for group in places.layout(set_).group_places(replica):
        if group.name == metadata.labels.get(labels.SCALING_GROUP):
            for place in places.grouped_places(group, [copy]):
                if place.name == metadata.name:
                    return place
    return None


def group_replicas(reader: Reader, set_: PodCliqueSet, set_replica_index: int) -> Mapping[str, int]:
    """Return the counts of those groups of a set replica that are there."""
    found: dict[str, int] = {}
    for place in places.layout(set_).group_places(set_replica_index):
        group = reader.get(PodCliqueScalingGroup, set_.metadata.namespace, place.name)
        if group is not None:
            found[place.name] = group.spec.replicas
    return found


def binding(reader: Reader, set_: PodCliqueSet) -> ClusterTopologyBinding | None:
    """Return the topology a set's constraints mean."""
    name = gang_documents.topology_name(set_.spec.template)
    return reader.get(ClusterTopologyBinding, "", name) if name else None


def shared(reader: Reader, owner: ObjectMeta, wanted: Sequence[Claim]) -> Shared:
    """Return what is there of the claims of an object, and of the templates they are made from."""
    held = reader.list(ResourceClaim, namespace=owner.namespace, by=("owner", owner.uid))
    if not wanted and not held:
        return Shared()
    outside = (
        reader.get(ResourceClaimTemplate, template.namespace, template.name)
        for template in sharing.outside_templates(wanted)
    )
    templates = tuple(found for found in outside if found is not None)
    own = {claim.metadata.name for claim in held}
    others = (
        reader.get(ResourceClaim, owner.namespace, claim.name)
        for claim in wanted
        if claim.name not in own
    )
    holders = tuple(found.metadata for found in others if found is not None)
    return Shared(claims=tuple(held), templates=templates, holders=holders)
