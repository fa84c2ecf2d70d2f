"""Takings: what a change gives its writer of the fields, and takes from everybody.

The same as what `apply.track_update` works out with field sets, done on the `fieldsV1` themselves:
of a document only what is not the same object as before is looked at, and of an entry only what
the change touches. What is rare and hard (twins in a list, a list that becomes an object) is left
to `track_update`: `Unclear` is raised.
"""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.documents import Document, Json, same
from spinney.meta.patches.claims import Claims

_LEAF: Document = {}
_NOBODYS = ("apiVersion", "kind")
_MANAGED = "managedFields"


class Unclear(Exception):
    """What a change takes cannot be told the short way."""


class Taking:
    """What a change does to who owns what, as the top of a `fieldsV1` each."""

    __slots__ = ("gone", "taken")

    def __init__(self) -> None:
        """Do nothing yet."""
        self.gone: Document = {}
        """What nobody owns any more who did: what changed, came or went."""

        self.taken: Document = {}
        """What the writer owns now: what changed or came."""


def taking_of(
    claims: Claims, before: Document, after: Document, untracked: frozenset[str]
) -> Taking:
    """Return what a change of a whole object takes; raises Unclear.

    `untracked` are the fields of its metadata that are nobody's.
    """
    found = Taking()
    for key in {*before, *after}:
        old, new = before.get(key), after.get(key)
        if old is new:
            continue
        element, below = claims.child(key)
        if key == "metadata":
            _compare_metadata(below, old, new, untracked, found)
        else:
            _compare_part(element, below, old, new, found)
            if key in _NOBODYS:
                found.taken.pop(element, None)
    found.taken = _ordered(found.taken)
    return found


def _compare_metadata(
    claims: Claims, old: Json, new: Json, untracked: frozenset[str], found: Taking
) -> None:
    if not isinstance(old, dict) or not isinstance(new, dict):
        raise Unclear
    inside = Taking()
    _compare(claims, old, new, inside, but=_MANAGED)
    for name in untracked:
        if inside.taken and inside.taken.pop(f"f:{name}", None):
            raise Unclear
    _put(found, "f:metadata", inside)


def _compare(
    claims: Claims, before: Document, after: Document, found: Taking, *, but: str = ""
) -> None:
    """Compare two objects that are merged by field; most fields are texts, and as they were."""
    for key, old in before.items():
        new = after.get(key)
        if new is old or key == but or (isinstance(old, str) and new == old):
            continue
        _compare_part(*claims.child(key), old, new, found)
    for key, new in after.items():
        if new is not None and key not in before and key != but:
            _compare_part(*claims.child(key), None, new, found)


def _compare_part(element: str, claims: Claims, old: Json, new: Json, found: Taking) -> None:
    if old is None or new is None:
        if new is not None:
            found.gone[element] = found.taken[element] = claims.below(new)
        elif old is not None:
            found.gone[element] = claims.below(old)
        return
    if isinstance(old, dict) and isinstance(new, dict) and claims.has_fields:
        inside = Taking()
        _compare(claims, old, new, inside)
        _put(found, element, inside)
    elif isinstance(old, list) and isinstance(new, list) and not claims.is_whole:
        inside = Taking()
        _compare_items(claims, old, new, inside)
        _put(found, element, inside)
    elif isinstance(new, (str, int)) and isinstance(old, (str, int)):
        if old is not new and not same(old, new):
            found.gone[element] = found.taken[element] = _LEAF
    elif _has_parts(claims, old) or _has_parts(claims, new):
        raise Unclear
    elif not same(old, new):
        found.gone[element] = found.taken[element] = _LEAF


def _compare_items(claims: Claims, old: list[Json], new: list[Json], found: Taking) -> None:
    below = claims.of_items()
    before, after = _by_element(claims, old), _by_element(claims, new)
    for element, item in before.items():
        beside = after.get(element)
        if beside is not item:
            _compare_part(element, below, item, beside, found)
    for element, item in after.items():
        if element not in before:
            _compare_part(element, below, None, item, found)


def _by_element(claims: Claims, items: list[Json]) -> Mapping[str, Json]:
    elements = claims.named_elements(items)
    if elements is None:
        raise Unclear
    found = dict(zip(elements, items, strict=True))
    if len(found) < len(items):
        raise Unclear
    return found


def _has_parts(claims: Claims, value: Json) -> bool:
    return claims.has_fields if isinstance(value, dict) else _is_parted_list(claims, value)


def _is_parted_list(claims: Claims, value: Json) -> bool:
    return isinstance(value, list) and not claims.is_whole


def _put(found: Taking, element: str, inside: Taking) -> None:
    """Note what was found below an element that is itself what it was."""
    if inside.gone:
        found.gone[element] = inside.gone
    if inside.taken:
        found.taken[element] = _ordered(inside.taken)


# Sets of fields, as `fieldsV1` tells them: a field with none below it is `{}`; one that has some,
# and is set itself too, holds `.` beside them.


def minus(fields: Document, gone: Document) -> Document:
    """Return a set without the fields of another; the same one where it has none of them."""
    left: Document | None = None
    for element, out in gone.items():
        held = fields.get(element)
        if not isinstance(held, dict) or not isinstance(out, dict) or element == ".":
            continue
        kept = _minus_element(held, out)
        if kept is held:
            continue
        left = dict(fields) if left is None else left
        if kept is None:
            del left[element]
        else:
            left[element] = kept
    return fields if left is None else left


def _minus_element(held: Document, out: Document) -> Document | None:
    was_set = _is_set(held)
    is_set = was_set and not _is_set(out)
    below = minus(held, out)
    if below is held and is_set == was_set:
        return held
    return _element(is_set, below)


def plus(fields: Document, more: Document) -> Document:
    """Return a set with the fields of another, in order."""
    result = dict(fields)
    for element, added in more.items():
        if element == ".":
            continue
        held = fields.get(element)
        if not isinstance(held, dict) or not isinstance(added, dict):
            result[element] = added
        elif held != added:
            is_set = _is_set(held) or _is_set(added)
            found = _element(is_set, plus(held, added))
            assert found is not None, "a union of sets that are not empty is not empty"
            result[element] = found
    return result if len(result) == len(fields) else _ordered(result)


def _is_set(element: Document) -> bool:
    return not element or "." in element


def _element(is_set: bool, fields: Document) -> Document | None:
    """Return an element that is set itself, or not, with fields below it; None where it is none."""
    below = {key: value for key, value in fields.items() if key != "."}
    if is_set:
        return {".": {}, **below} if below else _LEAF
    return below or None


def _ordered(fields: Document) -> Document:
    return {element: fields[element] for element in sorted(fields)} if len(fields) > 1 else fields
