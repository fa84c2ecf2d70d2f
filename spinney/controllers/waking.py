"""Whom a change concerns: from an object to the keys of those that look at it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol, TypeVar

from spinney.api import groupkinds, labels, names
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.resourceclaims import ResourceClaimTemplate
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet, SetReplicaUpdateProgress
from spinney.api.podgang import PodGang
from spinney.decisions import places
from spinney.decisions.making import gangs as gang_documents
from spinney.decisions.making import owning
from spinney.decisions.updates import replicas as replica_updates
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader

R = TypeVar("R", bound=Record)


class HasMetadata(Protocol):
    """Any object."""

    @property
    def metadata(self) -> ObjectMeta:
        """What every object carries."""


def both(
    one: Callable[[R], Iterable[Ref]], other: Callable[[R], Iterable[Ref]]
) -> Callable[[R], Iterable[Ref]]:
    """Wake whom either says."""

    def keys(changed: R) -> Iterable[Ref]:
        return dict.fromkeys((*one(changed), *other(changed)))

    return keys


def nobody(_object: HasMetadata) -> Iterable[Ref]:
    """Wake nobody: the kind is read, and whoever needs it is woken by another."""
    return ()


def its_owner(kind: GroupKind) -> Callable[[HasMetadata], Iterable[Ref]]:
    """Wake the object of a kind that controls another, and those that may need its name.

    Two owners can need one name (rule 1.5): the one that came late is woken when it is free.
    """

    def keys(child: HasMetadata) -> Iterator[Ref]:
        metadata = child.metadata
        controller = owning.controller_of(metadata)
        if controller is not None and controller.kind == kind:
            yield controller
        is_ours = controller is not None and controller.kind in _OURS
        root = metadata.labels.get(labels.PART_OF, "") if is_ours else ""
        for name in dict.fromkeys(_may_need(kind, metadata.name, is_ours=is_ours)):
            ref = Ref(kind=kind, namespace=metadata.namespace, name=name)
            if ref != controller and name != root:
                yield ref

    return keys


_OURS = (groupkinds.SET, groupkinds.SCALING_GROUP, groupkinds.CLIQUE)
_BEFORE_OWN = ("all", "ic")
"""Beside numbers, what stands in names we give between the owner's name and the rest."""


def _may_need(kind: GroupKind, name: str, *, is_ours: bool) -> Iterator[str]:
    """Yield the objects of a kind that may give a name: after theirs comes a number, mostly."""
    if kind == groupkinds.SET and not is_ours:
        yield name.removeprefix(names.role(""))
        yield name.rpartition("-")[0] or name
    pieces = name.split("-")
    if kind == groupkinds.CLIQUE and pieces[-1].isdecimal():
        yield "-".join(pieces[:-1])
        return
    for count in range(1, len(pieces)):
        if not (pieces[count].isdecimal() or pieces[count] in _BEFORE_OWN):
            continue
        if kind == groupkinds.SET or any(piece.isdecimal() for piece in pieces[1 : count - 1]):
            yield "-".join(pieces[:count])


def by_label(kind: GroupKind, *keys: str) -> Callable[[HasMetadata], Iterable[Ref]]:
    """Wake the objects of a kind that labels name."""

    def named(child: HasMetadata) -> Iterator[Ref]:
        metadata = child.metadata
        for key in keys:
            name = metadata.labels.get(key)
            if name:
                yield Ref(kind=kind, namespace=metadata.namespace, name=name)

    return named


class WhenSpecChanges:
    """Wakes what was made for a set when what it says changes, or another set takes its name.

    That is its spec, and its labels and annotations, which gangs carry too. Its status changes with
    every pod; what was made for it asks only what it should be.
    """

    def __init__(self, reader: Reader, kind: GroupKind, record: type[R]) -> None:
        """Find what was made for a set in a reader."""
        self._reader = reader
        self._kind = kind
        self._record = record
        self._last: dict[tuple[str, str], tuple[Hashable, ...]] = {}

    def __call__(self, set_: PodCliqueSet) -> Iterable[Ref]:
        """Return whom a set as it is now concerns."""
        metadata = set_.metadata
        place = (metadata.namespace, metadata.name)
        now = (
            metadata.uid,
            metadata.generation,
            set_.status.current_generation_hash,
            frozenset(metadata.labels.items()),
            frozenset(metadata.annotations.items()),
        )
        if self._last.get(place) == now:
            return ()
        self._last[place] = now
        return made_for(self._reader, self._kind, self._record, *place)


class WhenTurnComes:
    """Wakes what belongs to a set replica when its turn in an update comes, or has passed."""

    def __init__(self, kind: GroupKind) -> None:
        """Wake groups, or PodCliques outside groups."""
        self._kind = kind
        self._last: dict[tuple[str, str], tuple[str, SetReplicaUpdateProgress | None] | None] = {}

    def __call__(self, set_: PodCliqueSet) -> Iterator[Ref]:
        """Yield whom a set as it is now concerns."""
        namespace, name = set_.metadata.namespace, set_.metadata.name
        now = replica_updates.in_turn(set_.status.rolling_update_progress)
        before = self._last.get((namespace, name))
        if now == before:
            return
        if now is None:
            self._last.pop((namespace, name), None)
        else:
            self._last[namespace, name] = now
        layout = places.layout(set_)
        chosen = [each[1] for each in (before, now) if each is not None]
        for index in {each.replica_index for each in chosen if each is not None}:
            if self._kind == groupkinds.SCALING_GROUP:
                found = [place.name for place in layout.group_places(index)]
            else:
                found = [place.name for place in layout.standalone_places(index)]
            for each in found:
                yield Ref(kind=self._kind, namespace=namespace, name=each)


