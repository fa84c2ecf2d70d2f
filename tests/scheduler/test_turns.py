"""Whose turn it is: the more important first, then the older; and nobody holds the loop."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from spinney.api import groupkinds
from spinney.meta.references import Precondition, Ref
from spinney.scheduler import line
from spinney.scheduler.settings import Settings
from spinney.testing.clock import START
from tests.scheduler.worlds import (
    MINUTE,
    Site,
    at_site,
    clique,
    node,
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


def test_others_have_the_loop_while_many_are_placed() -> None:
    """Between two slices at most so many gangs are looked at, however fast that is."""

    async def story(site: Site) -> None:
        await site.join(*(node(f"n{index}", gpus=64) for index in range(4)))
        for index in range(256):
            await site.create(pod(f"p{index:03}"))
        scheduler = site.scheduler(settings=Settings(slice_looks_max=8, slice_changes_max=16))
        looks: list[int] = []
        look = scheduler._look

        def counted(whole: Ref) -> None:
            looks[-1] += 1
            look(whole)

        scheduler._look = counted  # type: ignore[method-assign]
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
    waiting.add(line.turn(first, 0, START, is_partial=False))
    waiting.add(line.turn(second, 5, START, is_partial=False))
    waiting.add(line.turn(third, 0, START - timedelta(seconds=1), is_partial=False))
    waiting.add(line.turn(first, 0, START, is_partial=True))
    assert len(waiting) == 3
    assert [waiting.take() for _ in range(4)] == [first, second, third, None]
