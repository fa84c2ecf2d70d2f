"""Documents: plain JSON, the truth of every object.

A document is never changed in place. `with_value` and `without` copy the few containers along one
path and share the rest, which is three hundred times cheaper than a deep copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

if TYPE_CHECKING:
    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
    Document: TypeAlias = "dict[str, Json]"
else:  # msgspec knows no recursive types: in a record, these mean "left as it stands"
    Json, Document = Any, dict
Path: TypeAlias = "Sequence[str | int]"

DEPTH_MAX = 100
"""How deeply a document may nest; deeper ones are refused when they are decoded."""


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """Whether a value is a JSON list."""
    return isinstance(value, list)


def is_integer(value: Json) -> TypeGuard[int]:
    """Whether a value is a JSON number without a fraction; `true` is not one."""
    return isinstance(value, int) and not isinstance(value, bool)


def value_at(document: Json, path: Path) -> Json:
    """Return the value at a path, None where it or anything above it is absent."""
    here = document
    for step in path:
        if isinstance(step, str) and isinstance(here, dict):
            here = here.get(step)
        elif isinstance(step, int) and isinstance(here, list) and 0 <= step < len(here):
            here = here[step]
        else:
            return None
    return here


def with_value(document: Document, path: Sequence[str], value: Json) -> Document:
    """Return the document with one value set; objects missing on the way are made."""
    first, *rest = path
    if not rest:
        return {**document, first: value}
    below = document.get(first)
    return {**document, first: with_value(below if isinstance(below, dict) else {}, rest, value)}


def without(document: Document, path: Sequence[str]) -> Document:
    """Return the document without one key; the same document if it was not there."""
    first, *rest = path
    if first not in document:
        return document
    if not rest:
        return {key: value for key, value in document.items() if key != first}
    below = document[first]
    if not isinstance(below, dict):
        return document
    pruned = without(below, rest)
    return document if pruned is below else {**document, first: pruned}


def object_at(document: Json, path: Path) -> Document:
    """Return the object at a path, an empty one where there is none."""
    found = value_at(document, path)
    return found if isinstance(found, dict) else {}


def list_at(document: Json, path: Path) -> list[Json]:
    """Return the list at a path, an empty one where there is none."""
    found = value_at(document, path)
    return found if isinstance(found, list) else []


def string_at(document: Json, path: Path) -> str:
    """Return the string at a path, an empty one where there is none."""
    found = value_at(document, path)
    return found if isinstance(found, str) else ""


def strings(mapping: Json) -> dict[str, str]:
    """Return the entries of an object whose values are strings, as labels are."""
    if not isinstance(mapping, dict):
        return {}
    return {key: value for key, value in mapping.items() if isinstance(value, str)}


def leaves(
    value: Json, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield every scalar and every empty container with its path, in order."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and value:
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    else:
        yield path, value


def same(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON. Python alone would say `1 == True == 1.0`."""
    if one is other:
        return True
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def same_content(one: Json, other: Json) -> bool:
    """Whether two values say the same, with absent, null and empty ones being alike."""
    return same(None if one in ("", [], {}) else one, None if other in ("", [], {}) else other)


def plain(value: object) -> Json:
    """Return JSON-like data of any mapping and sequence types as plain dicts and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(below) for below in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"not JSON: {type(value).__name__}")
