"""The PodGang controller: looks at one gang, its PodCliques and their pods."""

from __future__ import annotations

from datetime import datetime

from spinney.api import groupkinds, labels, names
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.controllers import lookups
from spinney.decisions import sets
from spinney.decisions.gangs import Member, Observation
from spinney.decisions.making import owning
from spinney.decisions.places import CliquePlace
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.meta.references import Ref
from spinney.ports import Reader


def observe(
    reader: Reader, key: Ref, now: datetime, settings: Settings = DEFAULTS
) -> Observation | None:
    """Return what is to be seen of one gang; None where it is gone."""
    gang = reader.get(PodGang, key.namespace, key.name)
    if gang is None:
        return None
    found = Observation(now=now, gang=gang, settings=settings)
    root = lookups.root_set(reader, gang.metadata)
    if root is None:
        return found
    placed = _placed(reader, root, gang)
    if placed is None:
        return found
    set_, revision, members = placed
    return Observation(
        now=now,
        gang=gang,
        set_=set_,
        members=tuple(_member(reader, root, place) for place in members),
        binding=lookups.binding(reader, set_),
        revision=revision,
        settings=settings,
    )


def _placed(
    reader: Reader, root: PodCliqueSet, gang: PodGang
) -> tuple[PodCliqueSet, str, tuple[CliquePlace, ...]] | None:
    """Return the set as the gang's replica sees it, its revision, and the gang's PodCliques.

    Which replica that is, is found by making all names a gang of the set can have.
    """
    name = gang.metadata.name
    for index in _candidates(root, name):
        set_, revision = lookups.set_of_replica(reader, root, index)
        counts = lookups.group_replicas(reader, set_, index)
        for found, members in sets.expected_gangs(set_, index, counts):
            if found == name:
                is_base = name == names.base_podgang(root.metadata.name, index)
                own = revision if is_base else ""
                return set_, own, members
    return None


def _candidates(root: PodCliqueSet, gang_name: str) -> list[int]:
    """Return the set replicas a gang's name may be of: the number after the set's own name."""
    prefix = f"{root.metadata.name}-"
    if not gang_name.startswith(prefix):
        return []
    number, _, _ = gang_name.removeprefix(prefix).partition("-")
    if not number.isascii() or not number.isdecimal() or len(number) > 10:
        return []
    index = int(number)
    return [index] if index < root.spec.replicas else []


def _member(reader: Reader, root: PodCliqueSet, place: CliquePlace) -> Member:
    namespace = root.metadata.namespace
    clique = reader.get(PodClique, namespace, place.name)
    if clique is None or not _is_its(clique, root, place):
        return Member(place=place)
    own = reader.list(Pod, namespace=namespace, by=("owner", clique.metadata.uid))
    return Member(place=place, clique=clique, pods=tuple(own))


def _is_its(clique: PodClique, root: PodCliqueSet, place: CliquePlace) -> bool:
    """Whether a PodClique at a place's name was made for that place, by its set or its group."""
    metadata = clique.metadata
    if metadata.labels.get(labels.PODGANG) != place.podgang:
        return False
    if place.group is None:
        return owning.is_owned_by(metadata, root.metadata.uid)
    group = groupkinds.SCALING_GROUP
    owner = Ref(kind=group, namespace=metadata.namespace, name=place.group.name)
    return owning.controller_of(metadata) == owner
