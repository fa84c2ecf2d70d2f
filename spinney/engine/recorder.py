"""The recorder: tells people what happened, as Event objects of the core group.

Whoever emits does not wait, and never fails by it: events are gathered here, and written by a task
of their own. Emits with one key are one Event that counts. Its name is computed from the object,
the reason and the key, so a controller that is killed and says it again meets its own event.

What keeps it in bounds: one Event is written once at a time, and what is said of it meanwhile is
counted together; an object may be told of 25 times, and once more every 30 seconds; what is
gathered is bounded, and what goes over a bound is dropped and counted as dropped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.events import NOTE_LENGTH_MAX
from spinney.api.kinds import KINDS
from spinney.decisions.actions import Emit
from spinney.engine import logs, subjects
from spinney.engine.metrics import Metrics
from spinney.engine.subjects import Subject
from spinney.engine.verdicts import Refusal
from spinney.meta import errors, hashing
from spinney.meta.documents import Document
from spinney.meta.metadata import SUBDOMAIN_LENGTH_MAX
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.meta.times import format_time
from spinney.ports import Clock, Reader, Writer

EVENT: Final = GroupKind(group="", kind="Event")
CLUSTER_SCOPE_NAMESPACE: Final = "default"
"""Where events of objects without a namespace lie."""

BURST_MAX: Final = 25
REFILL: Final = timedelta(seconds=30)
GATHERED_MAX: Final = 2_000
"""How many different events may wait to be written."""

REMEMBERED_MAX: Final = 4_096
"""Of how many events the count is remembered, and of how many objects how often they were told."""

WRITE_MAX: Final = timedelta(seconds=10)
"""How long the answer to one write is waited for."""

TRIES_MAX: Final = 3
TRY_AGAIN: Final = timedelta(seconds=1)

_log = logs.logger("engine")


class RecorderStatistics(Record):
    """What the recorder holds."""

    waiting: int = 0
    remembered: int = 0
    is_writing: bool = False


class _Told:
    """One Event that is waiting to be written, and how often it was said since."""

    __slots__ = ("count", "document", "first", "last", "ref", "tries")

    def __init__(self, ref: Ref, document: Document, now: datetime) -> None:
        self.ref = ref
        self.document = document
        self.count = 0
        self.tries = 0
        self.first = self.last = now


class _Budget:
    """How often one object may still be told of."""

    __slots__ = ("at", "left")

    def __init__(self, now: timedelta) -> None:
        self.left = BURST_MAX
        self.at = now

    def spend(self, now: timedelta) -> bool:
        refilled = (now - self.at) // REFILL
        if refilled:
            self.left = min(BURST_MAX, self.left + refilled)
            self.at += refilled * REFILL
        if self.left <= 0:
            return False
        self.left -= 1
        return True


class Recorder:
    """Gathers events and writes them."""

    def __init__(
        self, reader: Reader, writer: Writer, clock: Clock, metrics: Metrics, *, instance: str
    ) -> None:
        """Write as an instance: the process that tells, as `reportingInstance` names it."""
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._metrics = metrics
        self._instance = instance
        self._waiting: deque[_Told] = deque()
        self._by_name: dict[Ref, _Told] = {}
        self._counts: OrderedDict[Ref, int] = OrderedDict()
        self._budgets: OrderedDict[Ref, _Budget] = OrderedDict()
        self._bell = asyncio.Event()
        self._is_writing = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    def emit(self, said: Emit, controller: str, subject: Subject | None = None) -> None:
        """Take an event to be told; returns at once."""
        document = self._document(said, controller, subject)
        ref = _ref_of(document)
        told = self._by_name.get(ref)
        now = self._clock.now()
        if told is None:
            if not self._may_tell(said.about) or len(self._waiting) >= GATHERED_MAX:
                self._metrics.count("spinney_events_total", "dropped")
                return
            told = self._by_name[ref] = _Told(ref, document, now)
            self._waiting.append(told)
            self._quiet.clear()
            self._bell.set()
        told.count += 1
        told.last = now
        told.document = document

    def _may_tell(self, about: Ref) -> bool:
        now = self._clock.elapsed()
        budget = self._budgets.get(about)
        if budget is None:
            budget = self._budgets[about] = _Budget(now)
            if len(self._budgets) > REMEMBERED_MAX:
                self._budgets.popitem(last=False)
        self._budgets.move_to_end(about)
        return budget.spend(now)

    def _document(self, said: Emit, controller: str, subject: Subject | None) -> Document:
        about = said.about
        uid = subject.metadata.uid if subject is not None and subject.ref == about else ""
        if not uid:
            metadata = subjects.metadata_of(subjects.view_of(self._reader, about))
            uid = "" if metadata is None else metadata.uid
        note = cut(said.note)
        involved: Document = {"kind": about.kind.kind, "name": about.name}
        if about.kind in KINDS:
            involved["apiVersion"] = KINDS[about.kind].names.api_version
        if about.namespace:
            involved["namespace"] = about.namespace
        if uid:
            involved["uid"] = uid
        name = event_name(about, uid, said.type, said.reason, said.key or note)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.namespace or CLUSTER_SCOPE_NAMESPACE},
            "involvedObject": involved,
            "type": said.type,
            "reason": said.reason,
            "message": note,
            "source": {"component": controller},
            "reportingComponent": controller,
            "reportingInstance": self._instance,
        }

    # Writing

    async def run(self) -> None:
        """Write what is gathered, until cancelled.

        Another process may have counted since this last ran, so counts begin as unknown.
        """
        self._counts.clear()
        try:
            while True:
                await self._write_what_waits()
                self._quiet.set()
                await self._bell.wait()
                self._bell.clear()
        finally:
            if not self._waiting:
                self._quiet.set()

    async def _write_what_waits(self) -> None:
        while self._waiting:
            told = self._waiting.popleft()
            del self._by_name[told.ref]
            self._is_writing = True
            try:
                await self._write(told)
            finally:
                self._is_writing = False

    async def wait_quiet(self) -> None:
        """Wait until all that was told so far is written, or was given up."""
        await self._quiet.wait()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be told."""
        return self._quiet.is_set()

    async def _write(self, told: _Told) -> None:
        while True:
            try:
                async with asyncio.timeout(WRITE_MAX.total_seconds()):
                    await self._write_once(told)
            except errors.NotFound as error:
                self._give_up(told, error)
            except Refusal as error:
                told.tries += 1
                transient = not isinstance(error, errors.ApiError) or error.code in (409, 429)
                if (transient or _is_server_fault(error)) and told.tries < TRIES_MAX:
                    await self._clock.sleep(TRY_AGAIN * told.tries)
                    continue
                self._give_up(told, error)
            return

    async def _write_once(self, told: _Told) -> None:
        known = self._counts.get(told.ref)
        if known is None:
            try:
                await self._writer.create(_with_count(told.document, told, told.count))
            except errors.AlreadyExists:
                pass
            else:
                self._remember(told.ref, told.count)
                self._metrics.count("spinney_events_total", "created")
                return
        await self._count_up(told, known)

    async def _count_up(self, told: _Told, known: int | None) -> None:
        """Say of an Event that it happened again.

        How often it was told before this process began is not known, and is left as it stands.
        """
        change: Document = {
            "lastTimestamp": format_time(told.last),
            "message": told.document["message"],
        }
        if known is not None:
            change["count"] = known + told.count
        try:
            await self._writer.patch(told.ref, change, Precondition())
        except errors.NotFound:
            self._counts.pop(told.ref, None)
            await self._writer.create(_with_count(told.document, told, told.count))
            self._remember(told.ref, told.count)
            self._metrics.count("spinney_events_total", "created")
            return
        if known is not None:
            self._remember(told.ref, known + told.count)
        self._metrics.count("spinney_events_total", "counted")

    def _remember(self, ref: Ref, count: int) -> None:
        self._counts[ref] = count
        self._counts.move_to_end(ref)
        if len(self._counts) > REMEMBERED_MAX:
            self._counts.popitem(last=False)

    def _give_up(self, told: _Told, error: Exception) -> None:
        self._metrics.count("spinney_events_total", "failed")
        said = logs.fields(object=told.ref, about=str(told.document["reason"]), why=str(error))
        _log.warning("an event could not be told", extra=said)

    def statistics(self) -> RecorderStatistics:
        """Return what the recorder holds."""
        return RecorderStatistics(
            waiting=len(self._waiting),
            remembered=len(self._counts),
            is_writing=self._is_writing,
        )


