"""Sieves: the quick way through admission for documents that have no fault of shape.

Nearly every document that comes is well-formed, and saying so one value at a time in Python costs
more than all else of a write. A sieve makes of a schema a type that msgspec checks in C. What
passes has no fault, no null to drop and no `3.0` to turn into `3`; then only the places that have
defaults, or checks msgspec does not know (twins in lists), are walked. What does not pass says
nothing: `Shape` looks again and tells what is wrong.

Law: what a sieve passes and settles is without faults, and filled as `Shape` fills it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Generic, Literal, TypeAlias, TypeVar

import msgspec

from spinney.meta import quantities, shapes, validations
from spinney.meta.documents import Document, Json
from spinney.meta.durations import parse_duration
from spinney.meta.schemas import INT32_MAX, INT64_MAX, Schema
from spinney.meta.times import parse_time

_Fill: TypeAlias = Callable[[Json], Json]
_Settles: TypeAlias = Callable[[Json], bool]


class _Quantity:
    """Stands for a quantity in the types made here."""


class _Duration:
    """Stands for a duration."""


class _Time:
    """Stands for an instant."""


_FOUND: Mapping[type, object] = {sort: sort() for sort in (_Quantity, _Duration, _Time)}
_FORMATS = {"quantity": _Quantity, "duration": _Duration, "date-time": _Time}


@functools.lru_cache(maxsize=4096)
def _is_quantity(value: str | int) -> bool:
    try:
        quantities.parse_quantity(value)
    except ValueError:
        return False
    return True


def _read(wanted: type, value: Json) -> object:
    """Read what msgspec does not know; raises ValueError where it is none."""
    if wanted is _Quantity:
        if not isinstance(value, (str, int)) or isinstance(value, bool) or not _is_quantity(value):
            raise ValueError
    elif not isinstance(value, str):
        raise ValueError
    elif wanted is _Duration:
        parse_duration(value)
    else:
        parse_time(value)
    return _FOUND[wanted]


WORTH_AFTER = 10
"""A command that checks a file or two is done sooner without a sieve; a server soon has one."""


class Sieve:
    """A schema, ready to wave well-formed documents through."""

    __slots__ = ("_asked", "_fill", "_is_made", "_schema", "_settles", "_type")

    def __init__(self, schema: Schema) -> None:
        """Prepare for a schema; the work is done when the first document comes."""
        self._schema = schema
        self._is_made = False
        self._asked = 0
        self._type: object = None
        self._fill: _Fill | None = None
        self._settles: _Settles | None = None

    def is_worth_making(self) -> bool:
        """Whether so many documents have come that making it saves more than it costs."""
        self._asked += 1
        return self._asked > WORTH_AFTER

    def passes(self, document: Document) -> bool:
        """Whether a document, as it was written, is well-formed but for absent defaults."""
        if not self._is_made:
            self._make()
        if self._type is None:
            return False
        try:
            msgspec.convert(document, self._type, dec_hook=_read)
        except (msgspec.ValidationError, ValueError, TypeError, OverflowError, RecursionError):
            return False
        return True

    def fill_defaults(self, document: Document) -> Document:
        """Return a document that passed with its defaults, as `Shape` fills them in."""
        if self._fill is None:
            return document
        filled = self._fill(document)
        return filled if isinstance(filled, dict) else document

    def settles(self, document: Document) -> bool:
        """Whether a document that passed and was filled has no twins in its lists."""
        return self._settles is None or self._settles(document)

    def _make(self) -> None:
        self._is_made = True
        try:
            self._type = _Types().of(self._schema)
        except _RecursiveError:
            return
        self._fill = _Fillers().of(self._schema)
        self._settles = _Settlers().of(self._schema)


class _RecursiveError(Exception):
    """A definition contains itself: all its documents go the slow way."""


class _Types:
    """Types made of schemas, each definition once."""

    def __init__(self) -> None:
        self._made: dict[str, object] = {}
        self._open: set[str] = set()

    def of(self, schema: Schema) -> object:
        name = schema.core if schema.type == "object" else ""
        if name in self._open:
            raise _RecursiveError
        if name and name in self._made and not schema.nullable:
            return self._made[name]
        self._open |= {name} - {""}
        made = self._of(schema)
        self._open.discard(name)
        if schema.nullable:
            return made | None  # type: ignore[operator]
        if name:
            self._made[name] = made
        return made

    def _of(self, schema: Schema) -> object:
        if (found := _FORMATS.get(schema.format)) is not None:
            return found
        if schema.format == "int-or-string":
            return int | str
        if schema.type == "object":
            return self._of_object(schema)
        if schema.type == "array":
            items = Json if schema.items is None else self.of(schema.items)
            made: object = list[items]  # type: ignore[valid-type]
            if schema.min_items is not None:
                return Annotated[made, msgspec.Meta(min_length=schema.min_items)]
            return made
        if schema.type == "string":
            return _text(schema)
        if schema.type == "integer":
            return _integer(schema)
        return {"boolean": bool, "number": float}.get(schema.type, Json)

    def _of_object(self, schema: Schema) -> object:
        if schema.properties or schema.sealed:
            return self._struct(schema)
        if schema.values is not None:
            return dict[str, self.of(schema.values)]  # type: ignore[misc]
        return dict[str, Json]

    def _struct(self, schema: Schema) -> type:
        names: dict[str, str] = {}
        fields: list[tuple[str, object] | tuple[str, object, object]] = []
        for index, (key, below) in enumerate(schema.properties.items()):
            name = f"field{index}"
            names[name] = key
            made = self.of(below)
            if key in schema.required and not below.has_default:
                fields.append((name, made))
            else:
                fields.append((name, made | msgspec.UnsetType, msgspec.UNSET))
        title = schema.type_name.rpartition("]")[2]
        return msgspec.defstruct(
            title if title.isidentifier() else "Object",
            fields,
            rename=names,
            forbid_unknown_fields=not schema.open,
            kw_only=True,
            gc=False,
        )


def _text(schema: Schema) -> object:
    if schema.enum:
        return Literal[schema.enum]
    if schema.min_length is None and schema.max_length is None:
        return str
    return Annotated[str, msgspec.Meta(min_length=schema.min_length, max_length=schema.max_length)]


def _integer(schema: Schema) -> object:
    bound = INT32_MAX if schema.format in ("", "int32") else INT64_MAX
    least = -bound - 1 if schema.minimum is None else math.ceil(schema.minimum)
    most = bound if schema.maximum is None else math.floor(schema.maximum)
    return Annotated[int, msgspec.Meta(ge=max(least, -INT64_MAX - 1), le=min(most, INT64_MAX))]


_M = TypeVar("_M")


class _Makers(Generic[_M]):
    """Makes functions of schemas, each definition once; None where there is nothing to do."""

    def __init__(self) -> None:
        self._made: dict[str, Callable[[Json], _M] | None] = {}

    def of(self, schema: Schema) -> Callable[[Json], _M] | None:
        """Return the function for a schema."""
        name = schema.core if schema.type == "object" and not schema.nullable else ""
        if name and name in self._made:
            return self._made[name]
        made = self._of(schema)
        if name:
            self._made[name] = made
        return made

    def _of(self, schema: Schema) -> Callable[[Json], _M] | None:
        raise NotImplementedError


class _Fillers(_Makers[Json]):
    """Makes what fills in defaults, and visits only the places below which there are any."""

    def _of(self, schema: Schema) -> _Fill | None:
        if schema.properties:
            return self._of_object(schema)
        if schema.values is not None and (below := self.of(schema.values)) is not None:
            return _filling_values(below)
        if schema.items is not None and (below := self.of(schema.items)) is not None:
            return _filling_items(below, self._only_field(schema.items))
        return None

    def _only_field(self, schema: Schema) -> str:
        """Return the one field objects of a schema are filled in below, "" where there is more."""
        fields = [key for key, below in schema.properties.items() if self.of(below) is not None]
        is_bare = all(not below.has_default for below in schema.properties.values())
        return fields[0] if len(fields) == 1 and is_bare and not schema.nullable else ""

    def _of_object(self, schema: Schema) -> _Fill | None:
        rows: list[tuple[str, Json, _Fill | None]] = []
        nullable = {key for key, below in schema.properties.items() if below.nullable}
        for key, below in schema.properties.items():
            fill = self.of(below)
            default = None if isinstance(below.default, msgspec.UnsetType) else below.default
            if fill is not None and default is not None:
                default = fill(default)
            if fill is not None or default is not None:
                rows.append((key, default, fill))
        return _filling_object(tuple(rows), frozenset(nullable)) if rows else None


def _filling_object(
    rows: tuple[tuple[str, Json, _Fill | None], ...], nullable: frozenset[str]
) -> _Fill:
    if len(rows) == 1 and rows[0][1] is None and rows[0][2] is not None:
        return _filling_field(rows[0][0], rows[0][2])

    def fill(value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        filled: Document | None = None
        new: Json
        for key, default, below in rows:
            found = value.get(key)
            if found is None:
                if default is None or (key in nullable and key in value):
                    continue
                new = default
            elif below is None or (new := below(found)) is found:
                continue
            if filled is None:
                filled = value.copy()
            filled[key] = new
        return value if filled is None else filled

    return fill


def _filling_field(key: str, below: _Fill) -> _Fill:
    """Fill in below the one field with anything below it; the items of `env` are such."""

    def fill(value: Json) -> Json:
        if not isinstance(value, dict) or (found := value.get(key)) is None:
            return value
        new = below(found)
        return value if new is found else {**value, key: new}

    return fill


def _filling_items(below: _Fill, only_field: str) -> _Fill:
    """Fill in items; where but one field matters, and none has it, they stand as they are.

    What passed has objects for items wherever a field matters.
    """

    def fill(value: Json) -> Json:
        if not isinstance(value, list):
            return value
        if only_field and not [0 for item in value if only_field in item]:  # type: ignore[operator]
            return value
        filled: list[Json] | None = None
        for index, item in enumerate(value):
            new = below(item)
            if new is not item:
                if filled is None:
                    filled = value.copy()
                filled[index] = new
        return value if filled is None else filled

    return fill


def _filling_values(below: _Fill) -> _Fill:
    def fill(value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        entries = {key: below(each) for key, each in value.items()}
        same = all(entries[key] is value[key] for key in entries)
        return value if same else entries

    return fill


class _Settlers(_Makers[bool]):
    """Makes what says that nothing is wrong which msgspec does not look at."""

    def _of(self, schema: Schema) -> _Settles | None:
        checks = list(_own_checks(schema))
        rows = tuple(
            (key, settles)
            for key, below in schema.properties.items()
            if (settles := self.of(below)) is not None
        )
        if rows:
            checks.append(_settling_object(rows))
        if schema.values is not None and (below := self.of(schema.values)) is not None:
            checks.append(_settling_values(below))
        if schema.items is not None and (below := self.of(schema.items)) is not None:
            checks.append(_settling_items(below))
        if len(checks) < 2:
            return checks[0] if checks else None
        return lambda value: all(settles(value) for settles in checks)


def _own_checks(schema: Schema) -> Iterator[_Settles]:
    if (wanted := validations.wanted(schema)) is not None:
        yield lambda value: value is None or not validations.faults(wanted, value)
    is_finer = schema.pattern or schema.format == "byte" or (schema.enum and schema.min_length)
    if is_finer and (check := shapes.value_check(schema)) is not None:
        yield lambda value: value is None or check(value) is None
    if schema.list_type == "set":
        yield _has_no_twins
    elif schema.list_type == "map":
        yield _has_no_namesakes(schema.list_keys)


def _has_no_twins(value: Json) -> bool:
    if not isinstance(value, list) or len(value) < 2:
        return True
    kept = [item for item in value if isinstance(item, (str, int))]
    return len(set(kept)) == len(value)


def _has_no_namesakes(keys: tuple[str, ...]) -> _Settles:
    is_single = len(keys) == 1
    first_of = operator.itemgetter(keys[0] if keys else "")

    def settles(value: Json) -> bool:
        if not isinstance(value, list) or len(value) < 2:
            return True
        if is_single:
            try:
                return len(set(map(first_of, value))) == len(value)  # type: ignore[arg-type]
            except (KeyError, TypeError):
                pass
        items = [item for item in value if isinstance(item, dict)]
        try:
            return len({tuple(map(item.get, keys)) for item in items}) == len(value)
        except TypeError:
            return False

    return settles


def _settling_object(rows: tuple[tuple[str, _Settles], ...]) -> _Settles:
    def settles(value: Json) -> bool:
        if isinstance(value, dict):
            for key, below in rows:
                if key in value and not below(value[key]):
                    return False
        return True

    return settles


def _settling_items(below: _Settles) -> _Settles:
    return lambda value: not isinstance(value, list) or all(map(below, value))


def _settling_values(below: _Settles) -> _Settles:
    return lambda value: not isinstance(value, dict) or all(map(below, value.values()))
