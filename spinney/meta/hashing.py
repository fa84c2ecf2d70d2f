"""Hashes of content: which fields of an object changed, told by a short text in a label.

The serialisation is canonical JSON: keys sorted, order of lists kept, empty values (null, "", [],
{} and what becomes empty by dropping them) left out of objects. Items of lists stay, so that their
places mean the same. `false` and `0` are values: where a field is a pointer in Kubernetes they
differ from nothing. A whole number written `1.0` is `1`.

A hash names the version of the serialisation it was made by. `is_hash_of` computes with that
version, so a change of ours re-stamps objects and never rolls a workload.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TypeAlias

from spinney.meta.documents import Json

Serialiser: TypeAlias = Callable[[Json], bytes]

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""27 signs: no vowels, so that no words arise, and none that look alike."""

_VERSION_SIGNS = "123456789"
_LENGTH = 15
"""27^14 > 2^64, and one to spare."""


def _canonical(value: Json) -> bytes:
    text = json.dumps(
        pruned(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=True
    )
    return text.encode("ascii")


def pruned(value: Json) -> Json:
    """Return a value without what is empty in its objects, at every depth."""
    if isinstance(value, dict):
        entries = ((key, pruned(below)) for key, below in value.items())
        return {key: below for key, below in entries if not is_empty(below)}
    if isinstance(value, list):
        return [pruned(below) for below in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def is_empty(value: Json) -> bool:
    """Whether a value is null, an empty string, list or object; false and 0 are not."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


SERIALISERS: Mapping[int, Serialiser] = {1: _canonical}
"""Every serialisation hashes were ever made by; none is removed while objects may carry it."""

VERSION = 1
"""The serialisation new hashes are made by."""


def content_hash(
    value: Json, version: int = VERSION, serialisers: Mapping[int, Serialiser] = SERIALISERS
) -> str:
    """Return the hash of a value: 16 signs fit for labels and names, the version first."""
    body = f"spinney/{version}\n".encode() + serialisers[version](value)
    number = int.from_bytes(hashlib.sha256(body).digest(), "big")
    signs = []
    for _ in range(_LENGTH):
        number, sign = divmod(number, len(_ALPHABET))
        signs.append(_ALPHABET[sign])
    return _VERSION_SIGNS[version - 1] + "".join(signs)


def version_of(stored: str) -> int | None:
    """Return the version a hash was made by, None if it is none of ours."""
    if len(stored) != _LENGTH + 1 or stored[0] not in _VERSION_SIGNS:
        return None
    return _VERSION_SIGNS.index(stored[0]) + 1


def is_hash_of(
    stored: str, value: Json, serialisers: Mapping[int, Serialiser] = SERIALISERS
) -> bool:
    """Whether a stored hash, of whatever version, is that of a value."""
    version = version_of(stored)
    if version is None or version not in serialisers:
        return False
    return content_hash(value, version, serialisers) == stored
