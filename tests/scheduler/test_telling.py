"""What people see of gangs that wait and of pods that were placed, and how little that writes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.meta.documents import Json, string_at, value_at
from spinney.meta.references import Precondition, Ref
from spinney.scheduler.settings import Settings
from spinney.testing.networks import Network
from tests.scheduler.worlds import (
    GPU,
    MINUTE,
    SCHEDULER,
    Site,
    at_site,
    clique,
    conditions_of,
    node,
    pod,
    set_of,
)

PAIR = set_of("it", [clique("a", 2), clique("b", 2)])


def pod_condition(site: Site, name: str) -> dict[str, Json]:
    document = site.document(groupkinds.POD, name)
    for each in conditions_of(document):
        if isinstance(each, dict) and each["type"] == "PodScheduled":
            return each
    return {}


def test_a_pod_outside_any_gang_is_a_gang_of_one() -> None:
    """What kubectl users know: the condition, FailedScheduling, Successfully assigned."""

    async def story(site: Site) -> None:
        async with site.scheduling() as scheduler:
            await site.create(pod("alone"))
            await site.until(lambda: bool(site.events("FailedScheduling")), MINUTE)
            await scheduler.settle()
            told = pod_condition(site, "alone")
            assert (told["status"], told["reason"]) == ("False", "Unschedulable")
            message = told["message"]
            assert isinstance(message, str)
            assert message
            (event,) = site.events("FailedScheduling")
            assert (event["type"], event["message"]) == ("Warning", message)
            await site.join(node("one"))
            await site.until(lambda: site.places() == {"alone": "one"}, MINUTE)
            await scheduler.settle()
            assert pod_condition(site, "alone")["status"] == "True"
            (event,) = site.events("Scheduled")
            assert event["type"] == "Normal"
            assert event["message"] == "Successfully assigned default/alone to one"

    at_site(story)


@pytest.mark.rule("1.10")
def test_a_gang_says_why_it_waits_and_its_pods_name_it() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=3))
        async with site.running() as manager, site.scheduling() as scheduler:
            await site.apply(PAIR)
            await site.until(lambda: site.condition("it-0", "Schedulable")[0] == "False", MINUTE)
            await manager.settle()
            await scheduler.settle()
            _, reason, message = site.condition("it-0", "Schedulable")
            assert reason == "Unschedulable"
            assert GPU in message
            for name in ("it-0-a-0", "it-0-b-1"):
                told = pod_condition(site, name)
                assert (told["status"], told["reason"]) == ("False", "Unschedulable")
                assert "PodGang default/it-0" in str(told["message"])
            (event,) = site.events("FailedScheduling")
            assert event["message"] == message
            assert string_at(event, ["involvedObject", "kind"]) == "PodGang"
            await site.join(node("two", gpus=1))
            await site.until(lambda: site.all_placed(4), MINUTE)
            await scheduler.settle()
            (event,) = site.events("Scheduled")
            assert event["message"] == "Successfully assigned 4 pods to one, two"

    at_site(story)


def test_a_gang_that_is_placed_at_once_costs_its_binds_a_score_and_an_event() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        async with site.running(), site.scheduling(writer=network) as scheduler:
            await site.apply(PAIR)
            await site.until(lambda: site.all_placed(4), MINUTE)
            await scheduler.settle()
            await site.rest()
        verbs = sorted(verb for verb, _ in network.calls)
        assert verbs == ["bind"] * 4 + ["create", "patch"]
        assert site.condition("it-0", "Schedulable") == ("", "", "")

    at_site(story)


def test_a_sentence_that_changes_often_is_written_seldom() -> None:
    """Twenty nodes join within a second, none of which helps."""

    async def story(site: Site) -> None:
        async with site.running(), site.scheduling() as scheduler:
            await site.apply(PAIR)
            await site.until(lambda: site.condition("it-0", "Schedulable")[0] == "False", MINUTE)
            await scheduler.settle()
            first = site.gang("it-0").status
            ref = Ref(kind=groupkinds.GANG, namespace="default", name="it-0")
            versions = set()
            for index in range(20):
                await site.join(node(f"n{index}", gpus=0))
                await site.clock.sleep(timedelta(milliseconds=50))
                stored = site.store.get(ref)
                assert stored is not None
                versions.add(stored.version)
            await scheduler.settle()
            assert len(versions) <= 2
            last = site.gang("it-0").status
            assert last != first
            assert "20" in site.condition("it-0", "Schedulable")[2]
            (event,) = site.events("FailedScheduling")
            assert value_at(event, ["count"]) in (2, 3)

    at_site(story)


def test_what_is_told_outlives_the_scheduler_and_is_set_right_by_the_next() -> None:
    async def story(site: Site) -> None:
        async with site.running() as manager:
            async with site.scheduling() as scheduler:
                await site.apply(PAIR)
                await site.until(
                    lambda: site.condition("it-0", "Schedulable")[0] == "False", MINUTE
                )
                await scheduler.settle()
                await manager.settle()
            version = site.store.version
            async with site.scheduling() as scheduler:
                await scheduler.settle()
                await site.rest()
                assert site.store.version == version, "the same is not told again"
            await site.join(node("one"))
            async with site.scheduling() as scheduler:
                await site.until(lambda: site.all_placed(4), MINUTE)
                await scheduler.settle()
            assert site.condition("it-0", "Schedulable")[0] == "True"

    at_site(story)


def test_pods_beyond_what_is_needed_wait_alone_and_say_so() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=3))
        async with site.running() as manager, site.scheduling() as scheduler:
            await site.apply(set_of("it", [clique("a", 5, least=2)]))
            await site.until(lambda: len(site.places()) == 3, MINUTE)
            await manager.settle()
            await scheduler.settle()
            status, reason, message = site.condition("it-0", "Schedulable")
            assert (status, reason) == ("True", "SurplusUnschedulable")
            assert "2 more wait" in message
            assert site.condition("it-0", "Scheduled")[0] == "True"
            await site.join(node("two", gpus=1))
            await site.until(lambda: len(site.places()) == 4, MINUTE)
            await site.join(node("three", gpus=1))
            await site.until(lambda: site.all_placed(5), MINUTE)
            await manager.settle()
            await scheduler.settle()
            assert site.condition("it-0", "Schedulable")[:2] == ("True", "Placed")

    at_site(story)


def test_only_pods_of_its_own_name_are_placed_where_names_are_given() -> None:
    """As on a cluster, where others place pods too: theirs take up room all the same."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=2))
        settings = Settings(scheduler_names=frozenset({"spinney-scheduler"}))
        async with site.scheduling(settings=settings) as scheduler:
            await site.create(
                pod("theirs"),
                pod("bound", schedulerName="other", nodeName="one"),
                pod("ours", schedulerName="spinney-scheduler"),
                pod("ours-too", schedulerName="spinney-scheduler"),
            )
            await site.until(lambda: "ours" in site.places(), MINUTE)
            await scheduler.settle()
            assert site.places() == {"bound": "one", "ours": "one"}
            assert pod_condition(site, "theirs") == {}

    at_site(story)


