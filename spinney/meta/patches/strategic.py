"""Strategic merge patch: a merge patch that knows which lists are keyed.

A patch may carry directives: `$patch` (`replace`, `delete`), `$retainKeys`,
`$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. The order of a merged list is
that of the order directive, then that of the patch, then that of the live list; what only the live
list has keeps its place among what it shares with the patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from spinney.meta import documents
from spinney.meta.documents import Document, Json
from spinney.meta.errors import BadRequest, shown
from spinney.meta.patches.failures import PatchFailed
from spinney.meta.patches.metadata import child, with_metadata
from spinney.meta.schemas import Schema

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"

_Identity: TypeAlias = "tuple[type, Json]"


def apply(schema: Schema, document: Document, patch: Json) -> Document:
    """Return the document with a strategic merge patch merged in.

    Raises BadRequest for a patch that is malformed or leaves out a merge key, PatchFailed where
    the live lists do not take it.
    """
    if not isinstance(patch, dict):
        raise BadRequest(f"a strategic merge patch must be an object, found {shown(patch)}")
    return _merged(with_metadata(schema), document, patch, "")


def diff(schema: Schema, before: Document, after: Document) -> Document:
    """Return a patch that makes `after` of `before`; a null in `after` counts as absent."""
    return three_way(schema, before, after, before)


def three_way(
    schema: Schema, original: Document, modified: Document, current: Document
) -> Document:
    """Return the patch client-side `kubectl apply` sends.

    It sets what `modified` says and `current` does not hold, takes away what `original` had and
    `modified` lacks, and leaves what others added to `current`.
    """
    return _difference(with_metadata(schema), original, modified, current, "", retain=False)


# Applying


def _merged(schema: Schema | None, live: Document, patch: Document, path: str) -> Document:
    if PATCH in patch:
        directive = patch[PATCH]
        if directive == "replace":
            return _fresh_object({key: patch[key] for key in patch if key != PATCH})
        if directive == "delete":
            return {}
        raise BadRequest(f"{_place(path)}: unknown patch type: {shown(directive)}")
    merged = _retained(live, patch, path)
    merged = dict(live) if merged is live else merged
    ordered: set[str] = set()
    for key, order in patch.items():
        if key.startswith(ELEMENT_ORDER):
            field = key.removeprefix(ELEMENT_ORDER)
            ordered.add(field)
            _merge_in_order(child(schema, field), merged, patch, field, order, path)
    for key, gone in patch.items():
        if key.startswith(DELETE_FROM):
            field = key.removeprefix(DELETE_FROM)
            _delete_scalars(merged, field, gone, path)
    for key, wanted in patch.items():
        if key not in ordered and not _is_directive(key):
            _merge_field(child(schema, key), merged, key, wanted, path)
    return merged


def _merge_field(
    schema: Schema | None, merged: Document, key: str, wanted: Json, path: str
) -> None:
    held = merged.get(key)
    where = f"{path}.{key}"
    if wanted is None:
        merged.pop(key, None)
    elif isinstance(held, dict) and isinstance(wanted, dict):
        if "replace" in _strategy(schema):
            merged[key] = _fresh_object(wanted)
        else:
            merged[key] = _merged(schema, held, wanted, where)
    elif isinstance(held, list) and isinstance(wanted, list):
        merged[key] = _merged_list(schema, held, wanted, where)
    elif isinstance(wanted, dict) and PATCH in wanted:
        merged.pop(key, None)
    else:
        merged[key] = _fresh(wanted)


def _retained(live: Document, patch: Document, path: str) -> Document:
    if RETAIN_KEYS not in patch:
        return live
    retained = patch[RETAIN_KEYS]
    if not isinstance(retained, list):
        raise BadRequest(f"{_place(path)}: $retainKeys must be a list, found {shown(retained)}")
    kept = {key for key in retained if isinstance(key, str)}
    for key, wanted in patch.items():
        if wanted is not None and key not in kept and not _is_directive(key):
            raise BadRequest(
                f"{_place(path)}: $retainKeys must name {shown(key)}, which is patched"
            )
    return {key: below for key, below in live.items() if key in kept}


def _delete_scalars(merged: Document, field: str, gone: Json, path: str) -> None:
    if not isinstance(gone, list):
        raise BadRequest(f"{path}.{DELETE_FROM}{field}: must be a list, found {shown(gone)}")
    identities = {_scalar_identity(item, f"{path}.{DELETE_FROM}{field}") for item in gone}
    held = merged.get(field)
    if isinstance(held, list) and identities:
        where = f"{path}.{field}"
        merged[field] = [item for item in held if _scalar_identity(item, where) not in identities]


def _merged_list(
    schema: Schema | None, live: list[Json], patch: list[Json], path: str
) -> list[Json]:
    if schema is None or "merge" not in _strategy(schema):
        return patch
    if not live and not patch:
        return live
    if _sort_of_items((live, patch), path) is not dict:
        wanted = _without_twins(patch, path)
        chosen = {_scalar_identity(item, path) for item in wanted}
        others = _without_twins(live, path)
        others = [item for item in others if _scalar_identity(item, path) not in chosen]
        return _interleaved(others, wanted, live, "", path)
    return _merged_objects(schema, live, patch, path)


def _merged_objects(schema: Schema, live: list[Json], patch: list[Json], path: str) -> list[Json]:
    merge_key = schema.merge_key
    if not merge_key:
        raise PatchFailed("a list of objects without a merge key cannot be merged", path=path)
    items, plain_items, replaces = list(live), [], False
    for item in patch:
        directive = item.get(PATCH) if isinstance(item, dict) else None
        if not isinstance(item, dict) or PATCH not in item:
            plain_items.append(item)
        elif directive == "delete":
            gone = _identity(item, merge_key, path)
            items = [held for held in items if _identity_or_none(held, merge_key) != gone]
        elif directive == "replace":
            replaces = True
        else:
            raise BadRequest(f"{path}: unknown patch type of a list item: {shown(directive)}")
    if replaces:
        return [_fresh(item) for item in plain_items]
    order = list(items)
    places: dict[_Identity, int] = {}
    for index, held in enumerate(items):
        places.setdefault(_identity(held, merge_key, path), index)
    for item in plain_items:
        identity = _identity(item, merge_key, path)
        if identity in places:
            held = items[places[identity]]
            if isinstance(held, dict) and isinstance(item, dict):
                where = f"{path}[{merge_key}={shown(identity[1])}]"
                items[places[identity]] = _merged(schema.items, held, item, where)
        else:
            places[identity] = len(items)
            items.append(_fresh(item))
    return _in_order(items, plain_items, order, merge_key, path)


def _merge_in_order(
    schema: Schema | None, merged: Document, patch: Document, field: str, order: Json, path: str
) -> None:
    """Merge one list and put it in the order its `$setElementOrder` asks for."""
    where = f"{path}.{field}"
    merge_key = schema.merge_key if schema is not None else ""
    for found in (order, merged.get(field, []), patch.get(field, [])):
        if not isinstance(found, list):
            raise BadRequest(
                f"{where}: a list with $setElementOrder must be a list, found {shown(found)}"
            )
    assert isinstance(order, list)
    live, wanted = documents.list_at(merged, (field,)), documents.list_at(patch, (field,))
    if wanted:
        _check_order(wanted, order, merge_key, where)
    if field in merged and field in patch:
        items = _merged_list(schema, live, wanted, where)
    elif field in patch:
        items = documents.list_at({field: _fresh(wanted)}, (field,))
    elif field in merged:
        items = live
    else:
        return
    merged[field] = _in_order(items, order, live, merge_key, where)


def _check_order(wanted: list[Json], order: list[Json], merge_key: str, path: str) -> None:
    """Check that the patched items stand in the order list, in the same order."""
    if not order:
        return
    named = iter([_item_identity(item, merge_key, path) for item in order])
    for item in wanted:
        if merge_key and isinstance(item, dict) and PATCH in item:
            continue
        if _item_identity(item, merge_key, path) not in named:
            raise BadRequest(f"{path}: the order of the patch does not match its $setElementOrder")


def _in_order(
    items: list[Json], order: list[Json], live: list[Json], merge_key: str, path: str
) -> list[Json]:
    """Return the items: those the order names as it says, between them the others as in live."""
    ranks: dict[_Identity, int] = {}
    for index, item in enumerate(order):
        ranks.setdefault(_item_identity(item, merge_key, path), index)
    named: list[Json] = []
    others: list[Json] = []
    for item in items:
        is_named = _item_identity(item, merge_key, path) in ranks
        (named if is_named else others).append(item)
    named.sort(key=lambda item: ranks[_item_identity(item, merge_key, path)])
    return _interleaved(others, named, live, merge_key, path)


def _interleaved(
    others: list[Json], named: list[Json], live: list[Json], merge_key: str, path: str
) -> list[Json]:
    """Return both lists as one, keeping the order of each; where live knows both, live's order."""
    ranks: dict[_Identity, int] = {}
    for index, item in enumerate(live):
        ranks.setdefault(_item_identity(item, merge_key, path), index)

    def rank(item: Json) -> int | None:
        return ranks.get(_item_identity(item, merge_key, path))

    result: list[Json] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        ours, theirs = rank(others[left]), rank(named[right])
        if ours is not None and theirs is not None and ours < theirs:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return result + named[right:] + others[left:]


