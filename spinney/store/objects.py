"""Changes of objects, as the store keeps and tells them."""

from __future__ import annotations

import msgspec

from spinney.meta.documents import Document
from spinney.meta.errors import BadRequest, TooLarge
from spinney.meta.manifests import DOCUMENT_BYTES_MAX
from spinney.meta.references import Ref
from spinney.meta.versions import Stored, stored_from_body, stored_from_document
from spinney.ports import Change

__all__ = ["Event", "Stored", "stored_from_body", "stored_from_written"]


def stored_from_written(ref: Ref, document: Document, version: int) -> Stored:
    """Return a version of an object as a writer gives it.

    Raises what keeps it from being stored: its size, or what no JSON text can hold.
    """
    try:
        stored = stored_from_document(ref, document, version)
    except (OverflowError, ValueError, RecursionError) as error:
        raise BadRequest(f"the object cannot be written as JSON: {error}") from error
    if len(stored.body) > DOCUMENT_BYTES_MAX:
        raise TooLarge(
            f"the object would have {len(stored.body)} bytes, the limit is {DOCUMENT_BYTES_MAX}: "
            "make it smaller, or split it"
        )
    return stored


class Event(msgspec.Struct, frozen=True, eq=False, gc=False, kw_only=True):
    """One change of one object, shared by all who watch it."""

    change: Change
    stored: Stored
    """What there is now; where it was deleted, the last there was, with the deletion's version."""

    before: Stored | None
    _line: bytes | None = None

    @property
    def version(self) -> int:
        """The version the change made."""
        return self.stored.version

    @property
    def line(self) -> bytes:
        """The event as a watch sends it, encoded once."""
        if self._line is None:
            line = b'{"type":"%b","object":%b}\n' % (
                self.change.value.encode(),
                self.stored.body,
            )
            msgspec.structs.force_setattr(self, "_line", line)
        assert self._line is not None
        return self._line
