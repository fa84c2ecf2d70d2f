"""The PodCliqueScalingGroup controller: looks at one group and its PodCliques."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from spinney.api import labels
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podgang import PodGang
from spinney.controllers import lookups
from spinney.decisions import groups, places
from spinney.decisions.groups import Observation
from spinney.decisions.places import GroupPlace
from spinney.meta.metadata import ObjectMeta
from spinney.meta.references import Ref
from spinney.ports import Reader


def observe(reader: Reader, key: Ref, now: datetime) -> Observation | None:
    """Return what is to be seen of one scaling group; None where it is gone."""
    group = reader.get(PodCliqueScalingGroup, key.namespace, key.name)
    if group is None:
        return None
    metadata = group.metadata
    own = tuple(reader.list(PodClique, namespace=key.namespace, by=("owner", metadata.uid)))
    found = Observation(now=now, group=group, cliques=own)
    set_ = lookups.root_set(reader, metadata)
    replica = lookups.index(metadata, labels.SET_REPLICA_INDEX)
    if set_ is None or replica is None:
        return found
    set_, revision = lookups.set_of_replica(reader, set_, replica)
    place = lookups.group_place(set_, metadata)
    holders = () if place is None else tuple(_holders(reader, group, place, own))
    seen = Observation(
        now=now,
        group=group,
        set_=set_,
        revision=revision,
        place=place,
        cliques=own,
        gangs=() if place is None else tuple(_gangs(reader, group, place)),
        holders=holders,
    )
    shared = lookups.shared(reader, metadata, groups.wanted_claims(seen))
    return msgspec.structs.replace(seen, shared=shared)


def _gangs(reader: Reader, group: PodCliqueScalingGroup, place: GroupPlace) -> Iterator[PodGang]:
    """Yield the gangs the copies of a group in update are placed with."""
    if not groups.is_updating(group):
        return
    for name in dict.fromkeys(map(place.gang, range(group.spec.replicas))):
        gang = reader.get(PodGang, group.metadata.namespace, name)
        if gang is not None:
            yield gang


def _holders(
    reader: Reader,
    group: PodCliqueScalingGroup,
    place: GroupPlace,
    own: tuple[PodClique, ...],
) -> Iterator[ObjectMeta]:
    """Yield PodCliques of others at names that are missing here."""
    there = {clique.metadata.name for clique in own}
    for missing in places.grouped_places(place, range(group.spec.replicas)):
        if missing.name in there:
            continue
        clique = reader.get(PodClique, group.metadata.namespace, missing.name)
        if clique is not None:
            yield clique.metadata