def test_a_gated_pod_is_left_alone() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one"))
        async with site.scheduling() as scheduler:
            await site.create(pod("held", schedulingGates=[{"name": "example.com/held"}]))
            await site.rest()
            await scheduler.settle()
            assert site.places() == {}
            assert pod_condition(site, "held")["reason"] == "SchedulingGated"
            ref = Ref(kind=groupkinds.POD, namespace="default", name="held")
            await site.user.patch(ref, {"spec": {"schedulingGates": None}}, Precondition())
            await site.until(lambda: site.places() == {"held": "one"}, MINUTE)

    at_site(story)


def test_what_is_measured() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        async with site.running(), site.scheduling() as scheduler:
            await site.apply(PAIR)
            await site.create(pod("more", gpus=8))
            await site.until(lambda: len(site.places("it")) == 4, MINUTE)
            await scheduler.settle()
            text = site.metrics.text().decode()
            binds = 'spinney_actions_total{action="bind",controller="scheduler",kind="Pod"'
            assert f'{binds},result="changed"}} 4.0' in text
            assert 'spinney_placements_total{result="placed"} 1.0' in text
            assert 'spinney_placements_total{result="refused"}' in text
            assert 'spinney_queue_keys{controller="scheduler",state="delayed"} 1.0' in text
            assert 'spinney_decide_seconds_count{controller="scheduler"}' in text

    at_site(story)
