"""Layers: one document laid over another, and told apart, by the parts they are merged by.

A null is the same as nothing in all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from spinney.meta import documents
from spinney.meta.documents import Document, Json
from spinney.meta.patches.failures import PatchFailed
from spinney.meta.patches.fields import (
    NONE,
    FieldPath,
    FieldSet,
    elements_of,
    has_fields,
    parts_of,
    path_text,
)
from spinney.meta.patches.metadata import child
from spinney.meta.schemas import Schema


class Change:
    """How one document became another: fields that went, that changed their value, that came."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self, removed: FieldSet, modified: FieldSet, added: FieldSet) -> None:
        """Keep the three sets."""
        self.removed = removed
        self.modified = modified
        self.added = added


def without_nulls(schema: Schema | None, value: Json, path: FieldPath = ()) -> Json:
    """Return an applied document without fields that are null, and with every list checked.

    Raises PatchFailed where items of a list cannot be told apart.
    """
    if isinstance(value, dict):
        if not has_fields(schema):
            return value
        return {
            key: without_nulls(child(schema, key), below, (*path, f"f:{key}"))
            for key, below in value.items()
            if below is not None
        }
    if not isinstance(value, list) or schema is None or schema.list_type == "atomic":
        return value
    elements = elements_of(schema, value)
    if elements is None:
        wanted = "scalars" if schema.list_type == "set" else f"keys {', '.join(schema.list_keys)}"
        raise PatchFailed(f"every item must have {wanted}", path=path_text(path))
    seen: set[str] = set()
    for element in elements:
        if element in seen:
            raise PatchFailed("two items have the same keys", path=path_text((*path, element)))
        seen.add(element)
    return [
        without_nulls(schema.items, item, (*path, element))
        for element, item in zip(elements, value, strict=True)
    ]


def merged(schema: Schema | None, live: Json, applied: Json) -> Json:
    """Return the live value with an applied one laid over it; the live one where that is all."""
    if applied is None:
        return live
    if isinstance(live, dict) and isinstance(applied, dict):
        if has_fields(schema):
            return _merged_object(schema, live, applied)
    elif isinstance(live, list) and isinstance(applied, list) and schema is not None:
        ours, theirs = elements_of(schema, live), elements_of(schema, applied)
        if ours and theirs:
            items = _merged_items(schema, _Items(ours, live), _Items(theirs, applied))
            return live if _are_identical(items, live) else items
        if ours and theirs is not None:
            return live
    return live if documents.same(live, applied) else applied


def _merged_object(schema: Schema | None, live: Document, applied: Document) -> Document:
    result: Document | None = None
    for key, wanted in applied.items():
        held = live.get(key)
        new = merged(child(schema, key), held, wanted)
        if new is not held:
            result = dict(live) if result is None else result
            result[key] = new
    return live if result is None else result


class _Items:
    """The items of a list with their elements."""

    __slots__ = ("elements", "items")

    def __init__(self, elements: list[str], items: list[Json]) -> None:
        self.elements = elements
        self.items = items

    def by_element(self) -> dict[str, Json]:
        """Return the items by element; twins are nothing to merge with."""
        found: dict[str, Json] = {}
        for element, item in zip(self.elements, self.items, strict=True):
            found[element] = None if element in found else item
        return found


def _merged_items(schema: Schema, live: _Items, applied: _Items) -> list[Json]:
    held, wanted = live.by_element(), applied.by_element()
    return [
        merged(schema.items, held.get(element), wanted[element]) if element in wanted else item
        for element, item in _in_order(live.elements, live.items, applied.elements)
    ]


def _are_identical(items: list[Json], others: list[Json]) -> bool:
    return len(items) == len(others) and all(
        one is other for one, other in zip(items, others, strict=True)
    )


