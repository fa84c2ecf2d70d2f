"""Shapes: a document against its schema. Fills in defaults, and tells every fault of shape.

A `Shape` is a schema made ready for walking many documents: what a place needs is worked out the
first time a document comes by there, and kept.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from spinney.meta import errors, patterns, validations
from spinney.meta.documents import Document, Json, is_integer
from spinney.meta.durations import parse_duration
from spinney.meta.errors import FieldError
from spinney.meta.quantities import parse_quantity
from spinney.meta.schemas import INT32_MAX, INT64_MAX, Schema
from spinney.meta.times import parse_time

Report: TypeAlias = "list[FieldError]"
"""Where faults are told as they are found."""

HINTS_MAX = 100
"""After how many faults no more is guessed at what was meant: each guess is a search."""

_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}


class Shape:
    """A schema, ready to walk documents."""

    __slots__ = ("_children", "_defaults", "_items", "_passes", "_values", "_wants", "schema")

    def __init__(self, schema: Schema) -> None:
        """Prepare for a schema; what lies below is prepared when first met."""
        self.schema = schema
        self._children: dict[str, Shape | None] = {}
        self._values = Shape(schema.values) if schema.values is not None else None
        self._items = Shape(schema.items) if schema.items is not None else None
        self._defaults: tuple[tuple[str, Json], ...] | None = None
        self._passes = value_check(schema)
        self._wants = validations.wanted(schema)

    def fill_defaults(self, document: Document) -> Document:
        """Return the document with absent values that have a default filled in, at every depth.

        A null where the schema names a field that is not nullable is the same as nothing, and is
        dropped. Nothing else
        a user wrote is changed, except that a whole number written `3.0` becomes `3`. Idempotent.
        """
        filled = self._filled(document)
        return filled if isinstance(filled, dict) else document

    def faults(self, document: Document) -> list[FieldError]:
        """Return every fault of shape: types, unknown and missing fields, bounds, twins in sets."""
        found: list[FieldError] = []
        self._tell(document, "", found)
        return found

    def prune(self, document: Document) -> Document:
        """Return the document without the fields the schema does not know, at every depth."""
        pruned = self._pruned(document)
        return pruned if isinstance(pruned, dict) else document

    def _child(self, key: str) -> Shape | None:
        try:
            return self._children[key]
        except KeyError:
            schema = self.schema.properties.get(key)
            child = None if schema is None else Shape(schema)
            if child is not None:
                self._children[key] = child
            return child

    def _pruned(self, value: Json) -> Json:
        if isinstance(value, list):
            if self._items is None:
                return value
            items = [self._items._pruned(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        if not isinstance(value, dict):
            return value
        kept: Document = {}
        for key, below in value.items():
            child = self._child(key) or self._values
            if child is not None:
                kept[key] = child._pruned(below)
            elif not self._is_closed():
                kept[key] = below
        same = len(kept) == len(value) and all(kept[key] is value[key] for key in kept)
        return value if same else kept

    def _is_closed(self) -> bool:
        schema = self.schema
        return not schema.open and (bool(schema.properties) or schema.sealed)

    def _filled(self, value: Json) -> Json:
        if isinstance(value, dict):
            if self.schema.properties:
                return self._filled_object(value)
            if self._values is not None:
                entries = {key: self._values._filled(below) for key, below in value.items()}
                same = all(entries[key] is below for key, below in value.items())
                return value if same else entries
            return value
        if isinstance(value, list):
            if self._items is None:
                return value
            items = [self._items._filled(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        if isinstance(value, float) and self.schema.type == "integer" and value.is_integer():
            return int(value) if abs(value) <= INT64_MAX else value
        return value

    def _filled_object(self, value: Document) -> Document:
        filled: Document | None = None
        for key, below in value.items():
            if below is None:
                named = self.schema.properties.get(key)
                if named is not None and not named.nullable:
                    filled = dict(value) if filled is None else filled
                    del filled[key]
            elif not isinstance(below, str) and (child := self._child(key)) is not None:
                new = child._filled(below)
                if new is not below:
                    filled = dict(value) if filled is None else filled
                    filled[key] = new
        if self._defaults is None:
            self._defaults = tuple(self._prepared_defaults())
        for key, default in self._defaults:
            if value.get(key) is None and not (
                key in value and self.schema.properties[key].nullable
            ):
                filled = dict(value) if filled is None else filled
                filled[key] = default
        return value if filled is None else filled

    def _prepared_defaults(self) -> Iterator[tuple[str, Json]]:
        """Yield what is filled in, with what is filled in below that."""
        for key, below in self.schema.properties.items():
            if isinstance(below.default, (str, int, float, bool, dict, list)):
                child = self._child(key)
                yield key, below.default if child is None else child._filled(below.default)

    def _tell(self, value: Json, path: str, report: Report) -> None:
        if value is None and self.schema.nullable:
            return
        kind = self.schema.type
        if kind == "object":
            if not isinstance(value, dict):
                report.append(_ill_typed(kind, value, path))
                return
            self._tell_object(value, path, report)
        elif kind == "array":
            if not isinstance(value, list):
                report.append(_ill_typed(kind, value, path))
                return
            self._tell_list(value, path, report)
        elif self._passes is not None and (fault := self._passes(value)) is not None:
            reason, message = fault
            report.append(FieldError(path=path, reason=reason, message=message, found=value))
            return
        if self._wants is not None:
            self._wants(value, path, report)

    def _tell_object(self, value: Document, path: str, report: Report) -> None:
        schema = self.schema
        if schema.properties or schema.sealed:
            prefix = f"{path}." if path else ""
            for key, below in value.items():
                child = self._child(key)
                if child is not None:
                    if below is not None:
                        child._tell(below, prefix + key, report)
                elif not schema.open:
                    known = schema.properties if len(report) < HINTS_MAX else {}
                    report.append(_unknown(key, known, prefix + key))
            for key in schema.required:
                if value.get(key) is None and not self._may_be_null(key, value):
                    report.append(FieldError(path=prefix + key, reason=errors.REQUIRED, message=""))
        elif self._values is not None:
            for key, below in value.items():
                self._values._tell(below, f"{path}[{key}]", report)

    def _may_be_null(self, key: str, value: Document) -> bool:
        named = self.schema.properties.get(key)
        return key in value and named is not None and named.nullable

    def _tell_list(self, value: list[Json], path: str, report: Report) -> None:
        schema = self.schema
        least = schema.min_items
        if least is not None and len(value) < least:
            what = "at least one item" if least == 1 else f"at least {least} items"
            report.append(
                FieldError(path=path, reason=errors.REQUIRED, message=f"must have {what}")
            )
        if self._items is not None:
            for index, item in enumerate(value):
                self._items._tell(item, f"{path}[{index}]", report)
        if schema.list_type == "map":
            self._tell_twins(value, path, report)
        elif schema.list_type == "set":
            seen: set[str | int] = set()
            for index, item in enumerate(value):
                if isinstance(item, str) or is_integer(item):
                    if item in seen:
                        report.append(_twin(f"{path}[{index}]", item, ""))
                    seen.add(item)

    def _tell_twins(self, value: list[Json], path: str, report: Report) -> None:
        keys = self.schema.list_keys
        seen: set[tuple[Json, ...]] = set()
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                continue
            identity = tuple(item.get(key) for key in keys)
            if any(isinstance(part, (dict, list)) for part in identity) or None in identity[:1]:
                continue
            if identity in seen:
                where = f"{path}[{index}]"
                if len(keys) == 1:
                    report.append(_twin(f"{where}.{keys[0]}", identity[0], ""))
                else:
                    named = ", ".join(keys)
                    shown = dict(zip(keys, identity, strict=True))
                    report.append(_twin(where, shown, f"{named} together must be unique"))
            seen.add(identity)


def in_field_order(schema: Schema, faults: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Return faults in the order of the fields they are about, each told once.

    A field the schema does not know comes after those it knows.
    """
    once = dict.fromkeys((fault.path, fault.reason, fault.message) for fault in faults)
    by_key = {(fault.path, fault.reason, fault.message): fault for fault in faults}
    ranks: _Ranks = {}
    places = {path: _place(schema, path, ranks) for path, _, _ in once}
    return tuple(by_key[key] for key in sorted(once, key=lambda key: places[key[0]]))


