"""Copies: the replicas of a scaling group, what is there of each, and whether too few are whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spinney.api import labels
from spinney.api.podclique import PodClique
from spinney.decisions import clique_status, places
from spinney.decisions.clique_status import BREACHED
from spinney.decisions.places import CliquePlace, GroupPlace
from spinney.meta import conditions
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN
from spinney.meta.records import Record


class Copy(Record):
    """One copy of a group: the places of its PodCliques, and those that are there."""

    index: int
    places: tuple[CliquePlace, ...]
    cliques: tuple[PodClique, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every PodClique is there to stay."""
        return len(self.cliques) == len(self.places) and not any(map(is_going, self.cliques))


class Tally(Record):
    """How many copies of a group are as they should be."""

    healthy: int
    unknown: int
    floor: int
    """How many are needed."""

    @property
    def is_breached(self) -> str:
        """Whether too few are whole: True, False, or Unknown (rule 4.2)."""
        if self.healthy >= self.floor:
            return FALSE
        return TRUE if self.healthy + self.unknown < self.floor else UNKNOWN


def copies_of(place: GroupPlace, replicas: int, cliques: Iterable[PodClique]) -> tuple[Copy, ...]:
    """Return the copies of a group, with what is there of each."""
    by_name = {clique.metadata.name: clique for clique in cliques}
    found: list[Copy] = []
    for index in range(replicas):
        inside = tuple(places.grouped_places(place, [index]))
        present = tuple(by_name[place.name] for place in inside if place.name in by_name)
        found.append(Copy(index=index, places=inside, cliques=present))
    return tuple(found)


def is_going(clique: PodClique) -> bool:
    """Whether a PodClique is being deleted."""
    return clique.metadata.deletion_timestamp is not None


def is_scheduled(copy: Copy) -> bool:
    """Whether every PodClique of a copy has enough pods on nodes."""
    return copy.is_complete and all(
        conditions.is_true(clique.status.conditions, clique_status.SCHEDULED)
        for clique in copy.cliques
    )


def is_available(copy: Copy) -> bool:
    """Whether every PodClique of a copy has enough ready pods."""
    return copy.is_complete and all(map(has_enough_ready, copy.cliques))


def has_enough_ready(clique: PodClique) -> bool:
    """Whether a PodClique has as many ready pods as it needs."""
    return clique.status.ready_replicas >= clique_status.floor(clique)


def is_updated(clique: PodClique) -> bool:
    """Whether all pods of a PodClique are of the template it is labelled with."""
    wanted = clique.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
    return (
        clique.status.current_pod_template_hash == wanted
        and clique.status.updated_replicas >= clique_status.floor(clique)
        and has_enough_ready(clique)
    )


def judged(copy: Copy) -> str:
    """Return whether a copy is broken, as its PodCliques say."""
    said = [conditions.find(clique.status.conditions, BREACHED) for clique in copy.cliques]
    if any(each is not None and each.status == TRUE for each in said):
        return TRUE
    all_false = all(each is not None and each.status == FALSE for each in said)
    return FALSE if copy.is_complete and all_false else UNKNOWN


def tally(found: Sequence[Copy], min_available: int) -> Tally:
    """Return how many copies are as they should be."""
    said = [judged(copy) for copy in found]
    return Tally(
        healthy=said.count(FALSE),
        unknown=said.count(UNKNOWN),
        floor=min(min_available, len(found)),
    )
