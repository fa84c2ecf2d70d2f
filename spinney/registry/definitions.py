"""Definitions: a CustomResourceDefinition makes a kind come, change and go.

A kind is served once its definition's names are accepted, that is once no other kind of its group
has one of them. With its definition go first its objects, then it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from spinney.api import custom
from spinney.api.kinds import KINDS
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    same,
    string_at,
    value_at,
    with_value,
)
from spinney.meta.references import GroupKind, Ref
from spinney.meta.times import format_time
from spinney.ports import Change, Identity
from spinney.registry import belongings, marking
from spinney.registry.looks import Looks
from spinney.registry.registry import Registry
from spinney.registry.requests import DeleteOptions, Request
from spinney.store.store import Event, Stored

KEEPER = Identity(user="system:apiserver", groups=("system:masters",), manager="kube-apiserver")
_REQUEST = Request(who=KEEPER)

_DEFINITION = marking.DEFINITION
_CONDITIONS = ("status", "conditions")


class DefinitionKeeper:
    """Watches a registry's store and keeps its catalog by the definitions in it."""

    def __init__(self, registry: Registry) -> None:
        """Work on a registry; nothing happens before `start`."""
        self._registry = registry
        self._store = registry.store
        self._catalog = registry.catalog
        self._terminating: dict[GroupKind, Ref] = {}
        self._served: dict[Ref, tuple[GroupKind, Json]] = {}
        self.looks = Looks("customresourcedefinitions", registry.clock, self._examine)

    def start(self) -> None:
        """Serve at once what was established before, look at all, and at what changes now."""
        self._store.attach(None, self._store.version, self)
        for stored in self._store.list(_DEFINITION):
            if is_established(stored.document()):
                self._serve(stored.ref, stored.document())
            self.looks.note(stored.ref)

    def deliver(self, events: Sequence[Event]) -> None:
        """Note the definitions that changed, and those that are going and lost an object."""
        for event in events:
            ref = event.stored.ref
            if ref.kind == _DEFINITION:
                if event.change is Change.DELETED:
                    self._gone(ref)
                else:
                    self.looks.note(ref)
            elif ref.kind in self._terminating:
                self.looks.note(self._terminating[ref.kind])

    def cut(self) -> None:
        """Start over: some changes were missed."""
        for ref in [ref for ref in self._served if self._store.get(ref) is None]:
            self._gone(ref)
        self.start()

    def _gone(self, ref: Ref) -> None:
        """Serve a kind no more, and look again at those its names may have kept away."""
        group_kind, _ = self._served.pop(ref, (None, None))
        if group_kind is not None:
            self._terminating.pop(group_kind, None)
            self._catalog.drop(group_kind)
        for stored in self._store.list(_DEFINITION):
            self.looks.note(stored.ref)

    async def _examine(self, ref: Ref) -> None:
        stored = self._store.get(ref)
        if stored is None:
            return
        document = stored.document()
        if marking.is_marked(document):
            await self._close(stored, document)
            return
        conflicts = dict(self._conflicts(ref, document))
        now = self._registry.clock.now()

        def judged(before: Document) -> Document:
            return with_judgement(before, conflicts, now)

        outcome = await self._registry.amend(KINDS[_DEFINITION], "", ref.name, judged, _REQUEST)
        if is_established(outcome.document):
            self._serve(ref, outcome.document)

    def _serve(self, ref: Ref, document: Document) -> None:
        """Serve the versions of a kind, unless they are served as they are already."""
        stored = custom.kind_from_definition(document)
        group_kind = stored.names.group_kind
        is_closing = marking.is_marked(document)
        if group_kind in KINDS:  # served as it is, whatever a definition of it says
            return
        made_of: Json = [document.get("spec"), is_closing]
        known = self._served.get(ref)
        if known is not None and same(known[1], made_of):
            return
        self._served[ref] = (group_kind, made_of)
        self._catalog.put(custom.kinds_from_definition(document), stored, is_closing=is_closing)

    async def _close(self, stored: Stored, document: Document) -> None:
        """Delete a kind's objects, and let its definition go once there are none."""
        if marking.CLEANUP not in list_at(document, ("metadata", "finalizers")):
            return
        kind = custom.kind_from_definition(document)
        group_kind = kind.names.group_kind
        if is_established(document) and group_kind not in KINDS:
            self._serve(stored.ref, document)
            self._terminating[group_kind] = stored.ref
            found = self._store.list(group_kind)
            unmarked = [item for item in found if not marking.is_marked(item.document())]
            await self._registry.delete_all(kind, unmarked, DeleteOptions(), _REQUEST)
            left = [item for item in found if self._store.head(item.ref) is not None]
        else:
            left = []
        now = self._registry.clock.now()

        def closed(before: Document) -> Document:
            told = with_condition(before, _termination(len(left)), now)
            return told if left else belongings.without_finalizer(told, marking.CLEANUP)

        await self._registry.amend(KINDS[_DEFINITION], "", stored.ref.name, closed, _REQUEST)

    def _conflicts(self, ref: Ref, document: Document) -> Iterator[tuple[str, str]]:
        """Yield which of a definition's names other kinds of its group have, by sort of name."""
        names = object_at(document, ("spec", "names"))
        group = string_at(document, ("spec", "group"))
        itself = GroupKind(group=group, kind=string_at(names, ("kind",)))
        resources, kinds = self._taken(ref, group, itself)
        for sort, field in (("Plural", "plural"), ("Singular", "singular")):
            name = string_at(names, (field,))
            if name in resources:
                yield sort, f'"{name}" is already in use'
        for short in list_at(names, ("shortNames",)):
            if short in resources:
                yield "ShortNames", f'"{short}" is already in use'
        for sort, field in (("Kind", "kind"), ("ListKind", "listKind")):
            name = string_at(names, (field,))
            if name in kinds:
                yield sort, f'"{name}" is already in use'

    def _taken(self, ref: Ref, group: str, itself: GroupKind) -> tuple[set[str], set[str]]:
        """Return the names of resources, and of kinds, that others of a group have.

        A kind that is always there is not another one than its own definition speaks of, which
        people bring because clusters need it.
        """
        resources: set[str] = set()
        kinds: set[str] = set()
        for group_kind in KINDS:
            if group_kind.group == group and group_kind != itself:
                kind = KINDS[group_kind]
                resources |= {kind.names.plural, kind.names.singular, *kind.names.short}
                kinds |= {kind.names.kind, f"{kind.names.kind}List"}
        for stored in self._store.list(_DEFINITION):
            document = stored.document()
            if stored.ref == ref or string_at(document, ("spec", "group")) != group:
                continue
            accepted = object_at(document, ("status", "acceptedNames"))
            short = [name for name in list_at(accepted, ("shortNames",)) if isinstance(name, str)]
            resources |= {string_at(accepted, ("plural",)), string_at(accepted, ("singular",))}
            resources |= set(short)
            kinds |= {string_at(accepted, ("kind",)), string_at(accepted, ("listKind",))}
        return resources - {""}, kinds - {""}


