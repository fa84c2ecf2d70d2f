"""How a kind built into Kubernetes is declared: its published schema, and what is known beyond it.

The published definitions say neither defaults nor which words a field takes. `Finer` says so, by
path; the rest (what depends on another field) is told by functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from spinney.api import core
from spinney.api.kinds import (
    Advise,
    Column,
    Convert,
    Kind,
    Names,
    ScalePaths,
    ValidateUpdate,
    framed,
)
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same_content
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, dns_subdomain_fault, metadata_faults
from spinney.meta.records import Record
from spinney.meta.references import GroupKind
from spinney.meta.schemas import Schema

Rules: TypeAlias = Callable[[Cursor], Iterator[FieldError]]


class Bare(Record):
    """An object of which nothing but its metadata is read."""

    metadata: ObjectMeta


class Finer(Record):
    """What is known of a field beyond its published definition."""

    default: Json | msgspec.UnsetType = msgspec.UNSET
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    required: tuple[str, ...] = ()
    """For an object: the fields it must have, beyond those published."""


def refined(schema: Schema, finer: Mapping[str, Finer]) -> Schema:
    """Return a schema with more said of the fields at some paths: `spec.containers.env`.

    Lists and maps are passed through by the way.
    """
    below: dict[str, dict[str, Finer]] = {}
    for path, what in finer.items():
        first, _, rest = path.partition(".")
        if path:
            below.setdefault(first, {})[rest] = what
    if below and schema.items is not None:
        inner = refined(schema.items, {path: finer[path] for path in finer if path})
        schema = msgspec.structs.replace(schema, items=inner)
    elif below and schema.values is not None:
        inner = refined(schema.values, {path: finer[path] for path in finer if path})
        schema = msgspec.structs.replace(schema, values=inner)
    elif below:
        properties = dict(schema.properties)
        for name, there in below.items():
            properties[name] = refined(properties[name], there)
        schema = msgspec.structs.replace(schema, properties=properties)
    own = finer.get("")
    return schema if own is None else _with_own(schema, own)


def _with_own(schema: Schema, own: Finer) -> Schema:
    return msgspec.structs.replace(
        schema,
        default=schema.default if isinstance(own.default, msgspec.UnsetType) else own.default,
        enum=own.enum or schema.enum,
        minimum=schema.minimum if own.minimum is None else own.minimum,
        maximum=schema.maximum if own.maximum is None else own.maximum,
        required=tuple(dict.fromkeys((*schema.required, *own.required))),
    )


def _unchanged(document: Document) -> Document:
    return document


def _no_rules(_new: Cursor) -> Iterator[FieldError]:
    return iter(())


def _no_changes(_old: Cursor, _new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    return iter(())


def _no_advice(_new: Cursor, _old: Cursor | None, _known: Surroundings) -> Iterator[str]:
    return iter(())


def built_in(
    names: Names,
    record: type[Record],
    *,
    definition: str = "",
    finer: Mapping[str, Finer] | None = None,
    namespaced: bool = True,
    has_status: bool = False,
    default: Callable[[Document], Document] = _unchanged,
    default_status: Callable[[Document], Document] = _unchanged,
    rules: Rules = _no_rules,
    births: Rules = _no_rules,
    changes: ValidateUpdate = _no_changes,
    advise: Advise = _no_advice,
    name_fault: Callable[[str], str] = dns_subdomain_fault,
    columns: tuple[Column, ...] = (),
    scale: ScalePaths | None = None,
    selectable: tuple[str, ...] = (),
    has_status_rules: bool = False,
    stored_as: GroupKind | None = None,
    from_stored: Convert = _unchanged,
    to_stored: Convert = _unchanged,
) -> Kind:
    """Return the kind of a published definition; by default the one named as the kind.

    `rules` hold whenever an object is written, `births` when it is new alone; `changes` say what
    may not change.
    """

    def always(new: Cursor) -> Iterator[FieldError]:
        yield from metadata_faults(new["metadata"], namespaced=namespaced, name_fault=name_fault)
        yield from rules(new)

    def on_create(new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
        yield from always(new)
        yield from births(new)

    def on_update(old: Cursor, new: Cursor, known: Surroundings) -> Iterator[FieldError]:
        yield from always(new)
        yield from changes(old, new, known)

    schema = framed(core.resolve(definition or names.kind))
    return Kind(
        names=names,
        record=record,
        schema=refined(schema, finer) if finer else schema,
        namespaced=namespaced,
        default=default,
        default_status=default_status,
        validate_create=on_create,
        validate_update=on_update,
        advise=advise,
        columns=columns,
        scale=scale,
        has_status=has_status,
        selectable=selectable,
        has_status_rules=has_status_rules,
        is_builtin=True,
        stored_as=stored_as,
        from_stored=from_stored,
        to_stored=to_stored,
    )


def immutable(old: Cursor, new: Cursor) -> Iterator[FieldError]:
    """Yield the fault of a field that was changed and may not be."""
    if not same_content(old.value, new.value):
        yield new.invalid("field is immutable")


def port_faults(port: Cursor) -> Iterator[FieldError]:
    """Yield the fault of a number that is no port."""
    number = port.integer()
    if number is not None and not 1 <= number <= 65535:
        yield port.invalid("must be between 1 and 65535, inclusive")
