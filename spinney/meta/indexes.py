"""Objects by name and by index: what a list needs, without walking what it does not.

An index comes into being when it is first asked for, and is kept up to date from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from spinney.meta.references import GroupKind, Ref
from spinney.meta.versions import Stored

Extract: TypeAlias = Callable[[Stored], Iterable[str]]
"""Which values of an index an object stands under."""

_ALL = ""
_LABEL = "label:"
_LABELS = "labels:"
"""Followed by several keys; stands for their values together, both joined by commas."""


def _label(key: str) -> Extract:
    def extract(stored: Stored) -> Iterable[str]:
        value = stored.labels.get(key)
        return () if value is None else (value,)

    return extract


def _several_labels(keys: Sequence[str]) -> Extract:
    def extract(stored: Stored) -> Iterable[str]:
        values = [stored.labels.get(key) for key in keys]
        found = [value for value in values if value is not None]
        return (",".join(found),) if len(found) == len(values) else ()

    return extract


def by_labels(wanted: Mapping[str, str]) -> tuple[str, str]:
    """Return the index, and its value, under which objects stand that carry all these labels."""
    keys = sorted(wanted)
    return f"{_LABELS}{','.join(keys)}", ",".join(wanted[key] for key in keys)


def _extract_for(name: str) -> Extract | None:
    """Return what an index every kind has stands for."""
    if name == _ALL:
        return lambda _stored: (_ALL,)
    if name == "owner":
        return lambda stored: stored.owners
    if name == "node":
        return lambda stored: (stored.node,) if stored.node else ()
    if name.startswith(_LABELS):
        return _several_labels(name.removeprefix(_LABELS).split(","))
    return _label(name.removeprefix(_LABEL)) if name.startswith(_LABEL) else None


class _Bucket:
    """Objects of one namespace under one value; sorted by name when it is read."""

    __slots__ = ("_is_sorted", "_last", "_members")

    def __init__(self) -> None:
        self._members: dict[str, Stored] = {}
        self._last = ""
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._members)

    def put(self, stored: Stored) -> None:
        name = stored.ref.name
        if name not in self._members:
            if name < self._last:
                self._is_sorted = False
            else:
                self._last = name
        self._members[name] = stored

    def drop(self, name: str) -> None:
        self._members.pop(name, None)

    def sorted(self) -> Iterable[Stored]:
        if not self._is_sorted:
            self._members = dict(sorted(self._members.items()))
            self._is_sorted = True
        return self._members.values()


class _Index:
    """Objects of one kind by value and namespace."""

    __slots__ = ("_values", "extract")

    def __init__(self, extract: Extract) -> None:
        self.extract = extract
        self._values: dict[str, dict[str, _Bucket]] = {}

    def put(self, stored: Stored, before: Stored | None) -> None:
        values = self.extract(stored)
        if before is not None:
            for value in self.extract(before):
                if value not in values:
                    self._drop(before.ref, value)
        for value in values:
            namespaces = self._values.setdefault(value, {})
            bucket = namespaces.get(stored.ref.namespace)
            if bucket is None:
                bucket = namespaces[stored.ref.namespace] = _Bucket()
            bucket.put(stored)

    def drop(self, stored: Stored) -> None:
        for value in self.extract(stored):
            self._drop(stored.ref, value)

    def _drop(self, ref: Ref, value: str) -> None:
        namespaces = self._values.get(value, {})
        bucket = namespaces.get(ref.namespace)
        if bucket is None:
            return
        bucket.drop(ref.name)
        if not bucket:
            del namespaces[ref.namespace]
        if not namespaces:
            del self._values[value]

    def find(self, value: str, namespace: str | None) -> list[Stored]:
        namespaces = self._values.get(value, {})
        if namespace is not None:
            bucket = namespaces.get(namespace)
            return [*bucket.sorted()] if bucket else []
        found: list[Stored] = []
        for name in sorted(namespaces):
            found.extend(namespaces[name].sorted())
        return found


class Objects:
    """The newest version of every object."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._by_ref: dict[Ref, Stored] = {}
        self._indexes: dict[GroupKind, dict[str, _Index]] = {}
        self._registered: dict[tuple[GroupKind, str], Extract] = {}
        self.bytes = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_ref)

    def get(self, ref: Ref) -> Stored | None:
        """Return an object, None where there is none."""
        return self._by_ref.get(ref)

    def put(self, stored: Stored) -> None:
        """Add an object, or a newer version of one."""
        before = self._by_ref.get(stored.ref)
        self._by_ref[stored.ref] = stored
        self.bytes += len(stored.body) - (len(before.body) if before else 0)
        for index in self._indexes_of(stored.ref.kind).values():
            index.put(stored, before)

    def drop(self, ref: Ref) -> None:
        """Take an object away, if it is there."""
        before = self._by_ref.pop(ref, None)
        if before is None:
            return
        self.bytes -= len(before.body)
        for index in self._indexes_of(ref.kind).values():
            index.drop(before)

    def list(
        self, kind: GroupKind, namespace: str | None, by: tuple[str, str] | None
    ) -> list[Stored]:
        """Return objects of a kind sorted by Ref; see ports.Reader for `by`."""
        name, value = by or (_ALL, _ALL)
        return self._index(kind, name).find(value, namespace)

    def matches(self, stored: Stored, namespace: str | None, by: tuple[str, str] | None) -> bool:
        """Whether a list would hold a version of an object."""
        if namespace is not None and stored.ref.namespace != namespace:
            return False
        return by is None or by[1] in self._extract(stored.ref.kind, by[0])(stored)

    def register(self, kind: GroupKind, name: str, extract: Extract) -> None:
        """Give a kind an index of a name of its own."""
        assert _extract_for(name) is None, f"{name} is an index every kind has"
        assert (kind, name) not in self._registered, f"{kind} has an index {name}"
        self._registered[kind, name] = extract

    def _extract(self, kind: GroupKind, name: str) -> Extract:
        extract = _extract_for(name) or self._registered.get((kind, name))
        assert extract is not None, f"{kind} has no index {name}"
        return extract

    def _indexes_of(self, kind: GroupKind) -> dict[str, _Index]:
        indexes = self._indexes.get(kind)
        if indexes is None:
            indexes = self._indexes[kind] = {_ALL: _Index(self._extract(kind, _ALL))}
        return indexes

    def _index(self, kind: GroupKind, name: str) -> _Index:
        indexes = self._indexes_of(kind)
        index = indexes.get(name)
        if index is None:
            index = _Index(self._extract(kind, name))
            for stored in indexes[_ALL].find(_ALL, None):
                index.put(stored, None)
            indexes[name] = index
        return index


def merged(
    committed: Sequence[Stored], queued: Iterable[tuple[Ref, Stored | None]]
) -> list[Stored]:
    """Return a list with newer versions in place; None takes an object away."""
    newer = dict(queued)
    kept = [stored for stored in committed if stored.ref not in newer]
    added = [stored for stored in newer.values() if stored is not None]
    return sorted([*kept, *added], key=lambda stored: stored.ref) if added else kept
