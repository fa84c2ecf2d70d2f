"""Lists: written from the bytes the store holds, without decoding them, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec
from aiohttp import HttpVersion11, web

from spinney.api.kinds import Kind
from spinney.meta.documents import Document
from spinney.meta.errors import Expired
from spinney.registry import forms
from spinney.registry.listing import ListPage, Selection
from spinney.server import negotiation, parameters, replies, tables, watching
from spinney.server.asking import Asked, Services, whole_or_cut, write
from spinney.server.negotiation import Form
from spinney.server.parameters import ListOptions
from spinney.server.replies import Reply
from spinney.store.store import Stored

PIECE_ITEMS = 256
"""How many objects are turned into a piece at once, where they must be decoded."""

SMALL_BYTES = 1024 * 1024
"""Larger lists are written in pieces."""

Encoded = Callable[[Stored], bytes]

_NO_TIME = timedelta(0)
_encode = msgspec.json.Encoder().encode


def selected(asked: Asked, options: ListOptions) -> Selection:
    """Return what a list, a watch or the deletion of many is about."""
    fields = options.fields
    if asked.target.name:
        named = parameters.list_options({"fieldSelector": f"metadata.name={asked.target.name}"})
        fields = named.fields
    return Selection(namespace=asked.target.namespace, labels=options.labels, fields=fields)


def page(services: Services, kind: Kind, selection: Selection, options: ListOptions) -> ListPage:
    """Return the part of a list that is asked for; raises Expired, Timeout or BadRequest."""
    newest = services.world.store.version
    watching.refuse_future(options.version, newest)
    if options.match == parameters.EXACT and options.version != newest:
        raise Expired(
            f"The resourceVersion for the provided list is too old: {options.version}, only the "
            f"newest, {newest}, can be listed exactly"
        )
    return services.world.lister.page(kind, selection, max(options.limit, 0), options.token)


async def answer(
    services: Services, asked: Asked, kind: Kind, options: ListOptions
) -> Reply | web.StreamResponse:
    """Answer a list."""
    form = asked.form
    found = page(services, kind, selected(asked, options), options)
    include = watching.include_of(asked.query.get("includeObject", ""))
    pieces = _pieces(kind, found, form, include, services.clock.now())
    first = next(pieces)
    size = sum(len(stored.body) for stored in found.items)
    is_small = len(found.items) <= PIECE_ITEMS and size <= SMALL_BYTES
    if is_small or asked.request.method == "HEAD" or form.media == negotiation.YAML:
        body = b"".join([first, *pieces])
        if form.media == negotiation.YAML:
            body = replies.encoded(msgspec.json.decode(body), negotiation.YAML)
        return Reply(body=body, media=form.media)
    return await _streamed(services, asked, first, pieces)


async def _streamed(
    services: Services, asked: Asked, first: bytes, pieces: Iterator[bytes]
) -> web.StreamResponse:
    """Write a list piece by piece; others are served between two pieces."""
    response = web.StreamResponse(headers={"Content-Type": negotiation.JSON})
    if services.compresses(asked.request):
        response.enable_compression(web.ContentCoding.gzip)
    if asked.request.version < HttpVersion11:
        response.force_close()
    await response.prepare(asked.request)
    with whole_or_cut(asked.request):
        await write(response, first, services.read_seconds)
        for piece in pieces:
            await write(response, piece, services.read_seconds)
            await services.clock.sleep(_NO_TIME)
        await response.write_eof()
    return response


def _metadata(found: ListPage) -> Document:
    metadata: Document = {"resourceVersion": str(found.version)}
    if found.token:
        metadata["continue"] = found.token
        if found.remaining:
            metadata["remainingItemCount"] = found.remaining
    return metadata


def _pieces(
    kind: Kind, found: ListPage, form: Form, include: str, now: datetime
) -> Iterator[bytes]:
    """Yield a list as bytes: what comes before the items, the items, what comes after."""
    metadata = _metadata(found)
    if form.shape == negotiation.TABLE:
        return _table_pieces(kind, found, metadata, include, form.version, now)
    if form.shape:
        opened: Document = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": metadata,
        }

        def partial(stored: Stored) -> bytes:
            return _encode(tables.partial(forms.document_of(kind, stored), form.version))

        return _listed(opened, "items", found.items, partial)
    names = kind.names
    opened = {"kind": f"{names.kind}List", "apiVersion": names.api_version, "metadata": metadata}
    if kind.stored_as is None:
        return _from_bytes(opened, found.items)
    return _listed(
        opened, "items", found.items, lambda stored: _encode(forms.document_of(kind, stored))
    )


def _open(opened: Document, field: str) -> bytes:
    return _encode(opened)[:-1] + b',"%b":[' % field.encode()


def _from_bytes(opened: Document, items: Sequence[Stored]) -> Iterator[bytes]:
    yield _open(opened, "items")
    waiting: list[bytes] = []
    size, is_first = 0, True
    for stored in items:
        waiting.append(stored.body)
        size += len(stored.body)
        if size > replies.CHUNK_BYTES:
            yield (b"" if is_first else b",") + b",".join(waiting)
            waiting, size, is_first = [], 0, False
    if waiting:
        yield (b"" if is_first else b",") + b",".join(waiting)
    yield b"]}\n"


def _listed(
    opened: Document, field: str, items: Sequence[Stored], encoded: Encoded
) -> Iterator[bytes]:
    yield _open(opened, field)
    for at in range(0, len(items), PIECE_ITEMS):
        part = b",".join([encoded(stored) for stored in items[at : at + PIECE_ITEMS]])
        yield b"," + part if at else part
    yield b"]}\n"


def _table_pieces(
    kind: Kind, found: ListPage, metadata: Document, include: str, version: str, now: datetime
) -> Iterator[bytes]:
    printer = tables.printer_for(kind)
    opened = tables.head(printer, metadata, version)
    del opened["rows"]

    def row(stored: Stored) -> bytes:
        document = forms.document_of(kind, stored)
        return _encode(tables.row(printer, document, now, include, version))

    return _listed(opened, "rows", found.items, row)
