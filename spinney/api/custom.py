"""Kinds that users bring: what a CustomResourceDefinition says, as a `Kind` like any other.

Objects are stored in the form of the storage version. Another served version is the same objects
under another `apiVersion`, with its own schema, columns and defaults: that is what conversion
`None` means. Where a webhook would convert, only the storage version is served, since nothing here
calls it, and the writer of the definition is warned.

A definition is taken to have been admitted; one that was not gives a kind all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from spinney.api import openapi
from spinney.api.core.builtin import Bare
from spinney.api.kinds import Column, Kind, Names, ScalePaths, framed
from spinney.api.surroundings import Surroundings
from spinney.meta import validations
from spinney.meta.cursors import Cursor
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    value_at,
)
from spinney.meta.errors import FieldError
from spinney.meta.metadata import metadata_faults
from spinney.meta.schemas import Schema

RULES_NAMED_MAX = 3
"""How many rules that are not evaluated a writer of an object is told of by name."""

AGE = Column(
    name="Age",
    path=".metadata.creationTimestamp",
    type="date",
    doc="When the object was created.",
)
"""The one column of a kind that declares none."""


def kind_from_definition(definition: Document) -> Kind:
    """Return the kind a definition stores: that of its storage version, served or not."""
    return _kind(definition, _storage_version(definition))


def kinds_from_definition(definition: Document) -> tuple[Kind, ...]:
    """Return the kinds a definition serves, one a version, the storage version first.

    All share one stored form: `stored_kind` is the same, `to_stored` and `from_stored` differ.
    """
    storage = _storage_version(definition)
    stored = _kind(definition, storage)
    served = [stored] if storage.get("served") is not False else []
    if string_at(definition, ["spec", "conversion", "strategy"]) == "Webhook":
        return tuple(served)
    others = (
        version
        for version in list_at(definition, ["spec", "versions"])
        if isinstance(version, dict) and version is not storage and version.get("served") is True
    )
    served += [_with_stored_form(_kind(definition, version), stored) for version in others]
    return tuple(served)


def _storage_version(definition: Document) -> Document:
    versions = list_at(definition, ["spec", "versions"])
    for version in versions:
        if isinstance(version, dict) and version.get("storage") is True:
            return version
    return next((version for version in versions if isinstance(version, dict)), {})


def _with_stored_form(kind: Kind, stored: Kind) -> Kind:
    """Return the kind of a version, whose objects are stored as those of another."""
    shape, theirs, ours = stored.shape, stored.names.api_version, kind.names.api_version

    def to_stored(document: Document) -> Document:
        return shape.fill_defaults({**document, "apiVersion": theirs})

    def from_stored(document: Document) -> Document:
        return {**document, "apiVersion": ours}

    return msgspec.structs.replace(
        kind,
        stored_as=stored.names.group_kind,
        to_stored=to_stored,
        from_stored=from_stored,
    )


def _kind(definition: Document, version: Document) -> Kind:
    names = _names(definition, version)
    root = object_at(version, ["schema", "openAPIV3Schema"])
    own = openapi.schema_from(root)
    schema = framed(msgspec.structs.replace(own, type="object", doc=own.doc or names.kind))
    namespaced = string_at(definition, ["spec", "scope"]) != "Cluster"
    scale = _scale(object_at(version, ["subresources", "scale"]))
    rules = _rules(root, scale, namespaced=namespaced)

    def on_create(new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
        yield from rules(new)

    def on_update(_old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
        yield from rules(new)

    return Kind(
        names=names,
        record=Bare,
        schema=schema,
        namespaced=namespaced,
        validate_create=on_create,
        validate_update=on_update,
        advise=_advice(names, tuple(_cel_rules(schema))),
        columns=_columns(list_at(version, ["additionalPrinterColumns"])),
        scale=scale,
        has_status=value_at(version, ["subresources", "status"]) is not None,
        selectable=tuple(
            string_at(field, ["jsonPath"]).removeprefix(".")
            for field in list_at(version, ["selectableFields"])
        ),
        has_status_rules=True,
        prunes=True,
    )


def _names(definition: Document, version: Document) -> Names:
    said = object_at(definition, ["spec", "names"])
    kind = string_at(said, ["kind"])
    return Names(
        group=string_at(definition, ["spec", "group"]),
        version=string_at(version, ["name"]),
        kind=kind,
        plural=string_at(said, ["plural"]),
        singular=string_at(said, ["singular"]) or kind.lower(),
        short=_texts(said, "shortNames"),
        categories=_texts(said, "categories"),
        list_kind=string_at(said, ["listKind"]),
    )


def _texts(said: Document, field: str) -> tuple[str, ...]:
    return tuple(text for text in list_at(said, [field]) if isinstance(text, str))


def _scale(said: Document) -> ScalePaths | None:
    if not said:
        return None
    return ScalePaths(
        spec_replicas=string_at(said, ["specReplicasPath"]),
        status_replicas=string_at(said, ["statusReplicasPath"]),
        selector=string_at(said, ["labelSelectorPath"]),
    )


def _columns(said: Sequence[Json]) -> tuple[Column, ...]:
    if not said:
        return (AGE,)
    return tuple(
        Column(
            name=string_at(column, ["name"]),
            path=string_at(column, ["jsonPath"]),
            type=string_at(column, ["type"]),
            priority=_priority(value_at(column, ["priority"])),
            doc=string_at(column, ["description"]),
        )
        for column in said
    )


def _priority(said: Json) -> int:
    return said if is_integer(said) else 0


def _rules(
    root: Document, scale: ScalePaths | None, *, namespaced: bool
) -> Callable[[Cursor], Iterator[FieldError]]:
    """Return what holds of every object: its metadata, and that of objects it embeds."""
    wanted = validations.loose(
        openapi.loose_schema_from(object_at(root, ["properties", "metadata"]))
    )
    embedded = tuple(_embedded(root, ()))

    def rules(new: Cursor) -> Iterator[FieldError]:
        metadata = new["metadata"]
        yield from metadata_faults(metadata, namespaced=namespaced)
        for fault in validations.faults(wanted, metadata.value) if metadata else ():
            path = f"metadata.{fault.path}" if fault.path else "metadata"
            yield msgspec.structs.replace(fault, path=path)
        if scale is not None:
            count = new.at(*scale.spec_replicas.strip(".").split("."))
            if (number := count.integer()) is not None and number < 0:
                yield count.invalid("must be greater than or equal to 0")
        for steps in embedded:
            for inner in _places(new, steps):
                yield from _embedded_faults(inner)

    return rules


def _embedded(node: Document, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield where whole objects stand in an object; `*` is every item or value."""
    if node.get(openapi.EMBEDDED) is True:
        yield path
    for name, below in object_at(node, ["properties"]).items():
        if isinstance(below, dict) and (path or name != "metadata"):
            yield from _embedded(below, (*path, name))
    for word in ("items", "additionalProperties"):
        if below := object_at(node, [word]):
            yield from _embedded(below, (*path, "*"))