# Computing


def _difference(
    schema: Schema | None,
    original: Document,
    modified: Document,
    current: Document,
    path: str,
    *,
    retain: bool,
) -> Document:
    patch: Document = {}
    for key, wanted in modified.items():
        held, had = current.get(key), original.get(key)
        inner, where = child(schema, key), f"{path}.{key}"
        if wanted is None:
            if key in original or key in current:
                patch[key] = None
        elif isinstance(wanted, dict) and isinstance(held, dict):
            below = wanted
            if "replace" not in _strategy(inner):
                had = had if isinstance(had, dict) else {}
                retains = "retainKeys" in _strategy(inner)
                below = _difference(inner, had, wanted, held, where, retain=retains)
            elif documents.same(wanted, held):
                continue
            if below:
                patch[key] = below
        elif (
            inner is not None
            and isinstance(wanted, list)
            and isinstance(held, list)
            and "merge" in _strategy(inner)
        ):
            had = had if isinstance(had, list) else []
            patch |= _list_difference(inner, key, had, wanted, held, where)
        elif not documents.same(wanted, held):
            patch[key] = wanted
    for key in original:
        if key not in modified:
            patch[key] = None
    if retain:
        kept = sorted(key for key, wanted in modified.items() if wanted is not None)
        extra = {*original, *(key for key in current if current[key] is not None)}
        if kept and (patch or extra - modified.keys()):
            patch[RETAIN_KEYS] = list(kept)
    return patch


