"""Writers: the registry, bound to somebody, as controllers know it."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, same, string_at
from spinney.meta.errors import BadRequest
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Identity, Written
from spinney.registry import forms, requests
from spinney.registry.patching import APPLY_PATCH, MERGE_PATCH, Patch
from spinney.registry.registry import Registry
from spinney.registry.requests import DeleteOptions, Outcome, Request


class RegistryWriter:
    """Implements `ports.Writer` in the process of the store."""

    def __init__(self, registry: Registry, who: Identity) -> None:
        """Write as somebody."""
        self._registry = registry
        self._request = Request(who=who, field_validation=requests.STRICT)

    async def create(self, document: Document) -> Written:
        """Make an object."""
        kind = self._kind_of(document)
        document = forms.through_json(document)
        return _written(kind, await self._registry.create(kind, document, self._request))

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Say how an object should be, by server-side apply."""
        kind = self._kind_of(document)
        outcome = await self._registry.patch(
            kind,
            string_at(document, ["metadata", "namespace"]),
            string_at(document, ["metadata", "name"]),
            Patch(type=APPLY_PATCH, body=forms.through_json(document), force=force),
            self._request,
        )
        return _written(kind, outcome)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object."""
        kind = self._kind(target.kind)
        outcome = await self._registry.patch(
            kind,
            target.namespace,
            target.name,
            Patch(type=MERGE_PATCH, body=forms.through_json(merge)),
            self._request,
            subresource=subresource,
            only_if=only_if,
        )
        return _written(kind, outcome)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status of an object that is still of a version."""
        kind = self._kind(target.kind)
        status = forms.through_json(status)

        def with_status(before: Document) -> Document:
            return before if same(before.get("status"), status) else {**before, "status": status}

        outcome = await self._registry.change(
            kind,
            target.namespace,
            target.name,
            with_status,
            self._request,
            subresource="status",
            only_if=Precondition(resource_version=resource_version),
        )
        return _written(kind, outcome)

    async def delete(
        self,
        target: Ref,
        only_if: Precondition,
        *,
        grace_seconds: int | None,
        propagation: str,
    ) -> None:
        """Delete an object."""
        options = DeleteOptions(
            only_if=only_if, grace_seconds=grace_seconds, propagation=propagation
        )
        await self._registry.delete(
            self._kind(target.kind), target.namespace, target.name, options, self._request
        )

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod if its disruption budgets allow it."""
        options = DeleteOptions(only_if=only_if)
        await self._registry.evict(target.namespace, target.name, options, self._request)

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        await self._registry.bind(pod.namespace, pod.name, node, only_if, self._request)

    def _kind(self, group_kind: GroupKind) -> Kind:
        kind = self._registry.catalog.get(group_kind)
        if kind is None:
            raise requests.no_such_resource()
        return kind

    def _kind_of(self, document: Document) -> Kind:
        kind = self._registry.catalog.kind_of(document)
        if kind is None:
            raise BadRequest(
                f'no kind "{string_at(document, ["kind"])}" is registered for version '
                f'"{string_at(document, ["apiVersion"])}"'
            )
        return kind


def _written(kind: Kind, outcome: Outcome) -> Written:
    stored = outcome.stored
    assert stored is not None
    ref = forms.ref_of(kind, stored.ref.namespace, stored.ref.name)
    return Written(ref=ref, uid=stored.uid, resource_version=str(stored.version))
