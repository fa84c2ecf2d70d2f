"""Structural schemas: what must hold of a schema in a CRD, so that its objects can be pruned.

Every place says its type; what stands below `allOf`, `anyOf`, `oneOf` and `not` says only which
values are taken, and only of places that are said elsewhere too; a default fits its own schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import openapi
from spinney.api.openapi import EMBEDDED, INT_OR_STRING, JUNCTORS, PRESERVE
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, string_at
from spinney.meta.errors import FieldError
from spinney.meta.schemas import Schema
from spinney.meta.shapes import Shape
from spinney.meta.validations import TYPES

LIST_TYPES = ("atomic", "map", "set")
MAP_TYPES = ("atomic", "granular")
_UNKNOWN = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_MUST_BE_EMPTY = (
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "additionalProperties",
    PRESERVE,
    EMBEDDED,
    INT_OR_STRING,
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
"""What may not be said below `allOf` and its like."""


def root_faults(root: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with the schema of a whole object."""
    if root.object() is None:
        return
    sort = root["type"]
    if sort.value in (None, ""):
        yield sort.required("must not be empty at the root")
    elif sort.string() is not None and sort.string() != "object":
        yield sort.invalid("must be object at the root")
    if root["nullable"].boolean():
        yield root["nullable"].forbidden("nullable cannot be true at the root")
    yield from _node_faults(root, "at the root", is_root=True)


