"""The registry: the embedded write path, without HTTP.

Every write is one step: read the head, work out the whole new object, check it, queue it in the
store. Nothing waits in between, so no two writes see the same object and both win; what is waited
for is only that the store made it durable.

    births      what a new object gets          changes     updates, patches, applies
    deletions   marks, grace, the last step     pods        binding, eviction
    checking    the door every write passes     keeping     what a write may not change
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spinney.api.kinds import Kind
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document, Json
from spinney.meta.errors import FieldError
from spinney.meta.references import Precondition
from spinney.ports import Clock, Entropy
from spinney.registry import addresses, forms, keeping, pods, priorities, requests, scaling
from spinney.registry.births import Births
from spinney.registry.catalog import Catalog
from spinney.registry.changes import Change, Changes
from spinney.registry.checking import Checker
from spinney.registry.deletions import Deletions
from spinney.registry.patching import Patch
from spinney.registry.requests import DeleteOptions, Outcome, Request
from spinney.store.store import Store, Stored


class Registry:
    """Creates, reads, changes and deletes objects, as an API server does."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        *,
        catalog: Catalog | None = None,
        surroundings: Surroundings = NOTHING_KNOWN,
        exempt_users: frozenset[str] = frozenset(),
    ) -> None:
        """Write to a store of its own; what rules know of the installation is given."""
        self.store = store
        self.catalog = catalog or Catalog()
        self.clock = clock
        checker = Checker(store, surroundings, exempt_users)
        births = Births(store, self.catalog, clock, entropy, checker)
        self._births = births
        self._changes = Changes(store, clock, checker, births)
        self._deletions = Deletions(store, clock, checker)
        addresses.register(store)
        priorities.register(store)

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return an object as it is committed; raises NotFound."""
        stored = self.store.get(forms.ref_of(kind, namespace, name))
        if stored is None:
            raise requests.not_found(kind, name)
        return stored

    async def create(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        *,
        duplicates: Sequence[FieldError] = (),
    ) -> Outcome:
        """Make an object; `duplicates` are the fields its text gave twice."""
        return await self._births.create(kind, document, request, duplicates)

    async def update(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        *,
        subresource: str = "",
        duplicates: Sequence[FieldError] = (),
    ) -> Outcome:
        """Replace an object, its status, or a namespace's finalizers."""
        _check_subresource(kind, subresource)
        return await self._changes.update(
            kind, document, request, subresource=subresource, duplicates=duplicates
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Patch,
        request: Request,
        *,
        subresource: str = "",
        duplicates: Sequence[FieldError] = (),
        only_if: Precondition | None = None,
    ) -> Outcome:
        """Change part of an object; an apply makes it where it is not there."""
        _check_subresource(kind, subresource)
        return await self._changes.patch(
            kind,
            namespace,
            name,
            patch,
            request,
            subresource=subresource,
            duplicates=duplicates,
            only_if=only_if,
        )

    async def change(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Change,
        request: Request,
        *,
        subresource: str = "",
        only_if: Precondition | None = None,
    ) -> Outcome:
        """Change an object by a function of what it is now."""
        return await self._changes.change(
            kind, namespace, name, change, request, subresource=subresource, only_if=only_if
        )

    async def amend(
        self, kind: Kind, namespace: str, name: str, change: Change, request: Request
    ) -> Outcome:
        """Change what the server itself keeps of an object; the rest is not judged again."""
        return await self._changes.amend(kind, namespace, name, change, request)

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions, request: Request
    ) -> Outcome:
        """Delete an object, or mark it for those who must act before it is gone."""
        return await self._deletions.delete(kind, namespace, name, options, request)

    async def delete_all(
        self, kind: Kind, found: Sequence[Stored], options: DeleteOptions, request: Request
    ) -> tuple[Outcome, ...]:
        """Delete the objects of a list; those that are gone meanwhile are passed over."""
        return await self._deletions.delete_all(kind, found, options, request)

    async def scale(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Document], Document],
        request: Request,
    ) -> Outcome:
        """Change an object's replicas by a function of its Scale; gives the Scale back."""
        scaling.paths_of(kind)

        def scaled(before: Document) -> Document:
            return scaling.scaled(kind, before, change(scaling.scale_of(kind, before)))

        outcome = await self._changes.change(
            kind, namespace, name, scaled, request, subresource=keeping.SCALE
        )
        scale = scaling.scale_of(kind, outcome.document)
        return Outcome(stored=outcome.stored, made=scale, warnings=outcome.warnings)

    async def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        only_if: Precondition,
        request: Request,
        *,
        annotations: Json = None,
    ) -> Outcome:
        """Give a pod its node, with annotations of whoever placed it."""
        kind = pods.pod_kind()

        def bound(before: Document) -> Document:
            return pods.bound(before, node, annotations, self.clock.now())

        return await self._changes.change(
            kind, namespace, name, bound, request, subresource=keeping.BINDING, only_if=only_if
        )

    async def evict(
        self, namespace: str, name: str, options: DeleteOptions, request: Request
    ) -> Outcome:
        """Delete a pod if its disruption budget allows it; raises TooManyRequests.

        What the deletion takes from the budget is written first, so no two evictions spend it.
        """
        kind = pods.pod_kind()
        head = self.store.head(forms.ref_of(kind, namespace, name))
        if head is None:
            raise requests.not_found(kind, name)
        found: Document = {"uid": head.uid, "resourceVersion": str(head.version)}
        requests.check_preconditions(kind, name, found, options.only_if)
        budgets = [
            stored.document() for stored in self.store.heads(pods.BUDGET, namespace=namespace)
        ]
        spent = pods.spent_budget(head.document(), budgets, self.clock.now())
        if spent is not None:
            await self._changes.update(pods.budget_kind(), spent, request, subresource="status")
            options = pods.of_same(options, head.uid)
        return await self.delete(kind, namespace, name, options, request)


def _check_subresource(kind: Kind, subresource: str) -> None:
    if subresource == keeping.STATUS and not kind.has_status:
        raise requests.no_such_resource()
