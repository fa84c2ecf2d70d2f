"""Gathering: the objects a picture is drawn from, read once or kept up to date by watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

from spinney.api import groupkinds, labels
from spinney.cli import finding
from spinney.cli.connecting import Session
from spinney.decisions.causes import scenes
from spinney.decisions.causes.scenes import Scene
from spinney.kube import watching
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import ApiError, Expired
from spinney.meta.records import Record
from spinney.meta.references import GroupKind

SETTLING = timedelta(milliseconds=60)
"""Changes that come so close together are shown together."""


class Part(Record):
    """Objects of one resource."""

    resource: Resource
    selection: Selection


class Gathering:
    """The objects of several resources."""

    def __init__(self, session: Session, parts: Sequence[Part]) -> None:
        """Hold nothing yet."""
        self._session = session
        self._parts = parts
        self._found: list[dict[tuple[str, str], Document]] = [{} for _ in parts]
        self._unread: set[GroupKind] = set()
        self._news = asyncio.Event()
        self._listed: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def read(self) -> Scene:
        """Read everything once."""
        await asyncio.gather(*(self._list(index) for index in range(len(self._parts))))
        return self.scene()

    def scene(self) -> Scene:
        """Return everything as it is now."""
        documents = [document for found in self._found for document in found.values()]
        return Scene(documents, self._session.clock.now(), unread=self._unread)

    async def _list(self, index: int) -> str:
        """Read the objects of a part; returns the version they are of, "" where none is given."""
        part = self._parts[index]
        found: dict[tuple[str, str], Document] = {}
        version = ""
        try:
            async for page in self._session.client.pages(part.resource, part.selection):
                version = version or string_at(page, ["metadata", "resourceVersion"])
                for item in scenes.objects_at(page, "items"):
                    found[_key(item)] = _whole(part.resource, item)
        except ApiError as error:
            if error.code not in (401, 403, 404, 405):
                raise
            self._unread.add(part.resource.group_kind)
            return ""
        self._found[index] = found
        return version

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Keep everything up to date for as long as the block lasts; it has all been read then."""
        for index in range(len(self._parts)):
            self._tasks.append(asyncio.create_task(self._follow(index)))
        try:
            while len(self._listed) < len(self._parts):
                await self._news.wait()
                self._news.clear()
                self._check()
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_for_news(self, most: timedelta | None = None) -> bool:
        """Wait until something changed; returns False where nothing did for so long.

        Raises what ended a watch for good.
        """
        seconds = None if most is None else most / timedelta(seconds=1)
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            self._check()
            return False
        await self._session.clock.sleep(SETTLING)
        self._news.clear()
        self._check()
        return True

    def _check(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    async def _follow(self, index: int) -> None:
        try:
            while True:
                version = await self._list(index)
                self._listed.add(index)
                self._news.set()
                if not version:
                    return
                try:
                    await self._watch(index, version)
                except Expired:
                    continue
        finally:
            self._news.set()

    async def _watch(self, index: int, version: str) -> None:
        part, found = self._parts[index], self._found[index]
        stream = self._session.watch(part.resource, part.selection).events(version)
        async with aclosing(stream) as events:
            async for event in events:
                if event.type == watching.BOOKMARK:
                    continue
                if event.type == watching.DELETED:
                    found.pop(_key(event.object), None)
                else:
                    found[_key(event.object)] = _whole(part.resource, event.object)
                self._news.set()


def _key(document: Document) -> tuple[str, str]:
    return scenes.namespace_of(document), scenes.name_of(document)


def _whole(resource: Resource, document: Document) -> Document:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **document}


async def around(session: Session, found: finding.Found) -> Gathering:
    """Return what is to be gathered to tell of one object: itself, its system, nodes, warnings."""
    ref = found.ref
    name = ref.name if ref.kind == groupkinds.SET else scenes.label(found.document, labels.PART_OF)
    if ref.kind == groupkinds.NODE:
        on_it = Selection(fields=f"spec.nodeName={ref.name}")
        parts = [
            *await _parts(session, [groupkinds.POD], on_it),
            *await _parts(session, [groupkinds.NODE], Selection()),
        ]
    else:
        whole = Selection(
            namespace=ref.namespace, labels=f"{labels.PART_OF}={name}" if name else ""
        )
        within = (groupkinds.SCALING_GROUP, groupkinds.CLIQUE, groupkinds.GANG, groupkinds.POD)
        parts = [
            *await _parts(session, within, whole),
            *await _parts(session, [groupkinds.SET], _named(ref.namespace, name)),
            *await _parts(session, [groupkinds.NODE], Selection()),
        ]
    warnings = Selection(namespace=ref.namespace, fields="type=Warning")
    parts += await _parts(session, [groupkinds.EVENT], warnings)
    if not name or ref.kind not in scenes.KINDS:
        parts.append(Part(resource=found.resource, selection=_named(ref.namespace, ref.name)))
    return Gathering(session, parts)


async def everywhere(session: Session, namespace: str) -> Gathering:
    """Return what is to be gathered to tell of everything in a namespace; "" is all."""
    parts = await _parts(session, scenes.KINDS[:-2], Selection(namespace=namespace))
    parts += await _parts(session, [groupkinds.NODE], Selection())
    warnings = Selection(namespace=namespace, fields="type=Warning")
    parts += await _parts(session, [groupkinds.EVENT], warnings)
    return Gathering(session, parts)


def _named(namespace: str, name: str) -> Selection:
    return Selection(namespace=namespace, fields=f"metadata.name={name}" if name else "")


async def _parts(session: Session, wanted: Iterable[GroupKind], selection: Selection) -> list[Part]:
    """Return the parts of some kinds, of those the server serves."""
    found = [await finding.resource_of(session, kind) for kind in wanted]
    return [Part(resource=each, selection=selection) for each in found if each is not None]
