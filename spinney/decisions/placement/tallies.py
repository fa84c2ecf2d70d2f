"""Tallies: why how many machines have no room for pods of a shape.

Kept up to date as pools are, since a thousand gangs may wait for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from spinney.decisions.placement import amounts, fitness
from spinney.decisions.placement.amounts import is_extended
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Path
from spinney.decisions.placement.machines import Machine
from spinney.decisions.placement.shelves import Shelf
from spinney.decisions.placement.spots import Spot

NO_DOMAIN: Final = "NoDomain"
INSUFFICIENT: Final = "Insufficient"
HOST_PORT: Final = "HostPort"


class _Standing(NamedTuple):
    """What is known of a machine until it is replaced."""

    machine: Machine
    faults: tuple[str, ...]
    empty_capacity: int


class _Entry(NamedTuple):
    """How a machine is counted."""

    standing: _Standing
    reason: str
    """Empty where it has room."""

    resource: str
    """Of which it has too little, where that is the reason."""

    capacity: int


class Tally:
    """The machines as pods of one shape see them, by what is wrong with them."""

    __slots__ = (
        "_entries",
        "capacities",
        "empty_capacities",
        "free",
        "path",
        "reasons",
        "seen",
        "shape",
        "shortages",
    )

    def __init__(self, shape: PodShape, path: Path) -> None:
        self.shape = shape
        self.path = path
        self.seen = 0
        self.reasons: Counter[str] = Counter()
        """How many machines have which as their first fault."""

        self.shortages: Counter[str] = Counter()
        """How many machines have too little of which resource."""

        self.free: dict[str, Shelf[str]] = {}
        """Of each resource, those machines by what they have, and one."""

        self.capacities: Counter[str] = Counter()
        """For how many pods there would be room, but for one fault of a machine alone."""

        self.empty_capacities: Shelf[str] = Shelf()
        """Machines that suit, by for how many pods they would have room were they empty."""

        self._entries: dict[str, _Entry] = {}

    def update(self, spots: Mapping[str, Spot], names: Iterable[str]) -> None:
        """Take in what has become of some machines."""
        for name in names:
            spot = spots.get(name)
            machine = spot.machine if spot is not None else None
            old = self._entries.get(name)
            standing = old.standing if old is not None else None
            if spot is None or machine is None:
                if old is not None:
                    self._count(name, old, -1)
                    del self._entries[name]
                continue
            if standing is None or standing.machine is not machine:
                standing = self._stand(name, machine)
            entry = self._entry(standing, spot)
            if old is not None:
                self._count(name, old, -1)
            self._entries[name] = entry
            self._count(name, entry, 1)
            if entry.resource:
                have = max(0, spot.free.get(entry.resource, 0))
                self.free.setdefault(entry.resource, Shelf()).put(name, have + 1)

    def _stand(self, name: str, machine: Machine) -> _Standing:
        faults = tuple(fitness.faults(self.shape, machine))
        if fitness.domain(machine, self.path) is None:
            faults = (*faults, NO_DOMAIN)
        empty = Spot(name)
        empty.settle(machine)
        return _Standing(machine, faults, empty.capacity(self.shape))

    def _entry(self, standing: _Standing, spot: Spot) -> _Entry:
        capacity = spot.capacity(self.shape)
        if standing.faults:
            return _Entry(standing, standing.faults[0], "", capacity)
        if capacity:
            return _Entry(standing, "", "", capacity)
        for name, amount in sorted(self.shape.requests, key=by_scarcity):
            if spot.free.get(name, 0) < amount:
                return _Entry(standing, INSUFFICIENT, name, 0)
        return _Entry(standing, HOST_PORT, "", 0)

    def _count(self, name: str, entry: _Entry, sign: int) -> None:
        if entry.reason:
            self.reasons[entry.reason] += sign
        if entry.resource:
            self.shortages[entry.resource] += sign
            if sign < 0:
                self.free[entry.resource].put(name, 0)
        if len(entry.standing.faults) == 1:
            self.capacities[entry.standing.faults[0]] += sign * entry.capacity
        elif not entry.standing.faults:
            is_there = sign > 0
            self.empty_capacities.put(name, entry.standing.empty_capacity if is_there else 0)


def by_scarcity(request: tuple[str, int]) -> tuple[int, str]:
    """Return by what requests are told: of what only some machines have first."""
    name = request[0]
    order = (amounts.CPU, amounts.MEMORY, amounts.EPHEMERAL_STORAGE, amounts.PODS)
    return (0 if is_extended(name) else 1 + order.index(name) if name in order else 9, name)
