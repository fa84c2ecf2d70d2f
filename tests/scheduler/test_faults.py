"""What goes wrong around the scheduler: it is killed, its view is old, its writes are refused."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from spinney.api import groupkinds
from spinney.meta.errors import Forbidden, TooManyRequests, Unavailable
from spinney.meta.references import Precondition, Ref
from spinney.testing.lines import PERFECT, LineFaults
from spinney.testing.networks import Network
from tests.scheduler.worlds import (
    MINUTE,
    SCHEDULER,
    TOPOLOGY,
    Dying,
    Site,
    at_site,
    clique,
    node,
    packed,
    pod,
    set_of,
)

PAIR = set_of("it", [clique("a", 2), clique("b", 2)])


def pod_ref(name: str) -> Ref:
    return Ref(kind=groupkinds.POD, namespace="default", name=name)


async def delete(site: Site, name: str) -> None:
    await site.user.delete(pod_ref(name), Precondition(), grace_seconds=0, propagation="Background")


@pytest.mark.rule("7.1")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("writes", range(9))
def test_a_scheduler_killed_between_two_writes_begins_again(writes: int, *, after: bool) -> None:
    """Killed three times at its n-th write, which went out or did not; the last one lives on."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=2), node("two", gpus=2))
        async with site.running():
            await site.apply(PAIR)
            for _ in range(3):
                writer = Dying(site.world.writer(SCHEDULER), writes, after=after)
                async with site.scheduling(writer=writer):  # type: ignore[arg-type]
                    await site.until(
                        lambda: writer.is_dead or site.all_placed(4),  # noqa: B023
                        MINUTE,
                    )
            async with site.scheduling() as scheduler:
                await site.until(lambda: site.all_placed(4), MINUTE)
                await scheduler.settle()
                assert site.partial_gangs() == []
                assert site.gang("it-0").status.placement_score == 1

    at_site(story)


@pytest.mark.rule("7.1")
def test_a_gang_bound_in_part_is_completed_before_anybody_else_is_placed() -> None:
    """Two of four are bound when the scheduler dies. Another, more important, waits already."""

    async def story(site: Site) -> None:
        await site.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 100,
                "preemptionPolicy": "Never",
            }
        )
        await site.join(node("one", gpus=4))
        async with site.running():
            await site.apply(PAIR)
            writer = Dying(site.world.writer(SCHEDULER), 3)
            async with site.scheduling(writer=writer):  # type: ignore[arg-type]
                await site.until(lambda: len(site.places()) == 2, MINUTE)
            assert site.partial_gangs() == ["it-0"]
            await site.create(pod("urgent", priorityClassName="high"))
            async with site.scheduling() as scheduler:
                await site.until(lambda: len(site.places("it")) == 4, timedelta(seconds=1))
                await scheduler.settle()
                assert "urgent" not in site.places()

    at_site(story)


@pytest.mark.rule("7.1")
def test_a_gang_bound_in_part_that_cannot_be_completed_is_taken_back_whole() -> None:
    """While nobody schedules, a stranger takes the room; then no half of the gang stays."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        async with site.running():
            await site.apply(PAIR)
            writer = Dying(site.world.writer(SCHEDULER), 3)
            async with site.scheduling(writer=writer):  # type: ignore[arg-type]
                await site.until(lambda: len(site.places()) == 2, MINUTE)
            await site.create(pod("stranger", gpus=2, nodeName="one"))
            async with site.scheduling() as scheduler:
                await site.until(lambda: site.places() == {"stranger": "one"}, MINUTE)
                await site.rest()
                await scheduler.settle()
                assert site.places() == {"stranger": "one"}
                assert site.condition("it-0", "DisruptionTarget")[:2] == ("False", "PartialGang")
                assert site.condition("it-0", "Schedulable")[:2] == ("False", "Unschedulable")
                assert len(site.events("PartialGangRemoved")) == 1
                await delete(site, "stranger")
                await site.until(lambda: site.all_placed(4), MINUTE)

    at_site(story)


def test_a_gang_that_was_whole_and_lost_a_pod_is_not_taken_back() -> None:
    """Whether what is left may go on is for gang termination to say."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        async with site.running() as manager, site.scheduling() as scheduler:
            await site.apply(PAIR)
            await site.until(lambda: site.all_placed(4), MINUTE)
            await manager.settle()
            site.agents.starts_within = timedelta(seconds=1)
            await site.create(pod("stranger", nodeName="one"))
            await delete(site, "it-0-a-0")
            await site.until(lambda: site.waiting() == ["it-0-a-0"], MINUTE)
            await site.rest()
            await scheduler.settle()
            assert len(site.places("it")) == 3
            assert site.condition("it-0", "Schedulable")[0] == "False"

    # The stranger overfills the node on purpose: it asked nobody.
    async def told(site: Site) -> None:
        await story(site)
        site.guard.faults.clear()

    at_site(told)


