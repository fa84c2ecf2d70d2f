"""Claiming: whose the fields of a write are, by the short ways the busiest writes have.

What `apply.track_update` works out for any write is known beforehand of two: all fields of a new
object are its maker's, and the writer of a status takes none but those of the status. Both ways
give what `track_update` would; a law holds them together.
"""

from __future__ import annotations

from datetime import datetime

from spinney.api.kinds import Kind, Names
from spinney.meta.documents import Document, Json, is_list, object_at, string_at, value_at
from spinney.meta.patches import apply as server_side_apply
from spinney.meta.patches.claims import Claims
from spinney.meta.patches.managers import UPDATE, UPDATERS_MAX
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.times import format_time

STATUS = "status"
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
        """Return a changed document with what its writer took."""
        entries = value_at(before, _MANAGED)
        if (
            subresource != STATUS
            or not is_list(entries)
            or len(entries) > UPDATERS_MAX
            or value_at(after, _MANAGED) is not entries
        ):
            return _tracked(kind, before, after, manager, now, subresource)
        aside = [entry for entry in entries if not _has_status(entry)]
        if not aside:
            return _tracked(kind, before, after, manager, now, subresource)
        told = _tracked(
            kind,
            _narrowed(before, [entry for entry in entries if _has_status(entry)]),
            _narrowed(after, [entry for entry in entries if _has_status(entry)]),
            manager,
            now,
            subresource,
        )
        merged = sorted([*aside, *_entries(told)], key=_place)
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


def _has_status(entry: Json) -> bool:
    return "f:status" in object_at(entry, ("fieldsV1",))


def _narrowed(document: Document, entries: list[Json]) -> Document:
    """Return a document's status alone, with those of its managers who hold any of it."""
    narrow: Document = {"metadata": {"managedFields": entries}}
    status = document.get(STATUS)
    return narrow if status is None else {**narrow, STATUS: status}


def _entries(document: Document) -> list[Json]:
    found = value_at(document, _MANAGED)
    return found if is_list(found) else []


def _place(entry: Json) -> tuple[str, ...]:
    """Return where an entry stands: by operation, then by age, then by name."""
    fields = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(string_at(entry, (field,)) for field in fields)
