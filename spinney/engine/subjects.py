"""Subjects: the object a key names, as it was when the decision about it was made."""

from __future__ import annotations

from datetime import datetime

from spinney.api.kinds import KINDS
from spinney.meta import conditions, records
from spinney.meta.conditions import Condition
from spinney.meta.documents import Document, Json, is_object, list_at, same
from spinney.meta.errors import DecodeError, InvariantViolation
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader

STALLED = "Stalled"
"""The condition that says the controller cannot go on before somebody acts. The engine's alone: a
decision neither sets nor clears it."""


class Subject(Record):
    """One object, observed."""

    ref: Ref
    metadata: ObjectMeta
    view: Record

    @property
    def status(self) -> Document:
        """The status that was observed, as a document; empty where there is none."""
        status = getattr(self.view, "status", None)
        return records.encode(status) if isinstance(status, Record) else {}

    def is_status(self, wanted: Document) -> bool:
        """Whether a status says what was observed. Fields at their default may be left out."""
        found = self.status
        if same(found, wanted):
            return True
        status = getattr(self.view, "status", None)
        if not isinstance(status, Record):
            return False
        try:
            return same(records.encode(records.decode(type(status), wanted)), found)
        except DecodeError as error:
            raise InvariantViolation(f"the status decided for {self.ref}: {error}") from error

    @property
    def stalled(self) -> Condition | None:
        """The condition that says this object is stuck, if it stands there."""
        return conditions.find(self._conditions, STALLED)

    @property
    def _conditions(self) -> tuple[Condition, ...]:
        found = getattr(getattr(self.view, "status", None), "conditions", ())
        assert isinstance(found, tuple)
        return found

    @property
    def can_tell(self) -> bool:
        """Whether its status has conditions."""
        return hasattr(getattr(self.view, "status", None), "conditions")

    def status_stalled(self, reason: str, message: str, now: datetime) -> Document:
        """Return the observed status with the condition that it is stuck."""
        changed = conditions.set_condition(
            self._conditions,
            STALLED,
            conditions.TRUE,
            reason,
            message,
            now,
            self.metadata.generation or None,
        )
        told: list[Json] = [records.encode(each) for each in changed]
        return {**self.status, "conditions": told}


def status_moving(status: Document) -> Document:
    """Return a status without the condition that the object is stuck."""
    found = list_at(status, ["conditions"])
    kept = [each for each in found if not (is_object(each) and each.get("type") == STALLED)]
    if len(kept) == len(found):
        return status
    return {**{key: status[key] for key in status if key != "conditions"}, "conditions": kept}


def record_of(kind: GroupKind) -> type[Record]:
    """Return the record that objects of a kind are read as."""
    return KINDS[kind].record


def view_of(reader: Reader, ref: Ref) -> Record | None:
    """Return an object as it is seen now; None where there is none, or its kind is not followed."""
    if ref.kind not in KINDS or not reader.seen(ref.kind):
        return None
    return reader.get(KINDS[ref.kind].record, ref.namespace, ref.name)


def metadata_of(view: Record | None) -> ObjectMeta | None:
    """Return the metadata of an object's view; all our records of objects have some."""
    if view is None:
        return None
    metadata = getattr(view, "metadata", None)
    assert isinstance(metadata, ObjectMeta), f"{type(view).__name__} has no metadata"
    return metadata


def subject_of(reader: Reader, ref: Ref) -> Subject | None:
    """Return the object a key names as it is seen now, None where there is none."""
    view = view_of(reader, ref)
    metadata = metadata_of(view)
    if view is None or metadata is None:
        return None
    return Subject(ref=ref, metadata=metadata, view=view)


def owner_uid(record: Record) -> str:
    """Return the uid of the owner that manages an object, "" where none does."""
    metadata = metadata_of(record)
    owners = () if metadata is None else metadata.owner_references
    return next((owner.uid for owner in owners if owner.controller), "")
