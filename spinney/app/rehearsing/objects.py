"""Objects: documents in memory in which actions are carried out, as a server would.

It has what controllers rely on: defaults, uids, versions, preconditions, finalizers, owners that
take their dependents along. Nothing leaves it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from spinney.api import groupkinds, kinds
from spinney.api.kinds import KINDS
from spinney.decisions.actions import Action, Create, Delete, Emit, Patch
from spinney.meta import records
from spinney.meta.documents import (
    Document,
    list_at,
    object_at,
    same,
    string_at,
    strings,
    with_value,
    without,
)
from spinney.meta.errors import SpinneyError
from spinney.meta.patches import merge_patch
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.meta.times import format_time
from spinney.ports import Change

R = TypeVar("R", bound=Record)
Index = tuple[GroupKind, str, str]
_KINDS = {kind.record: group_kind for group_kind, kind in KINDS.items()}


class Moved(SpinneyError):
    """A precondition did not hold: the world is another one than was decided on."""


class Refused(SpinneyError):
    """A server would not take an object."""


class Objects:
    """Documents by reference; fills `Reader`."""

    def __init__(self, documents: Iterable[Document], now: datetime) -> None:
        """Hold a copy of objects as they are now."""
        self.now = now
        self.version = 0
        self.listeners: list[Callable[[Ref, Change], None]] = []
        self._documents: dict[Ref, Document] = {}
        self._views: dict[Ref, Record] = {}
        self._by_kind: dict[GroupKind, dict[Ref, None]] = defaultdict(dict)
        self._index: dict[Index, dict[Ref, None]] = defaultdict(dict)
        for document in documents:
            self._put(ref_of(document), document)
            told = string_at(document, ["metadata", "resourceVersion"])
            self.version = max(self.version, int(told) if told.isdecimal() else 0)

    # What a Reader gives

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        """Return an object, None where there is none."""
        ref = Ref(kind=_KINDS[record], namespace=namespace, name=name)
        return self._view(record, ref) if ref in self._documents else None

    def list(
        self,
        record: type[R],
        *,
        namespace: str | None = None,
        by: tuple[str, str] | None = None,
    ) -> Sequence[R]:
        """Return objects sorted by Ref."""
        kind = _KINDS[record]
        refs = self._by_kind[kind] if by is None else self._index.get((kind, *by), {})
        return [
            self._view(record, ref)
            for ref in sorted(refs)
            if namespace is None or ref.namespace == namespace
        ]

    def seen(self, _kind: GroupKind) -> int:
        """Return the version of everything."""
        return self.version

    def on_change(self, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        """Have a function called after each change of a kind."""

        def told(ref: Ref, change: Change) -> None:
            if ref.kind == kind:
                call(ref, change)

        self.listeners.append(told)

    def document(self, ref: Ref) -> Document | None:
        """Return an object as it is, None where there is none."""
        return self._documents.get(ref)

    def documents(self) -> Sequence[Document]:
        """Return everything there is."""
        return tuple(self._documents.values())

    def of_kind(self, kind: GroupKind) -> Iterator[Ref]:
        """Yield what there is of a kind, in order."""
        yield from sorted(self._by_kind[kind])

    def _view(self, record: type[R], ref: Ref) -> R:
        if ref not in self._views:
            self._views[ref] = records.decode(record, self._documents[ref])
        view = self._views[ref]
        assert isinstance(view, record)
        return view

    # What changes

    def put(self, document: Document) -> Ref:
        """Store an object as it is given, under a new version."""
        ref = ref_of(document)
        is_new = ref not in self._documents
        self.version += 1
        path = ["metadata", "resourceVersion"]
        self._put(ref, with_value(document, path, str(self.version)))
        self._tell(ref, Change.ADDED if is_new else Change.MODIFIED)
        return ref

    def _put(self, ref: Ref, document: Document) -> None:
        self._forget(ref)
        self._documents[ref] = document
        self._by_kind[ref.kind][ref] = None
        for key in _keys(ref.kind, document):
            self._index[key][ref] = None

    def _forget(self, ref: Ref) -> None:
        old = self._documents.pop(ref, None)
        if old is None:
            return
        self._views.pop(ref, None)
        self._by_kind[ref.kind].pop(ref, None)
        for key in _keys(ref.kind, old):
            self._index[key].pop(ref, None)

    def _tell(self, ref: Ref, change: Change) -> None:
        for listener in self.listeners:
            listener(ref, change)

    def act(self, action: Action) -> None:
        """Carry out an action; raises Moved, Refused."""
        if isinstance(action, Create):
            self._create(action.document)
        elif isinstance(action, Patch):
            held = self._checked(action.target, action.only_if)
            self._change(held, merge_patch.apply(held, action.merge))
            self._collect(action.target)
        elif isinstance(action, Delete):
            if action.target in self._documents:
                self._checked(action.target, action.only_if)
                self.delete(action.target)
        else:
            assert isinstance(action, Emit), f"{action} is none of a controller's"

    def put_status(self, ref: Ref, status: Document) -> None:
        """Store the status of an object, as far as it is another."""
        held = self._documents.get(ref)
        if held is not None and not same(held.get("status"), status):
            self.put({**held, "status": status})

    def _create(self, document: Document) -> None:
        if ref_of(document) in self._documents:
            return
        kind = KINDS[kinds.group_kind_of(document)]
        admitted, faults = kinds.admit(kind, document)
        if faults:
            raise Refused(f"{faults[0].path}: {faults[0].message}")
        metadata = object_at(admitted, ["metadata"])
        made: Document = {
            "uid": f"rehearsed-{self.version + 1}",
            "creationTimestamp": format_time(self.now),
            "generation": 1,
        }
        self.put({**admitted, "metadata": {**metadata, **made}})

    def _change(self, old: Document, new: Document) -> None:
        admitted, faults = kinds.admit(KINDS[kinds.group_kind_of(new)], new, old)
        if faults:
            raise Refused(f"{faults[0].path}: {faults[0].message}")
        if same(old, admitted):
            return
        path = ["metadata", "generation"]
        generation = object_at(old, ["metadata"]).get("generation")
        assert isinstance(generation, int), "a stored object has a generation"
        is_other = not same(_spec(old), _spec(admitted))
        self.put(with_value(admitted, path, generation + 1) if is_other else admitted)

    def delete(self, ref: Ref) -> None:
        """Delete an object; what it owns goes with it once it is gone."""
        document = self._documents.get(ref)
        if document is None or string_at(document, ["metadata", "deletionTimestamp"]):
            return
        path = ["metadata", "deletionTimestamp"]
        self.put(with_value(document, path, format_time(self.now)))
        self._collect(ref)

    def end(self, ref: Ref) -> None:
        """Take a pod away that is being deleted, as its node does once it has ended."""
        document = self._documents.get(ref)
        if document is not None:
            self._put(ref, without(document, ["spec", "nodeName"]))
            self._collect(ref)

    def _collect(self, ref: Ref) -> None:
        """Take away what is being deleted and held by nothing, and what it owned."""
        document = self._documents[ref]
        if not string_at(document, ["metadata", "deletionTimestamp"]):
            return
        runs = ref.kind == groupkinds.POD and string_at(document, ["spec", "nodeName"])
        if runs or list_at(document, ["metadata", "finalizers"]):
            return
        uid = string_at(document, ["metadata", "uid"])
        self._forget(ref)
        self.version += 1
        self._tell(ref, Change.DELETED)
        owned = [other for kind in KINDS for other in self._index.get((kind, "owner", uid), {})]
        for other in sorted(owned):
            self.delete(other)

    def _checked(self, ref: Ref, only_if: Precondition) -> Document:
        document = self._documents.get(ref)
        if document is None:
            raise Moved(f"{ref} is gone")
        for field, wanted in (
            ("uid", only_if.uid),
            ("resourceVersion", only_if.resource_version),
        ):
            if wanted is not None and string_at(document, ["metadata", field]) != wanted:
                raise Moved(f"{ref} has another {field}")
        return document


def ref_of(document: Document) -> Ref:
    """Return how an object is referred to."""
    return Ref(
        kind=kinds.group_kind_of(document),
        namespace=string_at(document, ["metadata", "namespace"]),
        name=string_at(document, ["metadata", "name"]),
    )


def _keys(kind: GroupKind, document: Document) -> Iterator[Index]:
    """Yield under what an object is found."""
    for owner in list_at(document, ["metadata", "ownerReferences"]):
        yield kind, "owner", string_at(owner, ["uid"])
    for key, value in strings(object_at(document, ["metadata", "labels"])).items():
        yield kind, f"label:{key}", value


def _spec(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}
