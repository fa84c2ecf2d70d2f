"""Field sets: which fields of a document somebody set, as `managedFields` tells it.

A field is a path of elements, spelled as in `fieldsV1`: `f:replicas` is a field or an entry of a
map, `k:{"name":"a"}` an item of a list by its keys, `v:"x"` an item of a set. What is merged as a
whole, a scalar or an atomic list, has no elements below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias, TypeVar

from spinney.meta.documents import Document, Json
from spinney.meta.errors import BadRequest, shown
from spinney.meta.patches.metadata import child
from spinney.meta.schemas import Schema

T = TypeVar("T")
FieldPath: TypeAlias = tuple[str, ...]

_SORTS = ("f:", "k:", "v:", "i:")
_CACHED_LENGTH_MAX = 200
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


class FieldSet:
    """A set of field paths, never changed. `|`, `&` and `-` are union, intersection, difference."""

    __slots__ = ("children", "members")

    def __init__(
        self, members: Iterable[str] = (), children: Mapping[str, FieldSet] | None = None
    ) -> None:
        """Make a set of single elements and of sets below elements; empty ones are dropped."""
        self.members = frozenset(members)
        self.children = {key: below for key, below in (children or {}).items() if below}

    @classmethod
    def of(cls, paths: Iterable[FieldPath]) -> FieldSet:
        """Make a set of whole paths; the empty path, the document itself, is no field."""
        members: set[str] = set()
        below: dict[str, list[FieldPath]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return cls(members, {key: cls.of(inner) for key, inner in below.items()})

    def __bool__(self) -> bool:
        """Whether there is any field in it."""
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same fields."""
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.members == other.members and self.children == other.children

    def __hash__(self) -> int:
        """Hash by the fields."""
        return hash((self.members, frozenset(self.children.items())))

    def __contains__(self, path: FieldPath) -> bool:
        """Whether a path is in it."""
        *above, last = path
        here: FieldSet | None = self
        for element in above:
            here = None if here is None else here.children.get(element)
        return here is not None and last in here.members

    def __or__(self, other: FieldSet) -> FieldSet:
        """Return what either holds."""
        children = dict(self.children)
        for key, below in other.children.items():
            children[key] = children[key] | below if key in children else below
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        """Return what both hold."""
        shared = self.children.keys() & other.children.keys()
        children = {key: self.children[key] & other.children[key] for key in shared}
        return FieldSet(self.members & other.members, children)

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Return what the other does not hold; fields below a field of the other stay."""
        children = {
            key: below - other.children[key] if key in other.children else below
            for key, below in self.children.items()
        }
        return FieldSet(self.members - other.members, children)

    def __repr__(self) -> str:
        """Show the paths."""
        return f"FieldSet.of({list(self.paths())!r})"

    def paths(self) -> Iterator[FieldPath]:
        """Yield every path, fields before items, each by name, before what lies below it."""
        for element in sorted(self.members | self.children.keys(), key=_rank):
            if element in self.members:
                yield (element,)
            if element in self.children:
                for path in self.children[element].paths():
                    yield (element, *path)

    def with_parents(self, schema: Schema | None) -> FieldSet:
        """Return the set with each field the schema names that has fields of the set below it."""
        named = {key for key in self.children if is_named(schema, key)}
        children = {
            key: below.with_parents(_schema_below(schema, key))
            for key, below in self.children.items()
        }
        return FieldSet(self.members | named, children)

    def to_json(self) -> Document:
        """Return the set as the value of a `fieldsV1`."""
        found: Document = {}
        for element in sorted(self.members | self.children.keys(), key=_rank):
            below = self.children[element].to_json() if element in self.children else {}
            is_both = below and element in self.members
            found[element] = {".": {}, **below} if is_both else below
        return found

    @classmethod
    def from_json(cls, value: Json) -> FieldSet:
        """Return the set a `fieldsV1` tells; elements of sorts nobody knows yet are passed over.

        Raises BadRequest for what is no `fieldsV1`.
        """
        if not isinstance(value, dict):
            raise BadRequest(f"fieldsV1 must hold objects, found {shown(value)}")
        members: set[str] = set()
        children: dict[str, FieldSet] = {}
        for key, inner in value.items():
            if key == ".":
                continue
            is_short = len(key) <= _CACHED_LENGTH_MAX
            element = _known_element(key) if is_short else _element_from_text(key)
            if element is None:
                continue
            below = cls.from_json(inner)
            children[element] = below
            if not below or (isinstance(inner, dict) and "." in inner):
                members.add(element)
        return cls(members, children)


NONE = FieldSet()


def path_text(path: FieldPath) -> str:
    """Return a path as kubectl shows it: `.spec.containers[name="a"].image`."""
    parts: list[str] = []
    for element in path:
        sort, text = element[:2], element[2:]
        if sort == "f:":
            parts.append(f".{text}")
        elif sort == "k:":
            keys = ",".join(f"{name}={_ENCODER.encode(key)}" for name, key in _decoded(text))
            parts.append(f"[{keys}]")
        else:
            parts.append(f"[={text}]" if sort == "v:" else f"[{text}]")
    return "".join(parts)


def fields_of(schema: Schema | None, value: Json) -> FieldSet:
    """Return what a document sets. Nulls set nothing."""
    members: set[str] = set()
    children: dict[str, FieldSet] = {}
    for element, (below, inner) in (parts_of(schema, value) or {}).items():
        parts = parts_of(inner, below)
        if parts is None or below == {} or not is_named(schema, element):
            members.add(element)
        if parts:
            children[element] = fields_of(inner, below)
    return FieldSet(members, children)


def places_of(schema: Schema | None, value: Json) -> FieldSet:
    """Return every place there is in a document, whether or not setting it sets a field."""
    parts = parts_of(schema, value) or {}
    return FieldSet(
        parts, {element: places_of(inner, below) for element, (below, inner) in parts.items()}
    )


Parts: TypeAlias = "dict[str, tuple[Json, Schema | None]]"


def parts_of(schema: Schema | None, value: Json) -> Parts | None:
    """Return what a value is merged by, with schemas; None where it is merged as a whole.

    Objects are merged by field, lists with keys and sets by item; where the schema says nothing,
    objects are and lists are not. Twins in a list are one part, merged as a whole.
    """
    if isinstance(value, dict):
        if not has_fields(schema):
            return None
        return {
            f"f:{key}": (below, child(schema, key))
            for key, below in value.items()
            if below is not None
        }
    if not isinstance(value, list) or schema is None:
        return None
    elements = elements_of(schema, value)
    if elements is None:
        return None
    parts: Parts = {}
    twins: dict[str, list[Json]] = {}
    for element, item in zip(elements, value, strict=True):
        if element in parts:
            gathered = twins.setdefault(element, [parts[element][0]])
            gathered.append(item)
        else:
            parts[element] = item, schema.items
    for element, items in twins.items():
        parts[element] = items, None
    return parts


def has_fields(schema: Schema | None) -> bool:
    """Whether objects of a schema are merged by field."""
    return schema is None or (schema.type in ("object", "") and not schema.atomic_map)


def elements_of(schema: Schema, items: list[Json]) -> list[str] | None:
    """Return the element of each item, None where the list is merged as a whole."""
    if schema.type != "array":
        return None
    if schema.list_type == "set":
        found = [_set_element(item) for item in items]
    elif schema.list_type == "map":
        found = [_keyed_element(schema, item) for item in items]
    else:
        return None
    elements = [element for element in found if element is not None]
    return elements if len(elements) == len(items) else None


def is_named(schema: Schema | None, element: str) -> bool:
    """Whether an element is a field the schema names, rather than an entry or an item."""
    return element.startswith("f:") and schema is not None and element[2:] in schema.properties


def _schema_below(schema: Schema | None, element: str) -> Schema | None:
    if element.startswith("f:"):
        return child(schema, element[2:])
    return None if schema is None else schema.items


def _set_element(item: Json) -> str | None:
    if item is None or isinstance(item, (dict, list)):
        return None
    return f"v:{_ENCODER.encode(_one_number(item))}"


def _keyed_element(schema: Schema, item: Json) -> str | None:
    """Return an item's element; keys it leaves out have their default, or none."""
    if not isinstance(item, dict):
        return None
    keys: list[str] = []
    for name in sorted(schema.list_keys):
        value = item.get(name)
        if value is None:
            of_key = child(schema.items, name)
            if of_key is None or not isinstance(of_key.default, (str, int, float, bool)):
                continue
            value = of_key.default
        if isinstance(value, (dict, list)):
            return None
        keys.append(f"{json_text(name)}:{json_text(_one_number(value))}")
    return f"k:{{{','.join(keys)}}}" if keys else None


