"""Claims: all fields of a document at once, as the `fieldsV1` of whoever made it.

The same as what `layers.compared` finds added to nothing, in one walk: most writes of a busy world
are creations, and this is the dearest part of one.
"""

from __future__ import annotations

from spinney.meta.documents import Document, Json
from spinney.meta.patches.fields import elements_of, has_fields
from spinney.meta.patches.metadata import child
from spinney.meta.schemas import Schema

_LEAF: Document = {}


class Claims:
    """A schema, ready to walk documents for the fields they set; one a kind."""

    __slots__ = ("_children", "_has_fields", "_items", "_schema")

    def __init__(self, schema: Schema | None) -> None:
        """Prepare for a schema; what lies below is prepared when first met."""
        self._schema = schema
        self._has_fields = has_fields(schema)
        self._children: dict[str, tuple[str, Claims]] = {}
        self._items: Claims | None = None

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
        made = f"f:{key}", Claims(child(self._schema, key))
        if self._schema is not None and key in self._schema.properties:
            self._children[key] = made
        return made

    def _below(self, value: Json) -> Document:
        """Return what is claimed below a value; nothing where it is merged as a whole."""
        if isinstance(value, dict):
            if not value or not self._has_fields:
                return _LEAF
            found: Document = {".": {}}
            for key in sorted(value):
                below = value[key]
                if below is None:
                    continue
                element, claims = self._child(key)
                if isinstance(below, (dict, list)):
                    found[element] = claims._below(below)
                else:
                    found[element] = _LEAF
            return found if len(found) > 1 else _LEAF
        if isinstance(value, list) and value:
            return self._below_items(value)
        return _LEAF

    def _below_items(self, items: list[Json]) -> Document:
        if self._schema is None:
            return _LEAF
        elements = elements_of(self._schema, items)
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
