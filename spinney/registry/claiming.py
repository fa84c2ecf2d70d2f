"""Claiming: whose the fields of a write are, by the short ways the busiest writes have.

What `apply.track_update` works out for any write is known beforehand of two: all fields of a new
object are its maker's, and a change moves no field that is the same object as before. Both ways
give what `track_update` would; laws hold them together.
"""

from __future__ import annotations

from datetime import datetime

from spinney.api.kinds import Kind, Names
from spinney.meta.documents import Document, Json, is_list, object_at, value_at
from spinney.meta.patches import apply as server_side_apply
from spinney.meta.patches import takings
from spinney.meta.patches.claims import Claims
from spinney.meta.patches.managers import UPDATE, UPDATERS_MAX
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.patches.takings import Taking
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
        writer = (manager or "unknown", UPDATE, kind.names.api_version, "")
        entry = _entry(writer, format_time(now), fields)
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
            not is_list(entries)
            or not 0 < len(entries) < UPDATERS_MAX
            or value_at(after, _MANAGED) is not entries
        ):
            return _tracked(kind, before, after, manager, now, subresource)
        try:
            taking = takings.taking_of(self._claims_of(kind), before, after, _UNTRACKED)
        except takings.Unclear:
            return _tracked(kind, before, after, manager, now, subresource)
        writer = (manager or "unknown", UPDATE, kind.names.api_version, subresource)
        left = _left(entries, taking, writer, format_time(now))
        metadata: Document = {**object_at(after, ("metadata",)), "managedFields": left}
        if not left:
            del metadata["managedFields"]
        return {**after, "metadata": metadata}


def _left(
    entries: list[Json], taking: Taking, writer: tuple[str, str, str, str], time: str
) -> list[Json]:
    """Return the entries after a change, the writer's with what it took."""
    result: list[Document] = []
    own: Document = {}
    for entry in entries:
        assert isinstance(entry, dict), "entries that are stored can be read"
        fields = object_at(entry, ("fieldsV1",))
        kept = takings.minus(fields, taking.gone)
        if taking.taken and _identity(entry) == writer:
            own = kept
        elif kept is fields:
            result.append(entry)
        elif kept:
            result.append({**entry, "fieldsV1": kept})
    if taking.taken:
        result.append(_entry(writer, time, takings.plus(own, taking.taken)))
    return [*sorted(result, key=_place)]


def _entry(identity: tuple[str, str, str, str], time: str, fields: Document) -> Document:
    manager, operation, api_version, subresource = identity
    entry: Document = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry


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


def _identity(entry: Document) -> tuple[Json, ...]:
    said = entry.get
    return said("manager", ""), said("operation"), said("apiVersion"), said("subresource", "")


def _place(entry: Document) -> tuple[str, ...]:
    """Return where an entry stands: by operation, then by age, then by name."""
    fields = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple([f"{entry.get(field, '')}" for field in fields])