def _places(here: Cursor, path: tuple[str, ...]) -> Iterator[Cursor]:
    if not path:
        yield here
    elif path[0] != "*":
        yield from _places(here[path[0]], path[1:])
    else:
        for below in here:
            yield from _places(below, path[1:])
        for _, below in here.entries():
            yield from _places(below, path[1:])


def _embedded_faults(inner: Cursor) -> Iterator[FieldError]:
    if inner.object() is None:
        return
    for field in ("apiVersion", "kind"):
        if inner[field].string() == "":
            yield inner[field].required("must not be empty")


def _cel_rules(schema: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    for rule in schema.rules:
        yield path or ".", rule.rule
    for name, below in schema.properties.items():
        yield from _cel_rules(below, f"{path}.{name}")
    for inner in (schema.items, schema.values):
        if inner is not None:
            yield from _cel_rules(inner, f"{path}[*]")


def _advice(
    names: Names, rules: tuple[tuple[str, str], ...]
) -> Callable[[Cursor, Cursor | None, Surroundings], Iterator[str]]:
    """Return who warns that rules in CEL were not evaluated; nobody, where there are none."""
    if not rules:
        return _no_advice
    shown = "; ".join(f"{path} {rule!r}" for path, rule in rules[:RULES_NAMED_MAX])
    more = len(rules) - RULES_NAMED_MAX
    rest = f"; and {more} more" if more > 0 else ""
    text = f"CEL rules of {names.plural}.{names.group} are not evaluated here: {shown}{rest}"

    def advise(_new: Cursor, _old: Cursor | None, _known: Surroundings) -> Iterator[str]:
        yield text

    return advise


def _no_advice(_new: Cursor, _old: Cursor | None, _known: Surroundings) -> Iterator[str]:
    return iter(())
