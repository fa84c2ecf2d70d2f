"""Changes: how an object becomes another version of itself.

The new object is worked out from the head and queued in one step, so a change that does not say
which version it was meant for can never lose against another: there is nothing to retry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, is_integer, string_at, value_at, with_value, without
from spinney.meta.errors import ApplyConflict, FieldError
from spinney.meta.patches import apply as server_side_apply
from spinney.meta.references import Precondition
from spinney.ports import Clock
from spinney.registry import (
    forms,
    keeping,
    last_applied,
    marking,
    patching,
    requests,
    strategies,
)
from spinney.registry.births import Births
from spinney.registry.checking import Checker
from spinney.registry.claiming import Claimer
from spinney.registry.patching import Patch
from spinney.registry.requests import Outcome, Request
from spinney.store.objects import stored_from_written
from spinney.store.store import Moved, Store, Stored

Change = Callable[[Document], Document]
"""What a document becomes; a function of what it is when the change is carried out."""

_COUNTING = ("", keeping.SCALE, keeping.FINALIZE)
"""Through which subresources a change of content counts as a generation."""


class Changes:
    """Changes objects."""

    def __init__(self, store: Store, clock: Clock, checker: Checker, births: Births) -> None:
        """Change them in a store; what is applied and not there yet is born."""
        self._store = store
        self._clock = clock
        self._checker = checker
        self._births = births
        self._claimer = Claimer()

    async def update(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        *,
        subresource: str = "",
        duplicates: Sequence[FieldError] = (),
    ) -> Outcome:
        """Replace an object, or its status."""
        name = string_at(document, ("metadata", "name"))
        namespace = string_at(document, ("metadata", "namespace")) or "default"
        head = self._store.head(forms.ref_of(kind, namespace, name))
        version = string_at(document, ("metadata", "resourceVersion"))
        if head is None:
            if version or subresource or not strategies.is_made_by_update(kind):
                raise requests.not_found(kind, name)
            return await self._births.create(kind, document, request, duplicates)
        uid = string_at(document, ("metadata", "uid"))
        if uid and uid != head.uid:
            raise requests.other_uid(kind, name, uid, head.uid)
        if not version and strategies.needs_version(kind):
            raise requests.needs_version(kind, name)
        return await self._change(kind, head, lambda _: document, request, subresource, duplicates)

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
        if patch.type == patching.APPLY_PATCH:
            return await self._apply(kind, namespace, name, patch, request, subresource, duplicates)

        def change(before: Document) -> Document:
            return patching.patched(kind, before, patch)

        head = self._head(kind, namespace, name, only_if)
        return await self._change(kind, head, change, request, subresource, duplicates)

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
        head = self._head(kind, namespace, name, only_if)
        return await self._change(kind, head, change, request, subresource, ())

    async def amend(
        self, kind: Kind, namespace: str, name: str, change: Change, request: Request
    ) -> Outcome:
        """Change what the server itself keeps of an object: who owns and who holds it, its state.

        The rest of it is not judged again, so an object that breaks a newer rule can still be
        let go.
        """
        head = self._head(kind, namespace, name, None)
        before = forms.document_of(kind, head)
        after = self._tracked(kind, before, change(before), request, "")
        return await self._store_changed(kind, head, after, request, ())

    def _head(self, kind: Kind, namespace: str, name: str, only_if: Precondition | None) -> Stored:
        head = self._store.head(forms.ref_of(kind, namespace, name))
        if head is None:
            raise requests.not_found(kind, name)
        if only_if is not None:
            found: Document = {"uid": head.uid, "resourceVersion": str(head.version)}
            requests.check_preconditions(kind, name, found, only_if)
        return head

    async def _change(
        self,
        kind: Kind,
        head: Stored,
        change: Change,
        request: Request,
        subresource: str,
        duplicates: Sequence[FieldError],
    ) -> Outcome:
        before = forms.document_of(kind, head)
        wanted = change(before)
        if wanted is before and not duplicates:
            return requests.told(kind, head)
        after = keeping.kept(kind, before, wanted, subresource)
        after, warnings = self._checked(kind, before, after, request, subresource, duplicates)
        if subresource == keeping.STATUS and keeping.is_unchanged(before, after):
            return requests.told(kind, head, warnings)
        after = self._tracked(kind, before, after, request, subresource)
        return await self._store_changed(kind, head, after, request, warnings)

    def _tracked(
        self, kind: Kind, before: Document, after: Document, request: Request, subresource: str
    ) -> Document:
        return self._claimer.of_changed(
            kind, before, after, request.manager, self._clock.now(), subresource
        )

    async def _apply(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Patch,
        request: Request,
        subresource: str,
        duplicates: Sequence[FieldError],
    ) -> Outcome:
        patching.check_manager(request.who.manager)
        wanted = patching.applied(kind, namespace, name, patch, subresource)
        head = self._store.head(forms.ref_of(kind, namespace, name))
        if head is None:
            _check_may_be_made(kind, name, wanted, subresource)
        before: Document = {} if head is None else forms.document_of(kind, head)
        try:
            after = self._laid_over(kind, before, wanted, request, subresource, force=patch.force)
        except ApplyConflict as conflict:
            if not last_applied.gives_way(kind.schema, before, request.manager, conflict):
                raise
            after = self._laid_over(kind, before, wanted, request, subresource, force=True)
        if not subresource:
            after = last_applied.followed(after, wanted, request.manager)
        if head is None:
            return await self._births.bring(kind, after, request, duplicates, is_applied=True)
        after = keeping.kept(kind, before, after, subresource, keeps_managers=True)
        after, warnings = self._checked(kind, before, after, request, subresource, duplicates)
        return await self._store_changed(kind, head, after, request, warnings)

    def _laid_over(
        self,
        kind: Kind,
        before: Document,
        wanted: Document,
        request: Request,
        subresource: str,
        *,
        force: bool,
    ) -> Document:
        return server_side_apply.apply(
            kind.schema,
            before,
            wanted,
            request.manager,
            force=force,
            api_version=kind.names.api_version,
            now=self._clock.now(),
            subresource=subresource,
        )

    def _checked(
        self,
        kind: Kind,
        before: Document,
        after: Document,
        request: Request,
        subresource: str,
        duplicates: Sequence[FieldError],
    ) -> tuple[Document, tuple[str, ...]]:
        if not subresource:
            self._checker.refuse_protected(kind, request, before, after)
            after = strategies.carried_over(kind, before, after)
        admitted, warnings = self._checker.admitted(
            kind, after, before, request, subresource=subresource, duplicates=duplicates
        )
        if subresource == keeping.STATUS:
            status = admitted.get("status")
            after = without(after, ("status",)) if status is None else {**after, "status": status}
            return after, warnings
        keeping.refuse_new_finalizers(kind, before, admitted)
        admitted = strategies.settled(self._store, kind, admitted)
        if subresource in _COUNTING and keeping.content_changed(kind, before, admitted):
            admitted = _counted(kind, before, admitted)
        return admitted, warnings

    async def _store_changed(
        self,
        kind: Kind,
        head: Stored,
        after: Document,
        request: Request,
        warnings: tuple[str, ...],
    ) -> Outcome:
        before = forms.document_of(kind, head)
        if keeping.is_unchanged(before, after):
            return requests.told(kind, head, warnings)
        is_last = marking.is_done_with(after)
        if request.dry_run:
            stored_from_written(head.ref, after, 0)
            return Outcome(made=after, warnings=warnings, gone=is_last)
        form = forms.stored_form(kind, after)
        try:
            if is_last:
                stored = await self._store.remove(head.ref, expects=head.version, document=form)
            else:
                stored = await self._store.put(head.ref, form, expects=head.version)
        except Moved as moved:
            raise requests.modified(kind, head.ref.name) from moved
        return requests.told(kind, stored, warnings, gone=is_last)


def _check_may_be_made(kind: Kind, name: str, wanted: Document, subresource: str) -> None:
    """Raise where an applied object that is not there cannot be made either."""
    if subresource:
        raise requests.not_found(kind, name)
    uid = string_at(wanted, ("metadata", "uid"))
    if uid:
        raise requests.conflict(
            kind,
            name,
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found",
        )
    if value_at(wanted, ("metadata", "resourceVersion")):
        raise requests.modified(kind, name)


def _counted(kind: Kind, before: Document, after: Document) -> Document:
    """Return a changed object with its generation one higher."""
    if not strategies.counts_generations(kind):
        return after
    count = value_at(before, ("metadata", "generation"))
    generation = count + 1 if is_integer(count) else 1
    return with_value(after, ("metadata", "generation"), generation)
