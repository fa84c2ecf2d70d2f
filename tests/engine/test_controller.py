"""What wakes a key, when it rests, and how keys share the loop."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.actions import Decision
from spinney.engine.alarms import Alarm
from spinney.engine.backoff import Backoff
from spinney.engine.queue import Queue
from spinney.meta.errors import Terminal
from spinney.meta.references import Precondition
from spinney.testing import loop
from spinney.testing.clock import ManualClock, VirtualClock
from spinney.testing.entropy import SeededEntropy
from tests.engine.worlds import (
    child,
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


def test_a_child_that_changes_its_owner_wakes_both_and_one_that_goes_wakes_the_last():
    looks = []

    def note(reader, key, now):
        looks.append(key.name)
        return observe(reader, key, now)

    async def story(bench):
        for name in ("one", "two", "three"):
            await bench.user.create(clique(name))
        async with bench.running(toy(observe=note, decide=lambda _: Decision())) as manager:
            one = bench.document(clique_ref("one"))["metadata"]["uid"]
            two = bench.document(clique_ref("two"))["metadata"]["uid"]

            async def owned_by(name, uid):
                owners = [
                    {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": name}
                    | {"uid": uid}
                ]
                looks.clear()
                change = {"metadata": {"ownerReferences": owners}}
                await bench.user.patch(child_ref("it"), change, Precondition())
                await manager.settle()

            await bench.user.create(child("it"))
            await owned_by("one", one)
            assert looks == ["one"]
            await owned_by("two", two)
            assert sorted(looks) == ["one", "two"]
            looks.clear()
            await bench.user.delete(
                child_ref("it"), Precondition(), grace_seconds=None, propagation="Background"
            )
            await manager.settle()
            assert looks == ["two"]

    in_world(story)


def test_an_object_that_is_gone_may_concern_others_than_it_did_while_it_was_there():
    from tests.engine.worlds import BY_OWNER

    looks = []

    def note(reader, key, now):
        looks.append(key.name)
        return observe(reader, key, now)

    async def story(bench):
        wake = type(BY_OWNER)(
            kind=BY_OWNER.kind,
            record=BY_OWNER.record,
            keys=lambda _: (),
            gone=lambda ref: [clique_ref(f"of-{ref.name}")],
        )
        await bench.user.create(clique("of-it"))
        async with bench.running(
            toy(observe=note, decide=lambda _: Decision(), wakes=(wake,))
        ) as manager:
            looks.clear()
            await bench.user.create(child("it"))
            await manager.settle()
            assert looks == []
            await bench.user.delete(
                child_ref("it"), Precondition(), grace_seconds=None, propagation="Background"
            )
            await manager.settle()
            assert looks == ["of-it"]

    in_world(story)


def test_objects_of_no_concern_are_not_looked_at():
    looks = []

    def note(reader, key, now):
        looks.append(key.name)
        return observe(reader, key, now)

    async def story(bench):
        for name in ("mine", "theirs"):
            await bench.user.create(clique(name))
        picky = msgspec.structs.replace(
            toy(observe=note, decide=lambda _: Decision()),
            is_of_concern=lambda _reader, ref: ref.name == "mine",
        )
        async with bench.running(picky) as manager:
            for name in ("mine", "theirs"):
                label = {"metadata": {"labels": {"turn": "1"}}}
                await bench.user.patch(clique_ref(name), label, Precondition())
            await manager.settle()
            assert set(looks) == {"mine"}

    in_world(story)


def test_a_wake_that_raises_keeps_no_other_from_waking(caplog):
    from tests.engine.worlds import BY_OWNER, owners_of

    def keys(each):
        if each.metadata.name == "odd":
            raise KeyError("a bug")
        return owners_of(each)

    async def story(bench):
        wake = type(BY_OWNER)(kind=BY_OWNER.kind, record=BY_OWNER.record, keys=keys)
        await bench.user.create(child("odd"))
        await bench.user.create(clique())
        async with bench.running(toy(wakes=(wake,))) as manager:
            await bench.user.patch(child_ref("odd"), {"data": {"a": "b"}}, Precondition())
            await bench.user.delete(
                child_ref("chat-0"), Precondition(), grace_seconds=None, propagation="Background"
            )
            await manager.settle()
            assert "chat-0" in bench.names()
        assert "whom an object concerns is not known" in caplog.text

    in_world(story)


def test_a_costly_key_takes_a_fifth_of_the_time_and_others_are_not_kept_waiting():
    """A look at `big` takes 20 ms of processor time, however often it is woken."""
    looks = {"big": 0, "small": 0}

    async def story(bench):
        spent = [timedelta()]

        def observe_slowly(reader, key, now):
            looks[key.name] += 1
            if key.name == "big":
                spent[0] += milliseconds(20)
            return observe(reader, key, now)

        elapsed = bench.clock.elapsed
        bench.clock.elapsed = lambda: elapsed() + spent[0]
        for name in looks:
            await bench.user.create(clique(name))
        async with bench.running(toy(observe=observe_slowly)) as manager:
            looks.update(big=0, small=0)
            for index in range(300):
                for name in looks:
                    label = {"metadata": {"labels": {"turn": str(index)}}}
                    await bench.user.patch(clique_ref(name), label, Precondition())
                await bench.clock.sleep(milliseconds(1))
            await manager.settle()
        assert looks["small"] == 300
        assert 3 <= looks["big"] <= 6, "once in 100 ms, and once at the end"

    in_world(story)


def test_what_somebody_must_mend_is_not_tried_hot_and_is_tried_at_once_when_woken():
    async def story(bench):
        looks = []

        def needs_topology(observation):
            looks.append(bench.clock.elapsed())
            if "racks" not in observation.clique.metadata.labels:
                raise Terminal("NoTopology", "no topology named racks: create one")
            return decide(observation)

        await bench.user.create(clique())
        async with bench.running(toy(decide=needs_topology)) as manager:
            await bench.clock.sleep(timedelta(hours=1))
            assert len(looks) < 20
            (condition,) = bench.document(clique_ref())["status"]["conditions"]
            assert condition["type"] == "Stalled"
            assert condition["reason"] == "NoTopology"
            assert condition["message"] == "no topology named racks: create one"
            (event,) = bench.events()
            assert (event["type"], event["reason"]) == ("Warning", "NoTopology")
            began = bench.clock.elapsed()
            label = {"metadata": {"labels": {"racks": "yes"}}}
            await bench.user.patch(clique_ref(), label, Precondition())
            await manager.settle()
            assert bench.clock.elapsed() - began <= seconds(1)
            assert bench.names() == ["chat-0"]
            assert not bench.document(clique_ref())["status"].get("conditions")

    in_world(story)


def test_an_intent_is_seen_stored_before_its_actions_come():
    async def story(bench):
        seen = []

        def intend_first(observation):
            status = observation.clique.status
            seen.append(status.was_available)
            if not status.was_available:
                return Decision(intent={"wasAvailable": True})
            made = decide(observation)
            return Decision(actions=made.actions, status={**made.status, "wasAvailable": True})

        await bench.user.create(clique())
        async with bench.running(toy(decide=intend_first)):
            assert bench.network.calls[:2] == [("status", "chat"), ("create", "chat-0")]
            assert seen[:2] == [False, True]

    in_world(story)


def test_a_namespace_with_many_keys_does_not_keep_another_waiting():
    order = []

    def note(reader, key, now):
        order.append(key.namespace)
        return observe(reader, key, now)

    async def story(bench):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "small"}}
        await bench.user.create(namespace)
        for index in range(50):
            await bench.user.create(clique(f"chat{index}"))
        for index in range(3):
            await bench.user.create(clique(f"chat{index}", namespace="small"))
        async with bench.running(toy(observe=note, decide=lambda _: Decision())):
            assert len(order) == 53
            assert order[:6].count("small") == 3

    in_world(story)


def test_a_queue_of_ten_thousand_keys_forgets_what_is_done():
    queue = Queue()
    for index in range(10_000):
        queue.add(clique_ref(f"chat{index}"), timedelta(), milliseconds(index))
    for index in range(10_000):
        queue.add(clique_ref(f"chat{index}"), timedelta(), milliseconds(index // 2))
    queue.validate()
    now = seconds(10)
    while (key := queue.take(now)) is not None:
        queue.finish(key, now, now + milliseconds(1))
    now += seconds(1)
    queue.add(clique_ref(), now)
    queue.finish(queue.take(now), now)
    assert [*queue.keys()] == []
    assert queue.next_due() is None


@pytest.mark.law
@given(st.integers(1, 10**6), st.integers(0, 1000))
def test_back_off_grows_to_its_longest_and_never_beyond(failures, seed):
    waits = Backoff(first=milliseconds(10), longest=seconds(60))
    delay = waits.delay(failures, SeededEntropy(seed))
    whole = min(seconds(60), milliseconds(10) * 2 ** min(failures - 1, 30))
    assert whole / 2 <= delay <= whole


def test_an_alarm_rings_once_at_the_last_time_it_was_set_to():
    async def story():
        clock, rung = VirtualClock(), []
        alarm = Alarm(clock, lambda: rung.append(clock.elapsed()))
        alarm.set(seconds(10))
        alarm.set(seconds(5))
        alarm.set(seconds(5))
        await clock.sleep(seconds(7))
        assert rung == [seconds(5)]
        alarm.set(seconds(9))
        alarm.set(None)
        await clock.sleep(seconds(60))
        assert rung == [seconds(5)]

    loop.run(story())


def test_an_alarm_goes_by_the_clock_it_is_given():
    async def story():
        clock, rung = ManualClock(), asyncio.Event()
        Alarm(clock, rung.set).set(seconds(3))
        await asyncio.sleep(0)
        clock.advance(seconds(2))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not rung.is_set()
        clock.advance(seconds(1))
        await rung.wait()

    asyncio.run(story())
