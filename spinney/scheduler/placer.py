"""The placer: one look at one gang, from what it asks to what is done about it.

fits                    its pods are given their nodes
fits, but gets ahead    room is kept for the first gang that has no place; then as above
does not fit            less important gangs go for it, and their place is kept; or it is refused
does not fit, in part   for a while; then it is taken back whole
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from spinney.decisions import disruption, schedulability
from spinney.decisions.placement import placing, preempting, queueing
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.outcomes import Placement, Refusal
from spinney.decisions.placement.preempting import Preemption
from spinney.decisions.standing import Standing
from spinney.engine.metrics import Metrics
from spinney.engine.queue import NO_TIME, Queue
from spinney.meta.references import Ref
from spinney.ports import Clock
from spinney.scheduler.binder import Binder
from spinney.scheduler.disruptor import Disruptor
from spinney.scheduler.hands import NAME
from spinney.scheduler.ledger import Ledger
from spinney.scheduler.line import Line, Turn
from spinney.scheduler.rooms import Rooms
from spinney.scheduler.settings import Settings
from spinney.scheduler.teller import Teller

NO_VICTIMS_REST: Final = timedelta(seconds=1)
NO_VICTIMS_FACTOR: Final = 50
"""How many times as long as it took to find nobody who could go it is not asked again."""


class Placer:
    """Looks at gangs, one at a time."""

    def __init__(
        self,
        ledger: Ledger,
        binder: Binder,
        teller: Teller,
        disruptor: Disruptor,
        clock: Clock,
        metrics: Metrics,
        settings: Settings,
        *,
        line_up: Callable[[Ref], None],
    ) -> None:
        """Have others looked at by `line_up`."""
        self._ledger = ledger
        self._binder = binder
        self._teller = teller
        self._disruptor = disruptor
        self._clock = clock
        self._metrics = metrics
        self._settings = settings
        self._line_up = line_up
        self.forget()

    def forget(self) -> None:
        """Have looked at nothing."""
        self.refused: dict[Ref, Turn] = {}
        """Gangs of which something waits for a place."""

        self.has_room = False
        """Whether something changed that may make room for them."""

        self._rooms = Rooms(self._ledger.cluster)
        self._unplaced = Line()
        self._later = Queue()
        self._partial_since: dict[Ref, timedelta] = {}
        self._tries_again_at: dict[Ref, timedelta] = {}
        self._scored: set[Ref] = set()

    def due(self, now: timedelta) -> Iterator[Ref]:
        """Yield the gangs that are to be looked at because a time has come."""
        while (whole := self._later.take(now)) is not None:
            self._later.finish(whole, now)
            yield whole

    def next_due(self) -> timedelta | None:
        """Return when the next such time comes."""
        return self._later.next_due()

    # One look

    def look(self, turn: Turn) -> None:
        """Look at a gang whose turn it is."""
        began, whole = self._clock.elapsed(), turn.whole
        had_room = self._take_back_room(turn)
        self.refused.pop(whole, None)
        self._unplaced.drop(whole)
        if self._binder.bind_again(whole):
            return
        found = self._ledger.gangs.standing(whole)
        if found is None or not found.waiting or found.held_back:
            self._nothing_to_place(whole, found)
        else:
            self._decide(turn, found)
            self._metrics.took("spinney_decide_seconds", self._clock.elapsed() - began, NAME)
        if had_room and not self._rooms.has(whole):
            self.has_room = True

    def _take_back_room(self, turn: Turn) -> bool:
        """Let a gang see the cluster without what is kept for it, or for who comes after it.

        Returns whether something was kept for it.
        """
        had_room = self._rooms.withdraw(turn.whole)
        reserved = self._rooms.reserved_for
        if reserved is not None and turn < reserved:
            self._rooms.withdraw(reserved.whole)
            self._line_up(reserved.whole)
        return had_room

    def _nothing_to_place(self, whole: Ref, found: Standing | None) -> None:
        if found is None or not found.waiting:
            self._teller.say(whole, None)
            self._binder.forget_gang(whole)
            self._partial_since.pop(whole, None)
            self._tries_again_at.pop(whole, None)
        if found is None:
            self._scored.discard(whole)
        elif found.is_placed and not found.waiting and whole not in self._scored:
            self._score(whole, found)

    def _score(self, whole: Ref, found: Standing) -> None:
        """Say how close together a gang is that has its nodes from before, if nobody said it."""
        self._scored.add(whole)
        gang = self._ledger.gangs.get(whole)
        if gang is None or gang.status.placement_score is not None:
            return
        demand, levels = self._ledger.gangs.demand(whole, found), self._ledger.gangs.levels(whole)
        outcome = placing.place(self._ledger.cluster, demand, levels)
        if isinstance(outcome, Placement):
            self._binder.bind(whole, (), outcome.score)

    def _decide(self, turn: Turn, found: Standing) -> None:
        whole, cluster = turn.whole, self._ledger.cluster
        demand, levels = self._ledger.gangs.demand(whole, found), self._ledger.gangs.levels(whole)
        outcome = placing.place(cluster, demand, levels)
        if isinstance(outcome, Placement) and outcome.bindings and self._give_way(turn):
            outcome = placing.place(cluster, demand, levels)
        if isinstance(outcome, Placement):
            self._place(turn, outcome)
        elif self._make_room(whole, demand, outcome, levels):
            self.refused[whole] = turn
            self._metrics.count("spinney_placements_total", "waits")
        else:
            self._refuse(turn, found, outcome)

    # A place is there

    def _place(self, turn: Turn, placement: Placement) -> None:
        whole = turn.whole
        self._partial_since.pop(whole, None)
        self._teller.say(whole, schedulability.placed(placement))
        if placement.left:
            self.refused[whole] = turn
        result = "placed" if placement.bindings else "surplus"
        self._metrics.count("spinney_placements_total", result)
        if placement.bindings:
            self._scored.add(whole)
            self._ledger.assume(whole, placement.bindings)
            self._binder.bind(whole, placement.bindings, placement.score)

    def _give_way(self, turn: Turn) -> bool:
        """Keep room for the first gang that has no place, if a later one is about to take some.

        It costs a look at all there is, so it is put off until somebody would get ahead. Returns
        whether room is kept now that was not before.
        """
        if self._rooms.reserved_for is not None:
            return False
        gangs = self._ledger.gangs
        while (first := self._unplaced.first()) is not None and first < turn:
            whole = first.whole
            found = gangs.standing(whole)
            if found is not None and found.waiting:
                demand = gangs.demand(whole, found)
                before = self._rooms.last_reservation(whole)
                cluster, levels = self._ledger.cluster, gangs.levels(whole)
                reservation = queueing.reservation(cluster, demand, levels, before)
                if reservation is not None:
                    self._rooms.reserve(first, reservation, demand.priority)
                    return True
            self._unplaced.drop(whole)
        return False

    # No place is there

    def _refuse(self, turn: Turn, found: Standing, refusal: Refusal) -> None:
        whole = turn.whole
        self.refused[whole] = turn
        self._unplaced.add(turn)
        self._metrics.count("spinney_placements_total", "refused")
        self._teller.say(whole, schedulability.refused(refusal))
        if found.is_partial:
            self._undo_when_due(whole, refusal)

    def _make_room(
        self, whole: Ref, demand: GangDemand, refusal: Refusal, levels: tuple[str, ...]
    ) -> bool:
        """Have others go so that a gang fits; returns whether it only has to wait for that."""
        if not (self._settings.preempts and self._ledger.gangs.may_preempt(whole, demand)):
            return False
        found = self._victims(whole, demand, levels)
        if found is None:
            return False
        for victim in found.victims:
            is_there = self._ledger.is_running(victim)
            if self._rooms.withdraw(victim):
                self._line_up(victim)
            if is_there:
                why = (
                    f"its place is needed by {whole}, of priority {demand.priority}, "
                    "which is more important"
                )
                self._disruptor.take_away(victim, disruption.PREEMPTED, why)
        self._rooms.nominate(demand, found.placement)
        self._teller.say(whole, schedulability.waits_for(found.victims, refusal))
        return True

    def _victims(
        self, whole: Ref, demand: GangDemand, levels: tuple[str, ...]
    ) -> Preemption | None:
        """Return who must go for a gang; where nobody helps, that is not asked again for a while.

        It costs a look at all there is.
        """
        now = self._clock.elapsed()
        left = self._tries_again_at.get(whole, now) - now
        if left > NO_TIME:
            self._later.add(whole, now, left, is_timer=True)
            return None
        found = preempting.victims(self._ledger.cluster, demand, levels)
        self._tries_again_at.pop(whole, None)
        if found is None:
            ended = self._clock.elapsed()
            rest = max(NO_VICTIMS_REST, NO_VICTIMS_FACTOR * (ended - now))
            self._tries_again_at[whole] = ended + rest
        return found

    def _undo_when_due(self, whole: Ref, refusal: Refusal) -> None:
        """Take back a gang that was placed in part and finds no place for the rest."""
        now = self._clock.elapsed()
        since = self._partial_since.setdefault(whole, now)
        left = since + self._settings.partial_max - now
        if left > NO_TIME:
            self._later.add(whole, now, left, is_timer=True)
            return
        gang = self._ledger.gangs.get(whole)
        if gang is None or not disruption.may_be_undone(gang, self._ledger.all_of(whole)):
            return
        del self._partial_since[whole]
        why = f"some of its pods have nodes and the rest finds none: {refusal.summary}"
        self._disruptor.take_away(whole, disruption.PARTIAL, why)
