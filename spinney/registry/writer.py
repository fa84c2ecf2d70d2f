"""Writers: the registry, bound to somebody, as controllers know it."""

from __future__ import annotations

from spinney.api.kinds import KINDS, Kind, group_kind_of
from spinney.meta.documents import Document, string_at, with_value
from spinney.meta.errors import BadRequest
from spinney.meta.references import Precondition, Ref
from spinney.ports import Identity, Written
from spinney.registry import requests
from spinney.registry.registry import APPLY_PATCH, MERGE_PATCH, Patch, Registry, ref_of
from spinney.registry.requests import DeleteOptions, Outcome, Request


class RegistryWriter:
    """Implements `ports.Writer` in the process of the store."""

    def __init__(self, registry: Registry, who: Identity) -> None:
        """Write as somebody."""
        self._registry = registry
        self._request = Request(who=who, field_validation=requests.STRICT)

    async def create(self, document: Document) -> Written:
        """Make an object."""
        kind = _kind_of(document)
        return _written(kind, await self._registry.create(kind, document, self._request))

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Say how an object should be, by server-side apply."""
        kind = _kind_of(document)
        outcome = await self._registry.patch(
            kind,
            string_at(document, ["metadata", "namespace"]),
            string_at(document, ["metadata", "name"]),
            Patch(type=APPLY_PATCH, body=document, force=force),
            self._request,
        )
        return _written(kind, outcome)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object."""
        kind = KINDS[target.kind]
        outcome = await self._registry.patch(
            kind,
            target.namespace,
            target.name,
            Patch(type=MERGE_PATCH, body=_conditional(merge, only_if)),
            self._request,
            subresource=subresource,
        )
        return _written(kind, outcome)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status of an object that is still of a version."""
        kind = KINDS[target.kind]

        def with_status(before: Document) -> Document:
            metadata = ["metadata", "resourceVersion"]
            return with_value({**before, "status": status}, metadata, resource_version)

        outcome = await self._registry.change(
            kind, target.namespace, target.name, with_status, self._request, subresource="status"
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
            KINDS[target.kind], target.namespace, target.name, options, self._request
        )

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod if its disruption budgets allow it."""
        options = DeleteOptions(only_if=only_if)
        await self._registry.evict(target.namespace, target.name, options, self._request)

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        await self._registry.bind(pod.namespace, pod.name, node, only_if, self._request)


def _kind_of(document: Document) -> Kind:
    kind = KINDS.get(group_kind_of(document))
    if kind is None:
        raise BadRequest(
            f"no kind {string_at(document, ['kind'])} in {string_at(document, ['apiVersion'])}"
        )
    return kind


def _conditional(merge: Document, only_if: Precondition) -> Document:
    """Return a merge patch that fails where its precondition does."""
    for field, wanted in (("uid", only_if.uid), ("resourceVersion", only_if.resource_version)):
        if wanted is not None:
            merge = with_value(merge, ["metadata", field], wanted)
    return merge


def _written(kind: Kind, outcome: Outcome) -> Written:
    metadata = outcome.document
    ref = ref_of(
        kind,
        string_at(metadata, ["metadata", "namespace"]),
        string_at(metadata, ["metadata", "name"]),
    )
    return Written(
        ref=ref,
        uid=string_at(metadata, ["metadata", "uid"]),
        resource_version=string_at(metadata, ["metadata", "resourceVersion"]),
    )
