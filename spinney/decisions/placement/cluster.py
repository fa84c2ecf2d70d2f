"""Cluster: machines and what occupies them, kept up to date as they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Path
from spinney.decisions.placement.machines import Machine, Resident
from spinney.decisions.placement.pools import Pool
from spinney.decisions.placement.spots import Spot
from spinney.decisions.placement.tallies import Tally
from spinney.meta.references import Ref

POOLS_MAX = 96
"""How many pools are kept; the one that was not asked for longest goes first."""

_LOG_MAX_LEAST = 1_000

V = TypeVar("V", Pool, Tally)


class Cluster:
    """A snapshot that is kept up to date: a change costs what it changes, not what there is.

    It is the one thing in `decisions` that changes in place: copies of 5,000 machines would cost
    more than all placing. Whoever is given one leaves it as it was.
    """

    def __init__(self) -> None:
        self._spots: dict[str, Spot] = {}
        self._homes: dict[str, str] = {}
        """The node of each pod, by uid."""

        self._wholes: dict[Ref, dict[str, None]] = {}
        """The uids of each gang's pods; a pod in none is its own."""

        self._leaving: set[str] = set()
        self._priorities: dict[int, int] = {}
        """How many residents have which priority."""

        self._emptied: Cluster | None = None
        self._machine_count = 0
        self._pools: dict[tuple[PodShape, Path], Pool] = {}
        self._tallies: dict[tuple[PodShape, Path], Tally] = {}
        self._log: list[str] = []
        """Machines that changed; the last is change number `_logged`."""

        self._logged = 0

    # What changes

    def put_machine(self, machine: Machine) -> None:
        """Take in a machine, or what has become of it."""
        spot = self._spot(machine.name)
        if spot.machine == machine:
            return
        self._machine_count += spot.machine is None
        spot.settle(machine)
        if self._emptied is not None:
            self._emptied.put_machine(machine)
        self._changed(machine.name)

    def remove_machine(self, name: str) -> None:
        """Forget a machine. Its residents are remembered, should it come back."""
        spot = self._spots.get(name)
        if spot is None or spot.machine is None:
            return
        self._machine_count -= 1
        spot.settle(None)
        self._sweep(spot)
        if self._emptied is not None:
            self._emptied.remove_machine(name)
        self._changed(name)

    def put_resident(self, node: str, resident: Resident) -> None:
        """Take in a pod on a node, or what has become of it; the node need not be known yet."""
        if resident.uid in self._homes:
            self.remove_resident(resident.uid)
        self._spot(node).add(resident)
        self._homes[resident.uid] = node
        self._wholes.setdefault(resident.whole, {})[resident.uid] = None
        self._priorities[resident.priority] = self._priorities.get(resident.priority, 0) + 1
        if resident.is_leaving:
            self._leaving.add(resident.uid)
        self._changed(node)

    def remove_resident(self, uid: str) -> None:
        """Forget a pod."""
        node = self._homes.pop(uid, None)
        if node is None:
            return
        spot = self._spots[node]
        resident = spot.residents[uid]
        whole = resident.whole
        self._leaving.discard(uid)
        self._priorities[resident.priority] -= 1
        if not self._priorities[resident.priority]:
            del self._priorities[resident.priority]
        del self._wholes[whole][uid]
        if not self._wholes[whole]:
            del self._wholes[whole]
        spot.drop(uid)
        self._sweep(spot)
        self._changed(node)

    def take(self, node: str, shape: PodShape, count: int) -> None:
        """Set aside room for pods on a machine while trying; with a count below 0, give it back."""
        self._spots[node].take(shape, count)
        self._changed(node)

    def _spot(self, name: str) -> Spot:
        spot = self._spots.get(name)
        if spot is None:
            spot = self._spots[name] = Spot(name)
        return spot

    def _sweep(self, spot: Spot) -> None:
        if spot.machine is None and not spot.residents:
            del self._spots[spot.name]

    def _changed(self, name: str) -> None:
        self._log.append(name)
        self._logged += 1
        if len(self._log) > max(_LOG_MAX_LEAST, 4 * self._machine_count):
            self._log.clear()

    # What is asked

    @property
    def machine_count(self) -> int:
        """How many machines there are."""
        return self._machine_count

    @property
    def machines(self) -> Iterator[Machine]:
        """The machines there are, by name."""
        for name in sorted(self._spots):
            machine = self._spots[name].machine
            if machine is not None:
                yield machine

    def spot(self, name: str) -> Spot | None:
        """Return a place, be its machine known or not; None where nothing is."""
        return self._spots.get(name)

    def spots(self) -> Iterator[Spot]:
        """Yield the places of machines, by name."""
        for name in sorted(self._spots):
            spot = self._spots[name]
            if spot.machine is not None:
                yield spot

    def residents(self, gang: Ref | None = None) -> Iterator[tuple[str, Resident]]:
        """Yield what is where, in order; of one gang, or one pod that is in none, if asked for."""
        if gang is not None:
            found = [(self._homes[uid], uid) for uid in self._wholes.get(gang, ())]
        else:
            found = [(node, uid) for uid, node in self._homes.items()]
        for node, uid in sorted(found):
            yield node, self._spots[node].residents[uid]

    def wholes(self) -> Iterator[Ref]:
        """Yield the gangs, and pods that are in none, that occupy something; in no order."""
        return iter(self._wholes)

    def leaving(self) -> Iterator[tuple[str, Resident]]:
        """Yield what is on its way out, and where, in order."""
        for node, uid in sorted((self._homes[uid], uid) for uid in self._leaving):
            yield node, self._spots[node].residents[uid]

    @property
    def lowest_priority(self) -> int | None:
        """The least priority of any resident; None where there is none."""
        return min(self._priorities, default=None)

    @property
    def emptied(self) -> Cluster:
        """The same machines with nothing on them, kept up to date too: what could ever fit."""
        if self._emptied is None:
            self._emptied = Cluster()
            for machine in self.machines:
                self._emptied.put_machine(machine)
        return self._emptied

    def pool(self, shape: PodShape, path: Path) -> Pool:
        """Return how many pods of a shape each domain has room for, as things are now."""
        pool = self._pools.get((shape, path))
        if pool is None or pool.seen != self._logged:
            pool = self._pools[shape, path] = self._kept(self._pools, Pool, shape, path)
        return pool

    def tally(self, shape: PodShape, path: Path) -> Tally:
        """Return why how many machines have no room for pods of a shape, as things are now."""
        tally = self._tallies.get((shape, path))
        if tally is None or tally.seen != self._logged:
            tally = self._tallies[shape, path] = self._kept(self._tallies, Tally, shape, path)
        return tally

    def _kept(
        self, kept: dict[tuple[PodShape, Path], V], make: type[V], shape: PodShape, path: Path
    ) -> V:
        """Return a view brought up to date, taken out of those that are kept; or a new one."""
        view = kept.pop((shape, path), None)
        behind = self._logged - view.seen if view is not None else 0
        if view is None or behind > len(self._log):
            view = make(shape, path)
            view.update(self._spots, self._spots)
        else:
            view.update(self._spots, self._log[-1:] if behind == 1 else set(self._log[-behind:]))
        view.seen = self._logged
        if len(kept) >= POOLS_MAX:
            del kept[next(iter(kept))]
        return view
