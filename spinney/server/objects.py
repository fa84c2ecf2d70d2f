"""Objects: get, create, replace, patch, delete, one or many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, string_at
from spinney.meta.errors import BadRequest, MethodNotAllowed
from spinney.registry import forms, patching, requests
from spinney.registry.patching import Patch
from spinney.registry.requests import Outcome
from spinney.server import (
    bodies,
    lists,
    negotiation,
    openapi,
    parameters,
    replies,
    tables,
    watching,
)
from spinney.server.asking import Asked, Services, off_the_loop
from spinney.server.bodies import Body
from spinney.server.negotiation import Form
from spinney.server.replies import Reply
from spinney.server.watching import Watches

RETURNED_WHEN_DELETED = frozenset({"pods", "services", "serviceaccounts"})
"""Kinds of the core group whose last state a deletion answers with, not with a Status."""

Handler = Callable[["Objects", Asked, Kind], Awaitable["Reply | web.StreamResponse"]]


def not_allowed() -> MethodNotAllowed:
    """Return the error for a verb a resource does not take."""
    return MethodNotAllowed("the server does not allow this method on the requested resource")


class Objects:
    """Answers what is asked of objects."""

    def __init__(self, services: Services, watches: Watches) -> None:
        """Answer from a world."""
        self._services = services
        self._registry = services.world.registry
        self._watches = watches

    async def answer(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Answer a request about objects of a kind, or about the status of one."""
        target = asked.target
        if kind.namespaced != bool(target.namespace) and (
            target.namespace or target.name or target.verb not in ("list", "watch")
        ):
            if kind.namespaced and not target.name:
                raise not_allowed()
            raise requests.no_such_resource()
        if target.subresource == "status" and not kind.has_status:
            raise requests.no_such_resource()
        handler = _HANDLERS.get(target.verb)
        if handler is None or (target.subresource and target.verb not in _OF_PARTS):
            raise not_allowed()
        return await handler(self, asked, kind)

    def shown(
        self,
        asked: Asked,
        kind: Kind,
        document: Document,
        *,
        status: int = 200,
        warnings: tuple[str, ...] = (),
    ) -> Reply:
        """Return a document in the form the client takes."""
        form = asked.form
        shaped = self._shaped(asked, kind, document, form)
        return replies.of(shaped, status=status, warnings=warnings, media=form.media)

    def _shaped(self, asked: Asked, kind: Kind, document: Document, form: Form) -> Document:
        if form.shape == negotiation.TABLE:
            include = watching.include_of(asked.query.get("includeObject", ""))
            printer = tables.printer_for(kind)
            now = self._services.clock.now()
            table = tables.of_one(printer, document, now, include, form.version)
            assert isinstance(table, dict)
            return table
        return tables.partial(document, form.version) if form.shape else document

    def _told(self, asked: Asked, kind: Kind, outcome: Outcome) -> Reply:
        """Return the outcome of a write, from the stored bytes where they are the answer."""
        status = 201 if outcome.created else 200
        if asked.form == _PLAIN:
            headers = replies.warned(outcome.warnings)
            return Reply(status=status, body=outcome.body, headers=headers)
        return self.shown(asked, kind, outcome.document, status=status, warnings=outcome.warnings)

    # Reading

    async def get(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Answer with one object."""
        target = asked.target
        if target.watched:
            return await self.list(asked, kind)
        options = parameters.list_options(
            {key: asked.query[key] for key in ("resourceVersion",) if key in asked.query}
        )
        watching.refuse_future(options.version, self._services.world.store.version)
        stored = self._registry.get(kind, target.namespace, target.name)
        if asked.form == _PLAIN and kind.stored_as is None:
            return Reply(body=stored.body)
        return self.shown(asked, kind, forms.document_of(kind, stored))

    async def list(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Answer with a list, or with a watch."""
        options = parameters.list_options(asked.query, watched=asked.target.watched)
        if options.watch:
            if asked.request.method == "HEAD":
                raise not_allowed()
            selection = lists.selected(asked, options)
            return await self._watches.serve(asked, kind, selection, options)
        return await lists.answer(self._services, asked, kind, options)

    # Writing

    async def create(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Make an object."""
        target = asked.target
        if target.name:
            raise not_allowed()
        options = parameters.write_options(asked.query, "CreateOptions")
        body = await self._object(asked, kind)
        outcome = await self._registry.create(
            kind, body[0], asked.writing(options), duplicates=body[1].duplicates
        )
        return self._told(asked, kind, outcome)

    async def update(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Replace an object, or its status."""
        target = asked.target
        options = parameters.write_options(asked.query, "UpdateOptions")
        document, body = await self._object(asked, kind, target.name)
        outcome = await self._registry.update(
            kind,
            document,
            asked.writing(options),
            subresource=target.subresource,
            duplicates=body.duplicates,
        )
        return self._told(asked, kind, outcome)

    async def _object(self, asked: Asked, kind: Kind, name: str = "") -> tuple[Document, Body]:
        _ = asked.form
        names = kind.names
        body = await asked.body(api_version=names.api_version, kind=names.kind)
        document = bodies.placed(
            kind, body.value, asked.target.namespace, name, whole=not kind.is_builtin
        )
        return document, body

    async def patch(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Change part of an object, or apply one."""
        target = asked.target
        sort, body = await self.patch_body(asked, kind)
        applies = sort == patching.APPLY_PATCH
        options = parameters.write_options(asked.query, "PatchOptions", applies=applies)
        if applies:
            _check_applied(kind, body.value)
        outcome = await self._registry.patch(
            kind,
            target.namespace,
            target.name,
            Patch(type=sort, body=body.value, force=bool(options.force)),
            asked.writing(options),
            subresource=target.subresource,
            duplicates=body.duplicates,
        )
        return self._told(asked, kind, outcome)

    async def patch_body(self, asked: Asked, kind: Kind) -> tuple[str, Body]:
        """Return the sort of a patch and its body; raises UnsupportedMediaType."""
        _ = asked.form
        sort = bodies.media_type(asked.content_type)
        accepted = openapi.patch_types(kind)
        if sort not in accepted:
            raise bodies.unsupported(accepted)
        data = await asked.bytes()
        read = bodies.read_yaml if sort == patching.APPLY_PATCH else bodies.read_json
        body = await off_the_loop(lambda: read(data), data, sort)
        return sort, body

    # Deleting

    async def delete(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Delete an object."""
        target = asked.target
        if not target.name:
            return await self.delete_many(asked, kind)
        options, dry_run = await self.delete_options(asked)
        request = asked.writing(parameters.WriteOptions(dry_run=dry_run))
        outcome = await self._registry.delete(kind, target.namespace, target.name, options, request)
        names = kind.names
        is_shown = not names.group and names.plural in RETURNED_WHEN_DELETED
        if not outcome.gone or is_shown:
            return self._told(asked, kind, outcome)
        details: Document = {"name": target.name, "kind": names.plural}
        if names.group:
            details["group"] = names.group
        uid = string_at(outcome.document, ["metadata", "uid"])
        return replies.of(replies.success({**details, "uid": uid}))

    async def delete_options(self, asked: Asked) -> tuple[requests.DeleteOptions, bool]:
        """Return how to delete, by the body or the query."""
        if not asked.request.body_exists:
            return parameters.delete_options(asked.query, {})
        body = await asked.body(api_version="v1", kind="DeleteOptions", may_be_empty=True)
        value = body.value or {}
        if not isinstance(value, dict):
            raise BadRequest("the body of a deletion must be DeleteOptions")
        kind = value.get("kind", "DeleteOptions")
        if kind != "DeleteOptions":
            raise BadRequest(f"the body of a deletion must be DeleteOptions, found {kind}")
        return parameters.delete_options(asked.query, value)

    async def delete_many(self, asked: Asked, kind: Kind) -> Reply | web.StreamResponse:
        """Delete all objects that are selected."""
        options, dry_run = await self.delete_options(asked)
        wanted = parameters.list_options(asked.query)
        found = lists.page(self._services, kind, lists.selected(asked, wanted), wanted)
        request = asked.writing(parameters.WriteOptions(dry_run=dry_run))
        outcomes = await self._registry.delete_all(kind, found.items, options, request)
        items: list[Json] = [outcome.document for outcome in outcomes]
        names = kind.names
        metadata: Document = {"resourceVersion": str(self._services.world.store.version)}
        if found.token:
            metadata |= {"continue": found.token, "remainingItemCount": found.remaining}
        return replies.of(
            {
                "kind": f"{names.kind}List",
                "apiVersion": names.api_version,
                "metadata": metadata,
                "items": items,
            }
        )


_PLAIN = Form()

_OF_PARTS = frozenset({"get", "update", "patch"})

_HANDLERS: Mapping[str, Handler] = {
    "get": Objects.get,
    "list": Objects.list,
    "create": Objects.create,
    "update": Objects.update,
    "patch": Objects.patch,
    "delete": Objects.delete,
    "deletecollection": Objects.delete,
}


def _check_applied(kind: Kind, value: Json) -> None:
    if isinstance(value, dict):
        bodies.check_kind(value, kind.names.api_version, kind.names.kind)
