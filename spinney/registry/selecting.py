"""Which fields of a kind can be selected by, and their values."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, value_at
from spinney.meta.errors import BadRequest
from spinney.meta.selectors import FieldSelector

_ALWAYS = ("metadata.name", "metadata.namespace")


def check(kind: Kind, selector: FieldSelector) -> None:
    """Raise BadRequest for a field that cannot be selected by."""
    known = (*_ALWAYS, *kind.selectable)
    for term in selector.terms:
        if term.path not in known:
            raise BadRequest(
                f"field label not supported: {term.path}; supported: {', '.join(known)}"
            )


def values(kind: Kind, document: Document) -> dict[str, str]:
    """Return the values a document can be selected by."""
    return {
        field: _text(value_at(document, field.split("."))) or _WHEN_ABSENT.get(field, "")
        for field in (*_ALWAYS, *kind.selectable)
    }


_WHEN_ABSENT = {"spec.unschedulable": "false", "spec.hostNetwork": "false"}


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        component = value.get("component")
        return component if isinstance(component, str) else ""
    return "" if value is None else str(value)
