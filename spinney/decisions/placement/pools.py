"""Pools: for pods of one shape, how many of them every domain of one kind has room for.

A pool is made once and then kept up to date from the names of the machines that changed. So to
ask it costs what has changed since it was last asked, not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from spinney.decisions.placement import fitness
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Domain, Path, Tier
from spinney.decisions.placement.machines import Machine
from spinney.decisions.placement.shelves import Room, Shelf
from spinney.decisions.placement.spots import Spot


class _Standing(NamedTuple):
    """What is known of a machine until it is replaced: where it stands and how well it suits."""

    machine: Machine
    domain: Domain | None
    tier: Tier


class Pool:
    """The domains of one path as pods of one shape see them."""

    __slots__ = ("_standings", "_tiers", "path", "rooms", "seen", "shape", "totals")

    def __init__(self, shape: PodShape, path: Path) -> None:
        self.shape = shape
        self.path = path
        self.seen = 0
        """Up to which change it is up to date; the cluster's to keep."""

        self.rooms: dict[Domain, Room] = {}
        self.totals: Shelf[Domain] = Shelf()
        """Domains by how many pods they have room for."""

        self._standings: dict[str, _Standing] = {}
        self._tiers: dict[Tier, int] = {}

    def update(self, spots: Mapping[str, Spot], names: Iterable[str]) -> None:
        """Take in what has become of some machines."""
        shape, standings, rooms = self.shape, self._standings, self.rooms
        for name in names:
            spot = spots.get(name)
            machine = spot.machine if spot is not None else None
            standing = standings.get(name)
            if standing is None or standing.machine is not machine:
                self._forget(name, standing)
                if machine is None:
                    continue
                standing = self._stand(name, machine)
            if standing.domain is None or spot is None:
                continue
            room = rooms[standing.domain]
            before = room.total
            room.put(name, standing.tier, spot.capacity(shape))
            if room.total != before:
                self.totals.put(standing.domain, room.total)

    def _stand(self, name: str, machine: Machine) -> _Standing:
        shape = self.shape
        is_fit = next(fitness.faults(shape, machine), None) is None
        domain = fitness.domain(machine, self.path) if is_fit else None
        tier: Tier = ()
        if domain is not None:
            tier = fitness.tier(shape, machine)
            self._tiers[tier] = self._tiers.get(tier, 0) + 1
            self.rooms.setdefault(domain, Room())
        standing = self._standings[name] = _Standing(machine, domain, tier)
        return standing

    def _forget(self, name: str, standing: _Standing | None) -> None:
        if standing is None:
            return
        del self._standings[name]
        if standing.domain is not None:
            room = self.rooms[standing.domain]
            room.put(name, standing.tier, 0)
            self.totals.put(standing.domain, room.total)
            self._tiers[standing.tier] -= 1
            if not self._tiers[standing.tier]:
                del self._tiers[standing.tier]

    def domains(self, wanted: int) -> Iterator[Domain]:
        """Yield the domains with room for so many, the one to be taken first.

        Those that do with better machines come before others, of them the tightest. The first is
        found without looking at the others where all machines suit alike.
        """
        totals = self.totals
        if len(self._tiers) > 1:
            yield from sorted(
                (domain for domain in totals.names() if totals.number(domain) >= wanted),
                key=lambda domain: (
                    self.rooms[domain].worst_tier(wanted),
                    totals.number(domain),
                    domain,
                ),
            )
            return
        tightest = totals.tightest(wanted)
        if not tightest:
            return
        first = totals.first(tightest)
        rest = totals.ascending
        yield first
        yield from (domain for domain in [*rest(wanted)] if domain != first)

    def room(self, domain: Domain) -> Room:
        """Return a domain; an empty one where there is none of that name."""
        return self.rooms.get(domain) or Room()

    def standing_domain(self, name: str) -> Domain | None:
        """Return the domain in which a fit machine is; None for any other."""
        standing = self._standings.get(name)
        return standing.domain if standing is not None else None

    def standing_tier(self, name: str) -> Tier:
        """Return how well a fit machine suits."""
        return self._standings[name].tier
