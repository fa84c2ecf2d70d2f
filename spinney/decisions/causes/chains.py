"""The chain of causes: from an object that is not ready to what keeps it, and what would help.

A chain is told for any mixture of objects. It is never empty; each cause names one object and says
one thing; each that nothing below explains has a remedy; and where many objects are kept by the
same, one stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from spinney.api import groupkinds
from spinney.decisions.causes import gangs, pods, workloads
from spinney.decisions.causes.looks import Link, Look
from spinney.decisions.causes.scenes import Scene
from spinney.meta.records import Record
from spinney.meta.references import Ref

SIBLINGS_MOST = 8
"""How many causes side by side are told of; of the others only that there are some."""

CAUSES_MOST = 60
"""How many causes a chain has at most."""

_EXPLAINERS = {
    groupkinds.SET: workloads.explain_set,
    groupkinds.SCALING_GROUP: workloads.explain_group,
    groupkinds.CLIQUE: workloads.explain_clique,
    groupkinds.GANG: gangs.explain,
    groupkinds.POD: pods.explain,
    groupkinds.NODE: gangs.explain_node,
}


class Cause(Record):
    """One link of a chain; those it comes from follow it, one deeper."""

    about: Ref
    reason: str
    sentence: str
    depth: int = 0
    since: datetime | None = None
    remedy: str = ""
    container: str = ""
    alike: tuple[str, ...] = ()
    """Other objects of the kind of which the same is true."""

    left_out: int = 0
    """How many further causes right below this one are not told of."""

    is_repeated: bool = False
    """Whether it is told further up, with what it comes from and what would help."""

    is_root: bool = False
    is_well: bool = False


def look(scene: Scene) -> Look:
    """Return what tells of the objects of a scene."""
    return Look(scene, _EXPLAINERS, workloads.explain_other)


def chain(scene: Scene, about: Ref) -> tuple[Cause, ...]:
    """Return why an object is not ready; one cause that is well where it is."""
    return told(look(scene).at(about))


def told(link: Link) -> tuple[Cause, ...]:
    """Return a tree of links as a chain."""
    return tuple(_Telling().tell(link, 0, ()))


def roots(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Return the causes that nothing further down explains."""
    return tuple(cause for cause in causes if cause.is_root)


class _Telling:
    """Tells links in order, those of one sort side by side once, and nothing twice."""

    def __init__(self) -> None:
        self._told: set[tuple[Ref, str, str]] = set()
        self._sorts: dict[object, int] = {}
        self._sort_of: dict[tuple[Ref, str, str], int] = {}
        self._count = 1

    def tell(self, link: Link, depth: int, alike: tuple[str, ...]) -> Iterator[Cause]:
        """Yield a link and those below it."""
        is_repeated = self._is_told(link)
        self._told.add(_key(link))
        below = [] if is_repeated else self._folded(link.below)
        news = [each for each in below if not self._is_told(each[0])]
        below = news or below[:1]
        room = min(SIBLINGS_MOST, CAUSES_MOST - self._count)
        shown, rest = below[:room], below[room:]
        self._count += len(shown)
        yield Cause(
            about=link.about,
            reason=link.reason,
            sentence=link.sentence,
            depth=depth,
            since=link.since,
            remedy="" if is_repeated else link.remedy,
            container=link.container,
            alike=alike,
            left_out=sum(1 + len(others) for _, others in rest),
            is_repeated=is_repeated,
            is_root=not link.below and not is_repeated,
            is_well=link.is_well,
        )
        for first, others in shown:
            yield from self.tell(first, depth + 1, others)

    def _is_told(self, link: Link) -> bool:
        return _key(link) in self._told

    def _folded(self, links: Sequence[Link]) -> list[tuple[Link, tuple[str, ...]]]:
        """Return links side by side, with the names of those that one of them stands for."""
        groups: dict[int, list[Link]] = {}
        for link in links:
            groups.setdefault(self._sort(link), []).append(link)
        return [
            (first, tuple(link.about.name for link in others)) for first, *others in groups.values()
        ]

    def _sort(self, link: Link) -> int:
        """Return a number that links have in common that tell the same of different objects."""
        key = _key(link)
        if key not in self._sort_of:
            name = link.about.name
            sentence = link.sentence.replace(name, "@") if name else link.sentence
            below = frozenset(self._sort(each) for each in link.below)
            sort = (link.about.kind, link.reason, link.container, sentence, below)
            self._sort_of[key] = self._sorts.setdefault(sort, len(self._sorts))
        return self._sort_of[key]


def _key(link: Link) -> tuple[Ref, str, str]:
    return link.about, link.reason, link.sentence
