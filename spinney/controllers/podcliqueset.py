"""The PodCliqueSet controller: looks at one set and all it made itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

import msgspec

from spinney.api import groupkinds, labels, names
from spinney.api.core.configuration import Secret, ServiceAccount
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.horizontalpodautoscaler import HorizontalPodAutoscaler
from spinney.api.core.pod import Pod
from spinney.api.core.roles import Role, RoleBinding
from spinney.api.core.services import Service
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.controllers import lookups
from spinney.decisions import sets
from spinney.decisions.making import claims, owning
from spinney.decisions.sets import Observation
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader

R = TypeVar("R", bound=Record)

_SUPPORT: tuple[tuple[GroupKind, type[Record]], ...] = (
    (groupkinds.SERVICE_ACCOUNT, ServiceAccount),
    (groupkinds.ROLE, Role),
    (groupkinds.ROLE_BINDING, RoleBinding),
    (groupkinds.SECRET, Secret),
)
_RECORDS: dict[GroupKind, type[Record]] = {
    groupkinds.CLIQUE: PodClique,
    groupkinds.SCALING_GROUP: PodCliqueScalingGroup,
    groupkinds.GANG: PodGang,
    groupkinds.SERVICE: Service,
    groupkinds.AUTOSCALER: HorizontalPodAutoscaler,
    groupkinds.REVISION: ControllerRevision,
    **dict(_SUPPORT),
}


def observe(
    reader: Reader, key: Ref, now: datetime, settings: Settings = DEFAULTS
) -> Observation | None:
    """Return what is to be seen of one set; None where it is gone."""
    set_ = reader.get(PodCliqueSet, key.namespace, key.name)
    if set_ is None:
        return None

    def own(record: type[R]) -> tuple[R, ...]:
        owner = ("owner", set_.metadata.uid)
        return tuple(reader.list(record, namespace=key.namespace, by=owner))

    found = Observation(
        now=now,
        set_=set_,
        revisions=own(ControllerRevision),
        services=own(Service),
        autoscalers=own(HorizontalPodAutoscaler),
        present=tuple(_present(reader, set_)),
        groups=own(PodCliqueScalingGroup),
        cliques=own(PodClique),
        gangs=own(PodGang),
        binding=lookups.binding(reader, set_),
        shared=lookups.shared(reader, set_.metadata, tuple(claims.of_set(set_))),
        settings=settings,
    )
    found = msgspec.structs.replace(
        found, grouped=tuple(_grouped(reader, found)), stuck=tuple(_stuck(reader, found))
    )
    claims_held = ((groupkinds.CLAIM, metadata) for metadata in found.shared.holders)
    holders = (*_holders(reader, found), *claims_held)
    return msgspec.structs.replace(found, holders=holders) if holders else found


def _grouped(reader: Reader, seen: Observation) -> Iterator[PodClique]:
    """Yield the PodCliques of groups, where a replica says that it has too little ready."""
    troubled = set(map(str, sets.replicas_in_trouble(seen)))
    for group in seen.groups if troubled else ():
        if group.metadata.labels.get(labels.SET_REPLICA_INDEX) in troubled:
            owner = ("owner", group.metadata.uid)
            yield from reader.list(PodClique, namespace=group.metadata.namespace, by=owner)


def _stuck(reader: Reader, seen: Observation) -> Iterator[Pod]:
    """Yield the pods of the replica in update, where it gets on no more."""
    index = sets.stuck_replica(seen)
    if index is None:
        return
    metadata = seen.set_.metadata
    by = (f"label:{labels.PART_OF}", metadata.name)
    for pod in reader.list(Pod, namespace=metadata.namespace, by=by):
        if pod.metadata.labels.get(labels.SET_REPLICA_INDEX) == str(index):
            yield pod


def _metadata(reader: Reader, kind: GroupKind, namespace: str, name: str) -> ObjectMeta | None:
    held = reader.get(_RECORDS[kind], namespace, name)
    metadata = getattr(held, "metadata", None)
    return metadata if isinstance(metadata, ObjectMeta) else None


def _present(reader: Reader, set_: PodCliqueSet) -> Iterator[Ref]:
    """Yield what there is of the objects that all replicas share."""
    set_name, namespace = set_.metadata.name, set_.metadata.namespace
    for kind, name in (
        (groupkinds.SERVICE_ACCOUNT, names.service_account(set_name)),
        (groupkinds.ROLE, names.role(set_name)),
        (groupkinds.ROLE_BINDING, names.role(set_name)),
        (groupkinds.SECRET, names.token_secret(set_name)),
    ):
        metadata = _metadata(reader, kind, namespace, name)
        if metadata is not None and owning.is_owned_by(metadata, set_.metadata.uid):
            yield Ref(kind=kind, namespace=namespace, name=name)


def _holders(reader: Reader, seen: Observation) -> Iterator[tuple[GroupKind, ObjectMeta]]:
    """Yield objects of others at names the set is about to give."""
    uid = seen.set_.metadata.uid
    for ref in sets.about_to_make(seen):
        metadata = _metadata(reader, ref.kind, ref.namespace, ref.name)
        if metadata is not None and not owning.is_owned_by(metadata, uid):
            yield ref.kind, metadata
