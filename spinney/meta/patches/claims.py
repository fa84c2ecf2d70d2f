"""Claims: all fields of a document at once, as the `fieldsV1` of whoever made it.

The same as what `layers.compared` finds added to nothing, in one walk: most writes of a busy world
are creations, and this is the dearest part of one. Objects made from one template set the same
fields, so what a list claimed is remembered, and told again of a list that is alike: one that has
the same items with the same fields, whatever their values.
"""

from __future__ import annotations

from functools import lru_cache

from spinney.meta.documents import Document, Json, same
from spinney.meta.patches import fields
from spinney.meta.patches.fields import elements_of, json_text
from spinney.meta.schemas import Schema

_LEAF: Document = {}
_NAME_LENGTH_MAX = 200
_REMEMBERED_MAX = 64
"""How many lists are remembered for one place of a schema."""


class Claims:
    """A schema, ready to walk documents for the fields they set; one a kind."""

    __slots__ = (
        "_children",
        "_is_plain",
        "_items",
        "_key",
        "_remembered",
        "_rest",
        "_schema",
        "has_fields",
        "is_whole",
    )

    def __init__(self, schema: Schema | None) -> None:
        """Prepare for a schema; what lies below is prepared when first met."""
        self._schema = schema
        self.has_fields = fields.has_fields(schema)
        """Whether objects here are merged by field."""

        self._children: dict[str, tuple[str, Claims]] = {}
        self._rest: Claims | None = None
        self._items: Claims | None = None
        keys = schema.list_keys if schema is not None and schema.list_type == "map" else ()
        self._key = keys[0] if len(keys) == 1 else ""
        self._remembered: dict[tuple[str, int], tuple[list[Json], Document]] = {}
        self._is_plain = _is_plain(schema)
        self.is_whole = schema is None or schema.list_type not in ("set", "map")
        """Whether lists here are merged as a whole."""

    def of(self, document: Document, untracked: frozenset[str]) -> Document:
        """Return the `fieldsV1` of a new document, without some fields of its metadata.

        What says which object it is, `apiVersion`, `kind` and `metadata` itself, is nobody's.
        """
        found: Document = {}
        for key in sorted(document):
            below = document[key]
            if key in ("apiVersion", "kind") or below is None:
                continue
            element, claims = self.child(key)
            if key != "metadata" or not isinstance(below, dict):
                found[element] = claims.below(below)
                continue
            tracked = {name: below[name] for name in below if name not in untracked}
            inside = claims.below(tracked)
            inner = {name: inside[name] for name in inside if name != "."}
            if inner:
                found[element] = inner
        return found

    def child(self, key: str) -> tuple[str, Claims]:
        """Return the element of a field of objects here, and the claims of what it holds."""
        found = self._children.get(key)
        if found is not None:
            return found
        if self._schema is not None and key in self._schema.properties:
            made = self._children[key] = f"f:{key}", Claims(self._schema.properties[key])
            return made
        if self._rest is None:
            self._rest = Claims(None if self._schema is None else self._schema.values)
        return f"f:{key}", self._rest

    def below(self, value: Json) -> Document:
        """Return what is claimed below a value; nothing where it is merged as a whole."""
        if isinstance(value, dict):
            if not value or not self.has_fields:
                return _LEAF
            found: Document = {".": {}}
            child = self.child
            for key in sorted(value):
                below = value[key]
                if isinstance(below, (dict, list)):
                    element, claims = child(key)
                    found[element] = claims.below(below)
                elif below is not None:
                    found[f"f:{key}"] = _LEAF
            return found if len(found) > 1 else _LEAF
        if isinstance(value, list) and value:
            return self._below_items(value)
        return _LEAF

    def _below_items(self, items: list[Json]) -> Document:
        if self._schema is None or self.is_whole:
            return _LEAF
        mark = self._mark(items)
        known = self._remembered.get(mark)
        if known is not None and self._are_alike(items, known[0]):
            return known[1]
        named = self.named_elements(items)
        elements = named or elements_of(self._schema, items)
        if elements is None:
            return _LEAF
        below = self.of_items()
        by_element = dict(zip(elements, items, strict=True))
        has_twins = len(by_element) < len(items)
        found: Document = {".": {}}
        for element in sorted(by_element):
            is_twin = has_twins and elements.count(element) > 1
            found[element] = _LEAF if is_twin else below.below(by_element[element])
        if named and not has_twins:
            self._remember(mark, items, found)
        return found

    def of_items(self) -> Claims:
        """Return the claims of the items of lists here."""
        if self._items is None:
            self._items = Claims(None if self._schema is None else self._schema.items)
        return self._items

    def _mark(self, items: list[Json]) -> tuple[str, int]:
        """Return by what a list is remembered: the name of its first item, and its length."""
        first = items[0].get(self._key) if isinstance(items[0], dict) else None
        return first if isinstance(first, str) else "", len(items)

    def _remember(self, mark: tuple[str, int], items: list[Json], found: Document) -> None:
        if len(self._remembered) >= _REMEMBERED_MAX and mark not in self._remembered:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[mark] = items, found

    def _are_alike(self, items: list[Json], others: list[Json]) -> bool:
        """Whether two lists as long have the same named items, alike, in the same order."""
        key, below = self._key, self.of_items()
        is_plain = below._is_plain
        for item, other in zip(items, others, strict=True):
            if not isinstance(item, dict):
                return False
            name = item.get(key)
            if not isinstance(name, str):
                return False
            if is_plain and item == other:
                continue
            if not isinstance(other, dict) or name != other.get(key):
                return False
            if not below._is_alike(item, other):
                return False
        return True

    def _is_alike(self, value: Json, other: Json) -> bool:
        """Whether the same is claimed below two values; it may be and not be seen."""
        if isinstance(value, dict):
            if not isinstance(other, dict) or value.keys() != other.keys():
                return False
            for key, below in value.items():
                beside = other[key]
                if isinstance(below, (dict, list)):
                    if not self.child(key)[1]._is_alike(below, beside):
                        return False
                elif (below is None) is not (beside is None) or isinstance(beside, (dict, list)):
                    return False
            return True
        if not isinstance(value, list) or not isinstance(other, list):
            return False
        if self.is_whole:
            return True
        if not self._key or len(value) != len(other):
            return same(value, other)
        return self._are_alike(value, other)

    def named_elements(self, items: list[Json]) -> list[str] | None:
        """Return the elements of items told apart by one short text each, as most are."""
        key = self._key
        if not key or self._schema is None or self._schema.type != "array":
            return None
        elements: list[str] = []
        for item in items:
            name = item.get(key) if isinstance(item, dict) else None
            if not isinstance(name, str) or len(name) > _NAME_LENGTH_MAX:
                return None
            elements.append(_element(key, name))
        return elements


@lru_cache(maxsize=10_000)
def _element(key: str, name: str) -> str:
    """Return the element of an item by its one key: `k:{"name":"main"}`."""
    return f"k:{{{json_text(key)}:{json_text(name)}}}"


def _is_plain(schema: Schema | None, within: frozenset[str] = frozenset()) -> bool:
    """Whether equal values claim the same: so it is unless a list tells `1` from `true`."""
    if schema is None:
        return True
    if schema.core in within:
        return False
    if schema.list_type == "set" or (schema.list_type == "map" and not _is_named(schema)):
        return False
    inner = within | {schema.core} if schema.core else within
    below = [*schema.properties.values(), schema.values, schema.items]
    return all(_is_plain(each, inner) for each in below)


def _is_named(schema: Schema) -> bool:
    """Whether the items of a list are told apart by one text each."""
    if schema.items is None or len(schema.list_keys) != 1:
        return False
    key = schema.items.properties.get(schema.list_keys[0])
    return key is not None and key.type == "string"