def _list_difference(
    schema: Schema,
    field: str,
    original: list[Json],
    modified: list[Json],
    current: list[Json],
    path: str,
) -> Document:
    """Return the entries of a patch that change one merged list."""
    if not original and not current:
        return {field: modified} if modified else {}
    if _sort_of_items((original, modified, current), path) is not dict:
        return _scalars_difference(field, original, modified, current, path)
    merge_key = schema.merge_key
    if not merge_key:
        raise PatchFailed("a list of objects without a merge key cannot be merged", path=path)
    had = _by_identity(original, merge_key, path)
    wanted = _by_identity(modified, merge_key, path)
    held = _by_identity(current, merge_key, path)
    if len(wanted) < len(modified) or len(held) < len(current):
        same = documents.same(modified, current)
        return {} if same else {field: [*modified, {PATCH: "replace"}]}
    retains = "retainKeys" in schema.patch_strategy
    items: list[Json] = []
    for identity, item in wanted.items():
        if identity not in held:
            items.append(item)
            continue
        where = f"{path}[{merge_key}={shown(identity[1])}]"
        before = had.get(identity, {})
        below = _difference(schema.items, before, item, held[identity], where, retain=retains)
        if below:
            items.append({**below, merge_key: item[merge_key]})
    gone = [identity for identity in had if identity not in wanted]
    gone.sort(key=lambda identity: str(identity[1]))
    items += [{merge_key: identity[1], PATCH: "delete"} for identity in gone]
    patch: Document = {field: items} if items else {}
    if modified and ((current and (items or list(wanted) != list(held))) or gone):
        patch[ELEMENT_ORDER + field] = [{merge_key: item[merge_key]} for item in wanted.values()]
    return patch


