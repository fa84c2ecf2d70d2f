"""The executor: carries out decisions. Nothing else in a controller writes.

In order: an intent alone, or the actions by runs (`engine/runs`), then the status. It retries
nothing, and says what a failure means (`engine/verdicts`). Where the world moved, or the server
cannot just now, it stops, having waited for what is under way, and the next look decides from what
then stands. What is refused for good stops nothing but what needs it: one autoscaler that is
refused must not hold back a scale-in.

* A status is written with the resource version its decision was made from, or the one our own
  writes to that object returned since. Our own patches of the subject are therefore made under
  that version as well: between observation and status nobody else can have come unnoticed.
* A status that says what stands there already is not written.
* `Create` of what is there already is a precondition that failed, not an error. If the holder is
  not ours, the log says so; the next observation sees it, and its decision names it (rule 1.5).
* `Delete` and `Evict` of what is gone have reached their goal.
* What was written is expected to be seen before the key is looked at again.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from spinney.decisions.actions import (
    ACTIONS_MAX,
    Action,
    Apply,
    Bind,
    Create,
    Decision,
    Delete,
    Emit,
    Evict,
    Patch,
)
from spinney.engine import logs, runs, subjects, verdicts
from spinney.engine.expectations import Expectations
from spinney.engine.metrics import Metrics
from spinney.engine.recorder import Recorder
from spinney.engine.runs import Run
from spinney.engine.subjects import STALLED, Subject
from spinney.engine.verdicts import Failure, Refusal, Verdict
from spinney.meta import errors
from spinney.meta.documents import Document
from spinney.meta.errors import InvariantViolation
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref
from spinney.ports import Clock, Reader, Writer, Written

IN_FLIGHT_MAX: Final = 32
"""How many writes of one run are under way at the same time."""

WRITE_MAX: Final = timedelta(seconds=30)
"""How long the answer to one write is waited for; then it counts as not given."""

_log = logs.logger("engine")


class Result(enum.Enum):
    """What became of a decision."""

    DONE = "done"
    INTENT = "intent"
    """The intent is stored: look again to act on it."""

    MOVED = "moved"
    LATER = "later"
    STALLED = "stalled"


class Outcome(Record):
    """What carrying out a decision led to."""

    result: Result
    changed_count: int = 0
    failure: Failure | None = None
    is_cut_off: bool = False
    """Whether the decision was full: there may be more to do."""

    @property
    def retry_after(self) -> timedelta | None:
        """How long the server asked to be left alone."""
        return None if self.failure is None else self.failure.retry_after


class _Look:
    """One decision being carried out."""

    def __init__(self, subject: Subject, look_id: str) -> None:
        self.subject = subject
        self.look_id = look_id
        self.version = subject.metadata.resource_version
        """The version of the subject that the status is written under."""

        self.changed_count = 0
        self.failure: Failure | None = None
        self.refused: set[Ref] = set()
        """What cannot stand before somebody acts."""

        self.is_over = False
        """Whether nothing more may be begun: what was decided is of a world that moved."""


class Executor:
    """Carries out the decisions of one controller."""

    def __init__(
        self,
        name: str,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        expectations: Expectations,
        recorder: Recorder,
        metrics: Metrics,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
    ) -> None:
        """Write for a controller of a name."""
        self._name = name
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._expectations = expectations
        self._recorder = recorder
        self._metrics = metrics
        self._in_flight_max = in_flight_max

    def is_idle(self, subject: Subject, decision: Decision) -> bool:
        """Whether a decision leaves everything as it is; then there is nothing to carry out."""
        if decision.actions or decision.intent is not None:
            return False
        return self._status_to_write(subject, decision) is None

    async def carry_out(self, subject: Subject, decision: Decision, look_id: str) -> Outcome:
        """Do what was decided about a subject; raises InvariantViolation for what must not be."""
        self._check(subject, decision)
        look = _Look(subject, look_id)
        if decision.intent is not None:
            if not subject.is_status(decision.intent):
                await self._put_status(look, decision.intent)
            return self._outcome(look, Result.INTENT)
        for run in runs.runs_of(decision.actions):
            await self._carry_out_run(look, run)
            if look.is_over:
                break
        if look.failure is None:
            status = self._status_to_write(subject, decision)
            if status is not None:
                await self._put_status(look, status)
        if look.failure is not None and look.failure.verdict is Verdict.STALLED:
            await self._tell_stalled(look, look.failure)
        return self._outcome(look, Result.DONE, is_cut_off=len(decision.actions) >= ACTIONS_MAX)

    async def stall(self, subject: Subject, failure: Failure, look_id: str) -> None:
        """Say of a subject that nothing can be decided before somebody acts."""
        await self._tell_stalled(_Look(subject, look_id), failure)

    def _check(self, subject: Subject, decision: Decision) -> None:
        decision.check()
        if subject.metadata.deletion_timestamp is not None:
            for action in decision.actions:
                if isinstance(action, Create):
                    raise InvariantViolation(
                        f"{subject.ref} is being deleted, and {self._name} decided to create "
                        f"{runs.target_of(action)}"
                    )

    def _outcome(self, look: _Look, result: Result, *, is_cut_off: bool = False) -> Outcome:
        if look.failure is not None:
            result = Result(look.failure.verdict.value)
        return Outcome(
            result=result,
            changed_count=look.changed_count,
            failure=look.failure,
            is_cut_off=is_cut_off,
        )

    # Actions

    async def _carry_out_run(self, look: _Look, run: Run) -> None:
        if len(run) == 1 or isinstance(run[0][0], Emit):
            for action, target in run:
                if not look.is_over:
                    await self._carry_out_action(look, action, target)
            return
        waiting = iter(run)
        hands = [
            asyncio.create_task(self._work_off(look, waiting))
            for _ in range(min(self._in_flight_max, len(run)))
        ]
        for ended in await asyncio.gather(*hands, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended

    async def _work_off(self, look: _Look, waiting: Iterator[tuple[Action, Ref]]) -> None:
        for action, target in waiting:
            if look.is_over:
                return
            await self._carry_out_action(look, action, target)
            if look.is_over:
                return

    async def _carry_out_action(self, look: _Look, action: Action, target: Ref) -> None:
        verb = type(action).__name__.lower()
        if isinstance(action, Create) and not look.refused.isdisjoint(action.needs):
            look.refused.add(target)
            self._measure(verb, target, "held")
            return
        before = self._version_before(look, action, target)
        try:
            async with asyncio.timeout(WRITE_MAX.total_seconds()):
                written = await self._act(look, action, target)
        except errors.NotFound as error:
            if isinstance(action, (Delete, Evict)):
                self._measure(verb, target, "gone")
            else:
                self._fail(look, verb, target, error)
        except errors.AlreadyExists as error:
            self._occupied(look, verb, target, error)
        except Refusal as error:
            self._fail(look, verb, target, error)
        else:
            self._done(look, action, target, written, before)

    async def _act(self, look: _Look, action: Action, target: Ref) -> Written | None:
        writer = self._writer
        match action:
            case Create(document=document):
                return await writer.create(document)
            case Apply(document=document, force=force):
                return await writer.apply(document, force=force)
            case Patch(merge=merge, subresource=subresource):
                only_if = self._condition(look, action)
                return await writer.patch(target, merge, only_if, subresource)
            case Delete(only_if=only_if, grace_seconds=grace, propagation=propagation):
                await writer.delete(target, only_if, grace_seconds=grace, propagation=propagation)
            case Evict(only_if=only_if):
                await writer.evict(target, only_if)
            case Bind(node=node, only_if=only_if):
                await writer.bind(target, node, only_if)
            case Emit():
                self._recorder.emit(action, self._name, look.subject)
        return None

    def _condition(self, look: _Look, action: Patch) -> Precondition:
        """Return a patch's precondition; our own patches of the subject keep to its version."""
        if action.target != look.subject.ref or action.only_if.resource_version is not None:
            return action.only_if
        return Precondition(
            uid=action.only_if.uid or look.subject.metadata.uid, resource_version=look.version
        )

    def _version_before(self, look: _Look, action: Action, target: Ref) -> str:
        """Return the version an object is known to have before a write that may change nothing."""
        if not isinstance(action, (Patch, Apply)):
            return ""
        if target == look.subject.ref:
            return look.version
        metadata = self._metadata(target)
        return "" if metadata is None else metadata.resource_version

    def _done(
        self, look: _Look, action: Action, target: Ref, written: Written | None, before: str
    ) -> None:
        verb = type(action).__name__.lower()
        if written is not None and written.resource_version == before:
            self._measure(verb, target, "unchanged")
            return
        if written is not None:
            self._expectations.wrote(look.subject.ref, target.kind, written.resource_version)
            if target == look.subject.ref:
                look.version = written.resource_version
        elif isinstance(action, (Delete, Evict)):
            self._expectations.deleted(look.subject.ref, target, action.only_if.uid)
        self._measure(verb, target, "changed")
        if not isinstance(action, Emit):
            look.changed_count += 1
            self._tell(logging.INFO, _PAST[verb], look, verb, target)

    # Status

    def _status_to_write(self, subject: Subject, decision: Decision) -> Document | None:
        """Return the status to be written, None where it stands there already."""
        wanted = decision.status
        if wanted is None:
            if subject.stalled is None:
                return None
            wanted = subject.status
        wanted = subjects.status_moving(wanted)
        return None if subject.is_status(wanted) else wanted

    async def _put_status(self, look: _Look, status: Document) -> None:
        target = look.subject.ref
        try:
            async with asyncio.timeout(WRITE_MAX.total_seconds()):
                written = await self._writer.put_status(target, status, look.version)
        except Refusal as error:
            self._fail(look, "status", target, error)
            return
        if written.resource_version == look.version:
            self._measure("status", target, "unchanged")
            return
        look.version = written.resource_version
        look.changed_count += 1
        self._expectations.wrote(target, target.kind, written.resource_version)
        self._measure("status", target, "changed")
        self._tell(logging.INFO, _PAST["status"], look, "status", target)

    async def _tell_stalled(self, look: _Look, failure: Failure) -> None:
        """Say on the object, and in an event, what somebody must mend."""
        subject = look.subject
        if subject.can_tell:
            now = self._clock.now()
            status = subject.status_stalled(failure.reason, failure.message, now)
            if not subject.is_status(status):
                await self._put_status(look, status)
        look.failure = failure
        told = Emit(
            about=subject.ref,
            type="Warning",
            reason=failure.reason,
            note=failure.message,
            key=f"{STALLED}/{failure.reason}/{failure.message}",
        )
        self._recorder.emit(told, self._name, subject)

    # Telling

    def _occupied(self, look: _Look, verb: str, target: Ref, error: errors.AlreadyExists) -> None:
        """Note that something stands where something was to be created."""
        holder = subjects.view_of(self._reader, target)
        if holder is None or subjects.owner_uid(holder) == look.subject.metadata.uid:
            self._measure(verb, target, "exists")
            self._note(look, verdicts.judged(error))
            return
        self._measure(verb, target, "taken")
        self._note(look, verdicts.judged(error))
        self._tell(logging.WARNING, "the name is held by an object of another", look, verb, target)

    def _fail(
        self,
        look: _Look,
        verb: str,
        target: Ref,
        error: errors.ApiError | errors.Terminal | TimeoutError | OSError,
    ) -> None:
        failure = verdicts.judged(error)
        self._note(look, failure)
        self._measure(verb, target, failure.verdict.value)
        if failure.verdict is Verdict.STALLED:
            look.refused.add(target)
        if failure.verdict is Verdict.MOVED:
            self._metrics.count("spinney_conflicts_total", self._name, target.kind.kind)
            self._tell(logging.DEBUG, "the world moved", look, verb, target, failure)
        elif failure.verdict is Verdict.LATER:
            self._tell(logging.WARNING, "not possible now", look, verb, target, failure)
        else:
            self._tell(logging.WARNING, "not possible", look, verb, target, failure)

    def _note(self, look: _Look, failure: Failure) -> None:
        """Keep the failure that decides: the first, unless a later one is worse."""
        look.is_over |= failure.verdict is not Verdict.STALLED
        if look.failure is None or _WEIGHT[failure.verdict] > _WEIGHT[look.failure.verdict]:
            look.failure = failure

    def _measure(self, verb: str, target: Ref, result: str) -> None:
        self._metrics.count("spinney_actions_total", self._name, verb, target.kind.kind, result)

    def _tell(
        self,
        level: int,
        message: str,
        look: _Look,
        verb: str,
        target: Ref,
        failure: Failure | None = None,
    ) -> None:
        if not _log.isEnabledFor(level):
            return
        said = logs.fields(
            object=target,
            action=verb,
            about=look.subject.ref,
            controller=self._name,
            reconcile_id=look.look_id,
            reason=None if failure is None else failure.reason,
            why=None if failure is None else failure.message,
        )
        _log.log(level, message, extra=said)

    def _metadata(self, target: Ref) -> ObjectMeta | None:
        return subjects.metadata_of(subjects.view_of(self._reader, target))


_WEIGHT: Final = {Verdict.MOVED: 0, Verdict.LATER: 1, Verdict.STALLED: 2}

_PAST: Final = {
    "create": "created",
    "apply": "applied",
    "patch": "patched",
    "delete": "deleted",
    "evict": "evicted",
    "bind": "bound",
    "status": "wrote the status of",
}
