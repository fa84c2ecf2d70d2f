"""A small world of documents in which decisions are carried out one action at a time.

It has what decisions rely on and no more: admission, uids, versions, preconditions, finalizers,
owners that take their dependents along, and people who place pods and make them ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from spinney.api import groupkinds, kinds
from spinney.api.kinds import KINDS
from spinney.controllers import podclique, podcliquescalinggroup, podcliqueset, podgang
from spinney.decisions import cliques, gangs, groups, sets
from spinney.decisions.actions import Action, Create, Decision, Delete, Emit, Patch
from spinney.meta import records
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    same,
    string_at,
    with_value,
    without,
)
from spinney.meta.patches import merge_patch
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.meta.times import format_time
from spinney.ports import Change

R = TypeVar("R", bound=Record)
Order = Callable[[list[Ref]], list[Ref]]
START = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS = {kind.record: group_kind for group_kind, kind in KINDS.items()}

LOOKS: dict[GroupKind, Callable[[World, Ref], Decision | None]] = {
    groupkinds.SET: lambda w, key: _decided(podcliqueset.observe, sets.decide, w, key),
    groupkinds.SCALING_GROUP: lambda w, key: _decided(
        podcliquescalinggroup.observe, groups.decide, w, key
    ),
    groupkinds.CLIQUE: lambda w, key: _decided(podclique.observe, cliques.decide, w, key),
    groupkinds.GANG: lambda w, key: _decided(podgang.observe, gangs.decide, w, key),
}


def _decided(observe, decide, world: World, key: Ref) -> Decision | None:  # type: ignore[no-untyped-def]
    seen = observe(world, key, world.now)
    return None if seen is None else decide(seen)


class Moved(Exception):
    """A precondition did not hold."""


class World:
    """Documents by reference, and everything that happened to them."""

    def __init__(self) -> None:
        self.now = START
        self.documents: dict[Ref, Document] = {}
        self.version = 0
        self.writes: list[tuple[str, Ref]] = []
        self.events: list[Emit] = []
        self._views: dict[Ref, Record] = {}

    # What a Reader gives

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        ref = Ref(kind=_KINDS[record], namespace=namespace, name=name)
        return self._view(record, ref) if ref in self.documents else None

    def list(
        self,
        record: type[R],
        *,
        namespace: str | None = None,
        by: tuple[str, str] | None = None,
    ) -> Sequence[R]:
        refs = sorted(
            ref
            for ref in self.documents
            if ref.kind == _KINDS[record] and namespace in (None, ref.namespace)
        )
        return [self._view(record, ref) for ref in refs if self._matches(ref, by)]

    def seen(self, _kind: GroupKind) -> int:
        return self.version

    def on_change(self, _kind: GroupKind, _call: Callable[[Ref, Change], None]) -> None:
        raise AssertionError("decisions are not called by events here")

    def _view(self, record: type[R], ref: Ref) -> R:
        if ref not in self._views:
            self._views[ref] = records.decode(record, self.documents[ref])
        view = self._views[ref]
        assert isinstance(view, record)
        return view

    def _matches(self, ref: Ref, by: tuple[str, str] | None) -> bool:
        if by is None:
            return True
        index, value = by
        document = self.documents[ref]
        if index == "owner":
            return any(
                string_at(owner, ["uid"]) == value
                for owner in list_at(document, ["metadata", "ownerReferences"])
            )
        assert index.startswith("label:")
        carried = object_at(document, ["metadata", "labels"])
        return carried.get(index.removeprefix("label:")) == value

    # Writes

    def apply(self, document: Document) -> Ref:
        """Store an object as a user would."""
        return self._store(document)

    def _store(self, document: Document, old: Document | None = None) -> Ref:
        group_kind = kinds.group_kind_of(document)
        kind = KINDS[group_kind]
        admitted, faults = kinds.admit(kind, document, old)
        assert not faults, [f"{fault.path}: {fault.message}" for fault in faults]
        metadata = object_at(admitted, ["metadata"])
        ref = Ref(
            kind=group_kind,
            namespace=string_at(metadata, ["namespace"]) if kind.namespaced else "",
            name=string_at(metadata, ["name"]),
        )
        if old is not None and same(_content(old), _content(admitted)):
            return ref
        self.version += 1
        if old is None:
            generation = 1
            metadata = {
                **metadata,
                "uid": f"uid-{self.version}",
                "creationTimestamp": format_time(self.now),
            }
        else:
            held = object_at(old, ["metadata"]).get("generation")
            assert isinstance(held, int)
            changed = not same(_spec(old), _spec(admitted))
            generation = held + (1 if changed else 0)
        metadata = {**metadata, "generation": generation, "resourceVersion": str(self.version)}
        self._put(ref, {**admitted, "metadata": metadata})
        self.writes.append(("create" if old is None else "change", ref))
        return ref

    def _put(self, ref: Ref, document: Document) -> None:
        self.documents[ref] = document
        self._views.pop(ref, None)

    def change(self, ref: Ref, path: Sequence[str], value: Json) -> None:
        """Change one value of an object, as a user would."""
        document = self.documents[ref]
        self._store(with_value(document, path, value), document)

    def delete(self, ref: Ref) -> None:
        """Delete an object; what it owns goes with it once it is gone."""
        document = self.documents.get(ref)
        if document is None or string_at(document, ["metadata", "deletionTimestamp"]):
            return
        marked = with_value(document, ["metadata", "deletionTimestamp"], format_time(self.now))
        self.version += 1
        self._put(ref, with_value(marked, ["metadata", "resourceVersion"], str(self.version)))
        self.writes.append(("delete", ref))
        self._collect(ref)

    def _collect(self, ref: Ref) -> None:
        """Take a deleted object away that nothing holds any more, and what it owned."""
        document = self.documents[ref]
        held = list_at(document, ["metadata", "finalizers"])
        runs = ref.kind == groupkinds.POD and string_at(document, ["spec", "nodeName"])
        if held or runs:
            return
        del self.documents[ref]
        self._views.pop(ref, None)
        self.version += 1
        uid = string_at(document, ["metadata", "uid"])
        for other in [o for o in self.documents if self._matches(o, ("owner", uid))]:
            self.delete(other)

    def act(self, action: Action) -> None:
        """Carry out one action; raises Moved where its precondition does not hold."""
        if isinstance(action, Create):
            document = action.document
            ref = _ref_of(document)
            if ref in self.documents:
                raise Moved(f"{ref} is there already")
            self._store(document)
        elif isinstance(action, Patch):
            held = self._checked(action.target, action.only_if)
            self._store(merge_patch.apply(held, action.merge), held)
            self._collect_if_going(action.target)
        elif isinstance(action, Delete):
            if action.target in self.documents:
                self._checked(action.target, action.only_if)
                self.delete(action.target)
        else:
            assert isinstance(action, Emit)
            self.events.append(action)

    def _collect_if_going(self, ref: Ref) -> None:
        if string_at(self.documents[ref], ["metadata", "deletionTimestamp"]):
            self._collect(ref)

    def _checked(self, ref: Ref, only_if: Precondition) -> Document:
        document = self.documents.get(ref)
        if document is None:
            raise Moved(f"{ref} is gone")
        for field, wanted in (
            ("uid", only_if.uid),
            ("resourceVersion", only_if.resource_version),
        ):
            if wanted is not None and string_at(document, ["metadata", field]) != wanted:
                raise Moved(f"{ref} has another {field}")
        return document

    def put_status(self, ref: Ref, status: Document) -> None:
        document = self.documents.get(ref)
        if document is not None:
            self._store({**document, "status": status}, document)

    # Looking and converging

    def subjects(self) -> list[Ref]:
        """Return everything controllers look at."""
        return sorted(ref for ref in self.documents if ref.kind in LOOKS)

    def look(self, key: Ref) -> bool:
        """Look at one object and carry out what is decided; returns whether anything changed."""
        before = self.version
        decision = LOOKS[key.kind](self, key)
        if decision is None:
            return False
        decision.check()
        self.carry_out(key, decision)
        return self.version != before

    def carry_out(self, key: Ref, decision: Decision) -> None:
        """Carry out a decision, as far as its preconditions hold."""
        if decision.intent is not None:
            self.put_status(key, decision.intent)
            return
        for action in decision.actions:
            try:
                self.act(action)
            except Moved:
                return
        if decision.status is not None:
            self.put_status(key, decision.status)

    def settle(self, rounds_max: int = 40, order: Order = sorted) -> int:
        """Look at everything until nothing changes; returns how many rounds that took."""
        for count in range(rounds_max):
            changed = [self.look(key) for key in order(self.subjects())]
            if not any(changed):
                return count
        raise AssertionError(f"not settled after {rounds_max} rounds")

    # What nodes and people do

    def pods(self) -> Iterator[Ref]:
        """Yield every pod there is."""
        return iter(sorted(ref for ref in self.documents if ref.kind == groupkinds.POD))

    def place(self, ref: Ref) -> None:
        """Give a pod a node."""
        document = self.documents[ref]
        assert not list_at(document, ["spec", "schedulingGates"]), f"{ref} is held back"
        condition: Document = {"type": "PodScheduled", "status": "True"}
        self.version += 1
        placed = with_value(document, ["spec", "nodeName"], "node")
        placed = with_value(placed, ["status", "conditions"], [condition])
        self._put(ref, with_value(placed, ["metadata", "resourceVersion"], str(self.version)))

    def say(self, ref: Ref, *, ready: bool, phase: str = "Running") -> None:
        """Report what a pod does."""
        document = self.documents[ref]
        told: list[Json] = [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True" if ready else "False"},
        ]
        self.version += 1
        said = with_value(document, ["status"], {"phase": phase, "conditions": told})
        self._put(ref, with_value(said, ["metadata", "resourceVersion"], str(self.version)))

    def run_pods(self) -> None:
        """Place every pod that may be placed, and make it ready."""
        for ref in self.pods():
            document = self.documents[ref]
            if list_at(document, ["spec", "schedulingGates"]):
                continue
            if not string_at(document, ["spec", "nodeName"]):
                self.place(ref)
                self.say(ref, ready=True)

    def end_pods(self) -> None:
        """Take away every pod that is being deleted, as its node would."""
        for ref in list(self.pods()):
            document = self.documents[ref]
            if string_at(document, ["metadata", "deletionTimestamp"]):
                self._put(ref, without(document, ["spec", "nodeName"]))
                self._collect(ref)

    def live(self) -> None:
        """Go on until pods run, and nothing changes any more."""
        for _ in range(40):
            before = self.version
            self.settle()
            self.run_pods()
            self.end_pods()
            if self.version == before:
                return
        raise AssertionError("the world never came to rest")

    def names(self, group_kind: GroupKind) -> list[str]:
        """Return the names of all objects of a kind that are not being deleted."""
        return sorted(
            ref.name
            for ref, document in self.documents.items()
            if ref.kind == group_kind and not string_at(document, ["metadata", "deletionTimestamp"])
        )

    def at(self, group_kind: GroupKind, name: str, namespace: str = "default") -> Document:
        """Return an object."""
        return self.documents[Ref(kind=group_kind, namespace=namespace, name=name)]

    def wait(self, duration: timedelta) -> None:
        """Let time pass."""
        self.now += duration


def _ref_of(document: Document) -> Ref:
    return Ref(
        kind=kinds.group_kind_of(document),
        namespace=string_at(document, ["metadata", "namespace"]),
        name=string_at(document, ["metadata", "name"]),
    )


def _spec(document: Document) -> Document:
    return {k: v for k, v in document.items() if k not in ("metadata", "status")}


def _content(document: Document) -> Document:
    metadata = {
        key: value
        for key, value in object_at(document, ["metadata"]).items()
        if key not in ("resourceVersion", "generation")
    }
    return {**document, "metadata": metadata}
