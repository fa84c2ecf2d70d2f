"""The queue does what a list would that is sorted anew for every question."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spinney.engine.queue import Queue, State
from spinney.meta.references import GroupKind, Ref

KIND = GroupKind(group="", kind="Pod")
KEYS = [Ref(kind=KIND, namespace=space, name=name) for space in "ab" for name in "xy"]
keys = st.sampled_from(KEYS)
milliseconds = st.integers(0, 20).map(lambda count: timedelta(milliseconds=count))


class Model:
    """Each key with its state, and nothing that is derived from them."""

    def __init__(self):
        self.delayed = []  # (due, when placed, key), sorted when asked
        self.ready = []  # keys in line
        self.turns = []  # namespaces in line
        self.under_way = {}  # key: due again, or None
        self.floors = {}
        self.timers = set()
        self.failures = {}
        self.clock = 0

    def add(self, key, now, delay, is_timer):
        due = max(now + delay, self.floors.get(key, timedelta()))
        if key in self.ready:
            return
        if key in self.under_way:
            had = self.under_way[key]
            self._mark(key, is_timer and (had is None or key in self.timers))
            self.under_way[key] = due if had is None else min(due, had)
            return
        old = next((item for item in self.delayed if item[2] == key), None)
        self._mark(key, is_timer and (old is None or key in self.timers))
        if old is not None:
            if old[0] <= due and old[0] > now:
                return
            self.delayed.remove(old)
            due = min(due, old[0])
        self.place(key, due, now)

    def _mark(self, key, is_timer):
        self.timers.discard(key)
        if is_timer:
            self.timers.add(key)

    def place(self, key, due, now):
        if due <= now:
            self.line_up(key)
        else:
            self.clock += 1
            self.delayed.append((due, self.clock, key))

    def line_up(self, key):
        self.ready.append(key)
        if key.namespace not in self.turns:
            self.turns.append(key.namespace)

    def take(self, now):
        for item in sorted(self.delayed):
            if item[0] <= now:
                self.delayed.remove(item)
                self.line_up(item[2])
        if not self.ready:
            return None
        turn = self.turns.pop(0)
        key = next(each for each in self.ready if each.namespace == turn)
        self.ready.remove(key)
        if any(each.namespace == turn for each in self.ready):
            self.turns.append(turn)
        self.under_way[key] = None
        self.timers.discard(key)
        return key

    def leave(self, key, now, floor, again):
        self.floors[key] = floor
        del self.under_way[key]
        if again is not None:
            self.place(key, max(again, floor), now)
        elif floor <= now:
            self.floors.pop(key)

    def finish(self, key, now, floor):
        self.failures.pop(key, None)
        self.leave(key, now, floor, self.under_way[key])

    def retry(self, key, now, delay, floor, is_timer):
        had = self.under_way[key]
        self._mark(key, is_timer and (had is None or key in self.timers))
        self.leave(key, now, floor, now + delay if had is None else min(had, now + delay))


class QueueMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.queue = Queue()
        self.model = Model()
        self.now = timedelta()

    @rule(by=milliseconds)
    def time_passes(self, by):
        self.now += by

    @rule(key=keys, delay=milliseconds, is_timer=st.booleans())
    def add(self, key, delay, is_timer):
        self.queue.add(key, self.now, delay, is_timer=is_timer)
        self.model.add(key, self.now, delay, is_timer)

    @rule()
    def take(self):
        assert self.queue.take(self.now) == self.model.take(self.now)

    @precondition(lambda self: self.model.under_way)
    @rule(data=st.data(), rest=milliseconds)
    def finish(self, data, rest):
        key = data.draw(st.sampled_from(sorted(self.model.under_way)))
        self.queue.finish(key, self.now, self.now + rest)
        self.model.finish(key, self.now, self.now + rest)

    @precondition(lambda self: self.model.under_way)
    @rule(data=st.data(), delay=milliseconds, rest=milliseconds, is_timer=st.booleans())
    def retry(self, data, delay, rest, is_timer):
        key = data.draw(st.sampled_from(sorted(self.model.under_way)))
        self.model.failures[key] = self.model.failures.get(key, 0) + 1
        assert self.queue.fail(key) == self.model.failures[key]
        self.queue.retry(key, self.now, delay, self.now + rest, is_timer=is_timer)
        self.model.retry(key, self.now, delay, self.now + rest, is_timer)

    @invariant()
    def agree(self):
        self.queue.validate()
        due = min((item[0] for item in self.model.delayed), default=None)
        assert self.queue.next_due() == due
        statistics = self.queue.statistics()
        assert statistics.ready == len(self.model.ready)
        assert statistics.delayed == len(self.model.delayed)
        assert statistics.under_way == len(self.model.under_way)
        delayed = {item[2] for item in self.model.delayed}
        assert statistics.timers == len(delayed & self.model.timers)
        for key in KEYS:
            found = self.queue.state(key)
            assert (found is State.READY) == (key in self.model.ready)
            assert (found is State.DELAYED) == (key in delayed)
            assert (found is State.UNDER_WAY) == (key in self.model.under_way)


QueueMachine.TestCase.settings = settings(settings.default, stateful_step_count=60)
TestQueue = pytest.mark.law(QueueMachine.TestCase)


def at(count):
    return timedelta(milliseconds=count)


def test_of_all_that_ask_while_a_key_is_under_way_the_earliest_wins():
    queue, key = Queue(), KEYS[0]
    queue.add(key, at(0))
    assert queue.take(at(0)) == key
    queue.add(key, at(0), at(5))
    queue.add(key, at(0), at(9))
    queue.add(key, at(1), at(7))
    queue.finish(key, at(2))
    assert queue.next_due() == at(5)


def test_a_look_makes_up_for_the_timers_set_before_it():
    queue, key = Queue(), KEYS[0]
    queue.add(key, at(0), at(100), is_timer=True)
    queue.add(key, at(1))
    assert queue.take(at(1)) == key
    queue.finish(key, at(2))
    assert queue.next_due() is None
    assert len(queue) == 0
