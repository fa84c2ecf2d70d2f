"""Greedy: domains and machines taken one after the other, tightest first, hardly looking back.

It is right at once for what nearly all gangs are: pods of one shape, or of few with room to spare.
Where it fails with several shapes, that proves nothing; see `exact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from spinney.decisions.placement import fitness, problems
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Domain, Path
from spinney.decisions.placement.machines import HOSTNAME
from spinney.decisions.placement.problems import Bound, Item
from spinney.decisions.placement.shelves import Room
from spinney.decisions.placement.trials import Budget, Trial

Inside: TypeAlias = tuple[tuple[Path, Domain], ...]
"""The domains within which machines must be; all machines where there are none."""


class _Part(NamedTuple):
    """Items that are bound together, and what binds them."""

    items: list[Item]
    bounds: list[Bound]


def narrowed(inside: Inside, path: Path, domain: Domain) -> Inside | None:
    """Return what is left within one more domain; None where that is nothing for certain."""
    kept = []
    for outer, value in inside:
        if path[: len(outer)] == outer:
            if domain[: len(value)] != value:
                return None
        elif outer[: len(path)] == path:
            return inside if value[: len(domain)] == domain else None
        else:
            kept.append((outer, value))
    return (*kept, (path, domain))


def room(cluster: Cluster, shape: PodShape, inside: Inside) -> Room:
    """Return the room for pods of a shape within domains."""
    if not inside:
        return cluster.pool(shape, ()).room(())
    if len(inside) == 1:
        return cluster.pool(shape, inside[0][0]).room(inside[0][1])
    found = Room()
    first, *others = (cluster.pool(shape, path) for path, _ in inside)
    for name in first.room(inside[0][1]).names():
        if all(
            pool.standing_domain(name) == domain
            for pool, (_, domain) in zip(others, inside[1:], strict=True)
        ):
            spot = cluster.spot(name)
            assert spot is not None, "a machine with room has a place"
            found.put(name, first.standing_tier(name), spot.capacity(shape))
    return found


def rooms(cluster: Cluster, shape: PodShape, path: Path, inside: Inside) -> dict[Domain, Room]:
    """Return the domains of a path with room for pods of a shape, as far as they are within."""
    pool = cluster.pool(shape, path)
    if not inside:
        return {domain: pool.room(domain) for domain in pool.totals.names()}
    if len(inside) == 1 and inside[0][0][: len(path)] == path:
        domain = inside[0][1][: len(path)]
        if domain[-1] == fitness.MISSING:
            return {}
        return {domain: room(cluster, shape, inside)}
    found: dict[Domain, Room] = {}
    is_nested = len(inside) == 1 and path[: len(inside[0][0])] == inside[0][0]
    for name in room(cluster, shape, inside).names():
        standing = pool.standing_domain(name)
        if standing is None:
            continue
        if is_nested:
            found[standing] = pool.room(standing)
            continue
        spot = cluster.spot(name)
        assert spot is not None, "a machine with room has a place"
        part = found.setdefault(standing, Room())
        part.put(name, pool.standing_tier(name), spot.capacity(shape))
    return found


def roomiest(cluster: Cluster, shape: PodShape, path: Path, inside: Inside) -> Domain | None:
    """Return the domain of a path with most room for pods of a shape; None where none has any."""
    if not inside:
        totals = cluster.pool(shape, path).totals
        return totals.first(totals.largest) if totals.largest else None
    found = rooms(cluster, shape, path, inside)
    sizes = [(-part.total, domain) for domain, part in found.items() if part.total]
    return min(sizes)[1] if sizes else None


class Greedy:
    """One attempt at a gang."""

    __slots__ = ("_budget", "_cluster", "_loose", "_trial", "_used")

    def __init__(
        self,
        trial: Trial,
        budget: Budget,
        loose: Mapping[int, Path],
        used: Mapping[Path, Iterable[Domain]],
    ) -> None:
        """Begin one.

        `loose` says for a group within which domains it should be where it can, `used` which of
        them its gang is in already.
        """
        self._trial = trial
        self._cluster = trial.cluster
        self._budget = budget
        self._loose = loose
        self._used: dict[Path, dict[Domain, int]] = {
            path: dict.fromkeys(sorted(domains), -1) for path, domains in used.items()
        }

    def solve(self, items: Sequence[Item], bounds: Sequence[Bound], inside: Inside = ()) -> bool:
        """Put all items on machines; False, with nothing put, where some found no place."""
        mark = len(self._trial.takes)
        for part in _parts(items, bounds):
            if not self._solve_part(part, inside):
                self._back(mark)
                return False
        return True

    def _solve_part(self, part: _Part, inside: Inside) -> bool:
        if not part.bounds:
            return all(self._put_item(item, inside) for item in part.items)
        bound, *others = part.bounds
        asked = _asked(part.items)
        mark = len(self._trial.takes)
        for domain in self._candidates(bound, part.items, asked, inside):
            if not self._budget.spend(1):
                return False
            within = narrowed(inside, bound.path, domain)
            is_meant = within is not None and bound.allows(domain)
            if within is None or not is_meant or not self._may_fit(asked, bound.path, domain):
                continue
            if self.solve(part.items, others, within):
                return True
            self._back(mark)
        return False

    def _may_fit(self, asked: Mapping[PodShape, int], path: Path, domain: Domain) -> bool:
        return all(
            self._cluster.pool(shape, path).room(domain).total >= count
            for shape, count in asked.items()
        )

    def _candidates(
        self,
        bound: Bound,
        items: Sequence[Item],
        asked: Mapping[PodShape, int],
        inside: Inside,
    ) -> Iterator[Domain]:
        if bound.home is not None:
            yield bound.home
            return
        lead = max(asked, key=problems.size)
        loose = self._loose.get(items[0].group)
        seen: set[Domain] = set()
        if loose is not None and bound.path[: len(loose)] == loose:
            for used in [*self._used.get(loose, ())]:
                within = narrowed(inside, loose, used)
                if within is not None:
                    for domain in self._domains(lead, asked[lead], bound.path, within):
                        seen.add(domain)
                        yield domain
        for domain in self._domains(lead, asked[lead], bound.path, inside):
            if domain not in seen:
                yield domain

    def _domains(
        self, shape: PodShape, wanted: int, path: Path, inside: Inside
    ) -> Iterator[Domain]:
        """Yield the domains of a path that have room for so many, the tightest first."""
        if not inside:
            yield from self._cluster.pool(shape, path).domains(wanted)
            return
        enough = {
            domain: found
            for domain, found in rooms(self._cluster, shape, path, inside).items()
            if found.total >= wanted
        }
        yield from sorted(
            enough, key=lambda name: (enough[name].worst_tier(wanted), enough[name].total, name)
        )

    def _put_item(self, item: Item, inside: Inside) -> bool:
        return all(
            self.put(item.group, shape, count, inside) == count for shape, count in item.split()
        )

    def put(
        self, group: int, shape: PodShape, wanted: int, inside: Inside, *, is_all: bool = True
    ) -> int:
        """Put pods on the fewest machines; return how many: all, none, or as many as fit."""
        found = room(self._cluster, shape, inside)
        if is_all and found.total < wanted:
            return 0
        left = wanted = min(wanted, found.total)
        loose = self._loose.get(group)
        if loose is None or loose[-1] == HOSTNAME:
            self._fill(group, shape, wanted, inside)
            return wanted
        while left:
            domain = self._next_domain(shape, left, loose, inside)
            within = None if domain is None else narrowed(inside, loose, domain)
            if domain is None or within is None:
                # Machines outside all such domains come last.
                self._fill(group, shape, left, inside)
                break
            count = min(left, room(self._cluster, shape, within).total)
            self._used.setdefault(loose, {}).setdefault(domain, len(self._trial.takes))
            self._fill(group, shape, count, within)
            left -= count
        return wanted

    def _next_domain(
        self, shape: PodShape, wanted: int, path: Path, inside: Inside
    ) -> Domain | None:
        """Return the domain to go on in: one in use, else one that takes all, else the roomiest."""
        if not inside:
            totals = self._cluster.pool(shape, path).totals
            for domain in self._used.get(path, ()):
                if totals.number(domain):
                    return domain
            number = totals.tightest(wanted) or totals.largest
            return totals.first(number) if number else None
        sizes = {
            domain: found.total
            for domain, found in rooms(self._cluster, shape, path, inside).items()
        }
        for domain in self._used.get(path, ()):
            if sizes.get(domain):
                return domain
        enough = [(size, domain) for domain, size in sizes.items() if size >= wanted]
        if enough:
            return min(enough)[1]
        return roomiest(self._cluster, shape, path, inside)

    def _fill(self, group: int, shape: PodShape, wanted: int, inside: Inside) -> None:
        """Put pods on machines that have room for them all."""
        left = wanted
        is_live = len(inside) < 2
        found = room(self._cluster, shape, inside)
        while left:
            if is_live:
                found = room(self._cluster, shape, inside)
            name, count = found.choose(left)
            count = min(left, count)
            self._trial.take(group, shape, name, count)
            left -= count
            if not is_live:
                for shelf in found.shelves.values():
                    shelf.put(name, 0)

    def _back(self, mark: int) -> None:
        self._trial.back(mark)
        for path, domains in self._used.items():
            self._used[path] = {domain: at for domain, at in domains.items() if at < mark}


def _asked(items: Iterable[Item]) -> dict[PodShape, int]:
    """Return how many pods of which shapes items want together."""
    found: dict[PodShape, int] = {}
    for item in items:
        for shape, count in item.split():
            found[shape] = found.get(shape, 0) + count
    return found


def _parts(items: Sequence[Item], bounds: Sequence[Bound]) -> list[_Part]:
    """Return items apart by what binds them, the most demanding first.

    Where what binds overlaps without nesting, some of it is passed over; whoever asks looks again.
    """
    inside = {item.group for item in items}
    parts: list[_Part] = []
    part_of: dict[int, _Part] = {}
    for bound in sorted(bounds, key=lambda bound: -len(bound.groups)):
        groups = bound.groups & inside
        if not groups:
            continue
        part = next((part_of[group] for group in sorted(groups) if group in part_of), None)
        if part is None:
            part = _Part([], [])
            parts.append(part)
            part_of.update(dict.fromkeys(groups, part))
        part.bounds.append(bound)
    for item in items:
        part = part_of.get(item.group)
        if part is None:
            part = _Part([], [])
            parts.append(part)
        part.items.append(item)
    return sorted(parts, key=_by_demand, reverse=True)


def _by_demand(part: _Part) -> tuple[tuple[int, int, int, PodShape], int, int]:
    asked = _asked(part.items)
    lead = max(asked, key=problems.size)
    return problems.size(lead), asked[lead], -part.items[0].group
