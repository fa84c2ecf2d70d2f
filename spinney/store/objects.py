"""Changes of objects, as the store keeps and tells them."""

from __future__ import annotations

import msgspec

from spinney.meta.versions import Stored, stored_from_body, stored_from_document
from spinney.ports import Change

__all__ = ["Event", "Stored", "stored_from_body", "stored_from_document"]


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
