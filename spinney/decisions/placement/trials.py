"""Trials: pods put on machines to see whether the rest fits too, and taken back."""

from __future__ import annotations

from typing import NamedTuple

from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import PodShape


class Take(NamedTuple):
    """So many pods of a shape, of one group, on one machine."""

    group: int
    shape: PodShape
    node: str
    pods: int


class Trial:
    """What has been put where so far. All of it must be taken back in the end."""

    __slots__ = ("cluster", "takes")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.takes: list[Take] = []

    def take(self, group: int, shape: PodShape, node: str, count: int) -> None:
        """Put pods on a machine."""
        self.cluster.take(node, shape, count)
        self.takes.append(Take(group, shape, node, count))

    def back(self, mark: int = 0) -> None:
        """Take back all but the first so many takes."""
        while len(self.takes) > mark:
            taken = self.takes.pop()
            self.cluster.take(taken.node, taken.shape, -taken.pods)


class Budget:
    """How many steps of search are left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, steps: int) -> bool:
        """Spend steps; False where there are none left."""
        self.left -= steps
        return self.left >= 0
