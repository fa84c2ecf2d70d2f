"""The gate: an API that is there or is not, for whoever outlives it.

While no control plane is connected, lists, watches and writes wait; the moment one is, they go to
it. So nothing is tried again and again meanwhile, and nothing is late afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from spinney.meta.documents import Document
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Page, Source, WatchEvent, Writer, Written


class Gate:
    """Where a source and a writer are while there are any."""

    def __init__(self) -> None:
        """Begin shut."""
        self._opened = asyncio.Event()
        self._shut = asyncio.Event()
        self._shut.set()
        self._source: Source | None = None
        self._writer: Writer | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an API."""
        return self._opened.is_set()

    def open(self, source: Source, writer: Writer) -> None:
        """Let everything through, to these."""
        self._source, self._writer = source, writer
        self._shut.clear()
        self._opened.set()

    def shut(self) -> None:
        """Let nothing through."""
        self._opened.clear()
        self._shut.set()

    async def wait_shut(self) -> None:
        """Wait until there is no API."""
        await self._shut.wait()

    async def source(self) -> Source:
        """Wait for the source."""
        await self._opened.wait()
        assert self._source is not None
        return self._source

    async def writer(self) -> Writer:
        """Wait for the writer."""
        await self._opened.wait()
        assert self._writer is not None
        return self._writer


class GatedSource:
    """Fills ports.Source behind a gate."""

    def __init__(self, gate: Gate) -> None:
        """Wait at a gate."""
        self._gate = gate

    async def list(self, kind: GroupKind, *, limit: int, token: str = "") -> Page:
        """Return the next part of all objects of a kind."""
        return await (await self._gate.source()).list(kind, limit=limit, token=token)

    async def watch(self, kind: GroupKind, since: str) -> AsyncIterator[WatchEvent]:
        """Yield every change after a version."""
        stream = (await self._gate.source()).watch(kind, since)
        async with aclosing(stream) as events:  # type: ignore[type-var]
            async for event in events:
                yield event


class GatedWriter:
    """Fills ports.Writer behind a gate."""

    def __init__(self, gate: Gate) -> None:
        """Wait at a gate."""
        self._gate = gate

    async def create(self, document: Document) -> Written:
        """Make an object."""
        return await (await self._gate.writer()).create(document)

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Server-side apply."""
        return await (await self._gate.writer()).apply(document, force=force)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object."""
        return await (await self._gate.writer()).patch(target, merge, only_if, subresource)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status."""
        return await (await self._gate.writer()).put_status(target, status, resource_version)

    async def delete(
        self, target: Ref, only_if: Precondition, *, grace_seconds: int | None, propagation: str
    ) -> None:
        """Delete an object."""
        writer = await self._gate.writer()
        await writer.delete(target, only_if, grace_seconds=grace_seconds, propagation=propagation)

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod, if its budgets allow it."""
        await (await self._gate.writer()).evict(target, only_if)

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        await (await self._gate.writer()).bind(pod, node, only_if)
