"""Subresources that are more than a part of a document: scale, binding, eviction, and what runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, list_at, string_at, with_value
from spinney.meta.errors import BadRequest, FieldError, Invalid
from spinney.meta.references import Precondition
from spinney.registry import forms, patching, requests, scaling
from spinney.registry.patching import Patch
from spinney.server import bodies, objects, parameters, replies, tables
from spinney.server.asking import Asked, NotImplementedHere, Services
from spinney.server.objects import Objects
from spinney.server.replies import Reply
from spinney.server.running import Answer, Running

RUNNING = frozenset({"log", "exec", "attach", "portforward", "proxy"})
"""Subresources of a pod that its node answers."""

Handler = Callable[["Parts", Asked, Kind], Awaitable[Answer]]


class Parts:
    """Answers what is asked of subresources."""

    def __init__(self, services: Services, whole: Objects, running: Running) -> None:
        """Answer from a world; `whole` knows objects, `running` what their nodes know."""
        self._registry = services.world.registry
        self._whole = whole
        self._running = running

    def knows(self, kind: Kind, subresource: str) -> bool:
        """Whether a subresource is answered here."""
        return (kind.names.api_version, kind.names.plural, subresource) in _HANDLERS or (
            subresource == "scale" and kind.scale is not None
        )

    async def answer(self, asked: Asked, kind: Kind) -> Answer:
        """Answer a request about a subresource."""
        target = asked.target
        if kind.namespaced != bool(target.namespace):
            raise requests.no_such_resource()
        if target.subresource == "scale":
            return await self.scale(asked, kind)
        names = kind.names
        handler = _HANDLERS[names.api_version, names.plural, target.subresource]
        return await handler(self, asked, kind)

    # Scale

    async def scale(self, asked: Asked, kind: Kind) -> Reply:
        """Answer with an object's Scale, or change it."""
        target = asked.target
        if target.verb == "get":
            stored = self._registry.get(kind, target.namespace, target.name)
            scale = scaling.scale_of(kind, forms.document_of(kind, stored))
            return self._whole.shown(asked, kind, scale, printer=tables.SCALE)
        if target.verb == "update":
            options = parameters.write_options(asked.query, "UpdateOptions")
            change = await self._replaced_scale(asked)
        elif target.verb == "patch":
            options = parameters.write_options(asked.query, "PatchOptions")
            change = await self._patched_scale(asked, kind)
        else:
            raise objects.not_allowed()
        outcome = await self._registry.scale(
            kind, target.namespace, target.name, change, asked.writing(options)
        )
        return self._whole.shown(
            asked, kind, outcome.document, warnings=outcome.warnings, printer=tables.SCALE
        )

    async def _replaced_scale(self, asked: Asked) -> Callable[[Document], Document]:
        body = await asked.body(api_version="autoscaling/v1", kind="Scale")
        scale = _object(body.value, "autoscaling/v1", "Scale")
        _check_name(scale, asked.target.name)
        return lambda _before: scale

    async def _patched_scale(self, asked: Asked, kind: Kind) -> Callable[[Document], Document]:
        sort, body = await self._whole.patch_body(asked, kind)
        if sort == patching.APPLY_PATCH:
            raise bodies.unsupported((patching.JSON_PATCH, patching.MERGE_PATCH))
        merged = patching.MERGE_PATCH if sort == patching.STRATEGIC_PATCH else sort
        patch = Patch(type=merged, body=body.value)
        name = asked.target.name

        def change(before: Document) -> Document:
            scale = _object(patching.patched(kind, before, patch), "autoscaling/v1", "Scale")
            _check_name(scale, name)
            return scale

        return change

    # Pods

    async def bind(self, asked: Asked, _kind: Kind) -> Reply:
        """Give a pod its node."""
        body = await self._posted(asked, "v1", "Binding")
        target = asked.target
        name = target.name if target.plural == "pods" else string_at(body, ["metadata", "name"])
        if target.name:
            _check_name(body, target.name)
        node = string_at(body, ["target", "name"])
        if not node or string_at(body, ["target", "kind"]) not in ("", "Node"):
            fault = FieldError(
                path="target.name" if not node else "target.kind",
                reason="FieldValueRequired" if not node else "FieldValueNotSupported",
                message="" if not node else 'supported values: "Node", "<empty>"',
                found=string_at(body, ["target", "kind"]),
            )
            raise Invalid([fault], group="", kind="Binding", name=name)
        options = parameters.write_options(asked.query, "CreateOptions")
        only_if = Precondition(
            uid=string_at(body, ["metadata", "uid"]) or None,
            resource_version=string_at(body, ["metadata", "resourceVersion"]) or None,
        )
        await self._registry.bind(target.namespace, name, node, only_if, asked.writing(options))
        return replies.of({**replies.success({}), "code": 201}, status=201)

    async def evict(self, asked: Asked, _kind: Kind) -> Reply:
        """Delete a pod if its disruption budgets allow it."""
        body = await self._posted(asked, "policy/v1", "Eviction")
        _check_name(body, asked.target.name)
        given = body.get("deleteOptions")
        options, is_try = parameters.delete_options({}, given if isinstance(given, dict) else {})
        written = parameters.write_options(asked.query, "CreateOptions")
        request = asked.writing(
            parameters.WriteOptions(dry_run=is_try or written.dry_run, manager=written.manager)
        )
        target = asked.target
        await self._registry.evict(target.namespace, target.name, options, request)
        return replies.of({**replies.success({}), "code": 201}, status=201)

    async def run(self, asked: Asked, kind: Kind) -> Answer:
        """Ask a pod's node."""
        return await self._running.answer(asked, kind)

    # Others

    async def finalize(self, asked: Asked, kind: Kind) -> Reply:
        """Take finalizers off a namespace that is being deleted."""
        if asked.target.verb != "update":
            raise objects.not_allowed()
        body = await asked.body(api_version="v1", kind="Namespace")
        document = bodies.placed(kind, body.value, "", asked.target.name, whole=False)
        finalizers = list_at(document, ["spec", "finalizers"])
        options = parameters.write_options(asked.query, "UpdateOptions")

        def finalized(before: Document) -> Document:
            return with_value(before, ["spec", "finalizers"], finalizers)

        outcome = await self._registry.amend(
            kind, "", asked.target.name, finalized, asked.writing(options)
        )
        return self._whole.shown(asked, kind, outcome.document)

    async def token(self, asked: Asked, kind: Kind) -> Reply:
        """Say that service accounts have no tokens here."""
        self._registry.get(kind, asked.target.namespace, asked.target.name)
        raise NotImplementedHere(
            "Spinney issues no tokens for service accounts, for it evaluates no roles: use the "
            "token of the kubeconfig, or one of `spinney token --read-only`"
        )

    @staticmethod
    async def _posted(asked: Asked, api_version: str, kind: str) -> Document:
        if asked.target.verb != "create":
            raise objects.not_allowed()
        body = await asked.body(api_version=api_version, kind=kind)
        return _object(body.value, api_version, kind)


def _object(value: Json, api_version: str, kind: str) -> Document:
    if not isinstance(value, dict):
        raise BadRequest(f"expected an object of kind {kind}")
    bodies.check_kind(value, api_version, kind, whole=False)
    return {**value, "apiVersion": api_version, "kind": kind}


def _check_name(document: Document, name: str) -> None:
    said = string_at(document, ["metadata", "name"])
    if said and said != name:
        raise BadRequest(
            f"the name of the object ({said}) does not match the name on the URL ({name})"
        )


_HANDLERS: Mapping[tuple[str, str, str], Handler] = {
    ("v1", "pods", "binding"): Parts.bind,
    ("v1", "pods", "eviction"): Parts.evict,
    **{("v1", "pods", name): Parts.run for name in RUNNING},
    ("v1", "namespaces", "finalize"): Parts.finalize,
    ("v1", "serviceaccounts", "token"): Parts.token,
}
