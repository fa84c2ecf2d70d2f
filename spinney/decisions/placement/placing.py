"""Placing: where the pods of a gang go.

Tried in this order: all its pods with all that is preferred; what it needs with all that is
preferred; what it needs, with as many preferences as can be met. Then what is left over goes where
there is room. Each try is greedy first, and searched exactly where that finds nothing and proves
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from spinney.decisions.placement import exact, explaining, problems, surplus
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand, PodDemand, PodShape
from spinney.decisions.placement.fitness import Domain, Path
from spinney.decisions.placement.greedy import Greedy
from spinney.decisions.placement.outcomes import FULL_SCORE, Binding, Home, Placement, Refusal
from spinney.decisions.placement.problems import Bound, Item, Problem
from spinney.decisions.placement.trials import Budget, Trial

STEPS_MAX = 20_000
"""How many steps are taken to find a place for what a gang needs, and as many to do better."""

SUBSETS_MAX_PREFERENCES = 5
"""Up to so many preferences, all choices of those to be met are tried; of more, one by one."""

_NONE: frozenset[int] = frozenset()


def place(
    cluster: Cluster, gang: GangDemand, levels: tuple[str, ...], *, steps_max: int = STEPS_MAX
) -> Placement | Refusal:
    """Return where a gang's pods go, or why they go nowhere; the cluster is left as it was.

    `levels` are the node labels of the cluster's network, broadest first. Pods that are bound must
    be residents of the cluster; to make the placed ones so is the caller's.
    """
    problem = problems.problem(cluster, gang, levels)
    missing = explaining.missing(problem)
    if missing is not None:
        return missing
    trial = Trial(cluster)
    try:
        return _Attempt(problem, trial, steps_max).run()
    finally:
        trial.back()


class _Attempt:
    """One look for a place for one gang."""

    def __init__(self, problem: Problem, trial: Trial, steps_max: int) -> None:
        self._problem = problem
        self._trial = trial
        self._cluster = trial.cluster
        self._needed = problems.items(problem, is_whole=False)
        self._whole = problems.items(problem, is_whole=True)
        self._options = frozenset(self._preferences())
        self._budget = Budget(steps_max)
        self._spare = Budget(steps_max)
        """For all but the one question whether the gang fits at all."""

        self._is_proven = True

    def run(self) -> Placement | Refusal:
        """Look."""
        if self._solve(self._whole, self._options):
            return self._placement()
        met = self._met()
        if met is None:
            return explaining.refusal(
                self._trial, self._problem, self._needed, is_proven=self._is_proven
            )
        if self._whole != self._needed:
            self._add_surplus(met)
        return self._placement()

    # Preferences

    def _preferences(self) -> Iterator[int]:
        """Yield the scopes whose preference may be met or not, as far as is known."""
        groups = {item.group for item in self._whole}
        for index, scope in enumerate(self._problem.scopes):
            if (
                scope.preferred
                and scope.preferred != scope.required
                and not groups.isdisjoint(scope.groups)
                and len(scope.preferred_homes) <= 1
                and None not in scope.preferred_homes
            ):
                yield index

    def _met(self) -> frozenset[int] | None:
        """Put what is needed, and return which preferences that meets; None where it has no place.

        As many as can be met, and of as many the broader.
        """
        is_tried = self._whole == self._needed
        if not is_tried and self._solve(self._needed, self._options):
            return self._options
        if not self._options or not self._solve(self._needed, _NONE):
            return None
        ordered = sorted(self._options)
        if len(ordered) <= SUBSETS_MAX_PREFERENCES:
            for size in range(len(ordered) - 1, 0, -1):
                for chosen in itertools.combinations(ordered, size):
                    if self._solve(self._needed, frozenset(chosen)):
                        return frozenset(chosen)
            return _NONE
        met = _NONE
        for option in ordered:
            if self._solve(self._needed, met | {option}):
                met |= {option}
        return met

    # One try

    def _solve(self, items: Sequence[Item], met: frozenset[int]) -> bool:
        """Put items on machines instead of what was there; or leave that where they do not fit."""
        before = tuple(self._trial.takes)
        self._trial.back()
        if self._put(items, met):
            return True
        for take in before:
            self._trial.take(*take)
        return False

    def _put(self, items: Sequence[Item], met: frozenset[int]) -> bool:
        bounds = problems.bounds(self._problem, items, met)
        if bounds is None or self._is_hopeless(items, bounds):
            return False
        is_question = not met and items == self._needed
        budget = self._budget if is_question else self._spare
        attempt = Greedy(self._trial, budget, self._loose(met), self._used(met))
        if attempt.solve(items, bounds):
            if self._holds(bounds):
                return True
            self._trial.back()
        elif budget.left >= 0 and len(items) == 1 and len(items[0].shapes) == 1:
            return False
        try:
            takes = exact.solve(self._cluster, items, bounds, budget)
        except exact.OutOfSteps:
            self._is_proven = self._is_proven and not is_question
            return False
        for take in takes or ():
            self._trial.take(*take)
        return takes is not None

    def _is_hopeless(self, items: Sequence[Item], bounds: Sequence[Bound]) -> bool:
        """Whether the pods of some shape alone have nowhere to go together."""
        everywhere = Bound(groups=frozenset(item.group for item in items), path=(), home=())
        for bound in (everywhere, *bounds):
            asked: dict[PodShape, int] = {}
            for item in items:
                if item.group in bound.groups and len(item.shapes) == 1:
                    shape = item.shapes[0][0]
                    asked[shape] = asked.get(shape, 0) + item.wanted
            for shape, count in asked.items():
                pool = self._cluster.pool(shape, bound.path)
                if bound.home is None:
                    most = pool.totals.largest
                else:
                    most = pool.room(bound.home).total
                if most < count:
                    return True
        return False

    def _loose(self, met: frozenset[int]) -> dict[int, Path]:
        """Return for groups the broadest path that they should share and need not."""
        found: dict[int, Path] = {}
        for index, scope in enumerate(self._problem.scopes):
            if scope.preferred and index not in met and scope.preferred != scope.required:
                for group in scope.groups:
                    found.setdefault(group, scope.preferred)
        return found

    def _used(self, met: frozenset[int]) -> dict[Path, set[Domain]]:
        """Return where bound pods are, for the paths that should be shared and need not."""
        found: dict[Path, set[Domain]] = {}
        for index, scope in enumerate(self._problem.scopes):
            if scope.preferred and index not in met:
                domains = {domain for domain in scope.preferred_homes if domain is not None}
                found.setdefault(scope.preferred, set()).update(domains)
        return found

    def _holds(self, bounds: Sequence[Bound]) -> bool:
        """Whether bounds that overlap without nesting are met; greedy looks at one of them only."""
        for bound in bounds:
            if any(_crosses(bound.groups, other.groups) for other in bounds):
                nodes = {take.node for take in self._trial.takes if take.group in bound.groups}
                found = {surplus.domain_of(self._cluster, node, bound.path) for node in nodes}
                if len(found) > 1 or (bound.home is not None and found - {bound.home}):
                    return False
        return True

    def _add_surplus(self, met: frozenset[int]) -> None:
        """Put pods beyond what is needed too: close by, else wherever they may go."""
        if met != self._options and self._solve(self._whole, met):
            return
        left = surplus.waiting(self._problem, self._trial.takes)
        for close in (met, _NONE) if met else (_NONE,):
            left = surplus.add(
                self._trial, self._problem, left, close, self._loose(close), self._used(close)
            )

    # The outcome

    def _placement(self) -> Placement:
        problem = self._problem
        bindings, left = self._bindings()
        shortfall = explaining.shortfall(self._trial, problem) if left else None
        return Placement(
            gang=problem.gang.ref,
            bindings=tuple(sorted(bindings)),
            left=tuple(sorted(pod.ref for pod in left)),
            shortfall=shortfall,
            score=self._score(),
            homes=tuple(sorted(self._homes())),
        )

    def _bindings(self) -> tuple[list[Binding], list[PodDemand]]:
        """Return which pod goes where, and which goes nowhere."""
        waiting: dict[tuple[int, PodShape], list[PodDemand]] = {}
        for group, pods in enumerate(self._problem.candidates):
            for pod in reversed(pods):
                waiting.setdefault((group, pod.shape), []).append(pod)
        bindings = []
        for take in self._trial.takes:
            queue = waiting[take.group, take.shape]
            for _ in range(take.pods):
                pod = queue.pop()
                bindings.append(Binding(pod=pod.ref, uid=pod.uid, node=take.node))
        return bindings, [pod for queue in waiting.values() for pod in queue]

    def _score(self) -> int:
        """Return which share of the preferences is met by all pods that have a place."""
        asked = met = 0
        for scope in self._problem.scopes:
            if scope.preferred:
                asked += 1
                homes = surplus.homes(self._trial, scope, scope.preferred)
                met += len(homes) <= 1 and None not in homes
        return FULL_SCORE * met // asked if asked else FULL_SCORE

    def _homes(self) -> Iterator[Home]:
        for scope in self._problem.scopes:
            for path in {scope.required, scope.preferred} - {()}:
                homes = surplus.homes(self._trial, scope, path)
                domain = next(iter(homes), None)
                if len(homes) == 1 and domain is not None:
                    yield Home(scope=scope.name, key=path[-1], value=domain[-1])


def _crosses(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether sets overlap and neither holds the other."""
    return bool(one & other) and not one <= other and not other <= one
