"""The scheduler: gives gangs their nodes, whole or not at all, and says why it cannot.

    scheduler = Scheduler(reader, writer, clock, entropy, metrics=metrics)
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.run())

`run` ends only by being cancelled, or with a bug of ours (InvariantViolation). `ready` says that
every gang that waited at the start was looked at. The reader must be filled before `run` begins,
and give Nodes, Pods, PodGangs, PriorityClasses and ClusterTopologyBindings; the writer binds and
deletes pods, and writes the status of pods and PodGangs. One scheduler places the pods of a world:
a bind is refused where the pod moved, but nobody but the scheduler knows what a node has left.

Taking in and deciding is done here, in slices between which others have the loop; binding is done
by tasks, a bounded number of pods ahead of their answers. Nothing polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from spinney.engine.alarms import Alarm
from spinney.engine.metrics import Gauge, Metrics, NoMetrics
from spinney.engine.queue import NO_TIME
from spinney.engine.recorder import Recorder
from spinney.engine.validation import Validation
from spinney.meta.references import Ref
from spinney.ports import Change, Clock, Entropy, Reader, Writer
from spinney.scheduler import ledger as ledgers
from spinney.scheduler import line as lines
from spinney.scheduler.binder import Binder
from spinney.scheduler.disruptor import Disruptor
from spinney.scheduler.hands import NAME, Hands
from spinney.scheduler.ledger import Effect, Ledger
from spinney.scheduler.line import Line, Turn
from spinney.scheduler.placer import Placer
from spinney.scheduler.settings import DEFAULTS, Settings
from spinney.scheduler.teller import Teller

REST_FACTOR: Final = 4
"""How many times as long as it took to look at all refused gangs it rests before it does again."""

REST_MAX: Final = timedelta(seconds=1)


class Scheduler:
    """Places gangs."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
        *,
        metrics: Metrics | None = None,
        settings: Settings = DEFAULTS,
        identity: str = "spinney-scheduler",
    ) -> None:
        """Listen for changes from now on; they count once it runs."""
        self._clock = clock
        self._settings = settings
        metrics = metrics or NoMetrics()
        hands = Hands(writer, metrics, settings.in_flight_max)
        self._recorder = recorder = Recorder(reader, writer, clock, metrics, instance=identity)
        self._bell = asyncio.Event()
        self._alarm = Alarm(clock, self._ring)
        self._ledger = ledger = Ledger(reader, settings)
        self._teller = Teller(
            ledger,
            hands,
            recorder,
            clock,
            entropy,
            told_every=settings.told_every,
            after=self._ring,
        )
        self._disruptor = Disruptor(
            ledger, hands, recorder, clock, entropy, metrics, after=self._ring
        )
        self._binder = Binder(
            ledger,
            hands,
            self._teller,
            clock,
            entropy,
            refused=self._take_in,
            ended=self._answered,
        )
        self._placer = Placer(
            ledger,
            self._binder,
            self._teller,
            self._disruptor,
            clock,
            metrics,
            settings,
            line_up=self._line_up,
        )
        self._is_running = False
        self._quiet = asyncio.Event()
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._validation = Validation(ledger.validate, lambda: len(ledger))
        self._forget()
        for kind in ledgers.FOLLOWED:
            reader.on_change(kind, self._changed)
        metrics.watch(self._gauges)

    def _forget(self) -> None:
        for part in (self._ledger, self._teller, self._disruptor, self._binder, self._placer):
            part.forget()
        self._changes: dict[Ref, None] = {}
        self._line = Line()
        self._rests_until = self._pass_began = NO_TIME

    # Being woken

    def _changed(self, ref: Ref, change: Change) -> None:
        if self._is_running and change is not Change.BOOKMARK:
            self._changes[ref] = None
            self._ring()

    def _ring(self) -> None:
        self._quiet.clear()
        self._bell.set()

    # Running

    async def run(self) -> None:
        """Place what waits and what comes, until cancelled; raises what a bug of ours raised."""
        self._forget()
        self._failure = None
        self._is_running = True
        self._changes.update(dict.fromkeys(self._ledger.there()))
        parts = [
            asyncio.create_task(self._recorder.run(), name="scheduler: events"),
            asyncio.create_task(self._teller.attendant.run(), name="scheduler: teller"),
            asyncio.create_task(self._disruptor.attendant.run(), name="scheduler: disruptor"),
            asyncio.create_task(self._loop(), name="scheduler: loop"),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            for part in done:
                part.result()
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._is_running = False
            self._ready.clear()
            self._alarm.stop()
            self._quiet.set()
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await self._binder.stop()

    async def _loop(self) -> None:
        while True:
            await self._work()
            if self._binder.crash is not None:
                raise self._binder.crash
            self._ready.set()
            if self.is_quiet:
                self._quiet.set()
            await self._bell.wait()
            self._bell.clear()

    async def _work(self) -> None:
        """Take in what changed, and look at whoever is due, until neither is left."""
        began, looks, changes = self._clock.elapsed(), 0, 0
        while self._binder.crash is None:
            if self._changes:
                ref = next(iter(self._changes))
                del self._changes[ref]
                self._take_in(self._ledger.take_in(ref))
                changes += 1
            elif (whole := self._next()) is not None:
                self._placer.look(self._turn(whole))
                self._validation.step()
                looks += 1
            else:
                return
            if (
                looks >= self._settings.slice_looks_max
                or changes >= self._settings.slice_changes_max
                or self._clock.elapsed() - began >= self._settings.slice_max
            ):
                await self._clock.sleep(NO_TIME)
                began, looks, changes = self._clock.elapsed(), 0, 0

    def _take_in(self, effect: Effect) -> None:
        if effect.made_room:
            self._placer.has_room = True
        for whole in effect.concerned:
            self._disruptor.changed(whole)
            self._line_up(whole)

    def _answered(self, whole: Ref) -> None:
        """Go on with a gang once all of it that was sent is answered."""
        if self._is_running:
            self._disruptor.changed(whole)
            self._line_up(whole)
        self._ring()

    # Whose turn it is

    def _line_up(self, whole: Ref) -> None:
        if not self._binder.is_busy_with(whole):
            self._line.add(self._turn(whole))

    def _turn(self, whole: Ref) -> Turn:
        priority, created = self._ledger.gangs.rank(whole)
        return lines.turn(
            whole,
            priority,
            created,
            is_running=self._ledger.is_running(whole),
            is_partial=self._ledger.gangs.is_partial(whole),
        )

    def _next(self) -> Ref | None:
        """Return the gang to look at now, None where none is due or enough is under way."""
        now = self._clock.elapsed()
        for whole in (*self._binder.due(now), *self._placer.due(now)):
            self._line_up(whole)
        if self._placer.has_room and now >= self._rests_until:
            self._placer.has_room = False
            self._pass_began = now
            for whole in self._placer.refused:
                self._line_up(whole)
        self._alarm.set(self._next_alarm())
        if self._binder.in_flight >= self._settings.bindings_ahead_max:
            return None
        found = self._line.take()
        if found is None and self._pass_began:
            spent = now - self._pass_began
            self._pass_began = NO_TIME
            self._rests_until = now + min(REST_FACTOR * spent, REST_MAX)
        return found

    def _next_alarm(self) -> timedelta | None:
        """Return when something is due though nothing happens."""
        times = [self._binder.next_due(), self._placer.next_due()]
        if self._placer.has_room and self._placer.refused:
            times.append(self._rests_until)
        return min((each for each in times if each is not None), default=None)

    # Looking at it

    @property
    def ready(self) -> bool:
        """Whether every gang that waited at the start was looked at."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Wait until every gang that waited at the start was looked at."""
        await self._ready.wait()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is to be done before something changes or a deadline comes."""
        return (
            not self._changes
            and not len(self._line)
            and self._binder.is_quiet
            and not (self._placer.has_room and self._placer.refused)
            and self._teller.attendant.is_quiet
            and self._disruptor.attendant.is_quiet
        )

    async def settle(self) -> None:
        """Wait until nothing is to be done and all is told. For tests; raises what ended `run`."""
        while True:
            await self._quiet.wait()
            if self._failure is not None:
                raise self._failure
            await self._recorder.wait_quiet()
            if self.is_quiet and self._recorder.is_quiet:
                return
            await self._clock.sleep(NO_TIME)

    def _gauges(self) -> Iterable[Gauge]:
        yield from (
            Gauge(name="spinney_queue_keys", value=value, labels=(NAME, state))
            for state, value in (
                ("ready", len(self._line)),
                ("delayed", len(self._placer.refused)),
                ("under_way", self._binder.under_way_count),
                ("failing", self._binder.failing_count),
            )
        )
