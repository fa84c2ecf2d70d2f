"""Keeping: what a write may not change stays as it was, or is refused as Kubernetes refuses it."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.meta import errors
from spinney.meta.documents import (
    Document,
    Json,
    is_list,
    list_at,
    object_at,
    same,
    string_at,
    value_at,
    with_value,
    without,
)
from spinney.meta.errors import BadRequest, FieldError
from spinney.meta.times import parse_time
from spinney.registry import marking, requests

STATUS = "status"
SCALE = "scale"
BINDING = "binding"
FINALIZE = "finalize"

SERVER_GIVEN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
"""What of an object's metadata no writer gives."""

_KEPT = (*SERVER_GIVEN, "name", "namespace", "resourceVersion")


def kept(
    kind: Kind, before: Document, after: Document, subresource: str, *, keeps_managers: bool = False
) -> Document:
    """Return the new object with all its writer may not change as it was.

    Raises BadRequest, Conflict or Invalid where he meant another object, or another version of
    it, or would change what cannot change. `keeps_managers` says that the managed fields in
    `after` are the server's own.
    """
    check_same(kind, before, after)
    was, given = object_at(before, ("metadata",)), object_at(after, ("metadata",))
    if subresource == STATUS:
        return _with_status(before, after, keeps_managers=keeps_managers)
    metadata: Document = {key: value for key, value in given.items() if key not in SERVER_GIVEN}
    for key in _KEPT:
        if key in was:
            metadata[key] = was[key]
    result: Document = {**after, "metadata": metadata}
    for key in ("apiVersion", "kind"):
        result[key] = before.get(key)
    if kind.has_status and subresource != BINDING:
        status = before.get("status")
        result = without(result, ("status",)) if status is None else {**result, "status": status}
    if kind.names.group_kind == marking.NAMESPACE and subresource != FINALIZE:
        path = ("spec", "finalizers")
        held = value_at(before, path)
        result = without(result, path) if held is None else with_value(result, path, held)
    return result


def _with_status(before: Document, after: Document, *, keeps_managers: bool) -> Document:
    metadata: Document = {**object_at(before, ("metadata",))}
    managers = value_at(after, ("metadata", "managedFields"))
    if managers is not None:
        metadata["managedFields"] = managers
    elif keeps_managers:
        metadata.pop("managedFields", None)
    status = after.get("status")
    result: Document = {**before, "metadata": metadata, "status": status}
    return without(result, ("status",)) if status is None else result


def check_same(kind: Kind, before: Document, after: Document) -> None:
    """Raise what is wrong where `after` speaks of another object than `before`."""
    metadata = after.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequest(f"metadata: must be an object, found {errors.shown(metadata)}")
    for field, place in (("name", "URL"), ("namespace", "request")):
        said = string_at(after, ("metadata", field))
        name = string_at(before, ("metadata", field))
        if said and said != name:
            raise BadRequest(
                f"the {field} of the object ({said}) does not match the {field} on the {place} "
                f"({name})"
            )
    for field, text in (("apiVersion", "API version"), ("kind", "kind")):
        found, expected = after.get(field), before.get(field)
        if found is not None and found != expected:
            raise BadRequest(
                f"the {text} in the data ({_bare(found)}) does not match the expected {text} "
                f"({_bare(expected)})"
            )
    name = string_at(before, ("metadata", "name"))
    version = value_at(after, ("metadata", "resourceVersion"))
    if version and version != string_at(before, ("metadata", "resourceVersion")):
        raise requests.modified(kind, name)
    faults = _immutable_faults(object_at(before, ("metadata",)), object_at(after, ("metadata",)))
    if faults:
        raise requests.invalid(kind, name, *faults)


def _bare(value: Json) -> str:
    return value if isinstance(value, str) else errors.shown(value)


def _immutable_faults(was: Document, given: Document) -> list[FieldError]:
    """Return what of metadata was given another value and may not; absent means as it was."""
    faults = []
    for field in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = given.get(field)
        if value in (None, "") or same(value, was.get(field)):
            continue
        if field.startswith("deletion") and field in was:
            continue
        if field.endswith("Timestamp") and _is_same_time(value, was.get(field)):
            continue
        faults.append(
            FieldError(
                path=f"metadata.{field}",
                reason=errors.INVALID,
                message="field is immutable",
                found=value,
            )
        )
    return faults


def _is_same_time(one: Json, other: Json) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        return parse_time(one) == parse_time(other)
    except ValueError:
        return False


def refuse_new_finalizers(kind: Kind, before: Document, after: Document) -> None:
    """Raise Invalid where something would hold an object that is being deleted already."""
    if not marking.is_marked(before):
        return
    had, has = (list_at(document, ("metadata", "finalizers")) for document in (before, after))
    new = [item for item in has if item not in had]
    if new:
        named = ", ".join(errors.shown(item) for item in new)
        fault = FieldError(
            path="metadata.finalizers",
            reason=errors.FORBIDDEN,
            message="no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{named}}}",
        )
        raise requests.invalid(kind, string_at(before, ("metadata", "name")), fault)


def is_unchanged(before: Document, after: Document) -> bool:
    """Whether a write changes nothing but, maybe, when its managers say they last wrote."""
    if any(
        not same(before.get(key), after.get(key)) for key in {*before, *after} if key != "metadata"
    ):
        return False
    return same(
        _unstamped(object_at(before, ("metadata",))), _unstamped(object_at(after, ("metadata",)))
    )


def _unstamped(metadata: Document) -> Document:
    entries = metadata.get("managedFields")
    if not is_list(entries):
        return metadata
    bare: list[Json] = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in entries
        if isinstance(entry, dict)
    ]
    return {**metadata, "managedFields": bare}


def content_changed(kind: Kind, before: Document, after: Document) -> bool:
    """Whether a write changes what an object should be, which its generation counts."""
    aside = {"metadata", "apiVersion", "kind"} | ({"status"} if kind.has_status else set())
    return any(
        not same(before.get(key), after.get(key)) for key in {*before, *after} if key not in aside
    )
