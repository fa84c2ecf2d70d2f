"""Forms: how a kind's documents are stored, and how what is stored is seen as a kind."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json
from spinney.meta.references import Ref
from spinney.store.store import Stored

J = TypeVar("J", bound=Json)


def through_json(value: J) -> J:
    """Return a value as it is after it was written as JSON and read, and nobody else's to change.

    What the registry is given is that already, for versions of objects are read as they were
    written: no tuple, no infinity. What no JSON can hold is returned as it is, to be refused.
    """
    try:
        told: J = msgspec.json.decode(msgspec.json.encode(value))
    except (OverflowError, TypeError, ValueError, RecursionError):
        return value
    return told


def ref_of(kind: Kind, namespace: str, name: str) -> Ref:
    """Return the reference an object of a kind is stored under."""
    return Ref(kind=kind.stored_kind, namespace=namespace if kind.namespaced else "", name=name)


def document_of(kind: Kind, stored: Stored) -> Document:
    """Return a stored object as a document of a kind; nobody changes it."""
    document = stored.document()
    return document if kind.stored_as is None else kind.from_stored(document)


def stored_form(kind: Kind, document: Document) -> Document:
    """Return a kind's document as it is stored."""
    return document if kind.stored_as is None else kind.to_stored(document)
