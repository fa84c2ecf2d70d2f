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

from spinney.decisions import disruption, schedulability
from spinney.decisions.placement import placing, preempting, queueing
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.outcomes import FULL_SCORE, Binding, Placement, Refusal
from spinney.decisions.standing import Standing
from spinney.engine import backoff, logs
from spinney.engine.alarms import Alarm
from spinney.engine.metrics import Gauge, Metrics, NoMetrics
from spinney.engine.queue import NO_TIME, Queue
from spinney.engine.recorder import Recorder
from spinney.engine.validation import Validation
from spinney.engine.verdicts import Failure, Verdict
from spinney.meta.references import Precondition, Ref
from spinney.ports import Change, Clock, Entropy, Reader, Writer
from spinney.scheduler import ledger as ledgers
from spinney.scheduler import line as lines
from spinney.scheduler.disruptor import Disruptor
from spinney.scheduler.hands import NAME, Hands
from spinney.scheduler.ledger import Effect, Ledger
from spinney.scheduler.line import Line, Turn
from spinney.scheduler.rooms import Rooms
from spinney.scheduler.settings import DEFAULTS, Settings
from spinney.scheduler.teller import Teller

NODES_TOLD: Final = 3
"""How many nodes an event names."""

REST_FACTOR: Final = 4
"""How many times as long as it took to look at all refused gangs it rests before it does again."""

REST_MAX: Final = timedelta(seconds=1)