def _is_server_fault(error: Exception) -> bool:
    return isinstance(error, errors.ApiError) and error.code >= 500


def _ref_of(document: Document) -> Ref:
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    return Ref(kind=EVENT, namespace=str(metadata["namespace"]), name=str(metadata["name"]))


def _with_count(document: Document, told: _Told, count: int) -> Document:
    return {
        **document,
        "firstTimestamp": format_time(told.first),
        "lastTimestamp": format_time(told.last),
        "count": count,
    }


def event_name(about: Ref, uid: str, type_: str, reason: str, key: str) -> str:
    """Return the name of the event that tells of an object, a reason and a key: always the same."""
    told = [about.kind.group, about.kind.kind, about.namespace, about.name, uid, type_, reason, key]
    sign = hashing.content_hash([*told])
    short = about.name[: SUBDOMAIN_LENGTH_MAX - len(sign) - 1].rstrip(".-")
    return f"{short}.{sign}"


def cut(note: str, most: int = NOTE_LENGTH_MAX) -> str:
    """Return a note of at most so many bytes, cut between characters; "…" says that it was cut."""
    body = note.encode(errors="replace")
    if len(body) <= most:
        return body.decode()
    mark = "…".encode()
    return (body[: most - len(mark)]).decode(errors="ignore") + mark.decode()