def is_established(document: Document) -> bool:
    """Whether a definition's kind is served."""
    return any(
        string_at(item, ("type",)) == "Established" and string_at(item, ("status",)) == "True"
        for item in list_at(document, _CONDITIONS)
    )


def with_judgement(document: Document, conflicts: dict[str, str], now: datetime) -> Document:
    """Return a definition that says which of its names are accepted, and whether it is served.

    A kind that is established stays so: later names that are taken do not take it away.
    """
    names = object_at(document, ("spec", "names"))
    accepted = object_at(document, ("status", "acceptedNames"))
    if not conflicts:
        accepted = names
        told = ("NamesAccepted", True, "NoConflicts", "no conflicts found")
    else:
        taken = {f"{sort[0].lower()}{sort[1:]}" for sort in conflicts}
        accepted = {
            key: accepted.get(key, value) if key in taken else value
            for key, value in names.items()
            if key not in taken or key in accepted
        }
        sort, message = next(iter(conflicts.items()))
        told = ("NamesAccepted", False, f"{sort}Conflict", message)
    result = with_value(document, ("status", "acceptedNames"), accepted)
    result = with_value(result, ("status", "storedVersions"), _stored_versions(document))
    result = with_condition(result, told, now)
    if not conflicts:
        served = (
            "Established",
            True,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        )
        return result if is_established(document) else with_condition(result, served, now)
    if is_established(document):
        return result
    return with_condition(
        result, ("Established", False, "NotAccepted", "not all names are accepted"), now
    )


def _stored_versions(document: Document) -> list[Json]:
    """Return the versions objects may be stored in: those before, and the storage version."""
    before = list_at(document, ("status", "storedVersions"))
    storing: list[Json] = [
        value_at(version, ("name",))
        for version in list_at(document, ("spec", "versions"))
        if value_at(version, ("storage",)) is True
    ]
    return [*before, *(name for name in storing if name not in before)]


_Told = tuple[str, bool, str, str]


def _termination(left: int) -> _Told:
    if left:
        message = "CustomResource deletion is in progress"
        return "Terminating", True, "InstanceDeletionInProgress", message
    return "Terminating", False, "InstanceDeletionCompleted", "removed all instances"


def with_condition(document: Document, told: _Told, now: datetime) -> Document:
    """Return a definition with one condition set; the same where it says so already."""
    name, holds, reason, message = told
    status = "True" if holds else "False"
    conditions = list_at(document, _CONDITIONS)
    new: Document = {
        "type": name,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    result: list[Json] = []
    is_known = False
    for condition in conditions:
        if string_at(condition, ("type",)) != name:
            result.append(condition)
            continue
        is_known = True
        if string_at(condition, ("status",)) == status:
            new["lastTransitionTime"] = value_at(condition, ("lastTransitionTime",))
        result.append(new)
    if not is_known:
        result.append(new)
    return with_value(document, _CONDITIONS, result)
