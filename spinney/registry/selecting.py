"""Which fields of a kind can be selected by, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, value_at
from spinney.meta.errors import BadRequest
from spinney.meta.references import GroupKind
from spinney.meta.selectors import FieldSelector

_ALWAYS = ("metadata.name", "metadata.namespace")

_INVOLVED = tuple(
    f"involvedObject.{field}"
    for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)

FIELDS: Mapping[GroupKind, Sequence[str]] = {
    GroupKind(group="", kind="Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    GroupKind(group="", kind="Event"): (
        *_INVOLVED,
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    GroupKind(group="", kind="Secret"): ("type",),
    GroupKind(group="", kind="Namespace"): ("status.phase",),
    GroupKind(group="", kind="Node"): ("spec.unschedulable",),
    GroupKind(group="", kind="Service"): ("spec.clusterIP", "spec.type"),
}


def check(kind: Kind, selector: FieldSelector) -> None:
    """Raise BadRequest for a field that cannot be selected by."""
    known = (*_ALWAYS, *FIELDS.get(kind.names.group_kind, ()))
    for term in selector.terms:
        if term.path not in known:
            raise BadRequest(
                f'Unable to find "{kind.names.api_version}, Resource={kind.names.plural}" that '
                f'match label selector "", field selector "{selector}": '
                f"field label not supported: {term.path}; supported: {', '.join(known)}"
            )


def values(kind: Kind, document: Document) -> dict[str, str]:
    """Return the values a document can be selected by."""
    fields = (*_ALWAYS, *FIELDS.get(kind.names.group_kind, ()))
    return {
        field: _text(value_at(document, field.split("."))) or _WHEN_ABSENT.get(field, "")
        for field in fields
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
