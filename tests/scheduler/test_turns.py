"""Whose turn it is: the more important first, then the older; and nobody holds the loop."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

from spinney.api import groupkinds
from spinney.decisions.placement import queueing
from spinney.decisions.placement.demands import BoundPod, GangDemand, GroupDemand
from spinney.meta.references import Precondition, Ref
from spinney.scheduler import line
from spinney.scheduler.settings import Settings
from spinney.testing.clock import START
from tests.scheduler.worlds import (
    MINUTE,
    TOPOLOGY,
    Site,
    at_site,
    clique,
    node,
    packed,
    pod,
    priority_class,
    set_of,
)


async def created_at_once(site: Site) -> None:
    """Create a low set, a high one, and an even older low one, all too large for what is there."""
    await site.create(priority_class("high", 1_000, "Never"))
    await site.apply(set_of("old", [clique("a", 4)]))
    await site.clock.sleep(timedelta(seconds=2))
    await site.apply(set_of("new", [clique("a", 4)]))
    await site.clock.sleep(timedelta(seconds=2))
    await site.apply(set_of("vip", [clique("a", 4)], priority_class="high"))


def test_the_more_important_goes_first_then_the_older() -> None:
    async def story(site: Site) -> None:
        async with site.running() as manager, site.scheduling() as scheduler:
            await created_at_once(site)
            await site.until(lambda: len(site.waiting()) == 12, MINUTE)
            await manager.settle()
            await scheduler.settle()
            for index, name in enumerate(("vip", "old", "new")):
                await site.join(node(f"n{index}", gpus=4))
                await site.until(lambda: len(site.places()) == 4 * index + 4, MINUTE)  # noqa: B023
                assert len(site.places(name)) == 4

    at_site(story)


def test_of_two_that_wait_the_one_that_fits_is_not_held_up_by_one_that_never_will() -> None:
    """No node is ever large enough for the first: nothing can be kept free for it."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        async with site.scheduling() as scheduler:
            await site.create(pod("never", gpus=100))
            await site.clock.sleep(timedelta(seconds=2))
            await site.create(pod("fits", gpus=4))
            await site.until(lambda: site.places() == {"fits": "one"}, MINUTE)
            await scheduler.settle()
            assert site.waiting() == ["never"]

    at_site(story)


def test_room_that_comes_free_goes_to_who_waits() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        async with site.running(), site.scheduling():
            await site.create(pod("first", gpus=4))
            await site.until(lambda: "first" in site.places(), MINUTE)
            await site.apply(set_of("it", [clique("a", 4)]))
            await site.until(lambda: len(site.waiting()) == 4, MINUTE)
            ref = Ref(kind=groupkinds.POD, namespace="default", name="first")
            await site.user.delete(ref, Precondition(), grace_seconds=5, propagation="Background")
            await site.until(lambda: len(site.places("it")) == 4, MINUTE)

    at_site(story)


async def keep_small_ones_coming(site: Site) -> None:
    """A pod of two GPUs every two seconds, each of which runs for seven."""

    async def end(name: str) -> None:
        await site.until(lambda: name in site.places(), timedelta(minutes=10))
        await site.clock.sleep(timedelta(seconds=7))
        ref = Ref(kind=groupkinds.POD, namespace="default", name=name)
        await site.user.delete(ref, Precondition(), grace_seconds=0, propagation="Background")

    async with asyncio.TaskGroup() as group:
        for index in range(1_000):
            await site.create(pod(f"small-{index}", gpus=2))
            group.create_task(end(f"small-{index}"))
            await site.clock.sleep(timedelta(seconds=2))


