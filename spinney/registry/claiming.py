"""Claiming: whose the fields of a write are, by the short ways the busiest writes have.

What `apply.track_update` works out for any write is known beforehand of two: all fields of a new
object are its maker's, and a change of some parts of an object moves no field of the others. Both
ways give what `track_update` would; laws hold them together.
"""

from __future__ import annotations

from datetime import datetime

from spinney.api.kinds import Kind, Names
from spinney.meta.documents import Document, Json, is_list, object_at, same, string_at, value_at
from spinney.meta.patches import apply as server_side_apply
from spinney.meta.patches.claims import Claims
from spinney.meta.patches.managers import UPDATE, UPDATERS_MAX
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.times import format_time

_UNTRACKED = frozenset(server_side_apply.SERVER_OWNED)
_MANAGED = ("metadata", "managedFields")


class Claimer:
    """Tells whose the fields of a write are."""

    def __init__(self) -> None:
        """Prepare for no kind yet; a kind's claims are made when it is first written."""
        self._claims: dict[Names, tuple[Kind, Claims]] = {}

    def of_new(self, kind: Kind, document: Document, manager: str, now: datetime) -> Document:
        """Return a new document as its maker's."""
        if value_at(document, _MANAGED) is not None:
            return _tracked(kind, {}, document, manager, now, "")
        fields = self._claims_of(kind).of(document, _UNTRACKED)
        if not fields:
            return document
        entry: Document = {
            "manager": manager or "unknown",
            "operation": UPDATE,
            "apiVersion": kind.names.api_version,
            "time": format_time(now),
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        metadata: Document = {**object_at(document, ("metadata",)), "managedFields": [entry]}
        return {**document, "metadata": metadata}

    def _claims_of(self, kind: Kind) -> Claims:
        known = self._claims.get(kind.names)
        if known is None or known[0] is not kind:
            known = self._claims[kind.names] = kind, Claims(with_metadata(kind.schema))
        return known[1]

    def of_changed(
        self,
        kind: Kind,
        before: Document,
        after: Document,
        manager: str,
        now: datetime,
        subresource: str,
    ) -> Document:
        """Return a changed document with what its writer took.

        Only the parts that changed are looked at, and of each entry what it holds of them: what
        an entry holds of one part says nothing of the others.
        """
        entries = value_at(before, _MANAGED)
        if (
            not is_list(entries)
            or len(entries) >= UPDATERS_MAX
            or value_at(after, _MANAGED) is not entries
        ):
            return _tracked(kind, before, after, manager, now, subresource)
        parts = _changed_parts(before, after)
        told = _tracked(
            kind,
            _narrowed(before, entries, parts),
            _narrowed(after, entries, parts),
            manager,
            now,
            subresource,
        )
        merged = _merged(entries, _entries(told), parts)
        metadata: Document = {**object_at(after, ("metadata",)), "managedFields": merged}
        return {**after, "metadata": metadata}


def _tracked(
    kind: Kind,
    before: Document,
    after: Document,
    manager: str,
    now: datetime,
    subresource: str,
) -> Document:
    return server_side_apply.track_update(
        kind.schema,
        before,
        after,
        manager,
        api_version=kind.names.api_version,
        now=now,
        subresource=subresource,
    )


def _changed_parts(before: Document, after: Document) -> frozenset[str]:
    """Return which of a document's parts, its fields at the top, are not as they were."""
    return frozenset(
        key
        for key in {*before, *after}
        if before.get(key) is not after.get(key) and not same(before.get(key), after.get(key))
    )


def _narrowed(document: Document, entries: list[Json], parts: frozenset[str]) -> Document:
    """Return some parts of a document, with what its entries hold of them."""
    narrow = {key: document[key] for key in parts if key in document}
    held = [_with_fields(entry, _held(entry, parts)) for entry in entries]
    metadata = object_at(narrow, ("metadata",))
    return {**narrow, "metadata": {**metadata, "managedFields": [*filter(_fields, held)]}}


def _merged(entries: list[Json], told: list[Json], parts: frozenset[str]) -> list[Json]:
    """Return entries with what is told of some parts, and what they hold of the others."""
    newer = {_identity(entry): entry for entry in told}
    result: list[Json] = []
    for entry in entries:
        of_parts = _held(entry, parts)
        others = {key: below for key, below in _fields(entry).items() if key not in of_parts}
        new = newer.pop(_identity(entry), None)
        fields = {**others, **_fields(new)}
        if fields:
            ordered: Document = {key: fields[key] for key in sorted(fields)}
            result.append(_with_fields(entry if new is None else new, ordered))
    return sorted([*result, *newer.values()], key=_place)


def _fields(entry: Json) -> Document:
    return object_at(entry, ("fieldsV1",))


def _held(entry: Json, parts: frozenset[str]) -> Document:
    return {key: below for key, below in _fields(entry).items() if key[2:] in parts}


def _with_fields(entry: Json, fields: Document) -> Json:
    return {**entry, "fieldsV1": fields} if isinstance(entry, dict) else entry


def _entries(document: Document) -> list[Json]:
    found = value_at(document, _MANAGED)
    return found if is_list(found) else []


def _identity(entry: Json) -> tuple[str, ...]:
    fields = ("manager", "operation", "apiVersion", "subresource")
    return tuple(string_at(entry, (field,)) for field in fields)


def _place(entry: Json) -> tuple[str, ...]:
    """Return where an entry stands: by operation, then by age, then by name."""
    fields = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(string_at(entry, (field,)) for field in fields)
