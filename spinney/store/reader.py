"""The store as the ports see it: a Reader that never lags, and a Source to list and watch."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.errors import BadRequest
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Page, WatchEvent
from spinney.store.store import Event, Store, Stored

R = TypeVar("R", bound=Record)


class StoreReader:
    """Implements `ports.Reader`. Records are decoded when first asked for, and shared by all."""

    def __init__(self, store: Store, kinds: Iterable[Kind]) -> None:
        """Read objects of these kinds, each by the record it declares, unless others do too."""
        self._store = store
        declared: dict[type[Record], list[GroupKind]] = {}
        for kind in kinds:
            if kind.stored_as is not None:
                continue
            declared.setdefault(kind.record, []).append(kind.names.group_kind)
        self._kinds = {record: found[0] for record, found in declared.items() if len(found) == 1}

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        """Return an object, None where there is none; raises DecodeError where it fits not."""
        ref = Ref(kind=self._kind_of(record), namespace=namespace, name=name)
        stored = self._store.get(ref)
        return None if stored is None else stored.view(record)

    def list(
        self, record: type[R], *, namespace: str | None = None, by: tuple[str, str] | None = None
    ) -> Sequence[R]:
        """Return objects sorted by Ref; raises DecodeError naming one that fits not."""
        found = self._store.list(self._kind_of(record), namespace=namespace, by=by)
        return [stored.view(record) for stored in found]

    def _kind_of(self, record: type[Record]) -> GroupKind:
        kind = self._kinds.get(record)
        assert kind is not None, f"{record.__name__} is not the record of one kind that is read"
        return kind

    def seen(self, kind: GroupKind) -> int:  # noqa: ARG002 - it holds all kinds alike
        """Return the newest version there is: nothing committed is missing here."""
        return self._store.version

    def on_change(self, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        """Have a function called after each change of a kind, from now on."""
        _Listener(self._store, kind, call)


class _Listener:
    """Calls a function for each event of a kind, whatever it raised for the one before."""

    def __init__(self, store: Store, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        store.attach(kind, store.version, self)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            try:
                self._call(event.stored.ref, event.change)
            except Exception as error:  # noqa: BLE001 - the next event must be told too
                message = f"a listener raised at {event.change.value} of {event.stored.ref}"
                self._loop.call_exception_handler({"message": message, "exception": error})

    def cut(self) -> None:
        """Learn nothing: `deliver` does not raise, so it is never cut off."""


class _Token(msgspec.Struct, frozen=True, array_like=True):
    """How far a list has come: the version it is of, and the last object it gave."""

    version: int
    namespace: str
    name: str


class StoreSource:
    """Implements `ports.Source` in the process of the store."""

    def __init__(self, store: Store) -> None:
        """List and watch what is committed."""
        self._store = store

    async def list(self, kind: GroupKind, *, limit: int, token: str = "") -> Page:
        """Return the next part of all objects of a kind, as they were when the first was given.

        Raises Expired where that is too long ago.
        """
        place = _decoded(token) if token else _Token(self._store.version, "", "")
        found = _objects_at(self._store, kind, place.version)
        items = found[bisect_right(found, (place.namespace, place.name), key=_place) :]
        page = items[:limit] if limit > 0 else items
        rest = ""
        if len(page) < len(items):
            last = page[-1].ref
            rest = msgspec.json.encode(_Token(place.version, last.namespace, last.name)).decode()
        return Page(
            items=tuple(stored.document() for stored in page),
            resource_version=str(place.version),
            token=rest,
        )

    async def watch(self, kind: GroupKind, since: str) -> AsyncIterator[WatchEvent]:
        """Yield every change after a version; raises Expired where that is compacted away.

        A watch that is read slowly holds nothing back: it reads from the history, and is Expired
        where it falls behind that. Once it has caught up for the first time, a bookmark says so.
        """
        if not since.isdigit():
            raise BadRequest(f'resource version "{since}" is not a number')
        cursor = _Cursor(self._store, kind, int(since))
        try:
            for event in cursor.take():
                yield _as_told(event)
            yield WatchEvent(change=Change.BOOKMARK, resource_version=str(cursor.position))
            while True:
                await cursor.moved.wait()
                for event in cursor.take():
                    yield _as_told(event)
        finally:
            self._store.detach(cursor)


class _Cursor:
    """How far a watch has come in the history; it wakes the watch when there is more."""

    def __init__(self, store: Store, kind: GroupKind, since: int) -> None:
        self.position = since
        self.moved = asyncio.Event()
        self._store = store
        self._kind = kind
        store.attach(kind, since, self)

    def deliver(self, events: Sequence[Event]) -> None:
        """Go to just before the first event there is to read; of this kind, nothing lies between.

        While earlier ones are unread still, the place is theirs.
        """
        if not self.moved.is_set():
            self.position = events[0].version - 1
            self.moved.set()

    def cut(self) -> None:
        """Learn nothing: `deliver` does not raise, so it is never cut off."""

    def take(self) -> Sequence[Event]:
        """Return what there is to read; raises Expired where some of it is gone."""
        self.moved.clear()
        events = self._store.since(self.position, self._kind)
        self.position = self._store.version
        return events


def _place(stored: Stored) -> tuple[str, str]:
    return stored.ref.namespace, stored.ref.name


def _as_told(event: Event) -> WatchEvent:
    return WatchEvent(
        change=event.change,
        resource_version=str(event.version),
        ref=event.stored.ref,
        document=event.stored.document(),
    )


def _objects_at(store: Store, kind: GroupKind, version: int) -> Sequence[Stored]:
    """Return the objects of a kind as they were: what came since is taken back."""
    now = store.list(kind)
    since = store.since(version, kind)
    if not since:
        return now
    then = {stored.ref: stored for stored in now}
    for event in reversed(since):
        if event.before is None:
            del then[event.stored.ref]
        else:
            then[event.stored.ref] = event.before
    return sorted(then.values(), key=lambda stored: stored.ref)


def _decoded(token: str) -> _Token:
    try:
        return msgspec.json.decode(token, type=_Token)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the continue token is none of ours: {error}") from error