def test_a_large_gang_is_not_starved_by_small_ones() -> None:
    """Small pods would fill every gap for ever; room is kept until it is enough."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4), node("two", gpus=4))
        async with site.running(), site.scheduling():
            coming = asyncio.create_task(keep_small_ones_coming(site))
            await site.until(lambda: len(site.places()) >= 3, MINUTE)
            await site.apply(set_of("large", [clique("a", 8)]))
            await site.until(lambda: len(site.places("large")) == 8, MINUTE)
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    at_site(story)


def test_who_fits_beside_the_room_that_is_kept_is_placed() -> None:
    """The large gang waits for one rack; another rack has room for the small one, at once."""

    async def story(site: Site) -> None:
        await site.create(TOPOLOGY)
        await site.join(node("one", gpus=4, rack="a"), node("two", gpus=2, rack="b"))
        async with site.running() as manager, site.scheduling() as scheduler:
            await site.create(pod("first", gpus=3))
            await site.until(lambda: "first" in site.places(), MINUTE)
            assert site.places() == {"first": "one"}
            await site.apply(set_of("large", [clique("a", 4)], pack=packed("rack")))
            await site.until(lambda: len(site.waiting()) == 4, MINUTE)
            await manager.settle()
            await scheduler.settle()
            await site.clock.sleep(timedelta(seconds=2))
            await site.create(pod("beside", gpus=2), pod("into", gpus=1))
            await site.until(lambda: "beside" in site.places(), MINUTE)
            await scheduler.settle()
            assert site.places() == {"first": "one", "beside": "two"}
            ref = Ref(kind=groupkinds.POD, namespace="default", name="first")
            await site.user.delete(ref, Precondition(), grace_seconds=0, propagation="Background")
            await site.until(lambda: len(site.places("large")) == 4, MINUTE)

    at_site(story)


def test_others_have_the_loop_while_many_are_placed() -> None:
    """Between two slices at most so many gangs are looked at, however fast that is."""

    async def story(site: Site) -> None:
        await site.join(*(node(f"n{index}", gpus=64) for index in range(4)))
        for index in range(256):
            await site.create(pod(f"p{index:03}"))
        scheduler = site.scheduler(settings=Settings(slice_looks_max=8, slice_changes_max=16))
        looks: list[int] = []
        look = scheduler._placer.look

        def counted(turn: line.Turn) -> None:
            looks[-1] += 1
            look(turn)

        scheduler._placer.look = counted  # type: ignore[method-assign]
        running = asyncio.create_task(scheduler.run())
        while len(site.places()) < 256:
            looks.append(0)
            await asyncio.sleep(0)
        assert max(looks) <= 8
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    at_site(story)


def test_the_line_gives_each_gang_once_in_its_latest_turn() -> None:
    first, second, third = (
        Ref(kind=groupkinds.GANG, namespace="default", name=name) for name in "abc"
    )
    waiting = line.Line()

    def turn(whole: Ref, priority: int = 0, age: int = 0, *, is_partial: bool = False) -> line.Turn:
        since = START - timedelta(seconds=age)
        return line.turn(whole, priority, since, is_running=is_partial, is_partial=is_partial)

    waiting.add(turn(first))
    waiting.add(turn(second, 5))
    waiting.add(turn(third, age=1))
    waiting.add(turn(first, is_partial=True))
    assert len(waiting) == 3
    assert [waiting.take() for _ in range(4)] == [first, second, third, None]


def test_turns_are_those_of_the_queue_of_placement() -> None:
    """But for gangs in part, which go first here, the order is the one its laws are about."""
    found = []
    for index, (priority, age, is_running) in enumerate(
        itertools.product((0, 5), (0, 1), (False, True))
    ):
        ref = Ref(kind=groupkinds.GANG, namespace="default", name=f"g{index}")
        since = START - timedelta(seconds=age)
        bound = (BoundPod(ref=ref, uid="x", node="one"),) if is_running else ()
        group = GroupDemand(name="a", min_replicas=0, bound=bound)
        demand = GangDemand(
            ref=ref, uid=ref.name, groups=(group,), priority=priority, created=since
        )
        found.append(
            (demand, line.turn(ref, priority, since, is_running=is_running, is_partial=False))
        )
    ours = [demand.ref for demand, _ in sorted(found, key=lambda each: each[1])]
    assert ours == [demand.ref for demand in queueing.order(demand for demand, _ in found)]
