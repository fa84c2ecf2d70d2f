"""Bodies: what a request carries, as a document. What cannot be read is a 400, never a 500."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from spinney.api.kinds import Kind
from spinney.meta import errors, manifests
from spinney.meta.documents import DEPTH_MAX, Document, Json, string_at, with_value
from spinney.meta.errors import BadRequest, DecodeError, FieldError, UnsupportedMediaType
from spinney.meta.records import Record
from spinney.registry import forms
from spinney.server import protobuf

BYTES_MAX = 3 * 1024 * 1024
"""How large a body may be."""

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
OBJECT_TYPES = (JSON, YAML, PROTOBUF)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Body(Record):
    """A body that was read."""

    value: Json
    duplicates: tuple[FieldError, ...] = ()
    """Keys given twice; of each the last counts."""


def media_type(content_type: str) -> str:
    """Return a content type without its parameters; raises where its charset is not UTF-8."""
    name, _, rest = content_type.partition(";")
    for parameter in rest.split(";"):
        key, _, value = parameter.partition("=")
        charset = value.strip().strip('"').casefold()
        if key.strip().casefold() == "charset" and charset not in ("utf-8", "utf8", ""):
            raise UnsupportedMediaType(
                f"the body of the request is in charset {charset[:40]}: send UTF-8"
            )
    return name.strip().casefold()


def unsupported(accepted: Iterable[str]) -> UnsupportedMediaType:
    """Return the error for a content type that is not taken."""
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )


def read(body: bytes, content_type: str, *, api_version: str = "", kind: str = "") -> Body:
    """Return the object in a body; raises BadRequest or UnsupportedMediaType."""
    sort = media_type(content_type) or JSON
    if sort not in OBJECT_TYPES:
        raise unsupported(OBJECT_TYPES)
    if sort == PROTOBUF:
        try:
            return _bounded(forms.through_json(protobuf.decode(body, api_version, kind)))
        except DecodeError as error:
            raise BadRequest(str(error)) from error
    return read_yaml(body) if sort == YAML else read_json(body)


def read_json(body: bytes) -> Body:
    """Return the JSON in a body; the common case is read by msgspec alone.

    Where encoding what was read gives the same bytes, no key stands twice in them.
    """
    try:
        value: Json = msgspec.json.decode(body)
        if msgspec.json.encode(value) == body.rstrip():
            return Body(value=value) if _is_flat(body) else _bounded(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError):
        pass
    manifest = manifests.load_json(body)
    if manifest.error is not None:
        raise BadRequest(_told(body, manifest.error))
    return _bounded(forms.through_json(manifest.document), manifest.duplicates)


def read_yaml(body: bytes) -> Body:
    """Return the one YAML document of a body."""
    found = list(manifests.load(body))
    for manifest in found:
        if manifest.error is not None:
            raise BadRequest(f"error converting YAML to JSON: yaml: {manifest.error}")
    if len(found) > 1:
        raise BadRequest(f"the body holds {len(found)} documents: send them one by one")
    if not found:
        return Body(value=None)
    return _bounded(forms.through_json(found[0].document), found[0].duplicates)


def _told(body: bytes, error: DecodeError) -> str:
    if not body.strip():
        return "the body of the request is empty"
    return f"couldn't parse the body: {error}"


def _is_flat(body: bytes) -> bool:
    """Whether JSON surely nests no deeper than it may, as nearly all does.

    Only quotes and brackets are looked at. Quotes next to each other go; where a bracket is part of
    a string, some are left. Then each turn takes off the innermost brackets, two levels at most. If
    anything is left, the value must be walked to know.
    """
    if b"\\" in body:
        return False
    brackets = body.translate(None, _NO_MARKS).replace(b'""', b"")
    for _ in range(DEPTH_MAX // 2):
        if not brackets:
            return True
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


_NO_MARKS = bytes(set(range(256)) - set(b'{}[]"'))


def _bounded(value: Json, duplicates: tuple[FieldError, ...] = ()) -> Body:
    level: list[dict[str, Json] | list[Json]] = [[value]]
    depth = -1
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise BadRequest(f"the body nests more than {DEPTH_MAX} deep")
        level = [
            below
            for held in level
            for below in (held if isinstance(held, list) else held.values())
            if isinstance(below, (dict, list))
        ]
    return Body(value=value, duplicates=duplicates)


def placed(
    kind: Kind, document: Json, namespace: str, name: str = "", *, whole: bool = True
) -> Document:
    """Return an object as a path says it is: of the kind, in the namespace, of the name.

    Raises BadRequest where the object says otherwise. `whole`: whether kind and version must be
    said.
    """
    names = kind.names
    if not isinstance(document, dict):
        raise not_an_object(names.kind)
    check_kind(document, names.api_version, names.kind, whole=whole)
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequest(
            f'{names.kind} in version "{names.version}" cannot be handled as a {names.kind}: '
            f"metadata must be an object, found {errors.shown(metadata)}"
        )
    if kind.namespaced:
        document = _in_namespace(document, namespace)
    elif string_at(document, ["metadata", "namespace"]):
        raise BadRequest("namespace is not allowed on this type")
    if name:
        said = string_at(document, ["metadata", "name"])
        if said and said != name:
            raise BadRequest(
                f"the name of the object ({said}) does not match the name on the URL ({name})"
            )
        document = with_value(document, ["metadata", "name"], name)
    return {**document, "apiVersion": names.api_version, "kind": names.kind}


def _in_namespace(document: Document, namespace: str) -> Document:
    said = string_at(document, ["metadata", "namespace"])
    if said and namespace and said != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return with_value(document, ["metadata", "namespace"], namespace or said)


def check_kind(
    document: Mapping[str, Json], api_version: str, kind: str, *, whole: bool = True
) -> None:
    """Raise BadRequest where an object is not of the kind its path is about."""
    said_version, said_kind = document.get("apiVersion"), document.get("kind")
    if not whole:
        said_version, said_kind = said_version or api_version, said_kind or kind
    if not isinstance(said_kind, str) or not said_kind:
        raise BadRequest("Object 'Kind' is missing")
    if not isinstance(said_version, str) or not said_version:
        raise BadRequest("Object 'apiVersion' is missing")
    if said_version != api_version:
        raise BadRequest(
            f"the API version in the data ({said_version}) does not match the expected API "
            f"version ({api_version})"
        )
    if said_kind != kind:
        version = errors.json_string(api_version.rpartition("/")[2])
        raise BadRequest(
            f"{said_kind} in version {version} cannot be handled as a {kind}: the kinds differ"
        )


def not_an_object(kind: str) -> BadRequest:
    """Return the error for a body that holds no object."""
    return BadRequest(f"couldn't get version/kind; json parse error: expected an object of {kind}")
