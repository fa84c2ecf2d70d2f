"""The queue of one controller: which key is looked at next, and when. No waiting, no clock.

Each key is in one state; a key that is not known is idle.

| state     | add, due now | add, due later       | take      | finish                         |
|-----------|--------------|----------------------|-----------|--------------------------------|
| idle      | ready        | delayed              |           |                                |
| resting   | delayed      | delayed              |           |                                |
| delayed   | ready        | delayed, the earlier |           |                                |
| ready     | ready        | ready                | under way |                                |
| under way | noted        | noted, the earlier   |           | ready, delayed, resting, idle  |

A key is in the queue once, however often it is added, and is looked at by one worker at a time:
what is added while it is under way comes after. A look makes up for all that was asked before it
began, timers too; so a key has one deadline, that of its last look.

Finishing may set a *floor*: however often the key is added, it is not due before. Costly keys rest
so, and keys whose writes the server refuses.

Keys take turns by namespace, and within a namespace in the order they became due. So a namespace
with ten thousand keys delays another by one key, and no key is overtaken twice by another.

The queue holds at most one entry a key: its size is bounded by the objects there are.
"""

from __future__ import annotations

import enum
import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable
from datetime import timedelta

from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import Ref

NO_TIME = timedelta()
_HEAP_SLACK = 64
"""How many outdated entries the heap may hold beside as many as are valid."""


class State(enum.Enum):
    """Where a key is; one that is idle is not in the queue."""

    RESTING = "resting"
    DELAYED = "delayed"
    READY = "ready"
    UNDER_WAY = "under way"


class _Entry:
    """What the queue knows of one key."""

    __slots__ = (
        "again",
        "by_timer",
        "due",
        "failures",
        "floor",
        "is_timer",
        "place",
        "since",
        "state",
    )

    def __init__(self) -> None:
        self.state = State.RESTING
        self.due = NO_TIME
        """Delayed: when it becomes ready."""

        self.place = 0
        """Delayed: which entry of the heap stands for it."""

        self.again: timedelta | None = None
        """Under way: when it is due once more; None if nobody asked."""

        self.floor = NO_TIME
        self.is_timer = False
        """Whether it is due again only because a look said when to look again."""

        self.by_timer = False
        """Under way: whether it was due only because of that."""

        self.failures = 0
        self.since = NO_TIME
        """Ready: since when."""


class QueueStatistics(Record):
    """How many keys are in which state."""

    ready: int = 0
    delayed: int = 0
    under_way: int = 0
    timers: int = 0
    """Of the delayed ones, those that wait for a deadline of their own and for nothing else."""

    failing: int = 0


