"""Sets of every small shape, and what must be there when one is made."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from spinney.meta.documents import Document, Json
from spinney.meta.records import Record

IMAGE: Json = [{"name": "main", "image": "registry.example/main:1"}]


class Clique(Record):
    """A clique of a small set."""

    name: str
    replicas: int
    min_available: int
    group: str = ""


class Group(Record):
    """A group of a small set."""

    name: str
    replicas: int
    min_available: int


class Small(Record):
    """A small set."""

    replicas: int
    cliques: tuple[Clique, ...]
    groups: tuple[Group, ...] = ()

    def document(self, name: str = "small") -> Document:
        """Return it as a user would write it."""
        template: Document = {
            "cliques": [
                {
                    "name": clique.name,
                    "spec": {
                        "roleName": clique.name,
                        "replicas": clique.replicas,
                        "minAvailable": clique.min_available,
                        "podSpec": {"containers": IMAGE},
                    },
                }
                for clique in self.cliques
            ]
        }
        if self.groups:
            template["podCliqueScalingGroups"] = [
                {
                    "name": group.name,
                    "replicas": group.replicas,
                    "minAvailable": group.min_available,
                    "cliqueNames": [c.name for c in self.cliques if c.group == group.name],
                }
                for group in self.groups
            ]
        return {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": self.replicas, "template": template},
        }

    def pods(self, name: str = "small") -> list[str]:
        """Return the names of all pods there must be, written out by hand."""
        found: list[str] = []
        for i in range(self.replicas):
            for clique in self.cliques:
                if not clique.group:
                    found += [f"{name}-{i}-{clique.name}-{k}" for k in range(clique.replicas)]
                    continue
                group = next(g for g in self.groups if g.name == clique.group)
                found += [
                    f"{name}-{i}-{group.name}-{j}-{clique.name}-{k}"
                    for j in range(group.replicas)
                    for k in range(clique.replicas)
                ]
        return sorted(found)

    def gangs(self, name: str = "small") -> list[str]:
        """Return the names of all gangs there must be."""
        found: list[str] = []
        for i in range(self.replicas):
            found.append(f"{name}-{i}")
            for group in self.groups:
                above = max(0, group.replicas - group.min_available)
                found += [f"{name}-{i}-{group.name}-{s}" for s in range(above)]
        return sorted(found)


def _counts(most: int) -> Iterator[tuple[int, int]]:
    for replicas in range(1, most + 1):
        for least in range(1, replicas + 1):
            yield replicas, least


def every_shape() -> Iterator[Small]:
    """Yield sets of up to three cliques, three pods each, two copies of a group, two replicas."""
    for replicas in (0, 1, 2):
        for one in _counts(3):
            yield Small(replicas=replicas, cliques=(_clique("a", one),))
    for first, second in itertools.product(_counts(2), repeat=2):
        yield Small(replicas=1, cliques=(_clique("a", first), _clique("b", second)))
    for copies in _counts(2):
        group = Group(name="g", replicas=copies[0], min_available=copies[1])
        for inner in _counts(3):
            yield Small(replicas=1, cliques=(_clique("a", inner, "g"),), groups=(group,))
        for inner, outer in itertools.product(_counts(2), repeat=2):
            members = (_clique("a", inner, "g"), _clique("b", outer))
            yield Small(replicas=2, cliques=members, groups=(group,))
            both = (_clique("a", inner, "g"), _clique("b", outer, "g"), _clique("c", (1, 1)))
            yield Small(replicas=1, cliques=both, groups=(group,))
        for other in _counts(2):
            two = (group, Group(name="h", replicas=other[0], min_available=other[1]))
            apart = (_clique("a", (2, 1), "g"), _clique("b", (1, 1), "h"))
            yield Small(replicas=1, cliques=apart, groups=two)


def _clique(name: str, counts: tuple[int, int], group: str = "") -> Clique:
    return Clique(name=name, replicas=counts[0], min_available=counts[1], group=group)