def _in_order(
    ours: Sequence[str], live: Sequence[Json], theirs: Sequence[str]
) -> list[tuple[str, Json]]:
    """Return each element once, twins of the live list apart, with the live item where only there.

    Applied items come in the order they are applied in; before each shared one comes what stands
    before it in the live list and nowhere else.
    """
    chosen, known = set(theirs), set(ours)
    shared = [element for element in theirs if element in known]
    taken: set[str] = set()
    result: list[tuple[str, Json]] = []
    left, right, next_shared = 0, 0, 0
    while left < len(ours) or right < len(theirs):
        if left < len(ours) and right < len(theirs):
            element = ours[left]
            if element == theirs[right]:
                result.append((element, None))
                taken.add(element)
                left, right, next_shared = left + 1, right + 1, next_shared + 1
                continue
            wants = shared[next_shared] if next_shared < len(shared) else None
            if element in chosen and wants is not None and wants != element:
                left += 1
                continue
        if left < len(ours):
            element = ours[left]
            if element not in chosen:
                result.append((element, live[left]))
                left += 1
                continue
            if element in taken:
                left += 1
        if right < len(theirs):
            element = theirs[right]
            result.append((element, None))
            taken.add(element)
            right += 1
            if next_shared < len(shared) and shared[next_shared] == element:
                next_shared += 1
    return result


def compared(schema: Schema | None, before: Json, after: Json) -> Change:
    """Return how one document became another."""
    comparison = _Comparison()
    comparison.compare(schema, before, after, ())
    return Change(
        FieldSet.of(comparison.removed),
        FieldSet.of(comparison.modified),
        FieldSet.of(comparison.added),
    )


class _Comparison:
    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.removed: list[FieldPath] = []
        self.modified: list[FieldPath] = []
        self.added: list[FieldPath] = []

    def compare(self, schema: Schema | None, before: Json, after: Json, path: FieldPath) -> None:
        if before is after:
            return
        old, new = parts_of(schema, before), parts_of(schema, after)
        if before is None or after is None:
            self._compare_parts(old or {}, new or {}, path)
            (self.added if before is None else self.removed).append(path)
        elif old is not None and new is not None and type(before) is type(after):
            self._compare_parts(old, new, path)
        elif old is not None or new is not None:
            self._compare_parts(old or {}, {}, path)
            self._compare_parts({}, new or {}, path)
            self.modified.append(path)
        elif not documents.same(before, after):
            self.modified.append(path)

    def _compare_parts(
        self,
        old: dict[str, tuple[Json, Schema | None]],
        new: dict[str, tuple[Json, Schema | None]],
        path: FieldPath,
    ) -> None:
        for element, (below, schema) in old.items():
            self.compare(schema, below, new.get(element, (None, None))[0], (*path, element))
        for element, (below, schema) in new.items():
            if element not in old:
                self.compare(schema, None, below, (*path, element))


def pruned(schema: Schema | None, value: Json, gone: FieldSet, claimed: FieldSet) -> Json:
    """Return a value without fields of a set; the same value where none was there.

    What is left empty by it goes too, unless it is claimed itself.
    """
    if isinstance(value, dict) and has_fields(schema):
        kept: Document = {}
        for key, below in value.items():
            left = _pruned_part(child(schema, key), below, f"f:{key}", gone, claimed)
            if left is not None or below is None:
                kept[key] = left
        is_same = len(kept) == len(value) and all(kept[key] is value[key] for key in kept)
        return value if is_same else kept
    elements = elements_of(schema, value) if isinstance(value, list) and schema else None
    if not isinstance(value, list) or schema is None or elements is None:
        return value
    parts = (
        _pruned_part(schema.items, item, element, gone, claimed)
        for element, item in zip(elements, value, strict=True)
    )
    items: list[Json] = [left for left in parts if left is not None]
    return value if _are_identical(items, value) else items


def _pruned_part(
    schema: Schema | None, value: Json, element: str, gone: FieldSet, claimed: FieldSet
) -> Json:
    if element in gone.members:
        return None
    if element not in gone.children:
        return value
    inner = claimed.children.get(element, NONE)
    left = pruned(schema, value, gone.children[element], inner)
    is_emptied = left is not value and not left
    return None if is_emptied and element not in claimed.members else left