def json_text(value: str | int | float | bool | None) -> str:
    """Return a key in JSON; the same few come again and again."""
    is_long = isinstance(value, str) and len(value) > _CACHED_LENGTH_MAX
    return _ENCODER.encode(value) if is_long else _known_text(value)


@lru_cache(maxsize=10_000, typed=True)
def _known_text(value: str | int | float | bool | None) -> str:
    return _ENCODER.encode(value)


def _one_number(value: T) -> T | int:
    """Return `3.0` as `3`: both are one key."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=10_000)
def _known_element(text: str) -> str | None:
    return _element_from_text(text)


def _element_from_text(text: str) -> str | None:
    """Return an element in the one spelling it has here, None where its sort is unknown."""
    sort, rest = text[:2], text[2:]
    if sort == "f:":
        return text
    if sort == "i:":
        if not rest.removeprefix("-").isdecimal() or not rest.isascii():
            raise BadRequest(f"fieldsV1: an index must be a number, found {shown(rest)}")
        return text
    if sort not in _SORTS:
        if text[1:2] != ":":
            raise BadRequest(f"fieldsV1: a key must be such as f:name, found {shown(text)}")
        return None
    try:
        value: Json = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"fieldsV1: {shown(text)} must hold JSON") from error
    if sort == "k:":
        if not isinstance(value, dict):
            raise BadRequest(f"fieldsV1: {shown(text)} must hold an object")
        return f"k:{_ENCODER.encode({name: _one_number(key) for name, key in value.items()})}"
    return f"v:{_ENCODER.encode(_one_number(value))}"


def _decoded(text: str) -> Iterable[tuple[str, Json]]:
    value: Json = json.loads(text)
    return value.items() if isinstance(value, dict) else ()


def _rank(element: str) -> tuple[int, str]:
    return _SORTS.index(element[:2]), element
