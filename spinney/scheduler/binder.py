"""The binder: sends what was decided, and sends again what was not answered.

All pods of a gang are sent together, with its score first. What is refused for good goes back to
waiting; what is refused because the world moved, or not answered, may stand: it keeps its place in
the ledger, and is sent again after a back-off until it is seen to be settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

from spinney.decisions.placement.outcomes import FULL_SCORE, Binding
from spinney.engine import backoff, logs
from spinney.engine.queue import NO_TIME, Queue
from spinney.engine.verdicts import Failure, Verdict
from spinney.meta.references import Precondition, Ref
from spinney.ports import Clock, Entropy
from spinney.scheduler.hands import NAME, Hands
from spinney.scheduler.ledger import Effect, Ledger
from spinney.scheduler.teller import Teller

NODES_TOLD: Final = 3
"""How many nodes an event names."""

_log = logs.logger(NAME)


class Binder:
    """Binds the pods of gangs."""

    def __init__(
        self,
        ledger: Ledger,
        hands: Hands,
        teller: Teller,
        clock: Clock,
        entropy: Entropy,
        *,
        refused: Callable[[Effect], None],
        ended: Callable[[Ref], None],
    ) -> None:
        """Call `refused` for a pod that waits again, and `ended` once all of a gang is answered."""
        self._ledger = ledger
        self._hands = hands
        self._teller = teller
        self._clock = clock
        self._entropy = entropy
        self._refused = refused
        self._ended = ended
        self.forget()

    def forget(self) -> None:
        """Have sent nothing."""
        self.in_flight = 0
        """How many pods were sent and not answered."""

        self.crash: BaseException | None = None
        """What a bug of ours raised."""

        self._tasks: dict[Ref, asyncio.Task[None]] = {}
        self._failures: dict[Ref, int] = {}
        self._unanswered: dict[Ref, set[str]] = {}
        self._later = Queue()

    def forget_gang(self, whole: Ref) -> None:
        """Know nothing of a gang that is gone, or wants nothing."""
        self._failures.pop(whole, None)
        self._unanswered.pop(whole, None)

    def is_busy_with(self, whole: Ref) -> bool:
        """Whether a gang's pods are on their way, or wait to be sent again."""
        return whole in self._tasks or self._later.state(whole) is not None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way or waits to be sent again."""
        return not self._tasks and not len(self._later)

    @property
    def under_way_count(self) -> int:
        """How many gangs have pods on their way."""
        return len(self._tasks)

    @property
    def failing_count(self) -> int:
        """How many gangs have pods that wait to be sent again."""
        return len(self._later)

    def due(self, now: timedelta) -> Iterator[Ref]:
        """Yield the gangs whose back-off is over."""
        while (whole := self._later.take(now)) is not None:
            self._later.finish(whole, now)
            yield whole

    def next_due(self) -> timedelta | None:
        """Return when the next back-off is over."""
        return self._later.next_due()

    async def stop(self) -> None:
        """Wait for no more answers."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Sending

    def bind(self, whole: Ref, bindings: Iterable[Binding], score: int | None = None) -> None:
        """Send the pods of a gang to their nodes, and say how close together they are."""
        sent = tuple(bindings)
        self.in_flight += len(sent)
        task = asyncio.create_task(self._send(whole, sent, score), name=f"scheduler: bind {whole}")
        self._tasks[whole] = task
        task.add_done_callback(lambda done: self._sent(whole, len(sent), done))

    def bind_again(self, whole: Ref) -> bool:
        """Send again what of a gang was not answered; returns whether anything is."""
        unanswered = self._unanswered.pop(whole, set())
        again = [each for each in self._ledger.assumed(whole) if each.uid in unanswered]
        if again:
            self.bind(whole, again)
        return bool(again)

    def _sent(self, whole: Ref, count: int, task: asyncio.Task[None]) -> None:
        self.in_flight -= count
        self._tasks.pop(whole, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.crash = error
        self._ended(whole)

    async def _send(self, whole: Ref, bindings: tuple[Binding, ...], score: int | None) -> None:
        """Have pods bound; all are sent, so that as much as can be is where it should be."""
        writes = [self._hands.bind(each.pod, each.uid, each.node) for each in bindings]
        _, *answers = await asyncio.gather(self._put_score(whole, score), *writes)
        for binding, failure in zip(bindings, answers, strict=True):
            if failure is None:
                continue
            if failure.verdict is Verdict.STALLED:
                self._refused(self._ledger.withdraw(binding))
            else:
                self._unanswered.setdefault(whole, set()).add(binding.uid)
        failures = [failure for failure in answers if failure is not None]
        if failures:
            self._back_off(whole, failures)
            return
        self._failures.pop(whole, None)
        if bindings:
            self._tell_placed(whole, bindings)

    async def _put_score(self, whole: Ref, score: int | None) -> Failure | None:
        gang = self._ledger.gangs.get(whole)
        if score is None or gang is None:
            return None
        share = score / FULL_SCORE
        if gang.status.placement_score == share:
            return None
        only_if = Precondition(uid=gang.metadata.uid)
        return await self._hands.put_in_status(whole, {"placementScore": share}, only_if)

    def _back_off(self, whole: Ref, failures: list[Failure]) -> None:
        count = self._failures[whole] = self._failures.get(whole, 0) + 1
        delay = backoff.RETRY.delay(count, self._entropy)
        asked = max((each.retry_after or NO_TIME for each in failures), default=NO_TIME)
        self._later.add(whole, self._clock.elapsed(), max(delay, asked))

    def _tell_placed(self, whole: Ref, bindings: tuple[Binding, ...]) -> None:
        nodes = sorted({each.node for each in bindings})
        said = logs.fields(object=whole, pods=len(bindings), nodes=len(nodes), controller=NAME)
        _log.info("placed", extra=said)
        if self._ledger.gangs.get(whole) is None:
            note = f"Successfully assigned {whole.namespace}/{whole.name} to {nodes[0]}"
        else:
            shown = ", ".join(nodes[:NODES_TOLD])
            more = f" and {len(nodes) - NODES_TOLD} more" if len(nodes) > NODES_TOLD else ""
            pods = "1 pod" if len(bindings) == 1 else f"{len(bindings)} pods"
            note = f"Successfully assigned {pods} to {shown}{more}"
        self._teller.emit_placed(whole, note)
