"""Watching: changes as they are committed, written to every client that asked for them.

A stream has two lives. While it catches up it is written to with back-pressure, as fast as its
client reads. Then it is attached to the store and written to at once with every commit; a client
that does not read is cut when too much waits for it, and lists again. An event is encoded once,
whoever watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
from aiohttp import HttpVersion11, web

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, string_at, with_value
from spinney.meta.errors import ApiError, Expired
from spinney.ports import Change, Clock
from spinney.registry import forms, selecting
from spinney.registry import watching as registry_watching
from spinney.registry.listing import Selection
from spinney.server import negotiation, replies, tables
from spinney.server.asking import LOG, Asked, Services, Timeout, whole_or_cut, write
from spinney.server.parameters import ListOptions
from spinney.store.store import Event, Stored

BACKLOG_BYTES_MAX = 16 * 1024 * 1024
"""How much may wait for a client that does not read; more cuts its watch."""

BOOKMARK_PERIOD = timedelta(minutes=1)
TIMEOUT_SECONDS = 1800
"""How long a watch lasts that says nothing; a second more for each of a hundred before it."""

CATCH_UP_BYTES = 1024 * 1024
"""How much may be left to send when a stream is attached."""

CATCH_UP_EVENTS = 64
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_encode = msgspec.json.Encoder().encode


class Lines:
    """How events of a kind look to those who see them in one form and through one selection."""

    def __init__(
        self, kind: Kind, selection: Selection, shape: str, version: str, include: str, clock: Clock
    ) -> None:
        """Know the form; nothing is written yet."""
        self.kind = kind
        self._selection = selection
        self._shape = shape
        self._version = version
        self._include = include
        self._clock = clock
        self._printer = tables.printer_for(kind) if shape == negotiation.TABLE else None
        self._has_head = False
        self._is_plain = not shape and kind.stored_as is None
        self._sees_all = (
            not selection.namespace
            and (not selection.labels.requirements and not selection.labels.is_nothing)
            and (selection.fields is None or not selection.fields.terms)
        )

    def of_events(self, events: Sequence[Event]) -> bytes:
        """Return what a client is told of events; b"" where it sees none of them."""
        if self._is_plain and self._sees_all:
            return events[0].line if len(events) == 1 else b"".join([e.line for e in events])
        return b"".join([self._of_event(event) for event in events])

    def _of_event(self, event: Event) -> bytes:
        seen = registry_watching.as_seen(self.kind, self._selection, event)
        if seen is None:
            return b""
        if self._is_plain and seen is event.change:
            return event.line
        if seen is Change.DELETED and event.change is not Change.DELETED and event.before:
            return self._line(seen.value, self._as_it_left(event.before, event.version))
        return self._line(seen.value, forms.document_of(self.kind, event.stored))

    def _as_it_left(self, before: Stored, version: int) -> Document:
        document = forms.document_of(self.kind, before)
        return with_value(document, ["metadata", "resourceVersion"], str(version))

    def of_stored(self, stored: Stored) -> bytes:
        """Return an object that was there before as one that was added."""
        if self._is_plain:
            return b'{"type":"ADDED","object":%b}\n' % stored.body
        return self._line(Change.ADDED.value, forms.document_of(self.kind, stored))

    def _line(self, change: str, document: Document) -> bytes:
        return _encode({"type": change, "object": self._shaped(document)}) + b"\n"

    def _shaped(self, document: Document) -> Json:
        if self._printer is not None:
            now = self._clock.now()
            table = tables.head(
                None if self._has_head else self._printer,
                {"resourceVersion": string_at(document, ["metadata", "resourceVersion"])},
                self._version,
            )
            self._has_head = True
            table["rows"] = [tables.row(self._printer, document, now, self._include, self._version)]
            return table
        return tables.partial(document, self._version) if self._shape else document

    def bookmark(self, version: int, *, ends_initial: bool = False) -> bytes:
        """Return the line that says nothing was missed up to a version."""
        metadata: Document = {"resourceVersion": str(version), "creationTimestamp": None}
        if ends_initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        marked: Json
        if self._shape == negotiation.TABLE:
            marked = tables.head(None, metadata, self._version)
        elif self._shape:
            marked = tables.partial({"metadata": metadata}, self._version)
        else:
            names = self.kind.names
            marked = {"kind": names.kind, "apiVersion": names.api_version, "metadata": metadata}
        return _encode({"type": "BOOKMARK", "object": marked}) + b"\n"


class Stream:
    """One client's watch. Implements the store's Watcher once it has caught up."""

    def __init__(
        self,
        lines: Lines,
        request: web.BaseRequest,
        *,
        backlog_bytes_max: int,
        read_seconds: float,
    ) -> None:
        """Belong to a request; nothing is sent before `open`."""
        self.lines = lines
        self._request = request
        self._backlog_bytes_max = backlog_bytes_max
        self._read_seconds = read_seconds
        self._response = web.StreamResponse(
            headers={"Content-Type": negotiation.JSON, "Cache-Control": "no-cache, private"}
        )
        self._is_chunked = request.version >= HttpVersion11
        self.ended = asyncio.Event()
        self.was_cut = False

    @property
    def response(self) -> web.StreamResponse:
        """The response the stream is written to."""
        return self._response

    async def open(self) -> None:
        """Send the headers."""
        await self._response.prepare(self._request)

    async def write(self, data: bytes) -> None:
        """Send as fast as the client reads."""
        if data:
            await write(self._response, data, self._read_seconds)

    def deliver(self, events: Sequence[Event]) -> None:
        """Send a commit's events at once."""
        self.send(self.lines.of_events(events))

    def end_if_left(self) -> None:
        """End where the client is gone, which otherwise only the next event would find out."""
        transport = self._request.transport
        if transport is None or transport.is_closing():
            self.ended.set()

    def send(self, data: bytes) -> None:
        """Send at once; a client for whom too much waits is cut off."""
        self.end_if_left()
        transport = self._request.transport
        if not data or self.ended.is_set() or transport is None:
            return
        transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)
        if transport.get_write_buffer_size() > self._backlog_bytes_max:
            self.was_cut = True
            self.ended.set()
            transport.abort()

    def cut(self) -> None:
        """End, because the store will tell no more: what was missed is found by listing."""
        self.send(error_line(Expired("too old resource version: list again")))
        self.ended.set()


