"""The garbage collector: deletes what lost its last owner, and finishes deletions that wait.

It looks at one object at a time and at nothing but the store, whatever made it look: so it may be
stopped anywhere, and may look once too often. It is woken by changes alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta

from spinney.api.kinds import Kind
from spinney.meta.documents import (
    Document,
    Json,
    is_list,
    list_at,
    object_at,
    string_at,
    with_value,
    without,
)
from spinney.meta.errors import ApiError, Conflict, NotFound
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Change, Clock, Identity
from spinney.registry.catalog import Catalog
from spinney.registry.registry import FOREGROUND, ORPHAN, Registry
from spinney.registry.requests import DeleteOptions, Request
from spinney.registry.strategies import NAMESPACE
from spinney.store.store import Event, Stored

AT_ONCE = 64
"""How many objects are looked at together, so that their writes share a commit."""

RETRY = timedelta(seconds=1)
"""How long to wait when the store refuses writes."""

COLLECTOR = Identity(
    user="system:serviceaccount:kube-system:generic-garbage-collector",
    groups=("system:serviceaccounts",),
    manager="garbage-collector",
)


class GarbageCollector:
    """Watches a registry's store and keeps owners, dependents and namespaces in order."""

    def __init__(self, registry: Registry, catalog: Catalog, clock: Clock) -> None:
        """Work on a registry; nothing happens before `start`."""
        self._registry = registry
        self._store = registry.store
        self._catalog = catalog
        self._clock = clock
        self._request = Request(who=COLLECTOR)
        self._pending: dict[Ref, None] = {}
        self._woken = asyncio.Event()

    def start(self) -> None:
        """Look at all there is once, and at what changes from now on."""
        self._store.attach(None, self._store.version, self)
        for kind in self._catalog:
            for stored in self._store.list(kind.names.group_kind):
                if _needs_a_look(stored):
                    self._note(stored.ref)

    def deliver(self, events: Sequence[Event]) -> None:
        """Note what a batch of changes makes worth a look."""
        for event in events:
            if event.change is Change.DELETED:
                self._note_gone(event.stored)
            elif _needs_a_look(event.stored):
                self._note(event.stored.ref)

    def cut(self) -> None:
        """Start over: some changes were missed."""
        self.start()

    def _note(self, ref: Ref) -> None:
        self._pending[ref] = None
        self._woken.set()

    def _note_gone(self, stored: Stored) -> None:
        for dependent in self._dependents(stored.uid):
            self._note(dependent.ref)
        for owner in _owners(stored.document()):
            kind = self._owner_kind(owner)
            if kind is not None:
                self._note(self._owner_ref(kind, owner, stored.ref.namespace))
        if stored.ref.namespace:
            namespace = Ref(kind=NAMESPACE, namespace="", name=stored.ref.namespace)
            held = self._store.head(namespace)
            if held is not None and _is_marked(held.document()):
                self._note(namespace)

    async def run(self) -> None:
        """Work for ever."""
        while True:
            await self._woken.wait()
            await self.settle()

    async def settle(self) -> None:
        """Work until there is nothing left to look at."""
        while self._pending:
            batch = [self._pending.popitem()[0] for _ in range(min(AT_ONCE, len(self._pending)))]
            failed = await asyncio.gather(*map(self._look, batch))
            if any(failed):
                await self._clock.sleep(RETRY)
        self._woken.clear()

    async def _look(self, ref: Ref) -> bool:
        """Look at one object; returns whether the store refused to write."""
        try:
            await self._examine(ref)
        except (Conflict, NotFound):
            self._pending[ref] = None
        except ApiError:
            self._pending[ref] = None
            return True
        return False

    async def _examine(self, ref: Ref) -> None:
        stored = self._store.head(ref)
        kind = self._catalog.get(ref.kind)
        if stored is None or kind is None:
            return
        document = stored.document()
        if _is_marked(document):
            await self._finish_deletion(kind, stored, document)
        else:
            await self._check_owners(stored, document)

    # Deletions that wait

    async def _finish_deletion(self, kind: Kind, stored: Stored, document: Document) -> None:
        finalizers = list_at(document, ["metadata", "finalizers"])
        if ORPHAN in finalizers:
            for dependent in self._dependents(stored.uid):
                await self._without_owners(dependent, {stored.uid})
            await self._without_finalizer(kind, stored, ORPHAN)
        elif FOREGROUND in finalizers:
            await self._delete_dependents_first(kind, stored)
        elif stored.ref.kind == NAMESPACE:
            await self._empty_namespace(stored)

    async def _delete_dependents_first(self, kind: Kind, stored: Stored) -> None:
        dependents = list(self._dependents(stored.uid))
        blocking = [item for item in dependents if _blocks(item.document(), stored.uid)]
        if not blocking:
            await self._without_finalizer(kind, stored, FOREGROUND)
            return
        waiting = [item for item in dependents if not _is_marked(item.document())]
        await asyncio.gather(*(self._delete(item) for item in waiting))

    async def _empty_namespace(self, stored: Stored) -> None:
        name = stored.ref.name
        held = [
            item
            for kind in self._catalog
            if kind.namespaced
            for item in self._store.heads(kind.names.group_kind, namespace=name)
        ]
        if held:
            unmarked = [item for item in held if not _is_marked(item.document())]
            await asyncio.gather(*(self._delete(item) for item in unmarked))
            return
        namespace = self._catalog.get(NAMESPACE)
        assert namespace is not None

        def finalized(document: Document) -> Document:
            return without(document, ["spec", "finalizers"])

        await self._registry.change(namespace, "", name, finalized, self._request)

    # Objects with owners

    async def _check_owners(self, stored: Stored, document: Document) -> None:
        solid, lost, going = self._judged_owners(document, stored.ref.namespace)
        if solid:
            if lost or going:
                await self._without_owners(stored, {*lost, *going})
        elif lost or going:
            await self._delete(stored, foreground=bool(going))

    def _judged_owners(
        self, document: Document, namespace: str
    ) -> tuple[list[str], list[str], list[str]]:
        """Return the uids of owners that are there, that are gone, and that wait for this one."""
        solid: list[str] = []
        lost: list[str] = []
        going: list[str] = []
        for owner in _owners(document):
            uid = string_at(owner, ["uid"])
            kind = self._owner_kind(owner)
            held = (
                None if kind is None else self._store.head(self._owner_ref(kind, owner, namespace))
            )
            if kind is None:
                solid.append(uid)
            elif held is None or held.uid != uid:
                lost.append(uid)
            elif _waits_for_dependents(held.document()):
                going.append(uid)
            else:
                solid.append(uid)
        return solid, lost, going

    def _owner_kind(self, owner: Document) -> Kind | None:
        group = string_at(owner, ["apiVersion"]).rpartition("/")[0]
        return self._catalog.get(GroupKind(group=group, kind=string_at(owner, ["kind"])))

    @staticmethod
    def _owner_ref(kind: Kind, owner: Document, namespace: str) -> Ref:
        return Ref(
            kind=kind.names.group_kind,
            namespace=namespace if kind.namespaced else "",
            name=string_at(owner, ["name"]),
        )

    def _dependents(self, uid: str) -> Iterator[Stored]:
        for kind in self._catalog:
            yield from self._store.heads(kind.names.group_kind, by=("owner", uid))

    # Writes

    async def _delete(self, stored: Stored, *, foreground: bool = False) -> None:
        kind = self._catalog.get(stored.ref.kind)
        assert kind is not None
        finalizers = list_at(stored.document(), ["metadata", "finalizers"])
        propagation = "Background"
        if ORPHAN in finalizers:
            propagation = "Orphan"
        elif FOREGROUND in finalizers or (
            foreground and next(self._dependents(stored.uid), None) is not None
        ):
            propagation = "Foreground"
        options = DeleteOptions(only_if=Precondition(uid=stored.uid), propagation=propagation)
        try:
            await self._registry.delete(
                kind, stored.ref.namespace, stored.ref.name, options, self._request
            )
        except NotFound:
            return

    async def _without_owners(self, stored: Stored, gone: set[str]) -> None:
        kind = self._catalog.get(stored.ref.kind)
        assert kind is not None

        def disowned(document: Document) -> Document:
            left: list[Json] = [
                item
                for item in list_at(document, ["metadata", "ownerReferences"])
                if string_at(item, ["uid"]) not in gone
            ]
            path = ["metadata", "ownerReferences"]
            return with_value(document, path, left) if left else without(document, path)

        await self._registry.change(
            kind, stored.ref.namespace, stored.ref.name, disowned, self._request
        )

    async def _without_finalizer(self, kind: Kind, stored: Stored, finalizer: str) -> None:
        def released(document: Document) -> Document:
            path = ["metadata", "finalizers"]
            left = [item for item in list_at(document, path) if item != finalizer]
            return with_value(document, path, left) if left else without(document, path)

        await self._registry.change(
            kind, stored.ref.namespace, stored.ref.name, released, self._request
        )


def _needs_a_look(stored: Stored) -> bool:
    return bool(stored.owners) or b'"deletionTimestamp"' in stored.body


def _is_marked(document: Document) -> bool:
    return bool(string_at(document, ["metadata", "deletionTimestamp"]))


def _waits_for_dependents(document: Document) -> bool:
    finalizers = list_at(document, ["metadata", "finalizers"])
    return _is_marked(document) and FOREGROUND in finalizers


def _owners(document: Document) -> list[Document]:
    found = object_at(document, ["metadata"]).get("ownerReferences")
    return [item for item in found if isinstance(item, dict)] if is_list(found) else []


def _blocks(document: Document, uid: str) -> bool:
    return any(
        string_at(owner, ["uid"]) == uid and owner.get("blockOwnerDeletion") is True
        for owner in _owners(document)
    )
