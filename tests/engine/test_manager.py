"""Controllers that run: the world becomes what was decided, and nothing happens at rest."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta

import pytest

from spinney.engine.queue import QueueStatistics
from spinney.meta.errors import Internal, InvariantViolation, TooManyRequests, Unavailable
from spinney.meta.references import Precondition
from tests.engine.worlds import (
    child_ref,
    clique,
    clique_ref,
    decide,
    in_world,
    milliseconds,
    observe,
    seconds,
    toy,
)


def test_what_is_declared_comes_to_be_and_follows_changes():
    async def story(bench):
        await bench.user.create(clique(replicas=2))
        async with bench.running(toy()) as manager:
            statistics = manager.statistics()
            assert (statistics.is_ready, statistics.is_leading) == (True, True)
            assert statistics.controllers["toy"] == QueueStatistics()
            assert bench.measured("spinney_leader") == 1
            assert bench.names() == ["chat-0", "chat-1"]
            assert bench.document(clique_ref())["status"]["replicas"] == 2
            await bench.user.patch(clique_ref(), {"spec": {"replicas": 3}}, Precondition())
            await manager.settle()
            assert bench.names() == ["chat-0", "chat-1", "chat-2"]
            await bench.user.patch(clique_ref(), {"spec": {"replicas": 1}}, Precondition())
            await manager.settle()
            assert bench.names() == ["chat-0"]
            assert bench.document(clique_ref())["status"]["replicas"] == 1

    in_world(story)


def test_a_child_deleted_by_hand_is_made_again_at_once():
    async def story(bench):
        await bench.user.create(clique(replicas=2))
        async with bench.running(toy()) as manager:
            began = bench.clock.elapsed()
            await bench.user.delete(
                child_ref("chat-1"), Precondition(), grace_seconds=None, propagation="Background"
            )
            await manager.settle()
            assert bench.names() == ["chat-0", "chat-1"]
            assert bench.clock.elapsed() - began < milliseconds(5)

    in_world(story)


def test_nothing_is_written_and_nothing_looked_at_at_rest():
    async def story(bench):
        for index in range(5):
            await bench.user.create(clique(f"chat{index}", replicas=3))
        async with bench.running(toy()):
            version = bench.store.version
            looks = bench.measured("spinney_reconciles_total")
            await bench.clock.sleep(seconds(3600))
            assert bench.store.version == version
            assert bench.measured("spinney_reconciles_total") == looks

    in_world(story)


def test_a_key_that_raises_does_not_touch_another():
    def fails_for_bad(reader, key, now):
        if key.name == "bad":
            raise KeyError("a bug in observe")
        return observe(reader, key, now)

    async def story(bench):
        manager = bench.manager(toy(observe=fails_for_bad))
        task = asyncio.create_task(manager.run())
        await bench.user.create(clique("bad"))
        await bench.user.create(clique("good"))
        await bench.clock.sleep(seconds(3600))
        assert bench.names() == ["good-0"]
        tries = bench.measured("spinney_reconciles_total", result="error")
        assert 60 < tries < 140, "tried with back-off, at most once a minute in the end"
        task.cancel()

    in_world(story)


def test_a_key_that_fails_is_looked_at_at_most_once_a_second_however_often_it_is_woken():
    def fails(_observation):
        raise KeyError("a bug in decide")

    async def story(bench):
        await bench.user.create(clique())
        task = asyncio.create_task(bench.manager(toy(decide=fails)).run())
        await bench.clock.sleep(seconds(60))
        before = bench.measured("spinney_reconciles_total", result="error")
        for index in range(1000):
            label = {"metadata": {"labels": {"turn": str(index)}}}
            await bench.user.patch(clique_ref(), label, Precondition())
            await bench.clock.sleep(milliseconds(10))
        assert bench.measured("spinney_reconciles_total", result="error") - before <= 12
        task.cancel()

    in_world(story)


def test_a_bug_of_ours_ends_the_manager_visibly():
    def breaks_a_rule(_observation):
        raise InvariantViolation("two base gangs for one replica")

    async def story(bench):
        manager = bench.manager(toy(), toy(decide=breaks_a_rule, name="broken"))
        await bench.user.create(clique())
        task = asyncio.create_task(manager.run())
        with pytest.raises(InvariantViolation, match="two base gangs"):
            await manager.settle()
        with pytest.raises(InvariantViolation, match="two base gangs"):
            await task
        assert not manager.ready
        left = {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()}}
        assert left <= {"store-rest"}

    in_world(story)


def test_the_server_is_left_alone_for_as_long_as_it_asks():
    async def story(bench):
        refused_at = []

        def refuse(verb, _name):
            if verb == "create" and len(refused_at) < 3:
                refused_at.append(bench.clock.elapsed())
                return TooManyRequests("slow down", retry_after_seconds=7)
            return None

        bench.network.before = refuse
        await bench.user.create(clique(replicas=1))
        async with bench.running(toy()):
            assert bench.names() == ["chat-0"]
        gaps = [after - before for before, after in itertools.pairwise(refused_at)]
        assert all(seconds(7) <= gap < seconds(8) for gap in gaps)
        assert len(gaps) == 2

    in_world(story)


@pytest.mark.parametrize("error", [Unavailable("gone fishing"), Internal("oh"), TimeoutError()])
def test_what_may_go_away_by_itself_is_retried_with_back_off(error):
    async def story(bench):
        failing = [True]
        bench.network.before = lambda _verb, _name: error if failing[0] else None
        await bench.user.create(clique(replicas=2))
        task = asyncio.create_task(bench.manager(toy()).run())
        await bench.clock.sleep(seconds(600))
        tries = bench.measured("spinney_retries_total", why="later")
        assert 10 < tries < 40
        failing[0] = False
        await bench.clock.sleep(seconds(61))
        assert bench.names() == ["chat-0", "chat-1"]
        task.cancel()

    in_world(story)


@pytest.mark.rule("7.3")
def test_a_deadline_wakes_a_key_once_and_the_next_look_sets_it_anew():
    looks = []

    def deadline(observation):
        looks.append(observation.now)
        decision = decide(observation)
        left = looks[0] + seconds(100) - observation.now
        due = {"wake_after": left} if left > seconds(0) else {}
        return type(decision)(actions=decision.actions, status=decision.status, **due)

    async def story(bench):
        await bench.user.create(clique())
        async with bench.running(toy(decide=deadline)):
            count = len(looks)
            await bench.clock.sleep(seconds(99))
            assert len(looks) == count
            await bench.clock.sleep(seconds(3600))
            assert len(looks) == count + 1
            assert looks[-1] - looks[0] == seconds(100)
            assert bench.measured("spinney_wakeups_total", by="timer") == 1

    in_world(story)


@pytest.mark.rule("7.1")
def test_killed_between_any_two_writes_and_started_again_it_ends_the_same():
    """The process dies after its nth write, for every n; another one takes over."""

    async def story(bench, writes):
        await bench.user.create(clique("one", replicas=3))
        await bench.user.create(clique("two", replicas=2))
        died = asyncio.Event()

        def die(_verb, _name):
            if len(bench.network.calls) > writes:
                died.set()
                return Unavailable("dead")
            return None

        bench.network.after = die
        first = asyncio.create_task(bench.manager(toy(workers=2)).run())
        dying = asyncio.create_task(died.wait())
        resting = asyncio.create_task(bench.clock.sleep(seconds(1)))
        await asyncio.wait([dying, resting], return_when=asyncio.FIRST_COMPLETED)
        for task in (first, dying, resting):
            task.cancel()
        await asyncio.gather(first, dying, resting, return_exceptions=True)
        bench.network.after = lambda _verb, _name: None
        async with bench.running(toy()):
            assert bench.names() == ["one-0", "one-1", "one-2", "two-0", "two-1"]
            assert bench.document(clique_ref("one"))["status"]["replicas"] == 3
            assert bench.document(clique_ref("two"))["status"]["replicas"] == 2

    for writes in range(10):
        in_world(lambda bench, writes=writes: story(bench, writes))


def test_a_stop_finishes_what_is_under_way_and_takes_nothing_more():
    async def story(bench):
        bench.network.latency = lambda _verb, _name: milliseconds(100)
        await bench.user.create(clique("one", replicas=1))
        manager = bench.manager(toy(workers=1))
        task = asyncio.create_task(manager.run())
        await bench.clock.sleep(milliseconds(50))
        await bench.user.create(clique("two", replicas=1))
        manager.stop()
        await task
        assert bench.names() == ["one-0"]
        assert bench.network.in_flight == 0
        assert not manager.ready

    in_world(story)


def test_it_is_ready_once_every_key_was_looked_at():
    async def story(bench):
        for index in range(3):
            await bench.user.create(clique(f"chat{index}"))
        bench.network.latency = lambda _verb, _name: seconds(1)
        manager = bench.manager(toy(workers=1))
        assert not manager.ready
        task = asyncio.create_task(manager.run())
        await bench.clock.sleep(milliseconds(2500))
        assert not manager.ready
        await manager.settle()
        assert manager.ready
        task.cancel()

    in_world(story)


def test_two_controllers_of_one_name_are_refused():
    async def story(bench):
        with pytest.raises(InvariantViolation, match="share a name: toy, toy"):
            bench.manager(toy(), toy())

    in_world(story)


def test_a_stop_before_the_caches_are_filled_ends_it():
    async def story(bench):
        manager = bench.manager(toy(), wait_synced=asyncio.Event().wait)
        task = asyncio.create_task(manager.run())
        await bench.clock.sleep(seconds(1))
        assert not manager.ready
        manager.stop()
        await task
        assert bench.network.calls == []

    in_world(story)


def test_what_fails_while_the_caches_are_filled_is_raised():
    async def fail():
        raise InvariantViolation("two kinds are read as one record")

    async def story(bench):
        with pytest.raises(InvariantViolation, match="two kinds"):
            await bench.manager(toy(), wait_synced=fail).run()

    in_world(story)


def test_a_write_that_is_never_answered_holds_no_key_for_ever():
    async def story(bench):
        hangs = [True]
        bench.network.latency = lambda verb, _name: (
            timedelta(days=1) if hangs[0] and verb == "create" else timedelta()
        )
        await bench.user.create(clique())
        task = asyncio.create_task(bench.manager(toy()).run())
        await bench.clock.sleep(seconds(29))
        assert bench.network.in_flight == 1
        hangs[0] = False
        await bench.clock.sleep(seconds(2))
        assert bench.names() == ["chat-0"]
        assert bench.measured("spinney_retries_total", why="later") == 1
        task.cancel()

    in_world(story)
