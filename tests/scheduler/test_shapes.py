"""Sets of every shape on real nodes: too small by one pod, nothing runs; then large enough."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from spinney.meta.documents import Document
from spinney.meta.records import Record
from tests.scheduler.worlds import (
    MINUTE,
    TOPOLOGY,
    Site,
    at_site,
    clique,
    group,
    node,
    packed,
    set_of,
)


class Shape(Record):
    """A set, and how many pods of it are needed before any of a gang runs."""

    document: Document
    base_pods: int
    """How many pods its base gangs need, all set replicas together."""

    all_pods: int


def shape(name: str, level: str) -> Shape:
    """Return one of the six shapes, with a constraint at a level, or none."""
    at_set = packed("rack") if level == "set" else None
    at_group = packed("rack") if level == "group" else None
    at_clique = packed("rack") if level == "clique" else None

    def made(
        cliques: Sequence[Document], groups: Sequence[Document] = (), replicas: int = 1
    ) -> Document:
        return set_of("it", cliques, groups, replicas=replicas, pack=at_set)

    lead, work = clique("lead", 1, pack=at_clique), clique("work", 2, pack=at_clique)
    match name:
        case "cliques":
            both = (clique("a", 2, pack=at_clique), clique("b", 2, pack=at_clique))
            return Shape(document=made(both), base_pods=4, all_pods=4)
        case "group":
            one = (group("g", ["lead", "work"], 1, 1, at_group),)
            return Shape(document=made((lead, work), one), base_pods=3, all_pods=3)
        case "group above its minimum":
            more = (group("g", ["lead", "work"], 2, 1, at_group),)
            return Shape(document=made((lead, work), more), base_pods=3, all_pods=6)
        case "two groups and a router":
            two = (group("g", ["lead"], 1, 1, at_group), group("h", ["work"], 1, 1, at_group))
            cliques = (clique("router", 1, pack=at_clique), lead, work)
            return Shape(document=made(cliques, two), base_pods=4, all_pods=4)
        case "two set replicas":
            found = made((clique("a", 2, pack=at_clique),), replicas=2)
            return Shape(document=found, base_pods=4, all_pods=4)
        case "minimum below replicas":
            some = (clique("a", 4, least=2, pack=at_clique),)
            return Shape(document=made(some), base_pods=2, all_pods=4)
    raise AssertionError(name)


SHAPES = (
    "cliques",
    "group",
    "group above its minimum",
    "two groups and a router",
    "two set replicas",
    "minimum below replicas",
)


@pytest.mark.rule("2.1")
@pytest.mark.parametrize("level", ["no", "set", "group", "clique"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_gang_waits_whole_for_the_last_pod_and_then_runs_whole(name: str, level: str) -> None:
    """One GPU is missing: whatever cannot be whole stays away, entirely. Then there is room."""
    wanted = shape(name, level)
    lacks_for = "it-1" if name == "two set replicas" else "it-0"
    of_first = wanted.base_pods // 2 if name == "two set replicas" else 0

    async def story(site: Site) -> None:
        await site.create(TOPOLOGY)
        await site.join(node("small", gpus=wanted.base_pods - 1, rack="one"))
        async with site.running() as manager, site.scheduling() as scheduler:
            await site.apply(wanted.document)
            await site.until(lambda: len(site.waiting()) >= wanted.base_pods - of_first, MINUTE)
            await manager.settle()
            await scheduler.settle()
            await site.rest()
            assert len(site.places()) == of_first
            assert site.partial_gangs() == []
            assert site.condition(lacks_for, "Schedulable")[:2] == ("False", "Unschedulable")
            assert site.condition(lacks_for, "Scheduled")[0] == "False"
            version = site.store.version
            await site.rest()
            assert site.store.version == version, "at rest nothing is written"
            await site.join(node("large", gpus=wanted.all_pods, rack="two"))
            await site.until(lambda: site.all_placed(wanted.all_pods), timedelta(seconds=3))
            await site.until(lambda: site.is_available("it", replicas_of(wanted)), MINUTE)
            await manager.settle()
            await scheduler.settle()
            assert site.condition(lacks_for, "Schedulable")[:2] == ("True", "Placed")
            assert site.condition(lacks_for, "Scheduled")[0] == "True"
            assert site.gang(lacks_for).status.placement_score == 1
            version = site.store.version
            await site.rest()
            assert site.store.version == version, "at rest nothing is written"

    at_site(story)


def replicas_of(wanted: Shape) -> int:
    spec = wanted.document["spec"]
    assert isinstance(spec, dict)
    count = spec["replicas"]
    assert isinstance(count, int)
    return count
