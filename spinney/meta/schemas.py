"""Schemas: what a document of a kind may look like, as data.

A schema is made from the declarations of a record (`schema_of`) or from a published Kubernetes
definition (`api/core`). Defaults, shape errors, pruning, `spinney fields`, CRDs and all patches
that must know keys of lists read it; none of them knows a kind.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, Union

import msgspec

from spinney.meta.documents import Json
from spinney.meta.durations import Duration
from spinney.meta.records import Field, Record, Rule

Resolve: TypeAlias = Callable[[str], "Schema"]
"""Finds the schema of a Kubernetes definition by its short name, such as `PodSpec`."""

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class Schema(Record):
    """The shape of one value, with what merging and people need to know of it."""

    type: str = ""
    """`object`, `array`, `string`, `integer`, `number`, `boolean`; "" takes any value."""

    properties: Mapping[str, Schema] = {}
    required: tuple[str, ...] = ()
    values: Schema | None = None
    """For an object that is a map: the schema of each of its values."""

    items: Schema | None = None
    open: bool = False
    """Whether unknown fields are kept and nothing is said of them."""

    default: Json | msgspec.UnsetType = msgspec.UNSET
    enum: tuple[str, ...] = ()
    format: str = ""
    """`int32`, `int64`, `date-time`, `duration`, `quantity`, `int-or-string`, `byte`, `double`."""

    minimum: int | float | None = None
    maximum: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    pattern: str = ""

    list_type: str = "atomic"
    """`atomic`, `set` or `map`, by which server-side apply merges a list."""

    list_keys: tuple[str, ...] = ()
    merge_key: str = ""
    """By which strategic merge finds a list item; "" where the list is of scalars."""

    patch_strategy: tuple[str, ...] = ()
    """`merge`, `retainKeys`, for strategic merge; without them a list is replaced."""

    atomic_map: bool = False
    """Whether an object or map has one owner as a whole in server-side apply."""

    rules: tuple[Rule, ...] = ()
    doc: str = ""
    example: str = ""
    type_name: str = ""
    """What people call the type: `PodCliqueTemplate`, `PodSpec`, `Duration`."""

    type_doc: str = ""
    """What the type is, where `doc` says what the field is."""

    ours: bool = False
    core: str = ""
    """The Kubernetes definition this was made from."""

    nullable: bool = False
    """Whether a null stays one; elsewhere it is the same as nothing."""

    sealed: bool = False
    """For an object without properties and values: whether it has no fields, not any."""

    choices: tuple[Json, ...] = ()
    """What `enum` is for values that are not all strings."""

    text_format: str = ""
    """What `format` is in the schemas of users: `uri`, `ipv4`, `hostname` …"""

    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: int | float | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    never: Schema | None = None
    """What must not hold; `not` in JSON."""

    @property
    def has_default(self) -> bool:
        """Whether an absent value is filled in."""
        return self.default is not msgspec.UNSET


ANY = Schema(open=True)


@functools.cache
def schema_of(record: type[Record], resolve: Resolve) -> Schema:
    """Return the schema a record's fields declare, in their order.

    A record below that is a view of a Kubernetes type names it (`CORE = "ObjectMeta"`), and has
    that schema.
    """
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in msgspec.structs.fields(record):
        declared, hint = _declaration(field.type)
        schema = _with_declared(_schema_of_hint(hint, declared, resolve), declared)
        if (
            isinstance(field.default, (int, str))
            and field.default != ""
            and not schema.has_default
            and not declared.required
        ):
            schema = msgspec.structs.replace(schema, default=field.default)
        properties[field.encode_name] = schema
        if declared.required:
            required.append(field.encode_name)
    doc = _first_paragraph(record)
    return Schema(
        type="object",
        properties=properties,
        required=tuple(required),
        rules=getattr(record, "RULES", ()),
        doc=doc,
        type_name=record.__name__,
        type_doc=doc,
    )


_UNDECLARED = Field("")


def _declaration(hint: object) -> tuple[Field, object]:
    if typing.get_origin(hint) is Annotated:
        bare, *extras = typing.get_args(hint)
        for extra in extras:
            if isinstance(extra, Field):
                return extra, bare
        return _UNDECLARED, bare
    return _UNDECLARED, hint


_SCALARS: Mapping[object, Schema] = {
    str: Schema(type="string", type_name="string"),
    bool: Schema(type="boolean", type_name="boolean"),
    int: Schema(type="integer", format="int32", type_name="integer"),
    float: Schema(type="number", format="double", type_name="number"),
    datetime: Schema(type="string", format="date-time", type_name="Time"),
    Duration: Schema(type="string", format="duration", type_name="Duration"),
}
_INT_OR_STRING = Schema(format="int-or-string", type_name="IntOrString")


def _schema_of_hint(hint: object, declared: Field, resolve: Resolve) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        chosen = [argument for argument in arguments if argument is not type(None)]
        if set(chosen) == {int, str}:
            return _INT_OR_STRING
        return _schema_of_hint(chosen[0], declared, resolve)
    if declared.core and origin is not tuple:
        return resolve(declared.core)
    if origin is Annotated:
        return _schema_of_hint(arguments[0], declared, resolve)
    if origin is Literal:
        return Schema(type="string", enum=tuple(map(str, arguments)), type_name="string")
    if origin is tuple:
        item = resolve(declared.core) if declared.core else None
        item = item or _schema_of_hint(arguments[0], _UNDECLARED, resolve)
        return Schema(type="array", items=item, type_name=f"[]{item.type_name}")
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        value = _schema_of_hint(arguments[1], _UNDECLARED, resolve)
        return Schema(type="object", values=value, type_name=f"map[string]{value.type_name}")
    if isinstance(hint, type) and issubclass(hint, Record):
        core: str = getattr(hint, "CORE", "")
        return resolve(core) if core else schema_of(hint, resolve)
    return _SCALARS[hint]


def _with_declared(schema: Schema, declared: Field) -> Schema:
    changes: dict[str, object] = {}
    for name in ("minimum", "maximum", "min_length", "max_length", "min_items"):
        if (value := getattr(declared, name)) is not None:
            changes[name] = value
    for name in ("pattern", "enum", "format", "example", "ours"):
        if value := getattr(declared, name):
            changes[name] = value
    if declared.list_keys:
        changes |= {"list_type": "map", "list_keys": declared.list_keys}
    if declared.set_list:
        changes["list_type"] = "set"
    if declared.atomic:
        changes["atomic_map"] = True
    if declared.doc:
        changes["doc"] = declared.doc
    if declared.core:
        changes["core"] = declared.core
    return msgspec.structs.replace(schema, **changes) if changes else schema


def _first_paragraph(record: type[Record]) -> str:
    text = (record.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())


def at(schema: Schema, path: tuple[str | int, ...]) -> Schema | None:
    """Return the schema of the value at a path, None where the schema says nothing of it."""
    here: Schema | None = schema
    for step in path:
        if here is None:
            return None
        if isinstance(step, int):
            here = here.items
        else:
            here = here.properties.get(step) or here.values
    return here


def walk(schema: Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield every property below a schema with its path, lists and maps passed through."""
    inner = schema.items or schema.values or schema
    if inner is not schema:
        yield from walk(inner, path)
        return
    for name, below in schema.properties.items():
        yield (*path, name), below
        yield from walk(below, (*path, name))


def defaults_of(schema: Schema) -> dict[str, Json]:
    """Return an object of a schema in which nothing is given but the defaults."""
    found: dict[str, Json] = {}
    for name, below in schema.properties.items():
        if not isinstance(below.default, msgspec.UnsetType):
            found[name] = below.default
    return found
