"""Versions of objects: the document in JSON, the little the indexes need, views on demand.

The bytes are the truth. Readers share one decoded document and one view a record type; nobody
changes them. A document that was just written is at hand decoded, for it is likely to be read, or
changed again, soon; only so many of the latest stay, since decoded they take six times the room.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from spinney.meta import records
from spinney.meta.documents import Document, list_at, object_at, string_at, strings
from spinney.meta.errors import DecodeError
from spinney.meta.records import Record
from spinney.meta.references import Ref

R = TypeVar("R", bound=Record)

_encode = msgspec.json.Encoder().encode
_decode_document = msgspec.json.Decoder(dict).decode

_NO_LABELS: Final[Mapping[str, str]] = {}

DECODED_BYTES_MAX = 8 * 1024 * 1024
"""How much of the JSON of all objects may be at hand decoded too."""


class _Decoded:
    """The versions whose documents are at hand, the latest last; the oldest let theirs go."""

    def __init__(self) -> None:
        self._latest: deque[Stored] = deque()
        self._bytes = 0

    def note(self, stored: Stored) -> None:
        """Take note of a version that holds its document from now on."""
        self._latest.append(stored)
        self._bytes += len(stored.body)
        while self._bytes > DECODED_BYTES_MAX and len(self._latest) > 1:
            oldest = self._latest.popleft()
            self._bytes -= len(oldest.body)
            msgspec.structs.force_setattr(oldest, "_document", None)


_decoded = _Decoded()


class Stored(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """One version of one object, committed or queued; shared by all who read it."""

    ref: Ref
    uid: str
    version: int
    body: bytes
    """The whole document as compact JSON; its `metadata.resourceVersion` is the version."""

    labels: Mapping[str, str]
    owners: tuple[str, ...]
    """The uids of its owner references."""

    node: str
    """The node a pod is bound to: `spec.nodeName`."""

    _document: Document | None = None
    _views: dict[type[Record], Record] | None = None

    def document(self) -> Document:
        """Return the document, which nobody changes."""
        document = self._document
        if document is None:
            document = _decode_document(self.body)
            msgspec.structs.force_setattr(self, "_document", document)
            _decoded.note(self)
        return document

    def view(self, record: type[R]) -> R:
        """Return the typed view; raises DecodeError naming the object where it does not fit."""
        if self._views is None:
            msgspec.structs.force_setattr(self, "_views", {})
        assert self._views is not None
        found = self._views.get(record)
        if found is None:
            found = self._views[record] = self.glance(record)
        assert isinstance(found, record)
        return found

    def glance(self, record: type[R]) -> R:
        """Return a typed view that is not kept, for who reads little, and once.

        It is made of the document where that is at hand, else of the bytes.
        """
        if self._document is not None:
            with contextlib.suppress(DecodeError):
                return records.decode(record, self._document)
        try:
            return records.decode_bytes(record, self.body)
        except DecodeError as error:
            message = f"{self.ref} at version {self.version}: {error.message}"
            raise DecodeError(message, path=error.path) from error

    def forget(self) -> None:
        """Let go of what was decoded, once a newer version took its place."""
        msgspec.structs.force_setattr(self, "_document", None)
        msgspec.structs.force_setattr(self, "_views", None)


def stored_from_document(ref: Ref, document: Document, version: int) -> Stored:
    """Return a version of an object, with the version written into its document.

    The document is what its JSON would be decoded to: it may be read instead.
    """
    metadata = {**object_at(document, _METADATA_PATH), "resourceVersion": str(version)}
    uid, labels, owners = metadata.get("uid"), metadata.get("labels"), metadata.get(_OWNERS[0])
    document = {**document, "metadata": metadata}
    stored = Stored(
        ref=ref,
        uid=uid if isinstance(uid, str) else "",
        version=version,
        body=_encode(document),
        labels=strings(labels) if labels else _NO_LABELS,
        owners=_owner_uids(metadata) if owners else (),
        node=string_at(document, _NODE_PATH),
        _document=document,
    )
    _decoded.note(stored)
    return stored


def _owner_uids(metadata: Document) -> tuple[str, ...]:
    return tuple([string_at(owner, _UID_PATH) for owner in list_at(metadata, _OWNERS)])


_METADATA_PATH = ("metadata",)
_NODE_PATH = ("spec", "nodeName")
_OWNERS = ("ownerReferences",)
_UID_PATH = ("uid",)


class _Owner(Record):
    uid: str = ""


class _Metadata(Record):
    labels: Mapping[str, str] = _NO_LABELS
    owner_references: tuple[_Owner, ...] = ()


class _Spec(Record):
    node_name: str = ""


class _Envelope(Record):
    """The few parts of a document the indexes need; the rest is passed over undecoded."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def stored_from_body(ref: Ref, uid: str, version: int, body: bytes) -> Stored:
    """Return a version of an object as a journal kept it; raises DecodeError if it is no JSON."""
    try:
        envelope = _decode_envelope(body)
    except msgspec.ValidationError:
        return _stored_from_odd_body(ref, uid, version, body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"{ref} at version {version}: {error}") from error
    metadata = envelope.metadata
    return Stored(
        ref=ref,
        uid=uid,
        version=version,
        body=body,
        labels=metadata.labels or _NO_LABELS,
        owners=tuple(owner.uid for owner in metadata.owner_references),
        node=envelope.spec.node_name,
    )


def _stored_from_odd_body(ref: Ref, uid: str, version: int, body: bytes) -> Stored:
    """Do the same for a document whose labels, owners or spec are of another shape."""
    try:
        document = _decode_document(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError(f"{ref} at version {version}: {error}") from error
    metadata = object_at(document, ["metadata"])
    return Stored(
        ref=ref,
        uid=uid,
        version=version,
        body=body,
        labels=strings(metadata.get("labels")) or _NO_LABELS,
        owners=_owner_uids(metadata),
        node=string_at(document, _NODE_PATH),
    )