def cliques_of_updated_group(reader: Reader) -> Callable[[PodCliqueScalingGroup], Iterable[Ref]]:
    """Wake a group's PodCliques when its update moves on: in it, too few ready are no outage."""
    last: dict[str, object] = {}

    def keys(group: PodCliqueScalingGroup) -> Iterator[Ref]:
        progress = group.status.rolling_update_progress
        now = (
            None
            if progress is None
            else (progress.update_ended_at, progress.ready_replica_indices_selected_to_update)
        )
        if last.get(group.metadata.uid) == now:
            return
        if now is None:
            last.pop(group.metadata.uid, None)
        else:
            last[group.metadata.uid] = now
        namespace = group.metadata.namespace
        for clique in reader.list(PodClique, namespace=namespace, by=("owner", group.metadata.uid)):
            yield Ref(kind=groupkinds.CLIQUE, namespace=namespace, name=clique.metadata.name)

    return keys


def made_for(
    reader: Reader, kind: GroupKind, record: type[Record], namespace: str, set_name: str
) -> Iterator[Ref]:
    """Yield the objects of a kind that were made for a set."""
    by = (f"label:{labels.PART_OF}", set_name)
    for found in reader.list(record, namespace=namespace, by=by):
        metadata = getattr(found, "metadata", None)
        if isinstance(metadata, ObjectMeta):
            yield Ref(kind=kind, namespace=namespace, name=metadata.name)


def cliques_of_gang(reader: Reader) -> Callable[[PodGang], Iterable[Ref]]:
    """Wake the PodCliques a gang holds back: its own, and those of the gangs scaled over it."""

    def keys(gang: PodGang) -> Iterator[Ref]:
        namespace = gang.metadata.namespace
        for group in gang.spec.pod_groups:
            yield Ref(kind=groupkinds.CLIQUE, namespace=namespace, name=group.name)
        by = (f"label:{labels.BASE_PODGANG}", gang.metadata.name)
        for clique in reader.list(PodClique, namespace=namespace, by=by):
            yield Ref(kind=groupkinds.CLIQUE, namespace=namespace, name=clique.metadata.name)

    return keys


def groups_of_gang(reader: Reader) -> Callable[[PodGang], Iterable[Ref]]:
    """Wake the groups whose set replica's revision a base gang tells."""

    def keys(gang: PodGang) -> Iterator[Ref]:
        if labels.REVISION not in gang.metadata.labels:
            return
        set_name = gang.metadata.labels.get(labels.PART_OF, "")
        namespace = gang.metadata.namespace
        prefix = f"{gang.metadata.name}-"
        group = groupkinds.SCALING_GROUP
        for ref in made_for(reader, group, PodCliqueScalingGroup, namespace, set_name):
            if ref.name.startswith(prefix):
                yield ref

    return keys


def groups_of_revision(reader: Reader) -> Callable[[ControllerRevision], Iterable[Ref]]:
    """Wake the groups of a set when a revision of it comes or goes: they build from it."""

    def keys(revision: ControllerRevision) -> Iterable[Ref]:
        controller = owning.controller_of(revision.metadata)
        if controller is None or controller.kind != groupkinds.SET:
            return ()
        place = (controller.namespace, controller.name)
        return made_for(reader, groupkinds.SCALING_GROUP, PodCliqueScalingGroup, *place)

    return keys


def base_gang_of_group(group: PodCliqueScalingGroup) -> Iterable[Ref]:
    """Wake the base gang of a group's set replica: at 0 the group has no part in it."""
    carried, namespace = group.metadata.labels, group.metadata.namespace
    set_name, index = carried.get(labels.PART_OF, ""), carried.get(labels.SET_REPLICA_INDEX, "")
    if set_name and index.isascii() and index.isdecimal():
        name = names.base_podgang(set_name, int(index))
        yield Ref(kind=groupkinds.GANG, namespace=namespace, name=name)


def sets_of_topology(reader: Reader) -> Callable[[ClusterTopologyBinding], Iterable[Ref]]:
    """Wake the sets whose constraints mean a topology."""

    def keys(binding: ClusterTopologyBinding) -> Iterator[Ref]:
        for set_ in reader.list(PodCliqueSet):
            if gang_documents.topology_name(set_.spec.template) == binding.metadata.name:
                metadata = set_.metadata
                yield Ref(kind=groupkinds.SET, namespace=metadata.namespace, name=metadata.name)

    return keys


def gangs_of_topology(reader: Reader) -> Callable[[ClusterTopologyBinding], Iterable[Ref]]:
    """Wake the gangs of the sets whose constraints mean a topology."""
    sets = sets_of_topology(reader)

    def keys(binding: ClusterTopologyBinding) -> Iterator[Ref]:
        for ref in sets(binding):
            yield from made_for(reader, groupkinds.GANG, PodGang, ref.namespace, ref.name)

    return keys


def sharers(
    reader: Reader, kind: GroupKind, record: type[R]
) -> Callable[[ResourceClaimTemplate], Iterable[Ref]]:
    """Wake those that may make claims of a template: all that sets made that share anything."""

    def keys(_template: ResourceClaimTemplate) -> Iterator[Ref]:
        for set_ in reader.list(PodCliqueSet):
            if not _shares(set_):
                continue
            metadata = set_.metadata
            if kind == groupkinds.SET:
                yield Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)
            else:
                yield from made_for(reader, kind, record, metadata.namespace, metadata.name)

    return keys


def _shares(set_: PodCliqueSet) -> bool:
    template = set_.spec.template
    return bool(
        template.resource_sharing
        or any(group.resource_sharing for group in template.pod_clique_scaling_groups)
        or any(clique.resource_sharing for clique in template.cliques)
    )
