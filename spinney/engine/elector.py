"""The elector: takes and keeps the lease, and has the leader's work done while it is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from spinney.api.core.lease import Lease
from spinney.engine import logs
from spinney.engine.alarms import Alarm
from spinney.engine.leases import LEASE, Election, LeaseSettings, Step, Verb
from spinney.engine.metrics import Metrics
from spinney.engine.validation import Validation
from spinney.engine.verdicts import Refusal
from spinney.meta.documents import Document
from spinney.meta.errors import AlreadyExists, Conflict, NotFound, Unavailable
from spinney.meta.references import Precondition, Ref
from spinney.ports import Change, Clock, Entropy, Reader, Writer, Written

_log = logs.logger("engine")


class Elector:
    """Leads when it can."""

    def __init__(
        self,
        settings: LeaseSettings,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
        *,
        identity: str,
    ) -> None:
        """Be a candidate; a uid is added to `identity`, so that no two candidates share one."""
        self._settings = settings
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self.election = Election(f"{identity}_{entropy.uid()}", settings)
        self._bell = asyncio.Event()
        self._alarm = Alarm(clock, self._bell.set)
        self._is_stopping = False
        self._leading: asyncio.Task[None] | None = None
        self._ended_with: BaseException | None = None
        self._validation = Validation(self.election.validate, lambda: 1)
        reader.on_change(LEASE, self._changed)

    def may_act(self) -> bool:
        """Whether the leader's work may be done at this moment."""
        return self.election.may_act(self._clock.elapsed())

    def _changed(self, ref: Ref, change: Change) -> None:
        if change is not Change.BOOKMARK and ref == self._settings.ref:
            self._bell.set()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Have the leader's work done whenever this process leads, until `stop`.

        The work is cancelled when leadership is lost. What it raises is raised; if it ends by
        itself, so does this. The lease is given up at the end.
        """
        try:
            while not self._has_ended() and not (self._is_stopping and self._leading is None):
                self._observe()
                step = self.election.next_step(self._clock.elapsed())
                await self._take(step)
                await self._follow(lead)
                self._validation.step()
        finally:
            self._alarm.stop()
            await self._end_work()
            await self._release()
        self._raise_what_ended()

    def stop(self) -> None:
        """Begin no more work; return once what is under way ended by itself."""
        self._is_stopping = True
        self._bell.set()

    def _observe(self) -> None:
        ref = self._settings.ref
        lease = self._reader.get(Lease, ref.namespace, ref.name)
        self.election.observe(lease, self._clock.elapsed())

    async def _take(self, step: Step) -> None:
        now = self._clock.now()
        if step.verb is Verb.CREATE:
            await self._write("taken", lambda: self._writer.create(self.election.new_lease(now)))
        elif step.verb is Verb.TAKE:
            await self._patch("taken", self.election.taking(now), step.version)
        elif step.verb is Verb.RENEW:
            await self._patch("renewed", self.election.renewing(now), step.version)
        elif step.verb is Verb.WAIT:
            self._alarm.set(step.until)
            await self._bell.wait()
            self._bell.clear()

    async def _patch(self, word: str, change: Document, version: str) -> None:
        only_if = Precondition(resource_version=version)
        await self._write(word, lambda: self._writer.patch(self._settings.ref, change, only_if))

    async def _write(self, word: str, write: Callable[[], Awaitable[Written]]) -> None:
        """Write the lease; what takes longer than we may act is given up as failed."""
        sent_at = self._clock.elapsed()
        left = (self.election.held_until or sent_at + self._settings.renew_deadline) - sent_at
        try:
            written = await self._within(left, write)
        except Refusal as error:
            moved = isinstance(error, (Conflict, AlreadyExists, NotFound))
            self._metrics.count("spinney_lease_writes_total", "refused" if moved else "failed")
            said = logs.fields(object=self._settings.ref, why=str(error) or type(error).__name__)
            _log.info("the lease could not be written", extra=said)
            jitter = self._entropy.jitter(self._settings.retry / 4)
            self.election.failed(self._clock.elapsed(), jitter)
            return
        self._metrics.count("spinney_lease_writes_total", word)
        self.election.succeeded(written.resource_version, sent_at, self._clock.elapsed())

    async def _within(self, left: timedelta, write: Callable[[], Awaitable[Written]]) -> Written:
        async with asyncio.timeout(left.total_seconds()):
            return await write()

    async def _follow(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Begin the leader's work, or end it, as the election says."""
        if self.may_act():
            if self._leading is None and not self._is_stopping:
                _log.info("leading", extra=logs.fields(identity=self.election.identity))
                self._leading = asyncio.create_task(self._work(lead), name="leader")
        elif self._leading is not None and not self._leading.done():
            _log.warning("no longer leading", extra=logs.fields(identity=self.election.identity))
            await self._end_work()
            self.election.stood_down()
        elif self._leading is None:
            self.election.stood_down()

    async def _work(self, lead: Callable[[], Awaitable[None]]) -> None:
        try:
            await lead()
        finally:
            self._bell.set()

    def _has_ended(self) -> bool:
        is_done = self._leading is not None and self._leading.done()
        return is_done or self._ended_with is not None

    async def _end_work(self) -> None:
        leading, self._leading = self._leading, None
        if leading is None:
            return
        if not leading.done():
            leading.cancel()
        (ended,) = await asyncio.gather(leading, return_exceptions=True)
        if isinstance(ended, BaseException) and not isinstance(ended, asyncio.CancelledError):
            self._ended_with = ended

    def _raise_what_ended(self) -> None:
        if self._ended_with is not None:
            raise self._ended_with

    async def _release(self) -> None:
        """Free the lease, so that another need not wait; if that fails, it will run out."""
        if not self.may_act():
            return
        self._observe()
        self.election.stood_down()
        change = self.election.releasing(self._clock.now())
        only_if = Precondition(resource_version=self.election.version)
        try:
            async with asyncio.timeout(self._settings.retry.total_seconds()):
                await self._writer.patch(self._settings.ref, change, only_if)
        except Refusal as error:
            self._metrics.count("spinney_lease_writes_total", "failed")
            said = logs.fields(object=self._settings.ref, why=str(error) or type(error).__name__)
            _log.info("the lease could not be released", extra=said)
        else:
            self._metrics.count("spinney_lease_writes_total", "released")


class FencedWriter:
    """A writer that refuses once this process may no longer act. Implements `ports.Writer`."""

    def __init__(self, writer: Writer, may_act: Callable[[], bool]) -> None:
        """Ask before each write."""
        self._writer = writer
        self._may_act = may_act

    def _check(self) -> None:
        if not self._may_act():
            raise Unavailable("this process does not lead, or not any more: nothing was written")

    async def create(self, document: Document) -> Written:
        """Make an object."""
        self._check()
        return await self._writer.create(document)

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Say how an object should be."""
        self._check()
        return await self._writer.apply(document, force=force)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object."""
        self._check()
        return await self._writer.patch(target, merge, only_if, subresource)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status."""
        self._check()
        return await self._writer.put_status(target, status, resource_version)

    async def delete(
        self, target: Ref, only_if: Precondition, *, grace_seconds: int | None, propagation: str
    ) -> None:
        """Delete an object."""
        self._check()
        await self._writer.delete(
            target, only_if, grace_seconds=grace_seconds, propagation=propagation
        )

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod if disruption budgets allow it."""
        self._check()
        await self._writer.evict(target, only_if)

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        self._check()
        await self._writer.bind(pod, node, only_if)
