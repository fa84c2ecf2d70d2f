"""Gangs that make room for more important ones: whole, marked first, with their grace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.api.podgang import PodGang
from spinney.decisions import disruption
from spinney.meta.documents import string_at
from spinney.ports import Change
from spinney.scheduler.settings import Settings
from spinney.store.store import Event
from spinney.testing.lines import LineFaults
from tests.scheduler.worlds import (
    MINUTE,
    SCHEDULER,
    Dying,
    Site,
    at_site,
    clique,
    node,
    pod,
    priority_class,
    set_of,
)

GRACE = 5
LOW = set_of("low", [clique("a", 4, terminationGracePeriodSeconds=GRACE)])
LOWEST = set_of(
    "least", [clique("a", 4, terminationGracePeriodSeconds=GRACE)], priority_class="least"
)
HIGH = set_of("vip", [clique("a", 4)], priority_class="high")


async def full(site: Site) -> None:
    """Have two gangs fill two nodes; a more important one will come."""
    await site.create(priority_class("high", 1_000), priority_class("least", -5))
    await site.join(node("one", gpus=4), node("two", gpus=4))
    site.agents.ends_within = timedelta(seconds=2)
    await site.apply(LOW)
    await site.apply(LOWEST)
    await site.until(lambda: site.all_placed(8), MINUTE)


class MarkedFirst:
    """Tells when a pod is to be deleted whose gang is not marked."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.deleted_count = 0
        self.faults: list[str] = []

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            name = event.stored.ref.name
            is_going = string_at(event.stored.document(), ["metadata", "deletionTimestamp"])
            was_going = event.before is not None and string_at(
                event.before.document(), ["metadata", "deletionTimestamp"]
            )
            if event.change is Change.MODIFIED and is_going and not was_going:
                self.deleted_count += 1
                if not disruption.is_marked(self._site.gang(name.rpartition("-a-")[0])):
                    self.faults.append(name)

    def cut(self) -> None:
        raise AssertionError("something was missed")


@pytest.mark.rule("2.8")
def test_the_least_important_gang_goes_whole_and_waits_again() -> None:
    async def story(site: Site) -> None:
        async with site.running() as manager, site.scheduling() as scheduler:
            await full(site)
            before = site.places("least")
            await site.apply(HIGH)
            await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
            await manager.settle()
            await scheduler.settle()
            assert set(site.places("vip").values()) == set(before.values())
            assert len(site.places("low")) == 4
            assert site.places("least") == {}
            assert site.condition("least-0", "DisruptionTarget")[:2] == (
                "False",
                "PreemptionByScheduler",
            )
            assert site.condition("least-0", "Scheduled")[0] == "False"
            assert site.condition("least-0", "Schedulable")[:2] == ("False", "Unschedulable")
            assert site.gang("least-0").status.phase == "Pending"
            assert site.condition("vip-0", "Schedulable")[:2] == ("True", "Placed")
            (event,) = site.events("Preempted")
            assert "PodGang default/vip-0, of priority 1000" in str(event["message"])
            text = site.metrics.text().decode()
            assert 'spinney_disruptions_total{reason="PreemptionByScheduler"} 1.0' in text
            await site.join(node("three", gpus=4))
            await site.until(lambda: site.all_placed(12), MINUTE)

    at_site(story)


@pytest.mark.rule("2.8")
def test_no_pod_of_a_victim_is_deleted_before_its_gang_is_marked() -> None:
    async def story(site: Site) -> None:
        watch = MarkedFirst(site)
        async with site.running(), site.scheduling():
            await full(site)
            site.store.attach(groupkinds.POD, site.store.version, watch)
            await site.apply(HIGH)
            await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
            assert watch.deleted_count == 4
            assert watch.faults == []

    at_site(story)


@pytest.mark.rule("2.8")
@pytest.mark.rule("7.1")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("writes", range(8))
def test_a_preemption_that_is_cut_short_is_finished(writes: int, *, after: bool) -> None:
    """Killed at the n-th write of the preemption; the next one leaves no victim in part."""

    async def story(site: Site) -> None:
        async with site.running() as manager:
            async with site.scheduling() as scheduler:
                await full(site)
                await manager.settle()
                await scheduler.settle()
            writer = Dying(site.world.writer(SCHEDULER), writes, after=after)
            await site.apply(HIGH)
            async with site.scheduling(writer=writer):  # type: ignore[arg-type]
                await site.until(lambda: writer.is_dead or len(site.places("vip")) == 4, MINUTE)
            async with site.scheduling() as scheduler:
                await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
                await manager.settle()
                await scheduler.settle()
                assert site.partial_gangs() == []
                assert len(site.places()) == 8
                assert not any(
                    disruption.is_marked(stored.view(PodGang))
                    for stored in site.store.list(groupkinds.GANG)
                )

    at_site(story)


