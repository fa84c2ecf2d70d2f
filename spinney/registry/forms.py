"""Forms: how a kind's documents are stored, and how what is stored is seen as a kind."""

from __future__ import annotations

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.documents import Document
from spinney.meta.errors import BadRequest, TooLarge
from spinney.meta.manifests import DOCUMENT_BYTES_MAX
from spinney.meta.references import Ref
from spinney.store.store import Stored

_encode = msgspec.json.Encoder().encode


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


def check_writable(document: Document) -> None:
    """Raise what keeps a document from being stored: its size, or what no JSON text can hold."""
    try:
        size = len(_encode(document))
    except (OverflowError, ValueError, RecursionError) as error:
        raise BadRequest(f"the object cannot be written as JSON: {error}") from error
    if size > DOCUMENT_BYTES_MAX:
        raise TooLarge(
            f"the object would have {size} bytes, the limit is {DOCUMENT_BYTES_MAX}: make it "
            "smaller, or split it"
        )
