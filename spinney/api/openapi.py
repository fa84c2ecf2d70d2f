"""OpenAPI: the schemas users write into their CRDs, read as `meta.schemas` spells them.

A structural schema says the type of every place; what stands below `allOf`, `anyOf`, `oneOf` and
`not` says only which values are taken. Both become a `Schema`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from spinney.meta import patterns, validations
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    strings,
)
from spinney.meta.metadata import METADATA
from spinney.meta.records import Rule
from spinney.meta.schemas import INT64_MAX, Schema

INT_OR_STRING = "x-kubernetes-int-or-string"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
JUNCTORS = ("allOf", "anyOf", "oneOf")

_TEXT = Schema(type="string", type_name="string")
_OWN_FORMATS = ("byte", "date-time")
_EITHER: tuple[Json, ...] = ({"type": "integer"}, {"type": "string"})


def schema_from(node: Document) -> Schema:
    """Return a structural schema."""
    sort = string_at(node, ["type"])
    either = node.get(INT_OR_STRING) is True
    is_open = node.get(PRESERVE) is True or not (sort or either)
    list_type = string_at(node, ["x-kubernetes-list-type"])
    made = msgspec.structs.replace(
        _said(node),
        type="" if either else sort,
        format="int-or-string" if either else _format(node, sort),
        text_format=string_at(node, ["format"]) if sort == "string" else "",
        open=is_open,
        default=node.get("default", msgspec.UNSET),
        nullable=node.get("nullable") is True,
        doc=string_at(node, ["description"]),
        type_name="IntOrString" if either else sort,
        list_type=list_type if list_type in ("set", "map") else "atomic",
        list_keys=_texts(node, "x-kubernetes-list-map-keys"),
        atomic_map=node.get("x-kubernetes-map-type") == "atomic",
        rules=tuple(_rules(node)),
    )
    if made.text_format in _OWN_FORMATS:
        made = msgspec.structs.replace(made, text_format="")
    if sort == "object":
        return _object(made, node)
    if sort == "array":
        items = schema_from(object_at(node, ["items"]))
        return msgspec.structs.replace(made, items=items, type_name=f"[]{items.type_name}")
    return made


def _object(made: Schema, node: Document) -> Schema:
    properties = {
        name: schema_from(below)
        for name, below in object_at(node, ["properties"]).items()
        if isinstance(below, dict)
    }
    values = node.get("additionalProperties")
    if isinstance(values, dict) and not properties:
        below = schema_from(values)
        return msgspec.structs.replace(
            made, values=below, type_name=f"map[string]{below.type_name}"
        )
    if values is True and not properties:
        return msgspec.structs.replace(made, open=True)
    required = made.required
    if node.get(EMBEDDED) is True:
        properties = {"apiVersion": _TEXT, "kind": _TEXT, **properties, "metadata": METADATA}
        required = tuple(dict.fromkeys(("apiVersion", "kind", *required)))
    return msgspec.structs.replace(
        made, properties=properties, required=required, sealed=not made.open
    )


def loose_schema_from(node: Document) -> Schema:
    """Return a schema that says of values, but not of types, what is taken."""
    made = _said(node)
    items, values = node.get("items"), node.get("additionalProperties")
    sort = string_at(node, ["type"])
    return msgspec.structs.replace(
        made,
        type=sort if sort in validations.TYPES else "",
        text_format=string_at(node, ["format"]),
        properties={
            name: loose_schema_from(below)
            for name, below in object_at(node, ["properties"]).items()
            if isinstance(below, dict)
        },
        items=loose_schema_from(items) if isinstance(items, dict) else None,
        values=loose_schema_from(values) if isinstance(values, dict) else None,
    )


def _said(node: Document) -> Schema:
    """Return what a node says of values: bounds, choices, and schemas that are joined."""
    choices = list_at(node, ["enum"])
    texts = tuple(choice for choice in choices if isinstance(choice, str))
    is_text = string_at(node, ["type"]) == "string" and len(texts) == len(choices)
    never = node.get("not")
    joined = {
        word: tuple(loose_schema_from(each) for each in _joined(node, word)) for word in JUNCTORS
    }
    return Schema(
        required=_texts(node, "required"),
        enum=texts if is_text else (),
        choices=() if is_text else tuple(choices),
        pattern=string_at(node, ["pattern"]),
        minimum=_number(node.get("minimum")),
        maximum=_number(node.get("maximum")),
        exclusive_minimum=node.get("exclusiveMinimum") is True,
        exclusive_maximum=node.get("exclusiveMaximum") is True,
        multiple_of=_number(node.get("multipleOf")),
        all_of=joined["allOf"],
        any_of=joined["anyOf"],
        one_of=joined["oneOf"],
        never=loose_schema_from(never) if isinstance(never, dict) else None,
        min_length=_count(node, "minLength"),
        max_length=_count(node, "maxLength"),
        min_items=_count(node, "minItems"),
        max_items=_count(node, "maxItems"),
        min_properties=_count(node, "minProperties"),
        max_properties=_count(node, "maxProperties"),
    )


def _count(node: Document, word: str) -> int | None:
    """Return a bound on a length, which no machine's lengths go beyond."""
    count = node.get(word)
    return max(0, min(count, INT64_MAX)) if is_integer(count) else None


