"""Problems: what is to be solved for a gang, whatever it means.

Scopes say which groups must share a domain; items say how many pods of which shapes a group needs.
Preferences are scopes' too: which of them are to be met is decided outside, by trying.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from spinney.decisions.placement import fitness
from spinney.decisions.placement.amounts import is_extended
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand, GroupDemand, Pack, PodDemand, PodShape
from spinney.decisions.placement.fitness import Domain, Path


class Item(NamedTuple):
    """Pods of one group: those that may go, and how many of them."""

    group: int
    shapes: tuple[tuple[PodShape, int], ...]
    """The shapes among them, and how many pods have each; the pods' names are told later."""

    wanted: int

    def split(self) -> tuple[tuple[PodShape, int], ...]:
        """Return how many of which shapes are taken where none is chosen over another."""
        if len(self.shapes) == 1:
            return ((self.shapes[0][0], self.wanted),)
        found, left = [], self.wanted
        for shape, count in self.shapes:
            if left > 0:
                found.append((shape, min(count, left)))
                left -= count
        return tuple(found)


class Scope(NamedTuple):
    """Groups of which all pods must, or should, be in one domain of a path."""

    name: str
    groups: tuple[int, ...]
    required: Path
    """Empty where nothing is required."""

    preferred: Path
    """Empty where nothing more is preferred."""

    homes: frozenset[Domain | None]
    """The domains of `required` where bound pods are; None stands for none at all."""

    preferred_homes: frozenset[Domain | None]


class Problem(NamedTuple):
    """A gang as the solvers see it. Scopes: the gang's, the configs', the groups', in order."""

    gang: GangDemand
    candidates: tuple[tuple[PodDemand, ...], ...]
    """For each group, the pods that may go, in order."""

    scopes: tuple[Scope, ...]


def size(shape: PodShape) -> tuple[int, int, int, PodShape]:
    """Return by what shapes are compared: scarce resources first."""
    scarce = sum(amount for name, amount in shape.requests if is_extended(name))
    asked = dict(shape.requests)
    return scarce, asked.get("cpu", 0), asked.get("memory", 0), shape


def problem(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Problem:
    """Return what is to be solved for a gang; its groups in the order of their names."""
    groups = tuple(sorted(gang.groups, key=lambda group: group.name))
    ordered = GangDemand(
        ref=gang.ref,
        uid=gang.uid,
        groups=groups,
        pack=gang.pack,
        configs=tuple(sorted(gang.configs, key=lambda config: config.name)),
        priority=gang.priority,
        created=gang.created,
    )
    return Problem(
        gang=ordered,
        candidates=tuple(
            tuple(
                sorted((pod for pod in group.waiting if not pod.is_gated), key=lambda pod: pod.ref)
            )
            for group in groups
        ),
        scopes=tuple(_scopes(cluster, ordered, levels)),
    )


def _scopes(cluster: Cluster, gang: GangDemand, levels: tuple[str, ...]) -> Iterator[Scope]:
    indexes = {group.name: index for index, group in enumerate(gang.groups)}
    asked: list[tuple[str, Pack, tuple[int, ...]]] = []
    asked.append(("", gang.pack, tuple(indexes.values())))
    for config in gang.configs:
        inside = {indexes[name] for name in config.group_names if name in indexes}
        asked.append((config.name, config.pack, tuple(sorted(inside))))
    asked += [(group.name, group.pack, (index,)) for index, group in enumerate(gang.groups)]
    for name, pack, members in asked:
        required = fitness.path(pack.required_key, levels) if pack.required_key else ()
        preferred = fitness.path(pack.preferred_key, levels) if pack.preferred_key else ()
        if members and (required or preferred):
            bound = [gang.groups[index] for index in members]
            yield Scope(
                name=name,
                groups=members,
                required=required,
                preferred=preferred,
                homes=frozenset(_homes(cluster, bound, required)),
                preferred_homes=frozenset(_homes(cluster, bound, preferred)),
            )


def _homes(cluster: Cluster, groups: Iterable[GroupDemand], path: Path) -> Iterator[Domain | None]:
    """Yield the domains where the bound pods of groups are, as far as their machines are known."""
    for group in groups:
        for pod in group.bound:
            spot = cluster.spot(pod.node)
            if path and spot is not None and spot.machine is not None:
                yield fitness.domain(spot.machine, path)


def items(problem: Problem, *, is_whole: bool) -> tuple[Item, ...]:
    """Return what must be placed: as much as the groups need, or all that waits."""
    found = []
    for index, group in enumerate(problem.gang.groups):
        candidates = problem.candidates[index]
        needed = max(0, group.min_replicas - len(group.bound))
        wanted = max(needed, len(candidates)) if is_whole else needed
        if wanted:
            found.append(Item(group=index, shapes=shapes(candidates), wanted=wanted))
    return tuple(found)


def shapes(pods: Sequence[PodDemand]) -> tuple[tuple[PodShape, int], ...]:
    """Return the shapes of pods, in the order of the first pod of each, and how many have each."""
    if not pods:
        return ()
    first = pods[0].shape
    if all(pod.shape is first for pod in pods):
        return ((first, len(pods)),)
    counts: dict[PodShape, int] = {}
    for pod in pods:
        counts[pod.shape] = counts.get(pod.shape, 0) + 1
    return tuple(counts.items())


class Bound(NamedTuple):
    """One thing that must hold: the pods of some groups share a domain of a path."""

    groups: frozenset[int]
    path: Path
    home: Domain | None
    """Which domain it must be, as bound pods are there; None where it may be any."""

    labelled: int = -1
    """Which broader label of the path machines must not lack, for it is asked for too."""

    def allows(self, domain: Domain) -> bool:
        """Whether a domain is one of those meant."""
        if self.labelled >= 0 and domain[self.labelled] == fitness.MISSING:
            return False
        return self.home is None or domain == self.home


def bounds(
    problem: Problem, items: Iterable[Item], met: frozenset[int]
) -> tuple[Bound, ...] | None:
    """Return what must hold of items when some scopes' preferences are to be met.

    None where it cannot hold, for pods that are bound already. `met` are indexes of scopes. The
    broadest paths come first.
    """
    found: list[Bound] = []
    groups = {item.group for item in items}
    for index, scope in enumerate(problem.scopes):
        if groups.isdisjoint(scope.groups):
            continue
        asked = [(scope.required, scope.homes)] if scope.required else []
        if index in met:
            asked.append((scope.preferred, scope.preferred_homes))
        asked.sort(key=lambda pair: (len(pair[0]), pair[0]))
        labelled = -1
        if len(asked) == 2 and asked[1][0][: len(asked[0][0])] == asked[0][0]:
            # Who shares the narrower domain shares the broader, where machines have that label.
            if len(asked[0][1]) > 1 or None in asked[0][1]:
                return None
            labelled = len(asked.pop(0)[0]) - 1
        for path, homes in asked:
            if len(homes) > 1 or None in homes:
                return None
            home = next(iter(homes), None)
            found.append(Bound(frozenset(scope.groups), path, home, labelled))
    return tuple(found)
