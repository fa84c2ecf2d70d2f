"""The store: every object at its newest version, changed by one ordered log of durable writes.

A write is worked out from the head, that is from what is committed and what is queued, and queued
at once, so nothing comes between looking and writing. Whatever has queued is committed together,
by the one thread the journal is called on. Only then is it shown to readers, told to watchers and
acknowledged, in this order. Where a commit fails, all that was queued on top of it fails with it.

    put ──► queued (heads) ──► journal.commit ──► objects, history ──► watchers ──► acknowledged
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta

from spinney.meta import indexes
from spinney.meta.documents import Document
from spinney.meta.errors import (
    ApiError,
    CorruptJournal,
    DecodeError,
    JournalFailed,
    JournalFull,
    SpinneyError,
    StorageFull,
    TooManyRequests,
    Unavailable,
)
from spinney.meta.indexes import Extract, Objects
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Clock, Entry, Journal
from spinney.store.history import History
from spinney.store.objects import Event, Stored, stored_from_body, stored_from_document
from spinney.store.watching import Watcher, Watchers

__all__ = ["Event", "Limits", "Moved", "Statistics", "Store", "Stored", "Watcher"]

RETRY_AFTER_SECONDS = 1


class Moved(SpinneyError):
    """The object is not at the version a write expected: read it again, decide again."""

    def __init__(self, ref: Ref, *, expected: int, found: int) -> None:
        """Say which object, and at which version it is; 0 is not at all."""
        told = f"at version {found}" if found else "not there"
        super().__init__(f"{ref} is {told}, not at version {expected}")
        self.ref = ref
        self.expected = expected
        self.found = found


class Limits(Record):
    """The bounds of a store."""

    history_events_max: int = 50_000
    """How many events are kept for watches to resume from."""

    history_bytes_max: int = 128 * 1024 * 1024
    """How much memory those may hold."""

    batch_writes_max: int = 1_000
    """How many writes one commit takes."""

    queued_writes_max: int = 50_000
    """How many writes may wait; more are refused with TooManyRequests."""

    compaction_versions: int = 1_000
    """How many versions must fall out of the history before the journal forgets them."""

    rest_after: timedelta = timedelta(seconds=1)
    """How long nothing must be written before the journal is tended."""


class Statistics(Record):
    """What a store holds, and what it did since it was opened."""

    version: int
    floor: int
    objects: int
    object_bytes: int
    events: int
    event_bytes: int
    watchers: int
    queued: int
    heads: int
    """How many objects have a version that is not committed yet."""

    commits: int
    writes: int
    failed_commits: int
    failed_upkeep: int


class _Write:
    """One queued write: what it changes, what the journal keeps of it, who waits for it."""

    __slots__ = ("done", "entry", "event")

    def __init__(self, event: Event, entry: Entry, done: asyncio.Future[Stored]) -> None:
        self.event = event
        self.entry = entry
        self.done = done


class Store:
    """Objects in memory over a journal. All calls belong to the loop it was opened on."""

    def __init__(
        self, journal: Journal, clock: Clock, limits: Limits, executor: Executor | None
    ) -> None:
        """Be of no use yet: see `open`."""
        self.version = 0
        """The newest committed version."""

        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._own_executor = (
            ThreadPoolExecutor(1, thread_name_prefix="spinney-journal")
            if executor is None
            else None
        )
        self._executor = executor or self._own_executor
        self._objects = Objects()
        self._history = History(
            events_max=limits.history_events_max, bytes_max=limits.history_bytes_max
        )
        self._watchers = Watchers(self._report)
        self._assigned = 0
        self._waiting: list[_Write] = []
        self._committing: list[_Write] = []
        self._heads: dict[Ref, Event] = {}
        self._working = False
        self._kept_up = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._closed = False
        self._compacted = 0
        self._tended_at = 0
        self._is_resting = False
        self._rest: asyncio.Task[None] | None = None
        self._upkeep_failed_at = -1
        self._counts = {"commits": 0, "writes": 0, "failed_commits": 0, "failed_upkeep": 0}

    @classmethod
    async def open(
        cls,
        journal: Journal,
        clock: Clock,
        *,
        limits: Limits | None = None,
        executor: Executor | None = None,
    ) -> Store:
        """Load a journal; raises CorruptJournal naming what is damaged.

        `executor` is where the journal is called, one call at a time; a thread of the store's own
        where there is none. A simulation passes one that calls inline.
        """
        store = cls(journal, clock, limits or Limits(), executor)
        try:
            await store._loop.run_in_executor(store._executor, store._load)
        except BaseException:
            store._closed = True
            await store._let_go()
            raise
        return store

    def _load(self) -> None:
        with _collection_paused():
            for entry in self._journal.load():
                if entry.version <= self.version:
                    raise CorruptJournal(
                        f"version {entry.version} of {entry.ref} follows version {self.version}"
                    )
                self._replay(entry)
        self._history.forget(self._journal.floor + 1)
        self._compacted = self._journal.floor
        self._assigned = self._tended_at = self.version

    def _replay(self, entry: Entry) -> None:
        ref, version = entry.ref, entry.version
        body = entry.last if entry.body is None else entry.body
        if body is None:
            raise CorruptJournal(f"{ref} at version {version} has no document")
        try:
            stored = stored_from_body(ref, entry.uid, version, body)
        except DecodeError as error:
            raise CorruptJournal(str(error)) from error
        before = self._objects.get(ref)
        if entry.body is None:
            change = Change.DELETED
            self._objects.drop(ref)
        else:
            change = Change.ADDED if before is None else Change.MODIFIED
            self._objects.put(stored)
        if version > self._journal.floor:
            self._history.add(Event(change=change, stored=stored, before=before))
        self.version = version

    # Reading

    def get(self, ref: Ref) -> Stored | None:
        """Return an object as it is committed, None where there is none."""
        return self._objects.get(ref)

    def head(self, ref: Ref) -> Stored | None:
        """Return an object as it will be once all queued writes are committed."""
        event = self._heads.get(ref)
        if event is None:
            return self._objects.get(ref)
        return _outcome(event)

    def list(
        self, kind: GroupKind, *, namespace: str | None = None, by: tuple[str, str] | None = None
    ) -> Sequence[Stored]:
        """Return committed objects of a kind sorted by Ref; see ports.Reader for `by`."""
        return self._objects.list(kind, namespace, by)

    def heads(
        self, kind: GroupKind, *, namespace: str | None = None, by: tuple[str, str] | None = None
    ) -> Sequence[Stored]:
        """Return objects of a kind as they will be once all queued writes are committed."""
        queued = []
        for ref, event in self._heads.items():
            if ref.kind == kind:
                stored = _outcome(event)
                if stored is not None and not self._objects.matches(stored, namespace, by):
                    stored = None
                queued.append((ref, stored))
        return indexes.merged(self._objects.list(kind, namespace, by), queued)

    def register(self, kind: GroupKind, index_name: str, extract: Extract) -> None:
        """Give a kind an index of a name of its own, for `by`."""
        self._objects.register(kind, index_name, extract)

    def since(self, version: int, kind: GroupKind | None = None) -> Sequence[Event]:
        """Return the events after a version, oldest first; raises Expired where some may miss."""
        return self._history.after(version, self.version, kind)

    def attach(self, kind: GroupKind | None, since: int, watcher: Watcher) -> None:
        """Tell a watcher of what came after a version, at once, and of all that comes.

        None is every kind. Raises Expired where events after that version are compacted away,
        or the version is none there has been yet.
        """
        missed = self.since(since, kind)
        self._watchers.attach(kind, watcher, self.version)
        if missed:
            try:
                watcher.deliver(missed)
            except BaseException:
                self._watchers.detach(watcher)
                raise

    def detach(self, watcher: Watcher) -> None:
        """Tell a watcher no more."""
        self._watchers.detach(watcher)

    def statistics(self) -> Statistics:
        """Return what there is, counted."""
        return Statistics(
            version=self.version,
            floor=self._history.floor,
            objects=len(self._objects),
            object_bytes=self._objects.bytes,
            events=len(self._history),
            event_bytes=self._history.bytes,
            watchers=len(self._watchers),
            queued=len(self._waiting) + len(self._committing),
            heads=len(self._heads),
            **self._counts,
        )

    # Writing

    def put(self, ref: Ref, document: Document, *, expects: int) -> asyncio.Future[Stored]:
        """Queue a new version of an object, at once; what it returns is done when it is durable.

        `expects` is the version of its head, 0 where it must not be there; raises Moved where
        that is not so. What it returns raises StorageFull or Unavailable where nothing was kept.
        """
        before = self._expected(ref, expects)
        stored = stored_from_document(ref, document, self._assigned + 1)
        change = Change.ADDED if before is None else Change.MODIFIED
        entry = Entry(version=stored.version, ref=ref, uid=stored.uid, body=stored.body)
        return self._queue(Event(change=change, stored=stored, before=before), entry)

    def remove(self, ref: Ref, *, expects: int, document: Document) -> asyncio.Future[Stored]:
        """Queue a deletion; `document` is the last state, which gets the deletion's version."""
        before = self._expected(ref, expects)
        if before is None:
            raise Moved(ref, expected=expects, found=0)
        stored = stored_from_document(ref, document, self._assigned + 1)
        entry = Entry(version=stored.version, ref=ref, uid=stored.uid, body=None, last=stored.body)
        return self._queue(Event(change=Change.DELETED, stored=stored, before=before), entry)

    def _expected(self, ref: Ref, expects: int) -> Stored | None:
        """Return the head, which is at the version expected."""
        if self._closed:
            raise Unavailable("the store is closed", retry_after_seconds=RETRY_AFTER_SECONDS)
        head = self.head(ref)
        found = head.version if head else 0
        if found != expects:
            raise Moved(ref, expected=expects, found=found)
        if len(self._waiting) >= self._limits.queued_writes_max:
            raise TooManyRequests(
                f"{len(self._waiting)} writes wait for the disk already: try again later",
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        return head

    def _queue(self, event: Event, entry: Entry) -> asyncio.Future[Stored]:
        done: asyncio.Future[Stored] = self._loop.create_future()
        self._assigned = event.version
        self._heads[event.stored.ref] = event
        self._waiting.append(_Write(event, entry, done))
        self._wake()
        return done

    # Working: one call to the journal at a time

    def _wake(self) -> None:
        """Begin to work once this turn of the loop is over, with all that it queues."""
        if not self._working:
            self._working = True
            self._quiet.clear()
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        """Begin the next call to the journal, if there is anything to do."""
        turn = self._waiting and self._kept_up
        upkeep = None if turn else self._upkeep()
        self._kept_up = upkeep is not None
        if upkeep is not None:
            self._call(upkeep, self._upkeep_ended)
        elif self._waiting:
            most = self._limits.batch_writes_max
            self._committing, self._waiting = self._waiting[:most], self._waiting[most:]
            entries = [write.entry for write in self._committing]
            self._call(lambda: self._journal.commit(entries), self._commit_ended)
        else:
            self._working = False
            self._quiet.set()
            self._rest_later()

    def _call(
        self, function: Callable[[], None], ended: Callable[[asyncio.Future[None]], None]
    ) -> None:
        self._loop.run_in_executor(self._executor, function).add_done_callback(ended)

    def _commit_ended(self, future: asyncio.Future[None]) -> None:
        batch, self._committing = self._committing, []
        error = future.exception()
        if error is not None:
            self._fail([*batch, *self._waiting], error)
            self._work()
            return
        self._counts["commits"] += 1
        self._counts["writes"] += len(batch)
        for write in batch:
            self._apply(write.event)
        self._work()
        self._watchers.deliver([write.event for write in batch])
        for write in batch:
            if not write.done.done():
                write.done.set_result(write.event.stored)

    def _apply(self, event: Event) -> None:
        ref = event.stored.ref
        if event.change is Change.DELETED:
            self._objects.drop(ref)
        else:
            self._objects.put(event.stored)
        if self._heads.get(ref) is event:
            del self._heads[ref]
        self._history.add(event)
        if event.before is not None:
            event.before.forget()
        self.version = event.version

    def _fail(self, writes: Sequence[_Write], error: BaseException) -> None:
        """Refuse the batch and all that was queued on top of it; the head is what is committed."""
        self._counts["failed_commits"] += 1
        self._waiting = []
        self._heads.clear()
        if not isinstance(error, (JournalFull, JournalFailed)):
            self._report("the journal raised", error)
        for write in writes:
            if not write.done.done():
                write.done.set_exception(_refusal(error))

    # Upkeep: what the journal need not keep, and what waits for a quiet moment

    def _upkeep(self) -> Callable[[], None] | None:
        """Return the upkeep that is due, if it did not fail since the last write."""
        if self._upkeep_failed_at == self.version:
            return None
        if self._journal.is_overdue or (self._is_resting and not self._waiting):
            self._is_resting = False
            self._tended_at = self.version
            return self._journal.tend
        stride = self._limits.compaction_versions
        if self._history.floor - self._compacted >= stride:
            self._compacted += stride
            before = self._compacted + 1
            return lambda: self._journal.compact(before)
        return None

    def _upkeep_ended(self, future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self._counts["failed_upkeep"] += 1
            self._upkeep_failed_at = self.version
            self._compacted = self._journal.floor
            if not isinstance(error, (JournalFull, JournalFailed)):
                self._report("the journal raised", error)
        self._work()

    def _rest_later(self) -> None:
        """See to it that the journal is tended once nothing was written for a while."""
        if self._rest is None and not self._closed and self._tended_at != self.version:
            self._rest = self._loop.create_task(self._wait_rest(), name="store-rest")

    async def _wait_rest(self) -> None:
        seen = -1
        while seen != self.version:
            seen = self.version
            await self._clock.sleep(self._limits.rest_after)
        self._rest = None
        self._is_resting = True
        self._wake()

    # The end

    async def close(self) -> None:
        """Take no more writes, commit those that are queued, and let the journal go."""
        if self._closed:
            return
        self._closed = True
        if self._rest is not None:
            self._rest.cancel()
        await self._quiet.wait()
        await self._let_go()

    async def _let_go(self) -> None:
        try:
            await self._loop.run_in_executor(self._executor, self._journal.close)
        finally:
            if self._own_executor is not None:
                self._own_executor.shutdown()

    def _report(self, message: str, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": message, "exception": error})


def _outcome(event: Event) -> Stored | None:
    return None if event.change is Change.DELETED else event.stored


def _refusal(error: BaseException) -> ApiError:
    """Return what a writer is told whose write was not kept."""
    if isinstance(error, JournalFull):
        return StorageFull(
            f"nothing was written, the disk is full: {error}; free space on it, reads go on",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    return Unavailable(
        f"nothing was written, the disk failed: {error}", retry_after_seconds=RETRY_AFTER_SECONDS
    )


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """Keep Python from looking for cycles, which would visit every object loaded so far."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
