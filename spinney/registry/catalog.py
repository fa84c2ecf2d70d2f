"""The catalog: every kind that is served, Spinney's own, Kubernetes', and those users define."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.kinds import KINDS, Kind
from spinney.meta.references import GroupKind


class Catalog:
    """Kinds by what they are called; users' kinds come and go."""

    def __init__(self) -> None:
        """Begin with the kinds that are always there."""
        self._by_kind: dict[GroupKind, Kind] = dict(KINDS)
        self._by_resource = {_resource(kind): kind for kind in self._by_kind.values()}
        self._custom: set[GroupKind] = set()
        self.changes = 0
        """Rises with every change, so that what is made of the catalog can be made anew."""

    def __iter__(self) -> Iterator[Kind]:
        """Every kind, in a stable order."""
        return iter(self._by_kind.values())

    def get(self, group_kind: GroupKind) -> Kind | None:
        """Return a kind by group and kind."""
        return self._by_kind.get(group_kind)

    def resource(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served under a path."""
        return self._by_resource.get((group, version, plural))

    def is_custom(self, group_kind: GroupKind) -> bool:
        """Whether a user defined a kind."""
        return group_kind in self._custom

    def is_free(self, group_kind: GroupKind) -> bool:
        """Whether a user may define a kind: nothing that is always there has its name."""
        return group_kind not in self._by_kind or group_kind in self._custom

    def put(self, kind: Kind) -> None:
        """Serve a user's kind, in place of what it was before."""
        group_kind = kind.names.group_kind
        assert self.is_free(group_kind)
        self.drop(group_kind)
        self._by_kind[group_kind] = kind
        self._by_resource[_resource(kind)] = kind
        self._custom.add(group_kind)
        self.changes += 1

    def drop(self, group_kind: GroupKind) -> None:
        """Serve a user's kind no more."""
        if group_kind not in self._custom:
            return
        kind = self._by_kind.pop(group_kind)
        self._by_resource.pop(_resource(kind), None)
        self._custom.discard(group_kind)
        self.changes += 1


def _resource(kind: Kind) -> tuple[str, str, str]:
    names = kind.names
    return names.group, names.version, names.plural