class Queue:
    """De-duplicates and delays keys. Times are those of a clock's `elapsed`, passed in."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._entries: dict[Ref, _Entry] = {}
        self._ready: OrderedDict[str, deque[Ref]] = OrderedDict()
        self._ready_count = 0
        self._heap: list[tuple[timedelta, int, Ref]] = []
        self._delayed_count = 0
        self._timer_count = 0
        self._under_way_count = 0
        self._resting: deque[tuple[timedelta, Ref]] = deque()
        self._sequence = 0

    # Asking for a look

    def add(
        self, key: Ref, now: timedelta, delay: timedelta = NO_TIME, *, is_timer: bool = False
    ) -> None:
        """Have a key looked at, at once or after a delay; the earliest of all that ask wins."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        due = max(now + delay, entry.floor)
        if entry.state is State.READY:
            entry.is_timer = entry.is_timer and is_timer
            return
        if entry.state is State.UNDER_WAY:
            entry.is_timer = is_timer and (entry.again is None or entry.is_timer)
            entry.again = due if entry.again is None else min(entry.again, due)
            return
        if entry.state is State.DELAYED:
            self._uncount(entry)
            entry.is_timer = is_timer and entry.is_timer
            due = min(due, entry.due)
        else:
            entry.is_timer = is_timer
        self._place(key, entry, due, now)

    def take(self, now: timedelta) -> Ref | None:
        """Return the key whose turn it is, None where none is due; it is under way from now on."""
        self._ring(now)
        if not self._ready_count:
            return None
        namespace, keys = next(iter(self._ready.items()))
        key = keys.popleft()
        if keys:
            self._ready.move_to_end(namespace)
        else:
            del self._ready[namespace]
        self._ready_count -= 1
        self._under_way_count += 1
        entry = self._entries[key]
        entry.state, entry.again = State.UNDER_WAY, None
        entry.by_timer, entry.is_timer = entry.is_timer, False
        return key

    def waited(self, key: Ref, now: timedelta) -> timedelta:
        """Return how long a key that was just taken had been ready."""
        return now - self._entries[key].since

    def is_by_timer(self, key: Ref) -> bool:
        """Whether a key that was just taken was due only because a look had said when."""
        return self._entries[key].by_timer

    # Finishing one

    def finish(self, key: Ref, now: timedelta, floor: timedelta = NO_TIME) -> None:
        """Note that a look went well: its failures are forgotten. Not due again before `floor`."""
        entry = self._leave(key)
        entry.failures = 0
        self._settle(key, entry, now, floor)

    def fail(self, key: Ref) -> int:
        """Count a failure of a key under way; returns how many there were in a row."""
        entry = self._entries[key]
        assert entry.state is State.UNDER_WAY
        entry.failures += 1
        return entry.failures

    def retry(
        self,
        key: Ref,
        now: timedelta,
        delay: timedelta,
        floor: timedelta = NO_TIME,
        *,
        is_timer: bool = False,
    ) -> None:
        """Note that a look did not go well: look again after a delay, its failures remembered."""
        entry = self._leave(key)
        due = now + delay
        entry.is_timer = is_timer and (entry.again is None or entry.is_timer)
        entry.again = due if entry.again is None else min(entry.again, due)
        self._settle(key, entry, now, floor)

    def _leave(self, key: Ref) -> _Entry:
        entry = self._entries[key]
        assert entry.state is State.UNDER_WAY, f"{key} is {entry.state.value}, not under way"
        self._under_way_count -= 1
        return entry

    def _settle(self, key: Ref, entry: _Entry, now: timedelta, floor: timedelta) -> None:
        entry.floor = floor
        due, entry.again = entry.again, None
        if due is not None:
            self._place(key, entry, max(due, floor), now)
        elif floor > now:
            entry.state = State.RESTING
            self._resting.append((floor, key))
        else:
            del self._entries[key]
        self._wake_rested(now)

    def _wake_rested(self, now: timedelta) -> None:
        while self._resting and self._resting[0][0] <= now:
            _, key = self._resting.popleft()
            entry = self._entries.get(key)
            if entry is not None and entry.state is State.RESTING and entry.floor <= now:
                del self._entries[key]

    # Time

    def next_due(self) -> timedelta | None:
        """Return when the next delayed key becomes ready, None if none is delayed."""
        self._drop_outdated()
        return self._heap[0][0] if self._heap else None

    def _ring(self, now: timedelta) -> None:
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)
            if self._is_valid(item):
                due, _, key = item
                entry = self._entries[key]
                self._uncount(entry)
                self._make_ready(key, entry, due)

    def _place(self, key: Ref, entry: _Entry, due: timedelta, now: timedelta) -> None:
        if due <= now:
            self._make_ready(key, entry, now)
            return
        is_placed = entry.state is State.DELAYED and entry.due == due
        entry.state, entry.due = State.DELAYED, due
        self._delayed_count += 1
        self._timer_count += entry.is_timer
        if is_placed:
            return
        self._sequence += 1
        entry.place = self._sequence
        heapq.heappush(self._heap, (due, self._sequence, key))
        if len(self._heap) > 2 * self._delayed_count + _HEAP_SLACK:
            self._heap = [item for item in self._heap if self._is_valid(item)]
            heapq.heapify(self._heap)

    def _uncount(self, entry: _Entry) -> None:
        self._delayed_count -= 1
        self._timer_count -= entry.is_timer

    def _make_ready(self, key: Ref, entry: _Entry, since: timedelta) -> None:
        entry.state, entry.since = State.READY, since
        self._ready_count += 1
        self._ready.setdefault(key.namespace, deque()).append(key)

    def _is_valid(self, item: tuple[timedelta, int, Ref]) -> bool:
        _, place, key = item
        entry = self._entries.get(key)
        return entry is not None and entry.state is State.DELAYED and entry.place == place

    def _drop_outdated(self) -> None:
        while self._heap and not self._is_valid(self._heap[0]):
            heapq.heappop(self._heap)

    # Looking at it

    def __len__(self) -> int:
        """How many keys wait or are under way."""
        return self._ready_count + self._delayed_count + self._under_way_count

    def state(self, key: Ref) -> State | None:
        """Return where a key is, None if it is idle."""
        entry = self._entries.get(key)
        return None if entry is None else entry.state

    def keys(self) -> Iterable[Ref]:
        """Return all keys that are not idle."""
        return self._entries.keys()

    @property
    def ready_count(self) -> int:
        """How many keys could be taken now."""
        return self._ready_count

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done before a deadline or an event."""
        return (
            self._ready_count == self._under_way_count == 0
            and self._delayed_count == self._timer_count
        )

    def statistics(self) -> QueueStatistics:
        """Return how many keys are in which state."""
        return QueueStatistics(
            ready=self._ready_count,
            delayed=self._delayed_count,
            under_way=self._under_way_count,
            timers=self._timer_count,
            failing=sum(each.failures > 0 for each in self._entries.values()),
        )

    def validate(self) -> None:
        """Check every index against every other; raises InvariantViolation."""
        ready = [key for keys in self._ready.values() for key in keys]
        by_state = {
            state: [key for key, entry in self._entries.items() if entry.state is state]
            for state in State
        }
        heaped = {(due, key) for due, _, key in filter(self._is_valid, self._heap)}
        faults = [
            text
            for text, holds in (
                ("ready keys and those lined up differ", set(ready) == {*by_state[State.READY]}),
                ("a key is lined up twice", len(ready) == len(set(ready))),
                ("the count of ready keys is off", len(ready) == self._ready_count),
                ("a namespace without keys has a turn", all(self._ready.values())),
                (
                    "a key stands in line with another namespace",
                    all(
                        key.namespace == name for name, keys in self._ready.items() for key in keys
                    ),
                ),
                (
                    "a delayed key has no timer",
                    all((self._entries[key].due, key) in heaped for key in by_state[State.DELAYED]),
                ),
                (
                    "the count of delayed keys is off",
                    len(by_state[State.DELAYED]) == self._delayed_count,
                ),
                (
                    "the count of timers is off",
                    sum(self._entries[key].is_timer for key in by_state[State.DELAYED])
                    == self._timer_count,
                ),
                (
                    "the count of keys under way is off",
                    len(by_state[State.UNDER_WAY]) == self._under_way_count,
                ),
                (
                    "a resting key would never be forgotten",
                    {*by_state[State.RESTING]} <= {key for _, key in self._resting},
                ),
                (
                    "the heap grew",
                    len(self._heap) <= 2 * self._delayed_count + _HEAP_SLACK + 1
                    or not self._delayed_count,
                ),
                (
                    "a key is due again that is not under way",
                    all(
                        entry.again is None
                        for entry in self._entries.values()
                        if entry.state is not State.UNDER_WAY
                    ),
                ),
            )
            if not holds
        ]
        if faults:
            raise InvariantViolation(f"the queue contradicts itself: {'; '.join(faults)}")
