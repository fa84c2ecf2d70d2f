"""The annotation in which kubectl keeps what it applied client-side, when it applies server-side.

kubectl's own manager may take, without force, the fields it applied client-side itself; and the
annotation follows what it applies now. So both ways of applying can be mixed on one object.
"""

from __future__ import annotations

import json

from spinney.meta import documents
from spinney.meta.documents import Document, list_at, string_at, with_value, without
from spinney.meta.errors import ApplyConflict
from spinney.meta.patches.fields import fields_of, path_text
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.schemas import Schema

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
BYTES_MAX = 256 * 1024
"""What all annotations may hold; above it the annotation is left empty."""

_PATH = ("metadata", "annotations", ANNOTATION)


def gives_way(schema: Schema, before: Document, manager: str, conflict: ApplyConflict) -> bool:
    """Whether every field in conflict is one that kubectl itself applied client-side."""
    text = string_at(before, _PATH)
    if manager != MANAGER or not text:
        return False
    try:
        last = json.loads(text)
    except ValueError:
        return False
    if not isinstance(last, dict):
        return False
    applied = {path_text(path) for path in fields_of(with_metadata(schema), last).paths()}
    causes = list_at(conflict.details, ["causes"])
    return all(isinstance(cause, dict) and cause.get("field") in applied for cause in causes)


def followed(after: Document, applied: Document, manager: str) -> Document:
    """Return an object whose annotation, if it has one, says what kubectl applied now."""
    if manager != MANAGER or not string_at(after, _PATH):
        return after
    text = json.dumps(_told(applied), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    text = f"{text}\n" if len(text.encode()) < BYTES_MAX else ""
    return after if text == string_at(after, _PATH) else with_value(after, _PATH, text)


def _told(applied: Document) -> Document:
    """Return what is kept: the object as it was applied, without the annotation itself."""
    told = without(without(applied, _PATH), ("metadata", "managedFields"))
    if not documents.object_at(told, ["metadata", "annotations"]):
        return without(told, ("metadata", "annotations"))
    return told