def _scalars_difference(
    field: str, original: list[Json], modified: list[Json], current: list[Json], path: str
) -> Document:
    wanted = {_scalar_identity(item, path) for item in modified}
    held = {_scalar_identity(item, path) for item in current}
    gone = [item for item in original if _scalar_identity(item, path) not in wanted]
    added = [item for item in modified if _scalar_identity(item, path) not in held]
    patch: Document = {field: added} if added else {}
    if gone:
        patch[DELETE_FROM + field] = sorted(_without_twins(gone, path), key=str)
    if modified and ((current and not documents.same(modified, current)) or gone):
        patch[ELEMENT_ORDER + field] = modified
    return patch


# Items and their identities


def _by_identity(items: list[Json], merge_key: str, path: str) -> dict[_Identity, Document]:
    return {_identity(item, merge_key, path): item for item in items if isinstance(item, dict)}


def _item_identity(item: Json, merge_key: str, path: str) -> _Identity:
    if merge_key and isinstance(item, dict):
        return _identity(item, merge_key, path)
    return _scalar_identity(item, path)


def _identity(item: Json, merge_key: str, path: str) -> _Identity:
    if not isinstance(item, dict) or merge_key not in item:
        raise BadRequest(f"{path}: an item does not contain its merge key {merge_key}")
    return _scalar_identity(item[merge_key], f"{path}.{merge_key}")


def _identity_or_none(item: Json, merge_key: str) -> _Identity | None:
    value = item.get(merge_key) if isinstance(item, dict) else None
    return None if isinstance(value, (dict, list)) else (type(value), value)


def _scalar_identity(item: Json, path: str) -> _Identity:
    if isinstance(item, (dict, list)):
        raise BadRequest(f"{path}: items are merged by scalars, found {shown(item)}")
    return type(item), item


def _without_twins(items: Iterable[Json], path: str) -> list[Json]:
    return list({_scalar_identity(item, path): item for item in items}.values())


def _sort_of_items(lists: Sequence[list[Json]], path: str) -> type | None:
    """Return the one type all items have, None where there are none; mixed lists are refused."""
    sorts = {type(item) for items in lists for item in items}
    if list in sorts:
        raise PatchFailed("lists of lists cannot be merged", path=path)
    if len(sorts) > 1 or type(None) in sorts:
        raise PatchFailed("all items of a merged list must be of one type", path=path)
    return next(iter(sorts), None)


def _strategy(schema: Schema | None) -> tuple[str, ...]:
    return () if schema is None else schema.patch_strategy


def _is_directive(key: str) -> bool:
    return key in (PATCH, RETAIN_KEYS) or key.startswith((DELETE_FROM, ELEMENT_ORDER))


def _place(path: str) -> str:
    return path or "patch"


def _fresh(value: Json) -> Json:
    """Return a patched value where nothing was before: without nulls and directives."""
    if isinstance(value, dict):
        return _fresh_object(value)
    if isinstance(value, list):
        kept = [item for item in value if not (isinstance(item, dict) and PATCH in item)]
        return [_fresh(item) for item in kept]
    return value


def _fresh_object(value: Document) -> Document:
    return {
        key: _fresh(below)
        for key, below in value.items()
        if below is not None
        and not _is_directive(key)
        and not (isinstance(below, dict) and PATCH in below)
    }
