"""Claims: all fields of a document at once, as the `fieldsV1` of whoever made it.

The same as what `layers.compared` finds added to nothing, in one walk: most writes of a busy world
are creations, and this is the dearest part of one.
"""

from __future__ import annotations

from functools import lru_cache

from spinney.meta.documents import Document, Json
from spinney.meta.patches.fields import elements_of, has_fields, json_text
from spinney.meta.schemas import Schema

_LEAF: Document = {}
_NAME_LENGTH_MAX = 200


class Claims:
    """A schema, ready to walk documents for the fields they set; one a kind."""

    __slots__ = ("_children", "_has_fields", "_items", "_key", "_rest", "_schema")

    def __init__(self, schema: Schema | None) -> None:
        """Prepare for a schema; what lies below is prepared when first met."""
        self._schema = schema
        self._has_fields = has_fields(schema)
        self._children: dict[str, tuple[str, Claims]] = {}
        self._rest: Claims | None = None
        self._items: Claims | None = None
        keys = schema.list_keys if schema is not None and schema.list_type == "map" else ()
        self._key = keys[0] if len(keys) == 1 else ""

    def of(self, document: Document, untracked: frozenset[str]) -> Document:
        """Return the `fieldsV1` of a new document, without some fields of its metadata.

        What says which object it is, `apiVersion`, `kind` and `metadata` itself, is nobody's.
        """
        found: Document = {}
        for key in sorted(document):
            below = document[key]
            if key in ("apiVersion", "kind") or below is None:
                continue
            element, claims = self._child(key)
            if key != "metadata" or not isinstance(below, dict):
                found[element] = claims._below(below)
                continue
            tracked = {name: below[name] for name in below if name not in untracked}
            inside = claims._below(tracked)
            inner = {name: inside[name] for name in inside if name != "."}
            if inner:
                found[element] = inner
        return found

    def _child(self, key: str) -> tuple[str, Claims]:
        found = self._children.get(key)
        if found is not None:
            return found
        if self._schema is not None and key in self._schema.properties:
            made = self._children[key] = f"f:{key}", Claims(self._schema.properties[key])
            return made
        if self._rest is None:
            self._rest = Claims(None if self._schema is None else self._schema.values)
        return f"f:{key}", self._rest

    def _below(self, value: Json) -> Document:
        """Return what is claimed below a value; nothing where it is merged as a whole."""
        if isinstance(value, dict):
            if not value or not self._has_fields:
                return _LEAF
            found: Document = {".": {}}
            child = self._child
            for key in sorted(value):
                below = value[key]
                if isinstance(below, (dict, list)):
                    element, claims = child(key)
                    found[element] = claims._below(below)
                elif below is not None:
                    found[f"f:{key}"] = _LEAF
            return found if len(found) > 1 else _LEAF
        if isinstance(value, list) and value:
            return self._below_items(value)
        return _LEAF

    def _below_items(self, items: list[Json]) -> Document:
        if self._schema is None:
            return _LEAF
        elements = self._named_elements(items) or elements_of(self._schema, items)
        if elements is None:
            return _LEAF
        if self._items is None:
            self._items = Claims(self._schema.items)
        by_element = dict(zip(elements, items, strict=True))
        has_twins = len(by_element) < len(items)
        found: Document = {".": {}}
        for element in sorted(by_element):
            is_twin = has_twins and elements.count(element) > 1
            found[element] = _LEAF if is_twin else self._items._below(by_element[element])
        return found

    def _named_elements(self, items: list[Json]) -> list[str] | None:
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