_log = logs.logger(NAME)


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
        self._reader = reader
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._metrics = metrics or NoMetrics()
        self._recorder = Recorder(reader, writer, clock, self._metrics, instance=identity)
        self._hands = Hands(writer, self._metrics, settings.in_flight_max)
        self._bell = asyncio.Event()
        self.ledger = Ledger(reader, settings)
        self.teller = Teller(
            self.ledger,
            self._hands,
            self._recorder,
            clock,
            entropy,
            told_every=settings.told_every,
            after=self._ring,
        )
        self.disruptor = Disruptor(
            self.ledger,
            self._hands,
            self._recorder,
            clock,
            entropy,
            self._metrics,
            after=self._ring,
        )
        self._alarm = Alarm(clock, self._ring)
        self._is_running = False
        self._quiet = asyncio.Event()
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._validation = Validation(self.ledger.validate, lambda: len(self.ledger))
        self._forget()
        for kind in ledgers.FOLLOWED:
            reader.on_change(kind, self._changed)
        self._metrics.watch(self._gauges)

    def _forget(self) -> None:
        self.ledger.forget()
        self.teller.forget()
        self.disruptor.forget()
        self._rooms = Rooms(self.ledger.cluster)
        self._changes: dict[Ref, None] = {}
        self._line = Line()
        self._later = Queue()
        self._refused: dict[Ref, Turn] = {}
        self._binding: dict[Ref, asyncio.Task[None]] = {}
        self._in_flight = 0
        self._failures: dict[Ref, int] = {}
        self._backing_off: set[Ref] = set()
        self._partial_since: dict[Ref, timedelta] = {}
        self._has_room = False
        self._scored: set[Ref] = set()
        self._rests_until = self._pass_began = NO_TIME
        self._crash: BaseException | None = None

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
        self._changes.update(dict.fromkeys(self.ledger.there()))
        parts = [
            asyncio.create_task(self._recorder.run(), name="scheduler: events"),
            asyncio.create_task(self.teller.attendant.run(), name="scheduler: teller"),
            asyncio.create_task(self.disruptor.attendant.run(), name="scheduler: disruptor"),
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
            ending = [*parts, *self._binding.values()]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _loop(self) -> None:
        while True:
            await self._work()
            if self._crash is not None:
                raise self._crash
            self._ready.set()
            if self.is_quiet:
                self._quiet.set()
            await self._bell.wait()
            self._bell.clear()

    async def _work(self) -> None:
        """Take in what changed, and look at whoever is due, until neither is left."""
        began, looks, changes = self._clock.elapsed(), 0, 0
        while self._crash is None:
            if self._changes:
                ref = next(iter(self._changes))
                del self._changes[ref]
                self._take_in(self.ledger.take_in(ref))
                changes += 1
            elif (whole := self._next()) is not None:
                self._look(whole)
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
        self._has_room = self._has_room or effect.made_room
        for whole in effect.concerned:
            self.disruptor.changed(whole)
            self._line_up(whole)

    def _line_up(self, whole: Ref) -> None:
        if whole not in self._binding and whole not in self._backing_off:
            self._line.add(self._turn(whole))

    def _turn(self, whole: Ref) -> Turn:
        priority, created = self.ledger.rank(whole)
        return lines.turn(whole, priority, created, is_partial=self.ledger.is_partial(whole))

    def _next(self) -> Ref | None:
        """Return the gang to look at now, None where none is due or enough is under way."""
        now = self._clock.elapsed()
        while (key := self._later.take(now)) is not None:
            self._later.finish(key, now)
            self._backing_off.discard(key)
            self._line.add(self._turn(key))
        self._alarm.set(self._next_alarm(now))
        if self._in_flight >= self._settings.bindings_ahead_max:
            return None
        if self._has_room and now >= self._rests_until:
            self._has_room = False
            self._pass_began = now
            for refused in self._refused:
                self._line_up(refused)
        found = self._line.take()
        if found is None and self._pass_began:
            spent = now - self._pass_began
            self._pass_began = NO_TIME
            self._rests_until = now + min(REST_FACTOR * spent, REST_MAX)
        return found

    def _next_alarm(self, now: timedelta) -> timedelta | None:
        due = self._later.next_due()
        if self._has_room and self._refused and self._rests_until > now:
            return self._rests_until if due is None else min(due, self._rests_until)
        return due

    # One look

    def _look(self, whole: Ref) -> None:
        began = self._clock.elapsed()
        turn = self._turn(whole)
        had_room = self._take_back_room(turn)
        self._refused.pop(whole, None)
        unsent = self.ledger.assumed(whole)
        if unsent:
            self._bind(whole, unsent, None)
            return
        found = self.ledger.standing(whole)
        if found is None or not found.waiting or found.held_back:
            self._nothing_to_place(whole, found)
        else:
            demand = self.ledger.demand(whole, found)
            levels = self.ledger.levels(whole)
            outcome = placing.place(self.ledger.cluster, demand, levels)
            self._metrics.took("spinney_decide_seconds", self._clock.elapsed() - began, NAME)
            if isinstance(outcome, Refusal):
                self._refuse(turn, demand, found, outcome, levels)
            else:
                self._place(turn, outcome)
        if had_room and not self._rooms.has(whole):
            self._has_room = True

    def _take_back_room(self, turn: Turn) -> bool:
        """Let a gang see the cluster without what is kept for it, or for who comes after it.

        Returns whether something was kept for it.
        """
        whole = turn.whole
        had_room = self._rooms.has(whole)
        self._rooms.withdraw_nomination(whole)
        reserved = self._rooms.reserved_for
        if reserved is not None and (reserved.whole == whole or turn < reserved):
            self._rooms.withdraw_reservation()
            if reserved.whole != whole:
                self._line_up(reserved.whole)
        return had_room

    def _nothing_to_place(self, whole: Ref, found: Standing | None) -> None:
        if found is None or not found.waiting:
            self.teller.say(whole, None)
            self._failures.pop(whole, None)
            self._partial_since.pop(whole, None)
        if found is None:
            self._scored.discard(whole)
        elif found.is_placed and not found.waiting and whole not in self._scored:
            self._score(whole, found)

    def _score(self, whole: Ref, found: Standing) -> None:
        """Say how close together a gang is that has its nodes from before, if nobody said it."""
        self._scored.add(whole)
        gang = self.ledger.gang(whole)
        if gang is None or gang.status.placement_score is not None:
            return
        demand = self.ledger.demand(whole, found)
        outcome = placing.place(self.ledger.cluster, demand, self.ledger.levels(whole))
        if isinstance(outcome, Placement):
            self._bind(whole, (), outcome.score)

    def _place(self, turn: Turn, placement: Placement) -> None:
        self._partial_since.pop(turn.whole, None)
        self.teller.say(turn.whole, schedulability.placed(placement))
        if placement.left:
            self._refused[turn.whole] = turn
        result = "placed" if placement.bindings else "surplus"
        self._metrics.count("spinney_placements_total", result)
        if placement.bindings:
            self._scored.add(turn.whole)
            self.ledger.assume(turn.whole, placement.bindings)
            self._bind(turn.whole, placement.bindings, placement.score)

    def _refuse(
        self,
        turn: Turn,
        demand: GangDemand,
        found: Standing,
        refusal: Refusal,
        levels: tuple[str, ...],
    ) -> None:
        whole = turn.whole
        self._refused[whole] = turn
        if self._make_room(whole, demand, refusal, levels):
            self._metrics.count("spinney_placements_total", "waits")
            return
        self._metrics.count("spinney_placements_total", "refused")
        self.teller.say(whole, schedulability.refused(refusal))
        if found.is_partial:
            self._undo_when_due(whole, refusal)
        if self._rooms.reserved_for is None:
            reservation = queueing.reservation(self.ledger.cluster, demand, levels)
            if reservation is not None:
                self._rooms.reserve(turn, reservation, demand.priority)

    def _make_room(
        self, whole: Ref, demand: GangDemand, refusal: Refusal, levels: tuple[str, ...]
    ) -> bool:
        """Have others go so that a gang fits; returns whether it only has to wait for that."""
        if not (self._settings.preempts and self.ledger.may_preempt(whole, demand)):
            return False
        found = preempting.victims(self.ledger.cluster, demand, levels)
        if found is None:
            return False
        for victim in found.victims:
            is_there = bool(self.ledger.holders(victim))
            if self._rooms.withdraw_nomination(victim):
                self._line_up(victim)
            if is_there:
                why = (
                    f"its place is needed by {whole}, of priority {demand.priority}, "
                    "which is more important"
                )
                self.disruptor.take_away(victim, disruption.PREEMPTED, why)
        self._rooms.nominate(demand, found.placement)
        self.teller.say(whole, schedulability.waits_for(found.victims, refusal))
        return True

    def _undo_when_due(self, whole: Ref, refusal: Refusal) -> None:
        """Take back a gang that was placed in part and finds no place for the rest."""
        now = self._clock.elapsed()
        since = self._partial_since.setdefault(whole, now)
        left = since + self._settings.partial_max - now
        if left > NO_TIME:
            self._later.add(whole, now, left, is_timer=True)
            return
        gang = self.ledger.gang(whole)
        if gang is None or not disruption.may_be_undone(gang, self.ledger.members(whole).values()):
            return
        del self._partial_since[whole]
        why = f"some of its pods have nodes and the rest finds none: {refusal.summary}"
        self.disruptor.take_away(whole, disruption.PARTIAL, why)

    # Binding

    def _bind(self, whole: Ref, bindings: Iterable[Binding], score: int | None) -> None:
        sent = tuple(bindings)
        self._in_flight += len(sent)
        task = asyncio.create_task(self._send(whole, sent, score), name=f"scheduler: bind {whole}")
        self._binding[whole] = task
        task.add_done_callback(lambda ended: self._bound(whole, len(sent), ended))

    def _bound(self, whole: Ref, sent_count: int, task: asyncio.Task[None]) -> None:
        self._in_flight -= sent_count
        del self._binding[whole]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._crash = error
        if self._is_running:
            self.disruptor.changed(whole)
            self._line_up(whole)
        self._ring()

    async def _send(self, whole: Ref, bindings: tuple[Binding, ...], score: int | None) -> None:
        """Have pods bound; all are sent, so that as much as can be is where it should be."""
        writes = [self._hands.bind(each.pod, each.uid, each.node) for each in bindings]
        _, *answers = await asyncio.gather(self._put_score(whole, score), *writes)
        failures = [failure for failure in answers if failure is not None]
        for binding, failure in zip(bindings, answers, strict=True):
            if failure is not None and failure.verdict is Verdict.STALLED:
                self._take_in(self.ledger.withdraw(binding))
        if failures:
            self._try_again(whole, failures)
            return
        self._failures.pop(whole, None)
        if bindings:
            self._tell_placed(whole, bindings)

    async def _put_score(self, whole: Ref, score: int | None) -> Failure | None:
        gang = self.ledger.gang(whole)
        if score is None or gang is None:
            return None
        share = score / FULL_SCORE
        if gang.status.placement_score == share:
            return None
        only_if = Precondition(uid=gang.metadata.uid)
        return await self._hands.put_in_status(whole, {"placementScore": share}, only_if)

    def _try_again(self, whole: Ref, failures: list[Failure]) -> None:
        count = self._failures[whole] = self._failures.get(whole, 0) + 1
        self._backing_off.add(whole)
        delay = backoff.RETRY.delay(count, self._entropy)
        asked = max((each.retry_after or NO_TIME for each in failures), default=NO_TIME)
        self._later.add(whole, self._clock.elapsed(), max(delay, asked))

    def _tell_placed(self, whole: Ref, bindings: tuple[Binding, ...]) -> None:
        nodes = sorted({each.node for each in bindings})
        said = logs.fields(object=whole, pods=len(bindings), nodes=len(nodes), controller=NAME)
        _log.info("placed", extra=said)
        if self.ledger.gang(whole) is None:
            note = f"Successfully assigned {whole.namespace}/{whole.name} to {nodes[0]}"
        else:
            shown = ", ".join(nodes[:NODES_TOLD])
            more = f" and {len(nodes) - NODES_TOLD} more" if len(nodes) > NODES_TOLD else ""
            pods = "1 pod" if len(bindings) == 1 else f"{len(bindings)} pods"
            note = f"Successfully assigned {pods} to {shown}{more}"
        self.teller.emit_placed(whole, note)

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
            and not self._binding
            and self._later.is_settled
            and not (self._has_room and self._refused)
            and self.teller.attendant.is_quiet
            and self.disruptor.attendant.is_quiet
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
                ("delayed", len(self._refused)),
                ("under_way", len(self._binding)),
                ("failing", len(self._failures)),
            )
        )
