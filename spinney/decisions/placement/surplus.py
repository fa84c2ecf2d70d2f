"""Surplus: pods that go wherever there is room for them, as many as may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from spinney.decisions.placement import fitness, greedy, problems
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Domain, Path
from spinney.decisions.placement.greedy import Greedy, Inside
from spinney.decisions.placement.problems import Problem, Scope
from spinney.decisions.placement.trials import Budget, Take, Trial

Counts: TypeAlias = dict[tuple[int, PodShape], int]
"""How many pods of which group and shape."""


def waiting(problem: Problem, takes: Iterable[Take]) -> Counts:
    """Return how many pods have no place yet."""
    left: Counts = {}
    for group, pods in enumerate(problem.candidates):
        for shape, count in problems.shapes(pods):
            left[group, shape] = count
    for take in takes:
        left[take.group, take.shape] -= take.pods
    return left


def add(
    trial: Trial,
    problem: Problem,
    wanted: Counts,
    met: frozenset[int],
    loose: Mapping[int, Path],
    used: Mapping[Path, Iterable[Domain]],
) -> Counts:
    """Put pods where there is room, the most demanding first; return how many found none."""
    left = dict(wanted)
    ordered = sorted(wanted, key=lambda pair: (problems.size(pair[1]), -pair[0]), reverse=True)
    for group, shape in ordered:
        within = inside(trial, problem, group, shape, met) if left[group, shape] else None
        if within is not None:
            attempt = Greedy(trial, Budget(0), loose, used)
            left[group, shape] -= attempt.put(
                group, shape, left[group, shape], within, is_all=False
            )
    return left


def inside(
    trial: Trial, problem: Problem, group: int, shape: PodShape, met: frozenset[int]
) -> Inside | None:
    """Return within which domains more pods of a group must be; None where there are none.

    A scope that has no pod yet takes the domain with most room.
    """
    found: Inside = ()
    for index, scope in enumerate(problem.scopes):
        if group not in scope.groups:
            continue
        paths = [scope.required] if scope.required else []
        paths += [scope.preferred] if index in met else []
        for path in paths:
            there = homes(trial, scope, path)
            if len(there) > 1 or None in there:
                return None
            domain = next(iter(there), None)
            if domain is None:
                domain = greedy.roomiest(trial.cluster, shape, path, found)
            within = None if domain is None else greedy.narrowed(found, path, domain)
            if within is None:
                return None
            found = within
    return found


def homes(trial: Trial, scope: Scope, path: Path) -> set[Domain | None]:
    """Return the domains of a scope's path in which its pods are, placed and bound."""
    bound = scope.homes if path == scope.required else scope.preferred_homes
    nodes = {take.node for take in trial.takes if take.group in scope.groups}
    return {domain_of(trial.cluster, node, path) for node in nodes}.union(bound)


def domain_of(cluster: Cluster, node: str, path: Path) -> Domain | None:
    """Return the domain of a machine by name."""
    spot = cluster.spot(node)
    if spot is None or spot.machine is None:
        return None
    return fitness.domain(spot.machine, path)
