"""The garbage collector: deletes what lost its last owner, and finishes deletions that wait.

It looks at one object at a time and at nothing but the store, whatever made it look: so it may be
stopped anywhere, and may look once too often. It is woken by changes alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from spinney.api.kinds import Kind
from spinney.meta.documents import Document
from spinney.meta.errors import NotFound
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Change, Identity
from spinney.registry import belongings, forms, marking, requests
from spinney.registry.belongings import Belongings, Owner
from spinney.registry.looks import AT_ONCE, Looks
from spinney.registry.registry import Registry
from spinney.registry.requests import DeleteOptions, Request
from spinney.store.store import Event, Stored

COLLECTOR = Identity(
    user="system:serviceaccount:kube-system:generic-garbage-collector",
    groups=("system:serviceaccounts",),
    manager="garbage-collector",
)
_REQUEST = Request(who=COLLECTOR)


class GarbageCollector:
    """Watches a registry's store and keeps owners and dependents in order."""

    def __init__(self, registry: Registry) -> None:
        """Work on a registry; nothing happens before `start`."""
        self._registry = registry
        self._store = registry.store
        self._catalog = registry.catalog
        self._waiting: dict[str, Ref] = {}
        self.looks = Looks("garbage-collector", registry.clock, self._examine)

    def start(self) -> None:
        """Look at all there is once, and at what changes from now on."""
        self._store.attach(None, self._store.version, self)
        for kind in self._catalog.stored():
            for stored in self._store.list(kind.stored_kind):
                if stored.owners or _may_be_marked(stored):
                    self.looks.note(stored.ref)

    def deliver(self, events: Sequence[Event]) -> None:
        """Note what a batch of changes makes worth a look."""
        for event in events:
            stored, before = event.stored, event.before
            had = before.owners if before is not None else ()
            if event.change is Change.DELETED:
                self._note_gone(stored, had)
                continue
            if _may_be_marked(stored) or (stored.owners != had and self._has_lost_owners(stored)):
                self.looks.note(stored.ref)
            self._note_waiting((*had, *stored.owners))

    def cut(self) -> None:
        """Start over: some changes were missed."""
        self.start()

    def _has_lost_owners(self, stored: Stored) -> bool:
        """Whether an owner is gone, or going; nearly always all of them are there."""
        owners = belongings.belongings_of(stored).owners
        _, lost, going = self._judged_owners(stored.ref.namespace, owners)
        return bool(lost or going)

    def _note_gone(self, stored: Stored, had: Iterable[str]) -> None:
        self._waiting.pop(stored.uid, None)
        for dependent in self._dependents(stored.uid):
            self.looks.note(dependent.ref)
        self._note_waiting((*had, *stored.owners))

    def _note_waiting(self, uids: Iterable[str]) -> None:
        """Note owners that wait for dependents, of which one has changed."""
        if self._waiting:
            for uid in uids:
                if uid in self._waiting:
                    self.looks.note(self._waiting[uid])

    async def _examine(self, ref: Ref) -> None:
        stored = self._store.head(ref)
        kind = self._catalog.get(ref.kind)
        if stored is None or kind is None:
            return
        found = belongings.belongings_of(stored)
        if not found.is_marked:
            await self._check_owners(kind, stored, found)
            return
        committed = self._store.get(ref)
        if committed is None or not _may_be_marked(committed):
            raise requests.modified(kind, ref.name)
        if marking.ORPHAN in found.finalizers:
            await self._orphan_dependents(kind, stored)
        elif marking.FOREGROUND in found.finalizers:
            await self._wait_for_dependents(kind, stored)

    # Deletions that wait

    async def _orphan_dependents(self, kind: Kind, stored: Stored) -> None:
        dependents = list(self._dependents(stored.uid))
        for start in range(0, len(dependents), AT_ONCE):
            part = dependents[start : start + AT_ONCE]
            await asyncio.gather(*(self._disown(item, {stored.uid}) for item in part))
        await self._release(kind, stored, marking.ORPHAN)

    async def _wait_for_dependents(self, kind: Kind, stored: Stored) -> None:
        """Let the owner go once nothing blocks it; what depends on it is looked at by itself."""
        self._waiting[stored.uid] = stored.ref
        blocked = False
        for dependent in self._dependents(stored.uid):
            found = belongings.belongings_of(dependent)
            if not found.is_marked:
                self.looks.note(dependent.ref)
            if belongings.blocks(found, stored.uid) and not blocked:
                blocked = not self._waits_for(dependent, found, stored.uid)
        if not blocked:
            await self._release(kind, stored, marking.FOREGROUND)

    def _waits_for(self, stored: Stored, found: Belongings, uid: str) -> bool:
        """Whether an object waits for another to go, by whatever way, and so cannot go first."""
        seen = {stored.uid}
        open_ends = [(stored, found)]
        while open_ends:
            here, known = open_ends.pop()
            if here.uid == uid:
                return True
            if not known.waits_for_dependents:
                continue
            for dependent in self._dependents(here.uid):
                below = belongings.belongings_of(dependent)
                if dependent.uid not in seen and belongings.blocks(below, here.uid):
                    seen.add(dependent.uid)
                    open_ends.append((dependent, below))
        return False

    # Objects with owners

    async def _check_owners(self, kind: Kind, stored: Stored, found: Belongings) -> None:
        solid, lost, going = self._judged_owners(stored.ref.namespace, found.owners)
        if solid:
            if lost or going:
                await self._disown(stored, {*lost, *going})
            return
        if not lost and not going:
            return
        has_dependents = bool(going) and next(self._dependents(stored.uid), None) is not None
        await self._delete(kind, stored, found, foreground=has_dependents)

    def _judged_owners(
        self, namespace: str, owners: Iterable[Owner]
    ) -> tuple[list[str], list[str], list[str]]:
        """Return the uids of owners that are there, that are gone, and that wait for this one.

        An owner nothing can be known of counts as there: its kind is not served, or it lies in a
        namespace while what it owns does not. One that is about to orphan this object counts for
        nothing: it keeps it no more, and does not take it along.
        """
        solid: list[str] = []
        lost: list[str] = []
        going: list[str] = []
        for owner in owners:
            kind = self._catalog.get(GroupKind(group=owner.group, kind=owner.kind))
            if kind is None or (kind.namespaced and not namespace):
                solid.append(owner.uid)
                continue
            held = self._store.head(forms.ref_of(kind, namespace, owner.name))
            if held is None or held.uid != owner.uid:
                lost.append(owner.uid)
            elif not _may_be_marked(held):
                solid.append(owner.uid)
            else:
                theirs = belongings.belongings_of(held)
                if theirs.waits_for_dependents:
                    going.append(owner.uid)
                elif not theirs.orphans_dependents:
                    solid.append(owner.uid)
        return solid, lost, going

    def _dependents(self, uid: str) -> Iterator[Stored]:
        for kind in self._catalog.stored():
            yield from self._store.list(kind.stored_kind, by=("owner", uid))

    # Writes

    async def _delete(
        self, kind: Kind, stored: Stored, found: Belongings, *, foreground: bool
    ) -> None:
        propagation = "Background"
        if marking.ORPHAN in found.finalizers:
            propagation = "Orphan"
        elif marking.FOREGROUND in found.finalizers or foreground:
            propagation = "Foreground"
        options = DeleteOptions(only_if=Precondition(uid=stored.uid), propagation=propagation)
        await self._registry.delete(kind, stored.ref.namespace, stored.ref.name, options, _REQUEST)

    async def _disown(self, stored: Stored, gone: set[str]) -> None:
        kind = self._catalog.get(stored.ref.kind)
        assert kind is not None

        def disowned(document: Document) -> Document:
            return belongings.without_owners(document, gone)

        try:
            await self._registry.amend(
                kind, stored.ref.namespace, stored.ref.name, disowned, _REQUEST
            )
        except NotFound:
            return

    async def _release(self, kind: Kind, stored: Stored, finalizer: str) -> None:
        def released(document: Document) -> Document:
            return belongings.without_finalizer(document, finalizer)

        await self._registry.amend(kind, stored.ref.namespace, stored.ref.name, released, _REQUEST)


def _may_be_marked(stored: Stored) -> bool:
    """Whether an object may be about to go; cheap, and sure where it says no."""
    return b'"deletionTimestamp"' in stored.body