def error_line(error: ApiError) -> bytes:
    """Return the line that ends a watch with an error."""
    return _encode({"type": "ERROR", "object": error.to_status()}) + b"\n"


class Watches:
    """All watches of a server: begins them, marks their progress, ends them."""

    def __init__(self, services: Services, *, backlog_bytes_max: int = BACKLOG_BYTES_MAX) -> None:
        """Serve watches over a world."""
        self._services = services
        self._store = services.world.store
        self._backlog_bytes_max = backlog_bytes_max
        self._marked: dict[Stream, int] = {}
        self._open: set[Stream] = set()
        self._is_stopping = False
        self.cut_count = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._open)

    async def run(self) -> None:
        """Send bookmarks, and end the watches whose clients left in silence; for ever."""
        while True:
            await self._services.clock.sleep(BOOKMARK_PERIOD)
            for stream in list(self._open):
                stream.end_if_left()
            for stream, sent in list(self._marked.items()):
                if self._store.version > sent:
                    self._mark(stream)

    def _mark(self, stream: Stream) -> None:
        self._marked[stream] = self._store.version
        stream.send(stream.lines.bookmark(self._store.version))

    def stop(self) -> None:
        """End every watch, and begin no more."""
        self._is_stopping = True
        for stream in list(self._open):
            stream.ended.set()

    async def serve(
        self, asked: Asked, kind: Kind, selection: Selection, options: ListOptions
    ) -> web.StreamResponse:
        """Answer a watch, until it ends."""
        form = asked.form
        include = include_of(asked.query.get("includeObject", ""))
        lines = Lines(kind, selection, form.shape, form.version, include, self._services.clock)
        check_version(options, self._store.version)
        initial, version = self._beginning(kind, selection, options)
        stream = Stream(
            lines,
            asked.request,
            backlog_bytes_max=self._backlog_bytes_max,
            read_seconds=self._services.read_seconds,
        )
        self._open.add(stream)
        try:
            await stream.open()
            with whole_or_cut(asked.request):
                await self._tell(stream, initial, version, options)
                if not stream.was_cut:
                    await stream.response.write_eof()
        except ConnectionError:
            LOG.debug("a client left its watch")
        finally:
            self._open.discard(stream)
            self._marked.pop(stream, None)
            self._store.detach(stream)
            self.cut_count += stream.was_cut
        return stream.response

    def _beginning(
        self, kind: Kind, selection: Selection, options: ListOptions
    ) -> tuple[tuple[Stored, ...], int]:
        """Return what a watch begins with, and the version it goes on from."""
        if options.fields is not None:
            selecting.check(kind, options.fields)
        wants_initial = options.initial_events
        if wants_initial is None:
            wants_initial = options.version == 0
        if wants_initial:
            return self._services.world.lister.select(kind, selection), self._store.version
        return (), options.version or self._store.version

    async def _tell(
        self, stream: Stream, initial: Sequence[Stored], version: int, options: ListOptions
    ) -> None:
        try:
            await self._send_initial(stream, initial)
            if options.initial_events and options.bookmarks:
                await stream.write(stream.lines.bookmark(version, ends_initial=True))
            await self._catch_up(stream, version)
        except Expired as error:
            await stream.write(error_line(error))
            return
        if self._is_stopping:
            return
        if options.bookmarks:
            self._marked[stream] = self._store.version
        if await self._lasted(stream, options.timeout_seconds) and options.bookmarks:
            self._mark(stream)

    @staticmethod
    async def _send_initial(stream: Stream, initial: Sequence[Stored]) -> None:
        waiting: list[bytes] = []
        size = 0
        for stored in initial:
            line = stream.lines.of_stored(stored)
            waiting.append(line)
            size += len(line)
            if size > replies.CHUNK_BYTES:
                await stream.write(b"".join(waiting))
                waiting, size = [], 0
        await stream.write(b"".join(waiting))

    async def _catch_up(self, stream: Stream, version: int) -> None:
        """Send what was missed, with back-pressure, until little enough is left to attach."""
        kind = stream.lines.kind.stored_kind
        while True:
            newest = self._store.version
            missed = self._store.since(version, kind)
            if sum(len(event.stored.body) for event in missed) <= CATCH_UP_BYTES:
                self._store.attach(kind, version, stream)
                return
            for at in range(0, len(missed), CATCH_UP_EVENTS):
                await stream.write(stream.lines.of_events(missed[at : at + CATCH_UP_EVENTS]))
            version = newest

    async def _lasted(self, stream: Stream, timeout_seconds: int | None) -> bool:
        """Wait until a watch ends; whether it did because its time was over."""
        seconds = timeout_seconds or TIMEOUT_SECONDS + len(self._open) % 100
        timer = asyncio.create_task(
            self._services.clock.sleep(timedelta(seconds=max(min(seconds, 86400), 0)))
        )
        timer.add_done_callback(lambda _: stream.ended.set())
        try:
            await stream.ended.wait()
            return timer.done() and not stream.was_cut
        finally:
            timer.cancel()


def check_version(options: ListOptions, newest: int) -> None:
    """Raise Timeout for a version that is not there yet, as a list or a get asks for one."""
    if options.watch and options.initial_events is None:
        return
    refuse_future(options.version, newest)


def refuse_future(version: int, newest: int) -> None:
    """Raise Timeout for a version beyond the newest."""
    if version > newest:
        raise Timeout(
            f"Too large resource version: {version}, current: {newest}",
            details={
                "causes": [
                    {
                        "reason": "ResourceVersionTooLarge",
                        "message": "Too large resource version",
                    }
                ]
            },
            retry_after_seconds=1,
        )


def include_of(text: str) -> str:
    """Return how much of its object a row carries; what is not known counts as the metadata."""
    return text if text in tables.INCLUDES else tables.INCLUDE_METADATA
