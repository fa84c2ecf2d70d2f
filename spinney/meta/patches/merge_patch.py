"""Merge patch (RFC 7386): an object laid over another, where null takes a field away.

Lists are replaced whole. Since null means "away", no merge patch can set a field to null.
"""

from __future__ import annotations

from spinney.meta import documents
from spinney.meta.documents import Document, Json
from spinney.meta.errors import BadRequest, shown


def apply(document: Document, patch: Json) -> Document:
    """Return the document with a patch merged in; the same one where nothing changes."""
    if not isinstance(patch, dict):
        raise BadRequest(f"a merge patch must be an object, found {shown(patch)}")
    return _merged(document, patch)


def diff(before: Document, after: Document) -> Document:
    """Return a patch that makes `after` of `before`.

    Raises BadRequest where a field of `after` would have to become null: no patch says that.
    """
    return _difference(before, after, "")


def three_way(original: Document, modified: Document, current: Document) -> Document:
    """Return the patch `kubectl apply` sends for kinds without a strategic merge.

    It sets what `modified` says and `current` does not hold, takes away what `original` had and
    `modified` lacks, and leaves what others added to `current`.
    """
    patch: Document = {}
    for key, wanted in modified.items():
        held, had = current.get(key), original.get(key)
        if wanted is None:
            if key not in original or had is not None:
                patch[key] = None
        elif isinstance(wanted, dict) and isinstance(held, dict):
            below = three_way(had if isinstance(had, dict) else {}, wanted, held)
            if below:
                patch[key] = below
        elif not documents.same(wanted, held):
            patch[key] = wanted
    for key in original:
        if key not in modified:
            patch[key] = None
    return patch


def _merged(target: Document, patch: Document) -> Document:
    merged: Document | None = None
    for key, wanted in patch.items():
        if wanted is None:
            if key in target:
                merged = dict(target) if merged is None else merged
                del merged[key]
            continue
        held = target.get(key)
        new = wanted
        if isinstance(wanted, dict):
            new = _merged(held if isinstance(held, dict) else {}, wanted)
        if key not in target or not documents.same(new, held):
            merged = dict(target) if merged is None else merged
            merged[key] = new
    return target if merged is None else merged


def _difference(before: Document, after: Document, path: str) -> Document:
    patch: Document = {key: None for key in before if key not in after}
    for key, wanted in after.items():
        where = f"{path}.{key}" if path else key
        held = before.get(key)
        if key in before and documents.same(wanted, held):
            continue
        if wanted is None:
            raise BadRequest(f"{shown(where)}: a merge patch cannot set a field to null")
        if isinstance(wanted, dict):
            patch[key] = _difference(held if isinstance(held, dict) else {}, wanted, where)
        else:
            patch[key] = wanted
    return patch
