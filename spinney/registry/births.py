"""Births: how an object comes to be, from what its writer gives to what is stored."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api.kinds import KINDS, Kind
from spinney.meta import errors
from spinney.meta.documents import Document, object_at, string_at, value_at, with_value, without
from spinney.meta.errors import BadRequest, FieldError
from spinney.meta.times import format_time
from spinney.ports import Clock, Entropy
from spinney.registry import forms, keeping, marking, requests, strategies
from spinney.registry.catalog import Catalog
from spinney.registry.checking import Checker
from spinney.registry.claiming import Claimer
from spinney.registry.requests import Outcome, Request
from spinney.store.store import Moved, Store

GENERATED_LENGTH = 5
GENERATED_TRIES = 8
GENERATED_PREFIX_MAX = 63 - GENERATED_LENGTH

_NAME = ("metadata", "name")


class Births:
    """Makes objects."""

    def __init__(
        self, store: Store, catalog: Catalog, clock: Clock, entropy: Entropy, checker: Checker
    ) -> None:
        """Make them in a store."""
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._entropy = entropy
        self._checker = checker
        self._claimer = Claimer()

    async def create(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        duplicates: Sequence[FieldError] = (),
    ) -> Outcome:
        """Make an object; a name is made where only its beginning is given."""
        metadata = document.get("metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise BadRequest(f"metadata: must be an object, found {errors.shown(metadata)}")
        if value_at(document, ("metadata", "resourceVersion")) not in (None, ""):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        prefix = string_at(document, ("metadata", "generateName"))
        if string_at(document, _NAME) or not prefix:
            return await self.bring(kind, document, request, duplicates)
        for _ in range(GENERATED_TRIES):
            name = prefix[:GENERATED_PREFIX_MAX] + self._entropy.suffix(GENERATED_LENGTH)
            named = with_value(document, _NAME, name)
            try:
                return await self.bring(kind, named, request, duplicates)
            except errors.AlreadyExists:
                continue
        raise requests.no_free_name(kind, name)

    async def bring(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        duplicates: Sequence[FieldError] = (),
        *,
        is_applied: bool = False,
    ) -> Outcome:
        """Make an object whose name is known; one that is applied has its managed fields."""
        strategies.check_place(self._store, kind, KINDS[strategies.NAMESPACE], document)
        if self._catalog.is_closing(kind.stored_kind):
            raise strategies.closing()
        document = _as_given(kind, document)
        document, warnings = self._checker.admitted(
            kind, document, None, request, duplicates=duplicates
        )
        self._checker.refuse_protected(kind, request, None, document)
        if not is_applied:
            document = self._claimed(kind, document, request)
        document = strategies.begun(self._store, kind, document)
        return await self._store_new(kind, self._stamped(kind, document), request, warnings)

    def _claimed(self, kind: Kind, document: Document, request: Request) -> Document:
        """Return a document whose fields are its writer's; a status is the server's."""
        bare = strategies.without_status(kind, document)
        claimed = self._claimer.of_new(kind, bare, request.manager, self._clock.now())
        status = document.get("status")
        if status is None or "status" in claimed:
            return claimed
        return {**claimed, "status": status}

    def _stamped(self, kind: Kind, document: Document) -> Document:
        metadata: Document = {
            **object_at(document, ("metadata",)),
            "uid": self._entropy.uid(),
            "creationTimestamp": format_time(self._clock.now()),
        }
        if strategies.counts_generations(kind):
            metadata["generation"] = 1
        return {**document, "metadata": metadata}

    async def _store_new(
        self, kind: Kind, document: Document, request: Request, warnings: tuple[str, ...]
    ) -> Outcome:
        name = string_at(document, _NAME)
        ref = forms.ref_of(kind, string_at(document, ("metadata", "namespace")), name)
        held = self._store.head(ref)
        if held is not None:
            is_going = marking.is_marked(held.document())
            raise requests.already_exists(kind, name, is_going=is_going)
        forms.check_writable(document)
        if request.dry_run:
            return Outcome(made=document, warnings=warnings, created=True)
        try:
            stored = await self._store.put(ref, forms.stored_form(kind, document), expects=0)
        except Moved as moved:
            raise requests.already_exists(kind, name) from moved
        return requests.told(kind, stored, warnings, created=True)


def _as_given(kind: Kind, document: Document) -> Document:
    """Return a document without what no writer gives: a status, and what the server stamps."""
    metadata = object_at(document, ("metadata",))
    if any(field in metadata for field in keeping.SERVER_GIVEN):
        bare: Document = {
            key: value for key, value in metadata.items() if key not in keeping.SERVER_GIVEN
        }
        document = {**document, "metadata": bare}
    if value_at(document, ("metadata", "resourceVersion")) is not None:
        document = without(document, ("metadata", "resourceVersion"))
    return strategies.without_status(kind, document)