_Ranks: TypeAlias = "dict[int, tuple[Schema, dict[str, int]]]"

_INDEX = re.compile(r"[0-9]{1,9}")
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def steps(path: str) -> tuple[str | int, ...]:
    """Return the steps a path such as `spec.cliques[0].labels[app]` goes through."""
    found: list[str | int] = []
    for match in _STEP.finditer(path):
        bracketed, plain = match.groups()
        if bracketed is None:
            found.append(plain)
        else:
            found.append(int(bracketed) if _INDEX.fullmatch(bracketed) else bracketed)
    return tuple(found)


def _place(schema: Schema, path: str, ranks: _Ranks) -> tuple[tuple[int, int, str], ...]:
    """Return what sorts a path; `ranks` fills with the order of fields of the schemas met."""
    place: list[tuple[int, int, str]] = []
    here: Schema | None = schema
    for step in steps(path):
        if here is None:
            place.append((2, 0, str(step)))
        elif isinstance(step, int):
            place.append((0, step, ""))
            here = here.items or here.values
        elif step in here.properties:
            if id(here) not in ranks:
                ranks[id(here)] = (here, {key: rank for rank, key in enumerate(here.properties)})
            place.append((0, ranks[id(here)][1][step], ""))
            here = here.properties[step]
        else:
            place.append((1, 0, step))
            here = here.values
    return tuple(place)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean "replicas"?` where a known name is near, else nothing."""
    if len(name) > 100:
        return ""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.6)
    return f', did you mean "{by_fold[near[0]]}"?' if near else ""


def _unknown(key: str, known: Mapping[str, Schema], path: str) -> FieldError:
    hint = did_you_mean(key, known)
    message = hint.removeprefix(", ") if hint else "the kind has no such field"
    return FieldError(path=path, reason=errors.UNKNOWN_FIELD, message=message)


def _twin(path: str, found: Json, message: str) -> FieldError:
    return FieldError(path=path, reason=errors.DUPLICATE, message=message, found=found)


def _ill_typed(kind: str, value: Json, path: str) -> FieldError:
    return FieldError(
        path=path, reason=errors.TYPE_INVALID, message=f"must be {_ARTICLES[kind]}", found=value
    )


Fault: TypeAlias = "tuple[str, str] | None"
_Check: TypeAlias = Callable[[Json], Fault]


def value_check(schema: Schema) -> _Check | None:
    """Return what tells of a scalar that it is not as its schema says; None where all is taken."""
    if schema.format == "quantity":
        return _check_quantity
    if schema.format == "int-or-string":
        return _check_int_or_string
    if schema.type == "string":
        return _string_check(schema)
    if schema.type == "integer":
        return _integer_check(schema)
    if schema.type == "boolean":
        return _check_boolean
    if schema.type == "number":
        return _check_number
    return None


def _check_boolean(value: Json) -> Fault:
    return None if isinstance(value, bool) else (errors.TYPE_INVALID, "must be true or false")


def _check_number(value: Json) -> Fault:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return None
    return errors.TYPE_INVALID, "must be a number"


def _check_int_or_string(value: Json) -> Fault:
    if isinstance(value, str) or is_integer(value):
        return None
    return errors.TYPE_INVALID, "must be an integer or a string"


def _check_quantity(value: Json) -> Fault:
    if isinstance(value, float):
        return errors.TYPE_INVALID, f'must be a string or an integer: write "{value:g}" in quotes'
    if not (isinstance(value, str) or is_integer(value)):
        return errors.TYPE_INVALID, 'must be a quantity such as "500m", "4Gi" or 8'
    try:
        parse_quantity(value)
    except ValueError as error:
        return errors.INVALID, str(error)
    return None


def _integer_check(schema: Schema) -> _Check:
    bound = INT32_MAX if schema.format in ("", "int32") else INT64_MAX
    least: int | float = -bound - 1
    most: int | float = bound
    if schema.minimum is not None and not schema.exclusive_minimum:
        least = schema.minimum
    if schema.maximum is not None and not schema.exclusive_maximum:
        most = schema.maximum

    def check(value: Json) -> Fault:
        if not is_integer(value):
            return errors.TYPE_INVALID, "must be an integer"
        if value < least:
            return errors.INVALID, f"must be greater than or equal to {least}"
        if value > most:
            return errors.INVALID, f"must be less than or equal to {most}"
        return None

    return check


def _string_check(schema: Schema) -> _Check:
    pattern = patterns.compiled(schema.pattern) if schema.pattern else None
    format_fault = _FORMATS.get(schema.format)
    enum, least, most = schema.enum, schema.min_length, schema.max_length

    def check(value: Json) -> Fault:
        if not isinstance(value, str):
            return errors.TYPE_INVALID, f"must be a string{_quoted_hint(value)}"
        if enum and value not in enum:
            choices = ", ".join(errors.json_string(choice) for choice in enum)
            return errors.NOT_SUPPORTED, f"supported values: {choices}"
        if least is not None and len(value) < least:
            return errors.INVALID, f"must have at least {least} characters"
        if most is not None and len(value) > most:
            return errors.INVALID, f"must have at most {most} characters"
        if pattern is not None and pattern.search(value) is None:
            return errors.INVALID, f"must match {schema.pattern}"
        message = format_fault(value) if format_fault else None
        return None if message is None else (errors.INVALID, message)

    return check


def _quoted_hint(value: Json) -> str:
    if is_integer(value) and value.bit_length() > 64:
        return ": write it in quotes"
    if isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return f': write "{text}" in quotes' if len(text) <= 20 else ": write it in quotes"
    return ""


def _duration_fault(value: str) -> str | None:
    try:
        parse_duration(value)
    except ValueError as error:
        return str(error)
    return None


def _time_fault(value: str) -> str | None:
    try:
        parse_time(value)
    except ValueError as error:
        return str(error)
    return None


def _bytes_fault(value: str) -> str | None:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "must be base64"
    return None


_FORMATS: Mapping[str, Callable[[str], str | None]] = {
    "duration": _duration_fault,
    "date-time": _time_fault,
    "byte": _bytes_fault,
}