def _node_faults(node: Cursor, what: str, *, is_root: bool = False) -> Iterator[FieldError]:
    said = node.object()
    if said is None:
        return
    if not is_root:
        yield from _type_faults(node, what)
    for word in _UNKNOWN:
        if word in said:
            yield node[word].forbidden(f"{word} is not supported")
    if node["uniqueItems"].boolean():
        yield node["uniqueItems"].forbidden(
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    if said.get(PRESERVE) is False:
        yield node[PRESERVE].invalid("must be true or undefined")
    yield from _embedded_faults(node)
    yield from _list_faults(node)
    yield from _map_faults(node)
    yield from _rule_faults(node["x-kubernetes-validations"])
    yield from _below_faults(node, is_root=is_root)
    for place, joined in _joined(node):
        yield from _loose_faults(joined, node, place)
    if "default" in said:
        yield from _default_faults(node, is_root=is_root)


def _type_faults(node: Cursor, what: str) -> Iterator[FieldError]:
    sort = node["type"]
    if node[INT_OR_STRING].boolean():
        if sort.string():
            yield sort.invalid(f"must be empty if {INT_OR_STRING} is true")
    elif sort.value in (None, ""):
        if not node[PRESERVE].boolean():
            yield sort.required(f"must not be empty for specified {what}")
    elif sort.string() is not None and sort.string() not in TYPES:
        yield sort.not_supported(TYPES)


def _embedded_faults(node: Cursor) -> Iterator[FieldError]:
    if not node[EMBEDDED].boolean():
        return
    if node["type"].string() != "object":
        yield node["type"].invalid(f"must be object if {EMBEDDED} is true")
    if not node["properties"].object() and not node[PRESERVE].boolean():
        yield node["properties"].required(
            f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        )


def _list_faults(node: Cursor) -> Iterator[FieldError]:
    list_type, keys = node["x-kubernetes-list-type"], node["x-kubernetes-list-map-keys"]
    sort, items = list_type.string(), node["items"]
    is_array = node["type"].string() == "array"
    if sort is not None:
        if sort not in LIST_TYPES:
            yield list_type.not_supported(LIST_TYPES)
        elif not is_array:
            yield node["type"].invalid("must be array if x-kubernetes-list-type is specified")
    if is_array and items.object() is None:
        yield items.required("must be specified")
    if keys.value not in (None, []) and sort != "map":
        yield list_type.invalid("must be map if x-kubernetes-list-map-keys is non-empty")
    if sort == "map":
        yield from _key_faults(keys, items)
    if sort == "set" and items["type"].string() in ("object", "array"):
        is_map = items["type"].string() == "object"
        word = "x-kubernetes-map-type" if is_map else "x-kubernetes-list-type"
        if items[word].string() != "atomic" and (is_map or items[word]):
            yield items[word].invalid("must be atomic as item of a list that is a set")


def _key_faults(keys: Cursor, items: Cursor) -> Iterator[FieldError]:
    if keys.value in (None, []):
        yield keys.required("must not be empty if x-kubernetes-list-type is map")
    if items.object() is not None and items["type"].string() != "object":
        yield items["type"].invalid(
            "must be object if parent array's x-kubernetes-list-type is map"
        )
        return
    seen: set[str] = set()
    required = items["required"].strings()
    for key in keys:
        name = key.string()
        if name is None:
            continue
        if name in seen:
            yield key.duplicate()
        seen.add(name)
        field = items["properties"].entry(name)
        if field.object() is None:
            yield key.invalid("must refer to a property of the items")
        elif field["type"].string() in ("object", "array"):
            yield field["type"].invalid("must be a scalar type if it is a key of a list map")
        elif name not in required and "default" not in (field.object() or {}):
            yield field["default"].required(
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
                "required property"
            )


def _map_faults(node: Cursor) -> Iterator[FieldError]:
    map_type = node["x-kubernetes-map-type"]
    if (sort := map_type.string()) is None:
        return
    if sort not in MAP_TYPES:
        yield map_type.not_supported(MAP_TYPES)
    elif node["type"].string() != "object":
        yield node["type"].invalid("must be object if x-kubernetes-map-type is specified")


def _rule_faults(rules: Cursor) -> Iterator[FieldError]:
    for rule in rules:
        text = rule["rule"]
        if text.value is None or (text.string() is not None and not (text.string() or "").strip()):
            yield text.required("rule is not specified")
        message = rule["message"].string()
        if message is not None and not message.strip():
            yield rule["message"].invalid("message must be non-empty if specified")


def _below_faults(node: Cursor, *, is_root: bool) -> Iterator[FieldError]:
    properties, values = node["properties"], node["additionalProperties"]
    if properties.object() and (values.object() is not None or values.value is True):
        yield values.forbidden("additionalProperties and properties are mutual exclusive")
    if is_root and values.object() is not None:
        yield values.forbidden("must not be used at the root")
    for name, below in properties.entries():
        if is_root and name in ("apiVersion", "kind", "metadata"):
            yield from _shared_faults(name, below)
        else:
            yield from _node_faults(below, "object fields")
    yield from _node_faults(values, "object fields")
    items = node["items"]
    yield from _node_faults(items, "array items")
    for inner in (items, values):
        if "default" in (inner.object() or {}) and inner["nullable"].boolean():
            yield inner["default"].forbidden("must not be set on nullable items")
    if isinstance(items.value, list):
        yield items.forbidden("items must be a schema object and not an array")


def _shared_faults(name: str, below: Cursor) -> Iterator[FieldError]:
    """Yield what may not be said of the fields that every object has."""
    said = below.object()
    if said is None:
        return
    expected = "object" if name == "metadata" else "string"
    if string_at(said, ["type"]) != expected:
        yield below["type"].invalid(f"must be {expected}")
    if name != "metadata":
        return
    others = set(said) - {"type", "description", "properties", "required"}
    fields = set(below["properties"].object() or {}) - {"name", "generateName"}
    if others or fields:
        yield below.forbidden(
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )


def _joined(node: Cursor) -> Iterator[tuple[str, Cursor]]:
    said = node.object() or {}
    for word in JUNCTORS:
        each = [joined.value for joined in node[word]]
        if node[INT_OR_STRING].boolean() and openapi.says_int_or_string(word, each):
            continue
        for joined in node[word]:
            yield word, joined
    if "not" in said:
        yield "not", node["not"]


def _loose_faults(joined: Cursor, outside: Cursor, place: str) -> Iterator[FieldError]:
    """Yield what may not be said in a schema that only says which values are taken."""
    said = joined.object()
    if said is None:
        return
    for word in _MUST_BE_EMPTY:
        if said.get(word) not in (None, "", False, []):
            yield joined[word].forbidden("must be empty to be structural")
    for name, below in joined["properties"].entries():
        known = outside["properties"].entry(name)
        if known.object() is None and outside["additionalProperties"].object() is None:
            if not outside[PRESERVE].boolean():
                yield known.required(f"because it is defined in {below.path}")
            known = Cursor({PRESERVE: True}, known.path)
        yield from _loose_faults(below, known, place)
    items = joined["items"]
    if items.object() is not None:
        if outside["items"].object() is None and not outside[PRESERVE].boolean():
            yield outside["items"].required(f"because it is defined in {items.path}")
        yield from _loose_faults(items, outside["items"], place)
    for word, below in _joined(joined):
        yield from _loose_faults(below, outside, word)


def _default_faults(node: Cursor, *, is_root: bool) -> Iterator[FieldError]:
    default, said = node["default"], node.object() or {}
    if is_root:
        yield default.forbidden("must not be set at the root")
        return
    if default.value is None:
        if not node["nullable"].boolean():
            yield default.invalid("must not be null unless nullable is true")
        return
    shape = Shape(_as_field(said))
    holder: Document = {"value": default.value}
    for fault in shape.faults(shape.fill_defaults(holder)):
        where = fault.path.removeprefix("value")
        yield FieldError(
            path=f"{default.path}{where}",
            reason=fault.reason,
            message=fault.message,
            found=fault.found,
        )


def _as_field(node: Document) -> Schema:
    inner: dict[str, Json] = {key: value for key, value in node.items() if key != "default"}
    return Schema(type="object", properties={"value": openapi.schema_from(inner)})
