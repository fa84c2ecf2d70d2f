"""The teller: writes down, of gangs and pods that wait, why; and that they wait no more.

It writes only what differs from what stands there, and of one gang at most every few seconds: a
sentence may change with every node that comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from spinney.api import groupkinds
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions import schedulability
from spinney.decisions.actions import Emit
from spinney.decisions.schedulability import Opinion
from spinney.engine.recorder import Recorder
from spinney.engine.verdicts import Failure
from spinney.meta import records
from spinney.meta.conditions import Condition
from spinney.meta.documents import Document, Json
from spinney.meta.references import Precondition, Ref
from spinney.ports import Clock, Entropy
from spinney.scheduler import ledger as ledgers
from spinney.scheduler.attending import Attendant
from spinney.scheduler.hands import NAME, Hands
from spinney.scheduler.ledger import Ledger

FAILED: Final = "FailedScheduling"
SCHEDULED: Final = "Scheduled"
SETTLES_WITHIN: Final = timedelta(milliseconds=100)
"""How long a refusal must stand before it is written down: many are over by then."""


class Teller:
    """Tells people what the scheduler came to."""

    def __init__(
        self,
        ledger: Ledger,
        hands: Hands,
        recorder: Recorder,
        clock: Clock,
        entropy: Entropy,
        *,
        told_every: timedelta,
        after: Callable[[], None],
    ) -> None:
        """Know what to tell from the ledger and from `say`."""
        self._ledger = ledger
        self._hands = hands
        self._recorder = recorder
        self._clock = clock
        self._opinions: dict[Ref, Opinion] = {}
        self.attendant = Attendant(self._tell, clock, entropy, rest=told_every, after=after)

    def forget(self) -> None:
        """Have nothing to tell."""
        self._opinions.clear()

    def say(self, whole: Ref, opinion: Opinion | None) -> None:
        """Have it told what was come to about a gang; None is that nothing of it waits."""
        if opinion is None or not opinion.is_refusal:
            was_told = self._opinions.pop(whole, None) is not None
            if was_told or self._is_refused(whole):
                self.attendant.add(whole)
            return
        if self._opinions.get(whole) != opinion or not self._is_refused(whole):
            self._opinions[whole] = opinion
            self.attendant.add(whole, SETTLES_WITHIN)

    def opinion(self, whole: Ref) -> Opinion | None:
        """Return what is said of a gang; None where nothing of it waits."""
        return self._opinions.get(whole)

    def _is_refused(self, whole: Ref) -> bool:
        gang = self._ledger.gangs.get(whole)
        return gang is not None and any(
            each.type == schedulability.SCHEDULABLE and each.reason != schedulability.PLACED
            for each in gang.status.conditions
        )

    async def _tell(self, whole: Ref) -> Failure | None:
        opinion = self._opinions.get(whole)
        gang = self._ledger.gangs.get(whole)
        if whole.kind == groupkinds.GANG:
            if gang is None:
                self._opinions.pop(whole, None)
                return None
            failure = await self._tell_gang(whole, gang, opinion)
            if failure is not None:
                return failure
        if opinion is None:
            return None
        waiting = [pod for pod in self._ledger.members(whole).values() if self._ledger.waits(pod)]
        told = await asyncio.gather(
            *(self._tell_pod(pod, None if gang is None else whole, opinion) for pod in waiting)
        )
        return next((failure for failure in told if failure is not None), None)

    async def _tell_gang(
        self, whole: Ref, gang: PodGang, opinion: Opinion | None
    ) -> Failure | None:
        before = gang.status.conditions
        wanted = schedulability.gang_conditions(before, opinion, self._clock.now())
        if wanted is before:
            return None
        failure = await self._put(whole, gang.metadata.resource_version, wanted)
        if failure is None and opinion is not None:
            self._emit_failed(whole, opinion)
        return failure

    async def _tell_pod(self, pod: Pod, gang: Ref | None, opinion: Opinion) -> Failure | None:
        before = pod.status.conditions
        wanted = schedulability.pod_conditions(pod, gang, opinion, self._clock.now())
        if wanted is before:
            return None
        ref = ledgers.ref_of(groupkinds.POD, pod)
        failure = await self._put(ref, pod.metadata.resource_version, wanted)
        if failure is None and gang is None:
            self._emit_failed(ref, opinion)
        return failure

    async def _put(
        self, target: Ref, version: str, wanted: tuple[Condition, ...]
    ) -> Failure | None:
        told: list[Json] = [records.encode(each) for each in wanted]
        change: Document = {"conditions": told}
        return await self._hands.put_in_status(
            target, change, Precondition(resource_version=version)
        )

    # Events

    def _emit_failed(self, about: Ref, opinion: Opinion) -> None:
        self._emit(about, "Warning", FAILED, opinion.message)

    def emit_placed(self, about: Ref, note: str) -> None:
        """Tell that something got its place."""
        self._emit(about, "Normal", SCHEDULED, note)

    def _emit(self, about: Ref, type_: str, reason: str, note: str) -> None:
        """Tell it in an event: one of a kind an object, which counts."""
        self._recorder.emit(
            Emit(about=about, type=type_, reason=reason, note=note, key=reason), NAME
        )
