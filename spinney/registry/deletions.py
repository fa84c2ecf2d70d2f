"""Deletions: how an object is marked, and goes once nobody holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, object_at
from spinney.meta.errors import Conflict, NotFound
from spinney.meta.references import Precondition
from spinney.ports import Clock
from spinney.registry import forms, marking, requests, strategies
from spinney.registry.checking import Checker
from spinney.registry.requests import DeleteOptions, Outcome, Request
from spinney.store.store import Moved, Store, Stored

AT_ONCE = 64
"""How many objects of a collection are deleted together, so that they share a commit."""


class Deletions:
    """Deletes objects."""

    def __init__(self, store: Store, clock: Clock, checker: Checker) -> None:
        """Delete them from a store."""
        self._store = store
        self._clock = clock
        self._checker = checker

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions, request: Request
    ) -> Outcome:
        """Delete an object, or mark it for those who must act before it is gone."""
        head = self._store.head(forms.ref_of(kind, namespace, name))
        if head is None:
            raise requests.not_found(kind, name)
        document = head.document()
        requests.check_preconditions(
            kind, name, object_at(document, ("metadata",)), options.only_if
        )
        strategies.check_deletable(kind, name)
        self._checker.refuse_protected(kind, request, document, None)
        marked = marking.marked(kind, document, options, self._clock.now())
        is_last = marking.is_done_with(marked)
        if request.dry_run:
            return Outcome(made=_seen(kind, marked), gone=is_last)
        if marked is document or (not is_last and _is_same_mark(document, marked)):
            return requests.told(kind, head)
        try:
            if is_last:
                stored = await self._store.remove(head.ref, expects=head.version, document=marked)
            else:
                stored = await self._store.put(head.ref, marked, expects=head.version)
        except Moved as moved:
            raise requests.modified(kind, name) from moved
        return requests.told(kind, stored, gone=is_last)

    async def delete_all(
        self, kind: Kind, found: Sequence[Stored], options: DeleteOptions, request: Request
    ) -> tuple[Outcome, ...]:
        """Delete the objects of a list; those that are gone meanwhile are passed over."""
        outcomes: list[Outcome] = []
        for start in range(0, len(found), AT_ONCE):
            part = await asyncio.gather(
                *(
                    self._delete_listed(kind, stored, options, request)
                    for stored in found[start : start + AT_ONCE]
                )
            )
            outcomes.extend(outcome for outcome in part if outcome is not None)
        return tuple(outcomes)

    async def _delete_listed(
        self, kind: Kind, stored: Stored, options: DeleteOptions, request: Request
    ) -> Outcome | None:
        only_if = Precondition(uid=stored.uid, resource_version=options.only_if.resource_version)
        narrowed = DeleteOptions(
            only_if=only_if, grace_seconds=options.grace_seconds, propagation=options.propagation
        )
        head = self._store.head(stored.ref)
        if head is None or head.uid != stored.uid:
            return None
        try:
            return await self.delete(kind, stored.ref.namespace, stored.ref.name, narrowed, request)
        except NotFound:
            return None
        except Conflict:
            if options.only_if.resource_version:
                raise
            return None


def _seen(kind: Kind, document: Document) -> Document:
    return document if kind.stored_as is None else kind.from_stored(document)


def _is_same_mark(before: Document, after: Document) -> bool:
    """Whether marking again changed nothing; it touches metadata and a namespace's phase alone."""
    return object_at(before, ("metadata",)) == object_at(after, ("metadata",)) and (
        before.get("status") == after.get("status")
    )
