"""Shelves: names by a number that changes, so that the right one is found without a search.

Equal numbers are taken in the order of names, so nothing depends on what came first.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K", str, tuple[str, ...])

_SLACK = 16
"""How many stale names a heap may hold beyond its live ones before it is made anew."""


class Shelf(Generic[K]):
    """Names, each with a number above 0."""

    __slots__ = ("_counts", "_heaps", "_numbers", "_where")

    def __init__(self) -> None:
        self._where: dict[K, int] = {}
        self._heaps: dict[int, list[K]] = {}
        self._counts: dict[int, int] = {}
        self._numbers: list[int] = []

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._where)

    def put(self, name: K, number: int) -> None:
        """Give a name a number; with 0 it is taken off."""
        where, counts = self._where, self._counts
        old = where.get(name, 0)
        if old == number:
            return
        if old:
            counts[old] -= 1
            if not counts[old]:
                del counts[old], self._heaps[old]
                del self._numbers[bisect.bisect_left(self._numbers, old)]
        if not number:
            del where[name]
            return
        where[name] = number
        if number not in counts:
            counts[number] = 0
            self._heaps[number] = []
            bisect.insort(self._numbers, number)
        counts[number] += 1
        heap = self._heaps[number]
        heapq.heappush(heap, name)
        if len(heap) > 2 * counts[number] + _SLACK:
            self._heaps[number] = sorted({kept for kept in heap if where.get(kept) == number})

    def number(self, name: K) -> int:
        """Return the number of a name; 0 where it is not there."""
        return self._where.get(name, 0)

    def names(self) -> Iterator[K]:
        """Yield all names, in no order."""
        return iter(self._where)

    @property
    def largest(self) -> int:
        """The largest number there is; 0 where there is none."""
        return self._numbers[-1] if self._numbers else 0

    def tightest(self, least: int) -> int:
        """Return the smallest number that is at least so much; 0 where there is none."""
        at = bisect.bisect_left(self._numbers, least)
        return self._numbers[at] if at < len(self._numbers) else 0

    def first(self, number: int) -> K:
        """Return the first name of a number that some name has."""
        heap, where = self._heaps[number], self._where
        while where.get(heap[0]) != number:
            heapq.heappop(heap)
        return heap[0]

    def ascending(self, least: int) -> Iterator[K]:
        """Yield the names of numbers of at least so much, smallest number first."""
        at = bisect.bisect_left(self._numbers, least)
        for number in self._numbers[at:]:
            yield from sorted(
                {name for name in self._heaps[number] if self._where.get(name) == number}
            )


class Room:
    """A domain as pods of one shape see it: how many of them its machines have room for."""

    __slots__ = ("shelves", "total")

    def __init__(self) -> None:
        self.total = 0
        self.shelves: dict[tuple[int, ...], Shelf[str]] = {}

    def put(self, name: str, tier: tuple[int, ...], count: int) -> None:
        """Say how many pods a machine of a tier has room for."""
        shelf = self.shelves.get(tier)
        if shelf is None:
            shelf = self.shelves[tier] = Shelf()
        self.total += count - shelf.number(name)
        shelf.put(name, count)

    def names(self) -> Iterator[str]:
        """Yield the machines with room, in no order."""
        for shelf in self.shelves.values():
            yield from shelf.names()

    def choose(self, wanted: int) -> tuple[str, int]:
        """Return the next machine to fill, and how many pods it has room for.

        Of the best tier that has room: the tightest that takes all, else the roomiest. So pods
        of one shape get the fewest machines of a tier there can be. There must be room.
        """
        for tier in sorted(self.shelves):
            shelf = self.shelves[tier]
            if shelf.largest:
                count = shelf.tightest(wanted) or shelf.largest
                return shelf.first(count), count
        raise LookupError("there is no room")

    def worst_tier(self, wanted: int) -> tuple[int, ...]:
        """Return the worst tier that must be used for so many pods; the room must be enough."""
        if len(self.shelves) == 1:
            return next(iter(self.shelves))
        left = wanted
        for tier in sorted(self.shelves):
            shelf = self.shelves[tier]
            left -= sum(map(shelf.number, shelf.names())) if left > 0 else 0
            if left <= 0:
                return tier
        return ()
