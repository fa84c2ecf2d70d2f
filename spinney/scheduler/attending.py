"""Attending: keys that are seen to one after the other, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from spinney.engine import backoff
from spinney.engine.alarms import Alarm
from spinney.engine.queue import NO_TIME, Queue
from spinney.engine.verdicts import Failure
from spinney.meta.references import Ref
from spinney.ports import Clock, Entropy

WORKERS = 16
"""How many keys are seen to at the same time."""


class Attendant:
    """Sees to keys that are added, each by one worker at a time; what fails is tried again."""

    def __init__(
        self,
        attend: Callable[[Ref], Awaitable[Failure | None]],
        clock: Clock,
        entropy: Entropy,
        *,
        rest: timedelta = NO_TIME,
        after: Callable[[], None],
    ) -> None:
        """See to keys by a function, each at most once in `rest`; `after` is called after each."""
        self._attend = attend
        self._clock = clock
        self._entropy = entropy
        self._rest = rest
        self._after = after
        self._queue = Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._crash: BaseException | None = None
        self._bell = asyncio.Event()
        self._alarm = Alarm(clock, self._bell.set)
        self._is_running = False

    def add(self, key: Ref, delay: timedelta = NO_TIME) -> None:
        """Have a key seen to."""
        if self._is_running:
            self._queue.add(key, self._clock.elapsed(), delay)
            self._bell.set()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is to be seen to, not even later."""
        return not self._tasks and self._queue.is_settled

    async def run(self) -> None:
        """See to what is added from now on, until cancelled; raises what a bug of ours raised."""
        self._queue = Queue()
        self._crash = None
        self._is_running = True
        try:
            while True:
                self._take_what_is_due()
                if self._crash is not None:
                    raise self._crash
                await self._bell.wait()
                self._bell.clear()
        finally:
            self._is_running = False
            self._alarm.stop()
            tasks = [*self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take_what_is_due(self) -> None:
        while len(self._tasks) < WORKERS:
            key = self._queue.take(self._clock.elapsed())
            if key is None:
                self._alarm.set(self._queue.next_due())
                return
            task = asyncio.create_task(self._see_to(key), name=f"scheduler: {key}")
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def _see_to(self, key: Ref) -> None:
        failure = await self._attend(key)
        now = self._clock.elapsed()
        if failure is None:
            self._queue.finish(key, now, now + self._rest)
            return
        delay = backoff.RETRY.delay(self._queue.fail(key), self._entropy)
        self._queue.retry(key, now, max(delay, failure.retry_after or NO_TIME))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash = error
        self._bell.set()
        self._after()
