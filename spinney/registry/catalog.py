"""The catalog: every kind that is served, Spinney's own, Kubernetes', and those users define."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spinney.api import kinds
from spinney.api.kinds import KINDS, Kind
from spinney.meta.documents import Document, string_at
from spinney.meta.references import GroupKind


class Catalog:
    """Kinds by what they are called; users' kinds come and go.

    A user's kind may be served in several versions; one of them is the form it is stored in.
    """

    def __init__(self) -> None:
        """Begin with the kinds that are always there."""
        self._stored: dict[GroupKind, Kind] = dict(KINDS)
        self._served: dict[tuple[str, str, str], Kind] = {
            _resource(kind): kind for kind in self._stored.values()
        }
        self._custom: dict[GroupKind, tuple[Kind, ...]] = {}
        self._closing: set[GroupKind] = set()
        self._by_stored_kind: dict[GroupKind, Kind] = {}
        self.changes = 0
        """Rises with every change, so that what is made of the catalog can be made anew."""

        self._changed()

    def __iter__(self) -> Iterator[Kind]:
        """Every kind that is served, each version of it, in a stable order."""
        return iter(self._served.values())

    def stored(self) -> Iterator[Kind]:
        """Every kind objects are stored as: one version of each, and no second way to see one."""
        return iter(self._by_stored_kind.values())

    def get(self, group_kind: GroupKind) -> Kind | None:
        """Return a kind by group and kind, in the version it is stored in."""
        return self._stored.get(group_kind)

    def resource(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served under a path."""
        return self._served.get((group, version, plural))

    def kind_of(self, document: Document) -> Kind | None:
        """Return the kind a document says it is of, in the version it says."""
        kind = self._stored.get(kinds.group_kind_of(document))
        if kind is None:
            return None
        version = string_at(document, ("apiVersion",)).rpartition("/")[2]
        return self._served.get((kind.names.group, version, kind.names.plural))

    def is_custom(self, group_kind: GroupKind) -> bool:
        """Whether a user defined a kind."""
        return group_kind in self._custom

    def is_closing(self, group_kind: GroupKind) -> bool:
        """Whether a user's kind is going: nothing new may be made of it."""
        return group_kind in self._closing

    def put(self, served: Sequence[Kind], stored: Kind, *, is_closing: bool = False) -> None:
        """Serve a user's kind in some versions, in place of what it was before."""
        group_kind = stored.names.group_kind
        assert group_kind not in KINDS, f"{group_kind} is always there"
        self._drop(group_kind)
        self._stored[group_kind] = stored
        self._custom[group_kind] = tuple(served)
        for kind in served:
            self._served[_resource(kind)] = kind
        if is_closing:
            self._closing.add(group_kind)
        self._changed()

    def drop(self, group_kind: GroupKind) -> None:
        """Serve a user's kind no more."""
        if group_kind in self._custom:
            self._drop(group_kind)
            self._changed()

    def _drop(self, group_kind: GroupKind) -> None:
        for kind in self._custom.pop(group_kind, ()):
            self._served.pop(_resource(kind), None)
        if group_kind not in KINDS:
            self._stored.pop(group_kind, None)
        self._closing.discard(group_kind)

    def _changed(self) -> None:
        self._by_stored_kind = {
            kind.stored_kind: kind
            for kind in self._stored.values()
            if kind.stored_kind == kind.names.group_kind
        }
        self.changes += 1


def _resource(kind: Kind) -> tuple[str, str, str]:
    names = kind.names
    return names.group, names.version, names.plural
