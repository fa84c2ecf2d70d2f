"""Namespaces: each has its service account, and goes when all that lies in it is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from spinney.api.core.namespace import FINALIZER
from spinney.api.kinds import KINDS
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    string_at,
    with_value,
    without,
)
from spinney.meta.errors import AlreadyExists, ApiError, Forbidden, NotFound
from spinney.meta.references import GroupKind, Ref
from spinney.meta.times import format_time
from spinney.ports import Change, Identity
from spinney.registry import marking, requests
from spinney.registry.looks import Looks
from spinney.registry.registry import Registry
from spinney.registry.requests import DeleteOptions, Request
from spinney.store.store import Event, Stored

KEEPER = Identity(
    user="system:serviceaccount:kube-system:namespace-controller",
    groups=("system:serviceaccounts",),
    manager="namespace-controller",
)
_REQUEST = Request(who=KEEPER)

ACCOUNT = GroupKind(group="", kind="ServiceAccount")
DEFAULT_ACCOUNT = "default"

_NAMESPACE = marking.NAMESPACE


class NamespaceKeeper:
    """Watches a registry's store and keeps its namespaces in order."""

    def __init__(self, registry: Registry) -> None:
        """Work on a registry; nothing happens before `start`."""
        self._registry = registry
        self._store = registry.store
        self._terminating: set[str] = set()
        self.looks = Looks("namespace-controller", registry.clock, self._examine)

    def start(self) -> None:
        """Look at every namespace once, and at what changes from now on."""
        self._store.attach(None, self._store.version, self)
        for stored in self._store.list(_NAMESPACE):
            self.looks.note(stored.ref)

    def deliver(self, events: Sequence[Event]) -> None:
        """Note the namespaces that changed, or that are going and lost something."""
        for event in events:
            ref = event.stored.ref
            if ref.kind == _NAMESPACE:
                if event.change is Change.DELETED:
                    self._terminating.discard(ref.name)
                else:
                    self.looks.note(ref)
            elif ref.namespace in self._terminating or (
                event.change is Change.DELETED and ref.kind == ACCOUNT
            ):
                self.looks.note(Ref(kind=_NAMESPACE, namespace="", name=ref.namespace))

    def cut(self) -> None:
        """Start over: some changes were missed."""
        self.start()

    async def _examine(self, ref: Ref) -> None:
        stored, head = self._store.get(ref), self._store.head(ref)
        if stored is None or head is None:
            self._terminating.discard(ref.name)
            return
        document = head.document()
        if not marking.is_marked(document):
            await self._give_account(ref.name)
        elif not marking.is_marked(stored.document()):
            raise requests.modified(KINDS[_NAMESPACE], ref.name)
        elif FINALIZER in list_at(document, ("spec", "finalizers")):
            self._terminating.add(ref.name)
            await self._empty(ref.name)

    async def _give_account(self, namespace: str) -> None:
        ref = Ref(kind=ACCOUNT, namespace=namespace, name=DEFAULT_ACCOUNT)
        if self._store.head(ref) is not None:
            return
        document: Document = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": DEFAULT_ACCOUNT, "namespace": namespace},
        }
        try:
            await self._registry.create(KINDS[ACCOUNT], document, _REQUEST)
        except (AlreadyExists, Forbidden, NotFound):
            return

    async def _empty(self, namespace: str) -> None:
        """Delete what lies in a namespace, and let it go once nothing does."""
        refused: list[str] = []
        for kind in self._registry.catalog.stored():
            if not kind.namespaced:
                continue
            found = [
                stored
                for stored in self._store.list(kind.stored_kind, namespace=namespace)
                if not marking.is_marked(stored.document())
            ]
            try:
                await self._registry.delete_all(kind, found, DeleteOptions(), _REQUEST)
            except ApiError as error:
                refused.append(error.message)
        left = self._content(namespace)

        def seen(document: Document) -> Document:
            told = _with_conditions(document, left, refused, self._registry.clock.now())
            return told if left else _finalized(told)

        await self._registry.amend(KINDS[_NAMESPACE], "", namespace, seen, _REQUEST)

    def _content(self, namespace: str) -> list[tuple[str, Stored]]:
        """Return what will be left of a namespace once all queued writes are committed.

        Each with its resource, as the namespace tells of it.
        """
        return [
            (f"{kind.names.plural}.{kind.names.group}", head)
            for kind in self._registry.catalog.stored()
            if kind.namespaced
            for stored in self._store.list(kind.stored_kind, namespace=namespace)
            if (head := self._store.head(stored.ref)) is not None
        ]


def _finalized(document: Document) -> Document:
    path = ("spec", "finalizers")
    left = [item for item in list_at(document, path) if item != FINALIZER]
    return with_value(document, path, left) if left else without(document, path)


def _with_conditions(
    document: Document, left: Sequence[tuple[str, Stored]], refused: Sequence[str], now: datetime
) -> Document:
    """Return a namespace that says what it waits for."""
    told = {
        "NamespaceDeletionDiscoveryFailure": (
            False,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            (True, "ContentDeletionFailed", "; ".join(refused))
            if refused
            else (
                False,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            )
        ),
        "NamespaceContentRemaining": _remaining(left),
        "NamespaceFinalizersRemaining": _holding(left),
    }
    before = {
        string_at(item, ("type",)): object_at(item, ())
        for item in list_at(document, ("status", "conditions"))
    }
    conditions: list[Json] = []
    for name, (holds, reason, message) in told.items():
        status = "True" if holds else "False"
        was = before.get(name, {})
        since = was.get("lastTransitionTime") if was.get("status") == status else None
        conditions.append(
            {
                "type": name,
                "status": status,
                "lastTransitionTime": since or format_time(now),
                "reason": reason,
                "message": message,
            }
        )
    return with_value(document, ("status", "conditions"), conditions)


def _remaining(left: Sequence[tuple[str, Stored]]) -> tuple[bool, str, str]:
    if not left:
        return False, "ContentRemoved", "All content successfully removed"
    counts = Counter(resource for resource, _ in left)
    named = ", ".join(f"{name} has {counts[name]} resource instances" for name in sorted(counts))
    return True, "SomeResourcesRemain", f"Some resources are remaining: {named}"


def _holding(left: Sequence[tuple[str, Stored]]) -> tuple[bool, str, str]:
    counts = Counter(
        finalizer
        for _, stored in left
        for finalizer in list_at(stored.document(), ("metadata", "finalizers"))
        if isinstance(finalizer, str)
    )
    if not counts:
        return (
            False,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        )
    named = ", ".join(f"{name} in {counts[name]} resource instances" for name in sorted(counts))
    return (
        True,
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {named}",
    )
