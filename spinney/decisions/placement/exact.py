"""Exact: a search that finds a place for a gang wherever there is one, up to a limit of steps.

Machines that are equal in all that matters to the gang are one class, and what is searched is how
many machines are left in which class, never which ones. So 5,000 equal machines are as quick as
one, and a situation that was found hopeless once is known again, whatever way leads to it: by
equal pods in another order, or by another rack that has the same machines.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from spinney.decisions.placement import fitness, problems
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.fitness import Domain
from spinney.decisions.placement.problems import Bound, Item
from spinney.decisions.placement.spots import Spot
from spinney.decisions.placement.trials import Budget, Take

_CLASSES_A_STEP = 16
"""A step that looks at more classes of machines than this counts more than once."""

Class: TypeAlias = tuple[tuple[int, ...], int]
"""Machines that are equal to the gang: what is free, and which of its pods may come, as bits."""

State: TypeAlias = dict[Class, int]
"""How many machines are of each class."""


class OutOfSteps(Exception):
    """The search was given up at its limit; whether there is a place is not known."""


class _Choice(NamedTuple):
    """A pod of some group and shape, and where its bits are."""

    group: int
    shape: PodShape
    bit: int
    blocks: int
    """The bits of those that cannot come to a machine where it is, for their ports."""

    wants: tuple[int, ...]


class _Kind(NamedTuple):
    """Machines that are equal before domains are chosen, and which domains they are in."""

    names: list[str]
    free: tuple[int, ...]
    mask: int
    domains: tuple[Domain | None, ...]
    room: tuple[int, ...]
    """How many pods of each choice one machine has room for."""


class _Step(NamedTuple):
    """One pod put on a machine of a class, which thereby becomes another."""

    choice: int
    before: Class
    after: Class


def solve(
    cluster: Cluster, items: Sequence[Item], bounds: Sequence[Bound], budget: Budget
) -> tuple[Take, ...] | None:
    """Return where items go; None where there is no way. Raises OutOfSteps at the limit."""
    return _Search(cluster, items, bounds, budget).run()


class _Search:
    """One search for one gang."""

    def __init__(
        self, cluster: Cluster, items: Sequence[Item], bounds: Sequence[Bound], budget: Budget
    ) -> None:
        self._budget = budget
        self._bounds = sorted(bounds, key=lambda bound: (-len(bound.groups), len(bound.path)))
        self._items = sorted(
            items,
            key=lambda item: (max(problems.size(shape) for shape, _ in item.shapes), item.group),
            reverse=True,
        )
        names = sorted(
            {name for item in items for shape, _ in item.shapes for name, _ in shape.requests}
        )
        self._names = names
        self._choices: list[_Choice] = []
        self._choices_of: list[tuple[int, ...]] = []
        pairs = [(item.group, shape) for item in self._items for shape, _ in item.shapes]
        for number, (group, shape) in enumerate(pairs):
            asked = dict(shape.requests)
            blocks = sum(
                1 << other
                for other, (_, against) in enumerate(pairs)
                if any(a.meets(b) for a in shape.host_ports for b in against.host_ports)
            )
            wants = tuple(asked.get(name, 0) for name in names)
            self._choices.append(_Choice(group, shape, 1 << number, blocks, wants))
        at = 0
        for item in self._items:
            self._choices_of.append(tuple(range(at, at + len(item.shapes))))
            at += len(item.shapes)
        self._most = tuple(
            sum(
                item.wanted * max(self._choices[number].wants[column] for number in numbers)
                for item, numbers in zip(self._items, self._choices_of, strict=True)
            )
            for column in range(len(names))
        )
        self._failed: set[tuple[int, tuple[int, ...], int, frozenset[tuple[Class, int]]]] = set()
        self._kinds = self._kinds_of(cluster)

    def _kinds_of(self, cluster: Cluster) -> list[_Kind]:
        """Return the machines that would take some pod, those that are equal together."""
        shapes = {choice.shape: 0 for choice in self._choices}
        for choice in self._choices:
            shapes[choice.shape] |= choice.bit
        found: dict[tuple[tuple[int, ...], int, tuple[Domain | None, ...]], list[str]] = {}
        for spot in cluster.spots():
            mask = self._mask(spot, shapes)
            if not mask:
                continue
            assert spot.machine is not None, "spots of machines have one"
            free = tuple(
                max(0, min(spot.free.get(name, 0), most))
                for name, most in zip(self._names, self._most, strict=True)
            )
            domains = tuple(fitness.domain(spot.machine, bound.path) for bound in self._bounds)
            found.setdefault((free, mask, domains), []).append(spot.name)
        return [
            _Kind(names, free, mask, domains, tuple(self._room(free, mask)))
            for (free, mask, domains), names in sorted(found.items(), key=lambda pair: pair[1])
        ]

    def _mask(self, spot: Spot, shapes: dict[PodShape, int]) -> int:
        mask = 0
        for shape, bits in shapes.items():
            if (
                spot.machine is not None
                and spot.capacity(shape)
                and next(fitness.faults(shape, spot.machine), None) is None
            ):
                mask |= bits
        return mask

    def _room(self, free: tuple[int, ...], mask: int) -> Iterator[int]:
        for choice in self._choices:
            if not mask & choice.bit:
                yield 0
            elif choice.shape.host_ports:
                yield 1
            else:
                yield min(
                    left // want for left, want in zip(free, choice.wants, strict=True) if want
                )

    # Domains

    def run(self) -> tuple[Take, ...] | None:
        """Search; one domain is chosen for each bound, then machines for pods."""
        return self._choose_domain(0, [kind.mask for kind in self._kinds])

    def _choose_domain(self, at: int, masks: list[int]) -> tuple[Take, ...] | None:
        self._spend(len(masks))
        if not self._may_fit(masks):
            return None
        if at == len(self._bounds):
            return self._choose_machines(masks)
        bound = self._bounds[at]
        bits = sum(choice.bit for choice in self._choices if choice.group in bound.groups)
        if not bits:
            return self._choose_domain(at + 1, masks)
        domains = {
            domain
            for kind, mask in zip(self._kinds, masks, strict=True)
            if mask & bits and (domain := kind.domains[at]) is not None
        }
        for domain in sorted(domains):
            if not bound.allows(domain):
                continue
            inside = [
                mask if kind.domains[at] == domain else mask & ~bits
                for kind, mask in zip(self._kinds, masks, strict=True)
            ]
            found = self._choose_domain(at + 1, inside)
            if found is not None:
                return found
        return None

    def _may_fit(self, masks: list[int]) -> bool:
        """Whether each item by itself has room enough."""
        for item, numbers in zip(self._items, self._choices_of, strict=True):
            bits = sum(self._choices[number].bit for number in numbers)
            left = item.wanted
            for kind, mask in zip(self._kinds, masks, strict=True):
                if mask & bits:
                    left -= len(kind.names) * sum(
                        kind.room[number] for number in numbers if mask & self._choices[number].bit
                    )
                    if left <= 0:
                        break
            if left > 0:
                return False
        return True

    def _spend(self, classes: int) -> None:
        if not self._budget.spend(1 + classes // _CLASSES_A_STEP):
            raise OutOfSteps

    # Machines

    def _choose_machines(self, masks: list[int]) -> tuple[Take, ...] | None:
        names: dict[Class, list[str]] = {}
        for kind, mask in zip(self._kinds, masks, strict=True):
            if mask:
                names.setdefault((kind.free, mask), []).extend(kind.names)
        state = {found: len(members) for found, members in names.items()}
        steps = self._put_all(state) if self._has_enough(state) else None
        if steps is None:
            return None
        for members in names.values():
            heapq.heapify(members)
        takes = []
        for step in steps:
            name = heapq.heappop(names[step.before])
            heapq.heappush(names.setdefault(step.after, []), name)
            choice = self._choices[step.choice]
            takes.append(Take(choice.group, choice.shape, name, 1))
        return tuple(takes)

    def _has_enough(self, state: State) -> bool:
        """Whether there is enough of every resource, all machines taken together."""
        for column in range(len(self._names)):
            least = sum(
                item.wanted * min(self._choices[number].wants[column] for number in numbers)
                for item, numbers in zip(self._items, self._choices_of, strict=True)
            )
            if sum(free[column] * count for (free, _), count in state.items()) < least:
                return False
        return True

    def _put_all(self, state: State) -> list[_Step] | None:
        """Put pod after pod on machines; return how, or None where there is no way."""
        slots = []
        """For each pod: its choices, how many there are of each, whether it is its item's first."""
        for item, numbers in zip(self._items, self._choices_of, strict=True):
            counts = tuple(count for _, count in item.shapes)
            slots += [(numbers, counts, position == 0) for position in range(item.wanted)]
        if not slots:
            return []
        way: list[_Step] = []
        states = [state]
        lefts: list[tuple[tuple[int, ...], int]] = [(slots[0][1], 0)]
        options = [self._options(slots[0][0], *lefts[0], state)]
        while options:
            step = next(options[-1], None)
            if step is None:
                self._failed.add(_key(len(way), lefts[-1], states[-1]))
                options.pop()
                states.pop()
                lefts.pop()
                if way:
                    way.pop()
                continue
            self._spend(len(states[-1]))
            way.append(step)
            at = len(way)
            if at == len(slots):
                return way
            following = _moved(states[-1], step)
            if slots[at][2]:
                left = (slots[at][1], 0)
            else:
                offset = step.choice - slots[at - 1][0][0]
                rest = list(lefts[-1][0])
                rest[offset] -= 1
                left = (tuple(rest), offset)
            if _key(at, left, following) in self._failed:
                way.pop()
                continue
            states.append(following)
            lefts.append(left)
            options.append(self._options(slots[at][0], *left, following))
        return None

    def _options(
        self, numbers: tuple[int, ...], counts: tuple[int, ...], least: int, state: State
    ) -> Iterator[_Step]:
        """Yield what can be done with the next pod: equal pods and equal machines once each."""
        for offset in range(least, len(numbers)):
            if not counts[offset]:
                continue
            choice = self._choices[numbers[offset]]
            for found in sorted(state):
                free, mask = found
                if not mask & choice.bit:
                    continue
                left = tuple([a - b for a, b in zip(free, choice.wants, strict=True)])
                if min(left) >= 0:
                    yield _Step(numbers[offset], found, (left, mask & ~choice.blocks))


def _moved(state: State, step: _Step) -> State:
    following = dict(state)
    if following[step.before] == 1:
        del following[step.before]
    else:
        following[step.before] -= 1
    following[step.after] = following.get(step.after, 0) + 1
    return following


def _key(
    at: int, left: tuple[tuple[int, ...], int], state: State
) -> tuple[int, tuple[int, ...], int, frozenset[tuple[Class, int]]]:
    return at, left[0], left[1], frozenset(state.items())