def test_a_pod_that_is_replaced_while_it_is_being_bound_is_bound_anew() -> None:
    async def story(site: Site) -> None:
        await site.create(TOPOLOGY)
        await site.join(node("one", gpus=4, rack="a"), node("two", gpus=4, rack="b"))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        late = timedelta(milliseconds=100)
        network.latency = lambda verb, name: (
            late if (verb, name) == ("bind", "it-0-a-1") else timedelta()
        )
        async with site.running(), site.scheduling(writer=network):
            await site.apply(set_of("it", [clique("a", 2), clique("b", 2)], pack=packed("rack")))
            await site.until(lambda: len(site.places()) == 3, MINUTE)
            await delete(site, "it-0-a-1")
            await site.until(lambda: site.all_placed(4), MINUTE)
            assert len(set(site.places().values())) == 1

    at_site(story)


@pytest.mark.parametrize(
    "error",
    [Unavailable("planted"), TooManyRequests("planted", retry_after_seconds=1), TimeoutError()],
    ids=["unavailable", "too many", "no answer"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_bind_whose_answer_is_bad_is_sent_again(error: Exception, when: str) -> None:
    """Twice for every pod; whether the write took or not, nobody else gets the place."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        failed: dict[str, int] = {}

        def fail(verb: str, name: str) -> BaseException | None:
            if verb != "bind" or failed.get(name, 0) >= 2:
                return None
            failed[name] = failed.get(name, 0) + 1
            return error

        setattr(network, when, fail)
        async with site.running(), site.scheduling(writer=network) as scheduler:
            await site.apply(PAIR)
            await site.until(lambda: bool(failed), MINUTE)
            await site.create(pod("other"))
            await site.until(lambda: len(site.places("it")) == 4, MINUTE)
            await scheduler.settle()
            assert "other" not in site.places()

    at_site(story)


def test_a_gang_whose_binds_are_forbidden_holds_no_place() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        forbidden = True

        def fail(verb: str, name: str) -> BaseException | None:
            bad = forbidden and verb == "bind" and name.startswith("it-")
            return Forbidden("planted: not today") if bad else None

        network.before = fail
        async with site.running(), site.scheduling(writer=network):
            await site.apply(PAIR)
            await site.until(lambda: bool(site.waiting()), MINUTE)
            await site.create(pod("other", gpus=4))
            await site.until(lambda: "other" in site.places(), MINUTE)
            forbidden = False
            await delete(site, "other")
            await site.until(lambda: site.all_placed(4), MINUTE)

    at_site(story)


@pytest.mark.parametrize("seed", range(6))
def test_gangs_are_placed_over_a_bad_line(seed: int) -> None:
    """Lists and watches come late, are cut and told again: no node is ever overfull."""

    async def story(site: Site) -> None:
        await site.create(TOPOLOGY)
        nodes = [node(f"n{index}", gpus=4, rack=f"r{index % 2}") for index in range(4)]
        await site.join(*nodes)
        async with site.running(), site.lagging_scheduling(LineFaults()):
            for index in range(3):
                pack = packed("rack") if index % 2 else None
                await site.apply(
                    set_of(f"it{index}", [clique("a", 2), clique("b", 3, least=2)], pack=pack)
                )
            await site.until(lambda: site.all_placed(15), timedelta(minutes=10))
            assert site.partial_gangs() == []
            await delete(site, "it0-0-a-0")
            await site.until(lambda: site.all_placed(15), timedelta(minutes=10))

    at_site(story, seed)


def test_a_pod_is_bound_once_however_late_that_is_seen() -> None:
    """What was decided counts until it is seen; nobody decides it again meanwhile."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4), node("two", gpus=4))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        late = msgspec.structs.replace(PERFECT, late_most=timedelta(seconds=2))
        async with site.running(), site.lagging_scheduling(late, writer=network):
            await site.apply(PAIR)
            await site.until(lambda: site.all_placed(4), MINUTE)
            await site.rest()
        binds = [name for verb, name in network.calls if verb == "bind"]
        assert len(binds) == len(set(binds)) == 4

    at_site(story)


def test_two_schedulers_for_a_moment_bind_no_pod_twice() -> None:
    """Preconditions guard pods. What a node has left only leadership guards; here all fits."""

    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4), node("two", gpus=4))
        async with site.running(), site.scheduling(), site.lagging_scheduling():
            await site.apply(PAIR)
            await site.until(lambda: site.all_placed(4), MINUTE)
            await site.rest()
            assert site.partial_gangs() == []

    at_site(story)


def test_a_scheduler_that_ends_with_a_bug_says_so() -> None:
    async def story(site: Site) -> None:
        await site.join(node("one", gpus=4))
        network = Network(site.world.writer(SCHEDULER), site.clock)
        network.before = lambda verb, _name: KeyError("planted") if verb == "bind" else None
        await site.create(pod("x"))
        with pytest.raises(KeyError, match="planted"):
            await site.scheduler(writer=network).run()

    at_site(story)