def _joined(node: Document, word: str) -> Iterator[Document]:
    """Yield the schemas joined by a word, but for those that only say `int or string`."""
    each = list_at(node, [word])
    if node.get(INT_OR_STRING) is True and says_int_or_string(word, each):
        each = each[1:] if word == "allOf" else []
    yield from (below for below in each if isinstance(below, dict))


def says_int_or_string(word: str, each: list[Json]) -> bool:
    """Whether schemas joined by a word say no more than that a value is an integer or a string."""
    if word == "anyOf":
        return tuple(each) == _EITHER
    return word == "allOf" and bool(each) and each[0] == {"anyOf": list(_EITHER)}


def _format(node: Document, sort: str) -> str:
    form = string_at(node, ["format"])
    if sort == "integer":
        return "int32" if form == "int32" else "int64"
    if sort == "number":
        return form if form in ("float", "double") else "double"
    return form if sort == "string" and form in _OWN_FORMATS else ""


def _number(value: Json) -> int | float | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if is_integer(value) else None


def _texts(node: Document, word: str) -> tuple[str, ...]:
    return tuple(each for each in list_at(node, [word]) if isinstance(each, str))


def _rules(node: Document) -> Iterator[Rule]:
    for rule in list_at(node, ["x-kubernetes-validations"]):
        if isinstance(rule, dict):
            said = strings(rule)
            yield Rule(
                rule=said.get("rule", ""),
                message=said.get("message", ""),
                field_path=said.get("fieldPath", ""),
                reason=said.get("reason", "FieldValueInvalid"),
                optional_old_self=rule.get("optionalOldSelf") is True,
            )


def unjudged(schema: Schema, path: str = "") -> Iterator[str]:
    """Yield, for people, what a schema asks of values that Spinney does not look at."""
    where = path or "."
    for rule in schema.rules:
        yield f"{where}: CEL rule {rule.rule!r}"
    if schema.pattern and patterns.compiled(schema.pattern) is None:
        yield f"{where}: pattern {schema.pattern!r}"
    if schema.text_format in validations.UNJUDGED:
        yield f"{where}: format {schema.text_format!r}"
    for name, below in schema.properties.items():
        if below is not METADATA:
            yield from unjudged(below, f"{path}.{name}")
    for inner in (schema.items, schema.values):
        if inner is not None:
            yield from unjudged(inner, f"{path}[*]")
    for joined in (*schema.all_of, *schema.any_of, *schema.one_of):
        yield from unjudged(joined, path)
    if schema.never is not None:
        yield from unjudged(schema.never, path)
