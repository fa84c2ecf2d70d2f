"""The disruptor: takes gangs away, whole; the gateway of rule 2.8.

    wanted      the scheduler chose the gang; nothing of it is stored yet
    marked      `DisruptionTarget` stands in its status, written by compare-and-swap and seen
    over        none of its pods has a node: the mark is taken back, and the gang waits anew

Only what is seen to be marked is deleted, so whoever comes after a crash goes on. A pod outside any
gang is deleted in one write, and needs no mark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from spinney.api import groupkinds
from spinney.api.podgang import PodGang
from spinney.decisions import disruption
from spinney.decisions.actions import Emit
from spinney.engine.metrics import Metrics
from spinney.engine.recorder import Recorder
from spinney.engine.verdicts import Failure
from spinney.meta import records
from spinney.meta.conditions import Condition
from spinney.meta.documents import Json
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref
from spinney.ports import Clock, Entropy
from spinney.scheduler import ledger as ledgers
from spinney.scheduler.attending import Attendant
from spinney.scheduler.hands import NAME, Hands
from spinney.scheduler.ledger import Ledger

EVENT_REASONS: Final = {
    disruption.PREEMPTED: "Preempted",
    disruption.PARTIAL: "PartialGangRemoved",
}


class Wish(Record):
    """A gang that is to be taken away, and why."""

    uid: str
    reason: str
    why: str


class Disruptor:
    """Marks gangs, deletes the pods of marked ones, and takes marks back."""

    def __init__(
        self,
        ledger: Ledger,
        hands: Hands,
        recorder: Recorder,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
        *,
        after: Callable[[], None],
    ) -> None:
        """Write by the hands given."""
        self._ledger = ledger
        self._hands = hands
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._wishes: dict[Ref, Wish] = {}
        self.attendant = Attendant(self._attend, clock, entropy, after=after)

    def forget(self) -> None:
        """Want nothing."""
        self._wishes.clear()

    def take_away(self, whole: Ref, reason: str, why: str) -> None:
        """Have a gang, or a pod outside any, taken away; it counts as leaving from now on."""
        uid = self._uid(whole)
        if uid and whole not in self._wishes:
            self._wishes[whole] = Wish(uid=uid, reason=reason, why=why)
            self._ledger.want_gone(whole)
            self.attendant.add(whole)

    def changed(self, whole: Ref) -> None:
        """Go on with a gang that changed, if it is one that goes."""
        if self._ledger.is_going(whole):
            self.attendant.add(whole)

    def _uid(self, whole: Ref) -> str:
        gang = self._ledger.gangs.get(whole)
        if gang is not None:
            return gang.metadata.uid
        pod = self._ledger.members(whole).get(whole.name)
        return "" if pod is None else pod.metadata.uid

    async def _attend(self, whole: Ref) -> Failure | None:
        wish = self._wishes.get(whole)
        if wish is not None and self._uid(whole) != wish.uid:
            self._fulfilled(whole)
            wish = None
        if whole.kind == groupkinds.POD:
            return None if wish is None else await self._delete_alone(whole, wish)
        gang = self._ledger.gangs.get(whole)
        if gang is None:
            self._fulfilled(whole)
            return None
        if disruption.is_marked(gang):
            self._fulfilled(whole)
            return await self._go_on(whole, gang)
        if wish is not None:
            return await self._mark(whole, gang, wish)
        return None

    def _fulfilled(self, whole: Ref) -> None:
        if self._wishes.pop(whole, None) is not None:
            self._ledger.want_no_more(whole)

    async def _mark(self, whole: Ref, gang: PodGang, wish: Wish) -> Failure | None:
        wanted = disruption.marked(gang, wish.reason, wish.why, self._clock.now())
        failure = await self._put(whole, gang, wanted)
        if failure is None:
            self._metrics.count("spinney_disruptions_total", wish.reason)
            self._emit(whole, wish)
        return failure

    async def _go_on(self, whole: Ref, gang: PodGang) -> Failure | None:
        gone = await asyncio.gather(
            *(
                self._hands.delete(ledgers.ref_of(groupkinds.POD, pod), pod.metadata.uid)
                for pod in disruption.to_delete(self._ledger.all_of(whole))
            )
        )
        failure = next((each for each in gone if each is not None), None)
        if failure is not None:
            return failure
        if self._ledger.assumed(whole) or not disruption.is_over(self._ledger.all_of(whole)):
            return None
        return await self._put(whole, gang, disruption.cleared(gang, self._clock.now()))

    async def _delete_alone(self, whole: Ref, wish: Wish) -> Failure | None:
        self._emit(whole, wish)
        failure = await self._hands.delete(whole, wish.uid)
        if failure is None:
            self._metrics.count("spinney_disruptions_total", wish.reason)
            self._fulfilled(whole)
        return failure

    async def _put(
        self, whole: Ref, gang: PodGang, wanted: tuple[Condition, ...]
    ) -> Failure | None:
        told: list[Json] = [records.encode(each) for each in wanted]
        only_if = Precondition(
            uid=gang.metadata.uid, resource_version=gang.metadata.resource_version
        )
        return await self._hands.put_in_status(whole, {"conditions": told}, only_if)

    def _emit(self, about: Ref, wish: Wish) -> None:
        reason = EVENT_REASONS[wish.reason]
        self._recorder.emit(
            Emit(about=about, type="Warning", reason=reason, note=wish.why, key=reason), NAME
        )
