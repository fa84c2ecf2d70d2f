"""Belongings: who owns an object and who holds it, read without reading the rest of it."""

from __future__ import annotations

from spinney.meta.documents import Document, Json, list_at, string_at, with_value, without
from spinney.meta.errors import DecodeError
from spinney.meta.records import Record
from spinney.registry import marking
from spinney.store.store import Stored

OWNERS = ("metadata", "ownerReferences")
FINALIZERS = ("metadata", "finalizers")


class Owner(Record):
    """One owner reference, as far as the collector reads it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The group of the owner's kind."""
        return self.api_version.rpartition("/")[0]


class _Metadata(Record):
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str = ""


class _Envelope(Record):
    metadata: _Metadata = _Metadata()


class Belongings(Record):
    """Who owns an object, and who holds it."""

    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    is_marked: bool = False

    @property
    def waits_for_dependents(self) -> bool:
        """Whether the object goes once those that block it are gone."""
        return self.is_marked and marking.FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Whether the object goes once what it owned is without it."""
        return self.is_marked and marking.ORPHAN in self.finalizers


def belongings_of(stored: Stored) -> Belongings:
    """Return an object's belongings; what is not of their shape is passed over."""
    try:
        metadata = stored.glance(_Envelope).metadata
    except DecodeError:
        metadata = _odd_metadata(stored.document())
    return Belongings(
        owners=metadata.owner_references,
        finalizers=metadata.finalizers,
        is_marked=bool(metadata.deletion_timestamp),
    )


def _odd_metadata(document: Document) -> _Metadata:
    """Return what can be read of metadata that no rule of today would have let in."""
    owners = [owner for owner in list_at(document, OWNERS) if isinstance(owner, dict)]
    return _Metadata(
        owner_references=tuple(
            Owner(
                api_version=string_at(owner, ("apiVersion",)),
                kind=string_at(owner, ("kind",)),
                name=string_at(owner, ("name",)),
                uid=string_at(owner, ("uid",)),
                block_owner_deletion=owner.get("blockOwnerDeletion") is True,
            )
            for owner in owners
        ),
        finalizers=tuple(item for item in list_at(document, FINALIZERS) if isinstance(item, str)),
        deletion_timestamp=string_at(document, ("metadata", "deletionTimestamp")),
    )


def blocks(belongings: Belongings, uid: str) -> bool:
    """Whether an object holds up the deletion of one of its owners."""
    return any(
        owner.uid == uid and owner.block_owner_deletion is True for owner in belongings.owners
    )


def without_owners(document: Document, gone: set[str]) -> Document:
    """Return a document that some owners own no more."""
    left: list[Json] = [
        item for item in list_at(document, OWNERS) if string_at(item, ("uid",)) not in gone
    ]
    return with_value(document, OWNERS, left) if left else without(document, OWNERS)


def without_finalizer(document: Document, finalizer: str) -> Document:
    """Return a document that somebody holds no more."""
    left = [item for item in list_at(document, FINALIZERS) if item != finalizer]
    return with_value(document, FINALIZERS, left) if left else without(document, FINALIZERS)
