"""Server-side apply: many managers, one object, each owner of the fields it set.

Who applies says what it wants of the object and nothing else. What it wants is laid over the live
object; a field it wanted last time and no longer does goes, unless somebody else set it too; and a
field somebody else set to another value is a conflict, unless it is taken by force. Writes that do
not apply own what they change.

Nulls in an applied document say nothing. Entries of other API versions are read by the same schema.
"""

from __future__ import annotations

from datetime import datetime

from spinney.meta import documents
from spinney.meta.documents import Document, Json
from spinney.meta.errors import ApplyConflict, BadRequest, Holder, shown
from spinney.meta.patches import layers, managers
from spinney.meta.patches.fields import NONE, FieldSet, fields_of, path_text, places_of
from spinney.meta.patches.managers import APPLY, MANAGED_FIELDS, UPDATE, Entries, Entry, Identity
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.schemas import Schema
from spinney.meta.times import format_time

SERVER_OWNED = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)

UNTRACKED = FieldSet.of(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in SERVER_OWNED),
    ]
)
"""Fields nobody owns."""


def apply(
    schema: Schema,
    live: Document,
    applied: Document,
    manager: str,
    *,
    force: bool,
    api_version: str,
    now: datetime,
    subresource: str = "",
) -> Document:
    """Return the live object with an applied one laid over it; the live one if nothing changes.

    `live` is empty where the object is yet to be made. Raises ApplyConflict naming each field and
    its manager, BadRequest and PatchFailed for an applied document that cannot be read.
    """
    _check(applied, api_version)
    schema = with_metadata(schema)
    bare = without_managed_fields(live)
    known = managers.entries_of(live)
    entries = known or _before_first_apply(schema, bare, api_version, now)
    mine = managers.identity_of(manager, APPLY, api_version, subresource)
    last = entries.get(mine)

    wanted = layers.without_nulls(schema, applied)
    own = fields_of(schema, wanted)
    result = layers.merged(schema, bare, wanted)
    if last is not None and last.fields - own:
        claims = [entry.fields for who, entry in entries.items() if who != mine]
        result = _given_up(schema, result, last.fields, _union([own, *claims]))
    assert isinstance(result, dict)

    change = layers.compared(schema, bare, result)
    changed = change.modified | change.added
    conflicts = _conflicts(entries, changed, mine)
    if conflicts and not force:
        raise ApplyConflict(conflicts)
    entries = managers.without_fields(entries, changed | change.removed, but=(mine,))
    entries.pop(mine, None)
    own -= UNTRACKED
    is_same = documents.same(bare, result)
    if own:
        entries[mine] = _renewed(last, own, api_version, now, keeps_time=is_same)
    if is_same and (entries == known or (last is None and not own)):
        return live
    return managers.with_entries(bare if is_same else result, entries)


def track_update(
    schema: Schema,
    before: Document,
    after: Document,
    manager: str,
    *,
    api_version: str,
    now: datetime,
    subresource: str = "",
) -> Document:
    """Return `after`, as a write that does not apply left it, with its managed fields.

    `before` is empty where the object is made. The writer owns what it changed, and nobody else
    does any more. Managed fields in `after` itself count, so that they can be mended; an empty
    list of them ends the tracking until somebody applies.
    """
    schema = with_metadata(schema)
    entries = _entries_to_update(before, after, subresource)
    bare_before = without_managed_fields(before)
    bare_after = without_managed_fields(after)
    if not entries and documents.string_at(before, ("metadata", "uid")):
        return bare_after
    change = layers.compared(schema, bare_before, bare_after)
    changed = change.modified | change.added
    entries = managers.without_fields(entries, changed | change.removed)
    taken = changed - UNTRACKED
    if taken:
        mine = managers.identity_of(manager, UPDATE, api_version, subresource)
        held = entries[mine].fields if mine in entries else NONE
        entries[mine] = Entry(api_version=api_version, time=format_time(now), fields=held | taken)
    return managers.with_entries(after, managers.capped(entries))


def without_managed_fields(document: Document) -> Document:
    """Return a document without its managed fields; the same one if it has none."""
    return documents.without(document, MANAGED_FIELDS)


def _check(applied: Document, api_version: str) -> None:
    metadata = applied.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequest(f"metadata: must be an object, found {shown(metadata)}")
    if documents.value_at(applied, MANAGED_FIELDS) is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if applied.get("apiVersion") != api_version:
        raise BadRequest(
            "Incorrect version specified in apply patch. Specified patch version: "
            f"{shown(applied.get('apiVersion'))}, expected: {shown(api_version)}"
        )


def _before_first_apply(schema: Schema, live: Document, api_version: str, now: datetime) -> Entries:
    """Return an entry for all there was before anybody tracked it."""
    fields = layers.compared(schema, {}, live).added - UNTRACKED
    if not fields:
        return {}
    who = managers.identity_of(managers.BEFORE_FIRST_APPLY, UPDATE, api_version, "")
    return {who: Entry(api_version=api_version, time=format_time(now), fields=fields)}


def _given_up(schema: Schema, result: Json, last: FieldSet, claimed: FieldSet) -> Json:
    """Return the merged object without what its manager wanted last time and nobody claims now."""
    last = last.with_parents(schema)
    there = places_of(schema, result)
    without_last = layers.pruned(schema, result, last, claimed)
    stays = places_of(schema, without_last) | claimed.with_parents(schema)
    without_claimed = layers.pruned(schema, result, there - stays, claimed)
    left = places_of(schema, without_claimed)
    return layers.pruned(schema, result, (there - left) & last, claimed)


def _conflicts(entries: Entries, changed: FieldSet, mine: Identity) -> list[tuple[Holder, str]]:
    found: list[tuple[Holder, str]] = []
    for who in sorted(entries, key=lambda who: (who.manager, who.operation, who.subresource)):
        if who != mine:
            clash = entries[who].fields & changed
            holder = Holder(
                manager=who.manager, subresource=who.subresource, api_version=who.api_version
            )
            found += [(holder, path_text(path)) for path in clash.paths()]
    return found


def _renewed(
    last: Entry | None, own: FieldSet, api_version: str, now: datetime, *, keeps_time: bool
) -> Entry:
    if last is not None and keeps_time and last.fields == own:
        return Entry(api_version=api_version, time=last.time, fields=own)
    return Entry(api_version=api_version, time=format_time(now), fields=own)


def _entries_to_update(before: Document, after: Document, subresource: str) -> Entries:
    """Return the entries a write starts from: those it brings if it may and they can be read."""
    given = documents.value_at(after, MANAGED_FIELDS)
    if not subresource:
        if given in ([], [{}]):
            return {}
        try:
            brought = managers.entries_of(after)
        except BadRequest:
            brought = {}
        if brought:
            return brought
    try:
        return managers.entries_of(before)
    except BadRequest:
        return {}


def _union(sets: list[FieldSet]) -> FieldSet:
    union = NONE
    for fields in sets:
        union |= fields
    return union
