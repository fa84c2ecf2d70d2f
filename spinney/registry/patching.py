"""Patches of four sorts: what is made of a document by one, before anything is checked."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json, object_at, string_at, with_value, without
from spinney.meta.errors import (
    REQUIRED,
    BadRequest,
    FieldError,
    Invalid,
    UnsupportedMediaType,
    shown,
)
from spinney.meta.patches import json_patch, merge_patch, strategic
from spinney.meta.records import Record

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_ALL = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_WITHOUT_STRATEGIC = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)

_SAID_WITH_STATUS = ("name", "namespace", "uid", "resourceVersion")


class Patch(Record):
    """A patch of one of four sorts, named by its content type."""

    type: str
    body: Json
    force: bool = False
    """For an apply: whether to take fields that others hold."""


def patched(kind: Kind, before: Document, patch: Patch) -> Document:
    """Return a document with a patch carried out; an apply is not one of them."""
    if patch.type == JSON_PATCH:
        return json_patch.apply(before, patch.body)
    if patch.type == MERGE_PATCH:
        return merge_patch.apply(before, patch.body)
    if patch.type == STRATEGIC_PATCH and kind.is_builtin:
        return strategic.apply(kind.schema, before, patch.body)
    accepted = _ALL if kind.is_builtin else _WITHOUT_STRATEGIC
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )


def applied(kind: Kind, namespace: str, name: str, patch: Patch, subresource: str) -> Document:
    """Return what a manager applies, without the part its request is not about."""
    body = patch.body
    if not isinstance(body, dict):
        raise BadRequest(f"an apply patch must be an object, found {shown(body)}")
    said = string_at(body, ["metadata", "name"])
    if said and said != name:
        raise BadRequest(
            f"the name of the object ({said}) does not match the name on the URL ({name})"
        )
    place = string_at(body, ["metadata", "namespace"])
    if kind.namespaced and place and place != namespace:
        raise BadRequest(
            f"the namespace of the object ({place}) does not match the namespace on the request "
            f"({namespace})"
        )
    wanted = with_value(body, ["metadata", "name"], name)
    if kind.namespaced:
        wanted = with_value(wanted, ["metadata", "namespace"], namespace)
    if subresource != "status":
        return without(wanted, ["status"]) if kind.has_status else wanted
    metadata = object_at(wanted, ["metadata"])
    narrowed: Document = {key: metadata[key] for key in _SAID_WITH_STATUS if key in metadata}
    if "managedFields" in metadata:
        narrowed["managedFields"] = metadata["managedFields"]
    kept: Document = {key: wanted[key] for key in ("apiVersion", "kind", "status") if key in wanted}
    return {**kept, "metadata": narrowed}


def check_manager(manager: str) -> None:
    """Raise Invalid where somebody applies without a name to hold fields under."""
    if not manager:
        fault = FieldError(
            path="fieldManager", reason=REQUIRED, message="is required for apply patch"
        )
        raise Invalid([fault], group="meta.k8s.io", kind="PatchOptions", name="")
