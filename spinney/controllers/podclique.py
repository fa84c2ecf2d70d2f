"""The PodClique controller: looks at one PodClique and its pods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from spinney.api import labels, names
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podgang import PodGang
from spinney.controllers import lookups
from spinney.decisions import cliques, pods, startup
from spinney.decisions.cliques import Observation
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.meta.metadata import ObjectMeta
from spinney.meta.references import Ref
from spinney.ports import Reader


def observe(
    reader: Reader, key: Ref, now: datetime, settings: Settings = DEFAULTS
) -> Observation | None:
    """Return what is to be seen of one PodClique; None where it is gone."""
    clique = reader.get(PodClique, key.namespace, key.name)
    if clique is None:
        return None
    metadata = clique.metadata
    own = tuple(reader.list(Pod, namespace=key.namespace, by=("owner", metadata.uid)))
    found = Observation(now=now, clique=clique, pods=own, settings=settings)
    set_ = lookups.root_set(reader, metadata)
    if set_ is None:
        return found
    replica = lookups.index(metadata, labels.SET_REPLICA_INDEX)
    revision = ""
    if replica is not None:
        set_, revision = lookups.set_of_replica(reader, set_, replica)
    seen = Observation(
        now=now,
        clique=clique,
        set_=set_,
        revision=revision,
        place=lookups.clique_place(set_, metadata),
        group=_group(reader, metadata),
        pods=own,
        holders=tuple(_holders(reader, clique, own)),
        gang=_gang(reader, metadata, labels.PODGANG),
        base_gang=_gang(reader, metadata, labels.BASE_PODGANG),
        settings=settings,
    )
    if replica is not None and startup.has_order(set_.spec.template):
        counts = lookups.group_replicas(reader, set_, replica)
        seen = msgspec.structs.replace(seen, group_replicas=counts)
    shared = lookups.shared(reader, metadata, cliques.wanted_claims(seen))
    return msgspec.structs.replace(seen, shared=shared)


def _group(reader: Reader, metadata: ObjectMeta) -> PodCliqueScalingGroup | None:
    name = metadata.labels.get(labels.SCALING_GROUP, "")
    return reader.get(PodCliqueScalingGroup, metadata.namespace, name) if name else None


def _gang(reader: Reader, metadata: ObjectMeta, key: str) -> PodGang | None:
    name = metadata.labels.get(key, "")
    return reader.get(PodGang, metadata.namespace, name) if name else None


def _holders(reader: Reader, clique: PodClique, own: tuple[Pod, ...]) -> Iterator[ObjectMeta]:
    """Yield pods of others at names that are missing here."""
    for index in pods.planned_indexes(own, clique.spec.replicas):
        name = names.pod(clique.metadata.name, index)
        pod = reader.get(Pod, clique.metadata.namespace, name)
        if pod is not None:
            yield pod.metadata
