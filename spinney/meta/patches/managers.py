"""Managers: the entries of `metadata.managedFields`, who set which fields by which operation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from spinney.meta import documents
from spinney.meta.documents import Document, Json
from spinney.meta.errors import BadRequest, shown
from spinney.meta.patches.fields import FieldSet
from spinney.meta.records import Record

APPLY = "Apply"
UPDATE = "Update"
MANAGED_FIELDS = ("metadata", "managedFields")

UPDATERS_MAX = 10
"""How many entries of updates are kept; the oldest above it are merged, as in kube-apiserver."""

ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"


class Identity(Record):
    """What makes an entry one: an applier keeps its entry from one API version to the next."""

    manager: str
    operation: str
    api_version: str
    subresource: str


class Entry(Record):
    """One entry: the fields somebody set, at which version, when they last changed."""

    api_version: str
    time: str
    fields: FieldSet


Entries: TypeAlias = "dict[Identity, Entry]"


def identity_of(manager: str, operation: str, api_version: str, subresource: str) -> Identity:
    """Return the identity of somebody's entry."""
    return Identity(
        manager=manager or "unknown",
        operation=operation,
        api_version=api_version if operation == UPDATE else "",
        subresource=subresource,
    )


def entries_of(document: Document) -> Entries:
    """Return the entries a document carries; raises BadRequest where they cannot be read."""
    found = documents.value_at(document, MANAGED_FIELDS)
    if found is None:
        return {}
    if not isinstance(found, list):
        raise BadRequest(f"metadata.managedFields: must be a list, found {shown(found)}")
    entries: Entries = {}
    for index, item in enumerate(found):
        identity, entry = _decoded(item, f"metadata.managedFields[{index}]")
        entries[identity] = entry
    return entries


def with_entries(document: Document, entries: Entries) -> Document:
    """Return a document that carries these entries, in the order kube-apiserver gives them."""
    items: list[Json] = [_encoded(identity, entries[identity]) for identity in _by_age(entries)]
    if not items:
        return documents.without(document, MANAGED_FIELDS)
    if documents.same(documents.value_at(document, MANAGED_FIELDS), items):
        return document
    return documents.with_value(document, MANAGED_FIELDS, items)


def capped(entries: Entries) -> Entries:
    """Return the entries with the oldest updates of each version merged where they are too many."""
    updaters = [identity for identity in _by_age(entries) if identity.operation == UPDATE]
    excess = len(updaters) - UPDATERS_MAX
    if excess <= 0:
        return entries
    kept = dict(entries)
    oldest: dict[str, Identity] = {}
    for identity in updaters:
        if excess <= 0:
            break
        version = identity.api_version
        if version not in oldest:
            oldest[version] = identity
            continue
        bucket = identity_of(ANCIENT, UPDATE, version, "")
        first = kept.pop(oldest[version])
        entry = kept.pop(identity)
        oldest[version] = bucket
        kept[bucket] = msgspec.structs.replace(entry, fields=entry.fields | first.fields)
        excess -= 1
    return kept


def without_fields(entries: Entries, gone: FieldSet, *, but: Iterable[Identity] = ()) -> Entries:
    """Return the entries without some fields, those of `but` untouched; empty ones vanish."""
    kept: Entries = {}
    for identity, entry in entries.items():
        fields = entry.fields if identity in but else entry.fields - gone
        if fields == entry.fields:
            kept[identity] = entry
        elif fields:
            kept[identity] = msgspec.structs.replace(entry, fields=fields)
    return kept


def _by_age(entries: Entries) -> list[Identity]:
    """Return whose entries there are: by operation, then by age, then by name."""

    def place(identity: Identity) -> tuple[str, str, str, str, str]:
        entry = entries[identity]
        named = (identity.manager, entry.api_version, identity.subresource)
        return (identity.operation, entry.time, *named)

    return sorted(entries, key=place)


def _decoded(item: Json, path: str) -> tuple[Identity, Entry]:
    if not isinstance(item, dict):
        raise BadRequest(f"{path}: must be an object, found {shown(item)}")
    texts: dict[str, str] = {}
    for name in ("manager", "operation", "apiVersion", "subresource", "time", "fieldsType"):
        text = item.get(name)
        if text is not None and not isinstance(text, str):
            raise BadRequest(f"{path}.{name}: must be a string, found {shown(text)}")
        texts[name] = text or ""
    if texts["operation"] not in (APPLY, UPDATE):
        raise BadRequest(f"{path}.operation: must be Apply or Update")
    if not texts["apiVersion"]:
        raise BadRequest(f"{path}.apiVersion: must not be empty")
    if texts["fieldsType"] != "FieldsV1":
        raise BadRequest(f"{path}.fieldsType: must be FieldsV1")
    version = texts["apiVersion"]
    identity = Identity(
        manager=texts["manager"],
        operation=texts["operation"],
        api_version=version if texts["operation"] == UPDATE else "",
        subresource=texts["subresource"],
    )
    fields = FieldSet.from_json(item.get("fieldsV1") or {})
    return identity, Entry(api_version=version, time=texts["time"], fields=fields)


def _encoded(identity: Identity, entry: Entry) -> Json:
    item: Document = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.to_json(),
        "subresource": identity.subresource,
    }
    return {key: value for key, value in item.items() if value != ""}