def test_the_place_is_kept_until_the_victims_are_gone() -> None:
    """A smaller pod of the victim's importance comes while it goes: it gets none of the room."""

    async def story(site: Site) -> None:
        async with site.running(), site.scheduling() as scheduler:
            await full(site)
            site.agents.ends_within = timedelta(seconds=4)
            await site.apply(HIGH)
            await site.until(
                lambda: site.condition("least-0", "DisruptionTarget")[0] == "True", MINUTE
            )
            await site.create(pod("thief"))
            await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
            assert "thief" not in site.places()
            await scheduler.settle()
            assert "thief" in site.waiting()

    at_site(story)


def test_nobody_else_goes_while_room_is_being_made() -> None:
    """Many changes come while the victim ends slowly; there is one victim all the same."""

    async def story(site: Site) -> None:
        async with site.running(), site.scheduling():
            await full(site)
            site.agents.ends_within = timedelta(seconds=4)
            await site.apply(HIGH)
            for index in range(20):
                await site.clock.sleep(timedelta(milliseconds=100))
                await site.join(node(f"small{index}", gpus=0))
            await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
            assert len(site.places("low")) == 4
            assert site.condition("low-0", "DisruptionTarget") == ("", "", "")

    at_site(story)


def test_a_more_important_gang_takes_the_place_that_was_made_for_another() -> None:
    async def story(site: Site) -> None:
        async with site.running() as manager, site.scheduling() as scheduler:
            await full(site)
            await site.create(priority_class("top", 2_000))
            site.agents.ends_within = timedelta(seconds=4)
            await site.apply(HIGH)
            await site.until(
                lambda: site.condition("least-0", "DisruptionTarget")[0] == "True", MINUTE
            )
            await site.apply(set_of("top", [clique("a", 8)], priority_class="top"))
            await site.until(lambda: len(site.places("top")) == 8, MINUTE)
            await manager.settle()
            await scheduler.settle()
            assert site.places("vip") == {}
            assert site.condition("vip-0", "DisruptionTarget") == ("", "", "")

    at_site(story)


def test_a_pod_outside_any_gang_goes_for_a_more_important_gang() -> None:
    async def story(site: Site) -> None:
        await site.create(priority_class("high", 1_000))
        await site.join(node("one", gpus=4))
        async with site.running(), site.scheduling():
            await site.create(pod("x", gpus=3), pod("y", gpus=1))
            await site.until(lambda: len(site.places()) == 2, MINUTE)
            await site.apply(HIGH)
            await site.until(lambda: len(site.places("vip")) == 4, MINUTE)
            assert len(site.events("Preempted")) == 2

    at_site(story)


@pytest.mark.parametrize("how", ["policy", "setting", "equal"])
def test_nobody_goes_for_a_gang_that_may_not_preempt(how: str) -> None:
    async def story(site: Site) -> None:
        policy = "Never" if how == "policy" else "PreemptLowerPriority"
        settings = Settings(preempts=how != "setting")
        await site.create(priority_class("top", 0 if how == "equal" else 9, policy))
        await site.join(node("one", gpus=4))
        async with site.running() as manager, site.scheduling(settings=settings) as scheduler:
            await site.apply(LOW)
            await site.until(lambda: site.all_placed(4), MINUTE)
            await site.apply(set_of("top", [clique("a", 4)], priority_class="top"))
            await site.rest()
            await manager.settle()
            await scheduler.settle()
            assert len(site.places("low")) == 4
            assert site.condition("top-0", "Schedulable")[1] == "Unschedulable"

    at_site(story)


@pytest.mark.parametrize("seed", range(4))
def test_gangs_are_preempted_over_a_bad_line(seed: int) -> None:
    """Old views never take more victims than one, nor leave one in part, nor overfill a node."""

    async def story(site: Site) -> None:
        async with site.running(), site.lagging_scheduling(LineFaults()):
            await full(site)
            await site.apply(HIGH)
            await site.until(lambda: len(site.places("vip")) == 4, timedelta(minutes=10))
            await site.rest()
            assert site.partial_gangs() == []
            assert len(site.places("low")) == 4

    at_site(story, seed)
