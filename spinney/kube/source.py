"""The source: lists and watches all objects of a server, as an informer asks for them.

Each call is one request. What breaks is raised, and the informer asks again: it knows what it has
seen, and how long to wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from spinney.api.kinds import Kind
from spinney.kube import places, watching
from spinney.kube.client import Client, Selection
from spinney.kube.resources import Resource
from spinney.kube.transport import Transport
from spinney.meta.documents import Document, Json, is_object, list_at, string_at
from spinney.meta.errors import DecodeError, json_string
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Page, WatchEvent

_ALL = Selection()


class HttpSource:
    """Implements `ports.Source` over HTTP. No answer is an OSError."""

    def __init__(self, transport: Transport, kinds: Iterable[Kind]) -> None:
        """Read these kinds, each in its version; whoever made the transport closes it."""
        self._client = Client(transport)
        self._places = places.Places(kinds)

    async def list(self, kind: GroupKind, *, limit: int, token: str = "") -> Page:
        """Return the next part of all objects of a kind, as they were when the first was given.

        Raises Expired where that is too long ago, and NotFound where the server lacks the kind.
        """
        resource = self._places.resource(kind)
        with places.refused_without_credentials():
            answer = await self._client.page(resource, _ALL, limit=limit, token=token)
        return Page(
            items=tuple(_whole(resource, item) for item in list_at(answer, ["items"])),
            resource_version=string_at(answer, ["metadata", "resourceVersion"]),
            token=string_at(answer, ["metadata", "continue"]),
        )

    async def watch(self, kind: GroupKind, since: str) -> AsyncIterator[WatchEvent]:
        """Yield every change after a version, and bookmarks, until the server ends it.

        Raises Expired where the version is compacted away.
        """
        resource = self._places.resource(kind)
        with places.refused_without_credentials():
            stream = watching.stream(self._client, resource, _ALL, since)
            async with aclosing(stream) as events:
                async for event in events:
                    yield _as_told(kind, event)


def _whole(resource: Resource, item: Json) -> Document:
    """Return an item with the version and kind a list leaves out."""
    if not is_object(item):
        raise DecodeError(f"a list of {resource.full_name} holds what is no object")
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}


def _as_told(kind: GroupKind, event: watching.Event) -> WatchEvent:
    if event.type == watching.BOOKMARK:
        return WatchEvent(change=Change.BOOKMARK, resource_version=event.version)
    change = _CHANGES.get(event.type)
    if change is None:
        raise DecodeError(f"a watch of {kind} tells of {json_string(event.type)}")
    ref = Ref(
        kind=kind,
        namespace=string_at(event.object, ["metadata", "namespace"]),
        name=string_at(event.object, ["metadata", "name"]),
    )
    return WatchEvent(change=change, resource_version=event.version, ref=ref, document=event.object)


_CHANGES = {
    watching.ADDED: Change.ADDED,
    watching.MODIFIED: Change.MODIFIED,
    watching.DELETED: Change.DELETED,
}
