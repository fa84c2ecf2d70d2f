"""The loop of one controller: look at a key, decide, have it carried out, come back when due.

    subject     = the object, as it is seen now
    observation = observe(reader, key, now)
    decision    = decide(observation)
    await executor.carry_out(subject, decision)

Observing and deciding is done here, key after key, without waiting; what a decision asks for is
carried out by a task, of which there are at most `workers`. A look that finds nothing to do costs
no task. What goes wrong with one key stays with that key; only InvariantViolation, a bug of ours,
ends the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from spinney.decisions.actions import Decision
from spinney.engine import backoff, logs, subjects, verdicts
from spinney.engine.alarms import Alarm
from spinney.engine.backoff import Backoff
from spinney.engine.executor import Executor, Outcome, Result
from spinney.engine.expectations import Expectations
from spinney.engine.metrics import Gauge, Metrics
from spinney.engine.queue import NO_TIME, Queue
from spinney.engine.subjects import Subject
from spinney.engine.validation import Validation
from spinney.engine.wakes import Memory, Wake
from spinney.meta.errors import InvariantViolation, Terminal
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Clock, Entropy, Reader

O = TypeVar("O")  # noqa: E741 - an observation

COSTLY: Final = timedelta(milliseconds=2)
"""A look that took this long is followed by a rest."""

REST_FACTOR: Final = 4
"""How many times as long as its look a costly key rests: it takes a fifth of a core at most."""

REST_MAX: Final = timedelta(milliseconds=250)
FAILING_REST_MAX: Final = timedelta(seconds=1)
"""How often a key that fails by itself is looked at, however often it is woken."""

SOONEST: Final = timedelta(milliseconds=1)
"""A deadline is never nearer than this: clocks are compared that may differ by a little."""

_log = logs.logger("engine")


class Controller(Record, Generic[O]):
    """One controller: what it looks after, how it looks, how it decides, what wakes it."""

    name: str
    kind: GroupKind
    observe: Callable[[Reader, Ref, datetime], O | None]
    decide: Callable[[O], Decision]
    wakes: tuple[Wake[Any], ...] = ()
    """Beside its own kind, whose changes wake their own key."""

    is_of_concern: Callable[[Reader, Ref], bool] | None = None
    """Which objects of its own kind are looked at when they change; without it all are."""

    workers: int = 4


class Runner:
    """Runs one controller while this process leads."""

    def __init__(
        self,
        controller: Controller[Any],
        reader: Reader,
        executor: Executor,
        expectations: Expectations,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
    ) -> None:
        """Listen for changes from now on; they count once it runs."""
        self._controller = controller
        self._reader = reader
        self._executor = executor
        self._expectations = expectations
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self.queue = Queue()
        self._memories = [(wake.kind, Memory(wake, reader)) for wake in controller.wakes]
        self._acting: dict[asyncio.Task[None], Ref] = {}
        self._bell = asyncio.Event()
        self._quiet = asyncio.Event()
        self._alarm = Alarm(clock, self._bell.set)
        self._is_running = self._is_draining = False
        self._first_looks: set[Ref] | None = None
        self._ready = asyncio.Event()
        self._crash: BaseException | None = None
        self._look_prefix = f"{controller.name}-{entropy.suffix(5)}"
        self._look_count = 0
        self._validation = Validation(self.validate, lambda: len(self.queue))
        for kind in sorted({controller.kind, *(wake.kind for wake in controller.wakes)}):
            reader.on_change(kind, self._changed)
        metrics.watch(self._gauges)

    @property
    def name(self) -> str:
        """The controller's name."""
        return self._controller.name

    # Being woken

    def _changed(self, ref: Ref, change: Change) -> None:
        if not self._is_running:
            return
        now = self._clock.elapsed()
        name = self._controller.name
        for key in self._expectations.met(ref):
            self._add(key, now)
        if change is Change.BOOKMARK:
            return
        if ref.kind == self._controller.kind and self._is_of_concern(ref):
            self._metrics.count("spinney_wakeups_total", name, ref.kind.kind)
            self._add(ref, now)
        for kind, memory in self._memories:
            if kind == ref.kind:
                for key in memory.changed(ref, change):
                    self._metrics.count("spinney_wakeups_total", name, ref.kind.kind)
                    self._add(key, now)

    def _is_of_concern(self, ref: Ref) -> bool:
        judge = self._controller.is_of_concern
        return judge is None or judge(self._reader, ref)

    def _add(self, key: Ref, now: timedelta) -> None:
        self.queue.add(key, now)
        self._quiet.clear()
        self._bell.set()

    # Running

    async def run(self) -> None:
        """Look at every key, then at those that are woken, until cancelled or drained.

        Raises InvariantViolation where a decision broke a rule; nothing else ends it.
        """
        self._start()
        try:
            while not self._is_draining:
                await self._take_what_is_due()
                if self.is_quiet:
                    self._quiet.set()
                else:
                    self._quiet.clear()
                await self._bell.wait()
                self._bell.clear()
            while self._acting:
                await asyncio.wait(self._acting)
            if self._crash is not None:
                raise self._crash
        finally:
            await self._stop()

    def _start(self) -> None:
        self.queue = Queue()
        self._expectations.forget_all()
        self._crash = None
        self._is_running, self._is_draining = True, False
        self._quiet.clear()
        for _, memory in self._memories:
            memory.fill()
        now = self._clock.elapsed()
        keys = [key for key in self._all_keys() if self._is_of_concern(key)]
        self._first_looks = {*keys}
        if not keys:
            self._ready.set()
        for key in keys:
            self.queue.add(key, now)

    def _all_keys(self) -> Iterable[Ref]:
        kind = self._controller.kind
        for view in self._reader.list(subjects.record_of(kind)):
            metadata = subjects.metadata_of(view)
            assert metadata is not None
            yield Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)

    async def _stop(self) -> None:
        self._is_running = False
        self._ready.clear()
        self._alarm.stop()
        acting = [*self._acting]
        for task in acting:
            task.cancel()
        await asyncio.gather(*acting, return_exceptions=True)

    def drain(self) -> None:
        """Take no more keys; `run` returns once those under way are done."""
        self._is_draining = True
        self._bell.set()

    async def _take_what_is_due(self) -> None:
        while not self._is_draining and len(self._acting) < self._controller.workers:
            if self._crash is not None:
                raise self._crash
            key = self.queue.take(self._clock.elapsed())
            if key is None:
                self._alarm.set(self.queue.next_due())
                return
            self._look(key)
            self._validation.step()
            await self._clock.sleep(NO_TIME)

    # One look

    def _look(self, key: Ref) -> None:
        began = self._clock.elapsed()
        if self._expectations.must_wait(key):
            self.queue.finish(key, began)
            return
        name = self._controller.name
        self._metrics.took("spinney_queue_wait_seconds", self.queue.waited(key, began), name)
        if self.queue.is_by_timer(key):
            self._metrics.count("spinney_wakeups_total", name, "timer")
        self._look_count += 1
        look_id = f"{self._look_prefix}-{self._look_count}"
        subject: Subject | None = None
        try:
            subject = subjects.subject_of(self._reader, key)
            decision = self._decide(key, subject)
            if decision is not None:
                decision.check()
        except InvariantViolation:
            raise
        except Terminal as error:
            if subject is None:
                self._went_wrong(key, look_id, error)
            else:
                self._act(key, self._stall(key, subject, error, look_id))
            return
        except Exception as error:  # noqa: BLE001 - no key may touch another
            self._went_wrong(key, look_id, error)
            return
        self._tell_reasons(key, decision, look_id)
        spent = self._clock.elapsed() - began
        self._metrics.took("spinney_decide_seconds", spent, name)
        if decision is None or subject is None:
            self._gone(key)
        elif self._executor.is_idle(subject, decision):
            self._well(key, Result.DONE, began, spent, decision.wake_after)
        else:
            self._act(key, self._carry_out(key, subject, decision, began, spent, look_id))

    def _decide(self, key: Ref, subject: Subject | None) -> Decision | None:
        observation = self._controller.observe(self._reader, key, self._clock.now())
        if observation is None:
            return None
        if subject is None:
            raise InvariantViolation(f"{self._controller.name} observed {key}, which is not there")
        return self._controller.decide(observation)

    def _tell_reasons(self, key: Ref, decision: Decision | None, look_id: str) -> None:
        if decision is not None and decision.reasons and _log.isEnabledFor(logging.DEBUG):
            said = logs.fields(
                object=key,
                controller=self.name,
                reconcile_id=look_id,
                reasons=list(decision.reasons),
            )
            _log.debug("decided", extra=said)

    def _act(self, key: Ref, doing: Any) -> None:
        task = asyncio.create_task(doing, name=f"{self._controller.name}: {key}")
        self._acting[task] = key
        task.add_done_callback(self._acted)

    def _acted(self, task: asyncio.Task[None]) -> None:
        del self._acting[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash = error
        self._bell.set()

    async def _carry_out(
        self,
        key: Ref,
        subject: Subject,
        decision: Decision,
        began: timedelta,
        spent: timedelta,
        look_id: str,
    ) -> None:
        try:
            outcome = await self._executor.carry_out(subject, decision, look_id)
        except InvariantViolation:
            raise
        except Exception as error:  # noqa: BLE001 - no key may touch another
            self._went_wrong(key, look_id, error)
            return
        took = self._clock.elapsed() - began
        self._metrics.took("spinney_reconcile_seconds", took, self._controller.name)
        self._concluded(key, outcome, began, spent, decision.wake_after)

    async def _stall(self, key: Ref, subject: Subject, error: Terminal, look_id: str) -> None:
        failure = verdicts.judged(error)
        try:
            await self._executor.stall(subject, failure, look_id)
        except InvariantViolation:
            raise
        except Exception as other:  # noqa: BLE001 - no key may touch another
            self._went_wrong(key, look_id, other)
            return
        self._concluded(
            key, Outcome(result=Result.STALLED, failure=failure), NO_TIME, NO_TIME, None
        )

    # What comes after

    def _concluded(
        self,
        key: Ref,
        outcome: Outcome,
        began: timedelta,
        spent: timedelta,
        wake_after: timedelta | None,
    ) -> None:
        if outcome.result in (Result.INTENT, Result.DONE):
            if outcome.result is Result.INTENT or outcome.is_cut_off:
                self.queue.add(key, self._clock.elapsed())
            self._well(key, outcome.result, began, spent, wake_after)
            return
        self._wake_after(key, began, wake_after)
        if outcome.result is Result.MOVED:
            self._again(key, "moved", backoff.RETRY, floor_max=NO_TIME)
        elif outcome.result is Result.LATER:
            self._again(key, "later", backoff.RETRY, at_least=outcome.retry_after)
        else:
            self._again(key, "stalled", backoff.STALLED, floor_max=FAILING_REST_MAX)

    def _well(
        self,
        key: Ref,
        result: Result,
        began: timedelta,
        spent: timedelta,
        wake_after: timedelta | None,
    ) -> None:
        self._metrics.count("spinney_reconciles_total", self._controller.name, result.value)
        self._wake_after(key, began, wake_after)
        floor = NO_TIME
        if spent >= COSTLY:
            floor = began + spent + min(REST_FACTOR * spent, REST_MAX)
        self.queue.finish(key, self._clock.elapsed(), floor)
        self._looked(key)

    def _wake_after(self, key: Ref, began: timedelta, wake_after: timedelta | None) -> None:
        if wake_after is None:
            return
        now = self._clock.elapsed()
        left = max(began + max(wake_after, SOONEST) - now, NO_TIME)
        self.queue.add(key, now, left, is_timer=True)

    def _gone(self, key: Ref) -> None:
        self._metrics.count("spinney_reconciles_total", self._controller.name, Result.DONE.value)
        self._expectations.forget(key)
        self.queue.finish(key, self._clock.elapsed())
        self._looked(key)

    def _went_wrong(self, key: Ref, look_id: str, error: Exception) -> None:
        said = logs.fields(object=key, controller=self._controller.name, reconcile_id=look_id)
        _log.error("a look failed", extra=said, exc_info=error)
        self._again(key, "error", backoff.RETRY, floor_max=FAILING_REST_MAX)

    def _again(
        self,
        key: Ref,
        why: str,
        waits: Backoff,
        *,
        at_least: timedelta | None = None,
        floor_max: timedelta | None = None,
    ) -> None:
        """Look again after a back-off; changes wake the key sooner, but not before its floor."""
        name = self._controller.name
        self._metrics.count("spinney_reconciles_total", name, why)
        self._metrics.count("spinney_retries_total", name, why)
        now = self._clock.elapsed()
        delay = max(waits.delay(self.queue.fail(key), self._entropy), at_least or NO_TIME)
        floor = now + (delay if floor_max is None else min(delay, floor_max))
        self.queue.retry(key, now, delay, floor, is_timer=why == "stalled")
        self._looked(key)

    def _looked(self, key: Ref) -> None:
        self._validation.step()
        if self._first_looks:
            self._first_looks.discard(key)
            if not self._first_looks:
                self._ready.set()
        self._bell.set()

    # Looking at it

    @property
    def is_ready(self) -> bool:
        """Whether every key there was at the start has been looked at."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Wait until every key there was at the start has been looked at."""
        await self._ready.wait()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is queued or under way; deadlines in the future do not count."""
        return (
            self.queue.is_settled
            and not self._acting
            and not self._expectations.statistics().parked
        )

    async def wait_quiet(self) -> None:
        """Wait until nothing is queued or under way."""
        await self._quiet.wait()

    def release(self) -> None:
        """Let those go who wait for quiet: it will not come."""
        self._quiet.set()

    def _gauges(self) -> Iterable[Gauge]:
        name, statistics = self._controller.name, self.queue.statistics()
        for state in ("ready", "delayed", "under_way", "failing"):
            yield Gauge(
                name="spinney_queue_keys",
                value=getattr(statistics, state),
                labels=(name, state),
            )
        parked = self._expectations.statistics().parked
        yield Gauge(name="spinney_parked_keys", value=parked, labels=(name,))

    def validate(self) -> None:
        """Check the machines against each other; raises InvariantViolation."""
        self.queue.validate()
        self._expectations.validate()
