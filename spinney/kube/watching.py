"""Watching: every change of a list from a version on, across broken connections.

A watch that ends, or breaks, is taken up again from the last version seen, which bookmarks keep
fresh. Only a version that is compacted away ends it: then the list must be read again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

import msgspec

from spinney.kube.client import Client, Selection
from spinney.kube.resources import Resource
from spinney.kube.transport import JSON, Unreachable
from spinney.meta.documents import Document, is_object, object_at, string_at
from spinney.meta.errors import ApiError, Expired, TooManyRequests, Unavailable
from spinney.meta.records import Record
from spinney.ports import Clock, Entropy

STREAM_SECONDS = 300
"""How long one watch request lasts; the server ends it then, and the next one follows."""

SILENCE_SECONDS = STREAM_SECONDS + 30
SHORT = timedelta(seconds=10)
"""A watch that ended sooner, without a word, is a failure."""

BACKOFF_FIRST = timedelta(milliseconds=200)
BACKOFF_MOST = timedelta(seconds=30)

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"


class Event(Record):
    """One change; of a bookmark only the version counts."""

    type: str
    object: Document
    version: str


class Watch:
    """Watches a selection of a resource."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        *,
        clock: Clock,
        entropy: Entropy,
        form: str = JSON,
        failures_max: int | None = None,
    ) -> None:
        """Watch; after so many failures in a row the last is raised, with None never."""
        self._client = client
        self._resource = resource
        self._selection = selection
        self._clock = clock
        self._entropy = entropy
        self._form = form
        self._failures_max = failures_max

    async def events(self, since: str) -> AsyncGenerator[Event]:
        """Yield every change after a version, and bookmarks; raises Expired.

        Whoever leaves early closes it (`contextlib.aclosing`), so that the connection goes too.
        """
        version, failures = since, 0
        while True:
            begun, is_silent = self._clock.elapsed(), True
            try:
                async with aclosing(self._stream(version)) as events:
                    async for event in events:
                        version, failures, is_silent = event.version or version, 0, False
                        yield event
                if is_silent and self._clock.elapsed() - begun < SHORT:
                    raise Unreachable(f"{self._resource.full_name}: the watch ended at once")
            except (Unreachable, Unavailable, TooManyRequests) as error:
                failures += 1
                if self._failures_max is not None and failures >= self._failures_max:
                    raise
                await self._clock.sleep(self._pause(error, failures))

    def _stream(self, since: str) -> AsyncGenerator[Event]:
        return stream(self._client, self._resource, self._selection, since, form=self._form)

    def _pause(self, error: Exception, failures: int) -> timedelta:
        if isinstance(error, ApiError) and error.retry_after_seconds is not None:
            return timedelta(seconds=error.retry_after_seconds)
        grown = min(BACKOFF_FIRST * (1 << min(failures - 1, 10)), BACKOFF_MOST)
        return grown + self._entropy.jitter(grown)


async def stream(
    client: Client, resource: Resource, selection: Selection, since: str, *, form: str = JSON
) -> AsyncGenerator[Event]:
    """Yield what one watch request tells, until the server or the network ends it."""
    query = [
        *selection.query,
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", since),
        ("timeoutSeconds", str(STREAM_SECONDS)),
    ]
    async with client.transport.lines(
        resource.path(selection.namespace),
        query=query,
        accept=form,
        silence_seconds=SILENCE_SECONDS,
    ) as lines:
        async for line in lines:
            if line.strip():
                yield _event(line)


def _event(line: bytes) -> Event:
    try:
        told = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise Unreachable(f"a watch event is not JSON: {error}") from error
    document = object_at(told, ["object"])
    sort = string_at(told, ["type"])
    if sort == "ERROR":
        raise _told(document)
    if not is_object(told) or not sort:
        raise Unreachable("a watch event has no type")
    return Event(
        type=sort, object=document, version=string_at(document, ["metadata", "resourceVersion"])
    )


def _told(status: Document) -> ApiError:
    found = ApiError.from_status(status)
    return Expired(found.message) if found.code == Expired.code else found
