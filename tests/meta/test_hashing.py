"""Hashes of content: rule 1.8."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import hashing, metadata
from spinney.meta.documents import Json
from tests.meta.values import JSON


def _with_version_2() -> dict[int, hashing.Serialiser]:
    return {**hashing.SERIALISERS, 2: lambda value: b"two" + hashing.SERIALISERS[1](value)}


@pytest.mark.rule("1.8")
def test_a_hash_does_not_change_between_releases() -> None:
    value: Json = {"b": [1, {"c": ""}], "a": "é", "z": False, "y": 0}
    assert hashing.content_hash(value) == "1662c4fj2cqj2nx2"
    assert hashing.SERIALISERS[1](value) == b'{"a":"\\u00e9","b":[1,{}],"y":0,"z":false}'


@pytest.mark.rule("1.8")
@pytest.mark.parametrize("empty", [None, "", [], {}, {"b": None}, {"b": {"c": []}}])
def test_an_empty_value_is_as_good_as_none(empty: Json) -> None:
    assert hashing.content_hash({"a": 1, "x": empty}) == hashing.content_hash({"a": 1})


@pytest.mark.rule("1.8")
def test_what_differs_has_another_hash() -> None:
    different: list[Json] = [{}, {"a": 0}, {"a": False}, {"a": 1}, {"a": True}, {"a": "1"}]
    different += [{"a": [1, 2]}, {"a": [2, 1]}, {"a": [None]}, {"a": [None, None]}, {"a": 1.5}]
    assert len({hashing.content_hash(value) for value in different}) == len(different)
    assert hashing.content_hash({"a": 1.0}) == hashing.content_hash({"a": 1})


@pytest.mark.rule("1.8")
def test_a_new_serialisation_still_knows_hashes_of_the_old() -> None:
    both = _with_version_2()
    old, new = (hashing.content_hash({"a": 1}, version, both) for version in (1, 2))
    assert old == hashing.content_hash({"a": 1})
    assert old[1:] != new[1:]
    assert (hashing.version_of(old), hashing.version_of(new)) == (1, 2)
    assert hashing.is_hash_of(old, {"a": 1}, both)
    assert hashing.is_hash_of(new, {"a": 1}, both)
    assert not hashing.is_hash_of(old, {"a": 2}, both)
    assert not hashing.is_hash_of(new, {"a": 1}), "an unknown version is not ours to judge"
    for foreign in ("", "5f7b9c", "x" * 16, "0" * 16):
        assert not hashing.is_hash_of(foreign, {"a": 1})


@pytest.mark.law
@pytest.mark.rule("1.8")
@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(value: Json, shuffler: random.Random) -> None:
    stored = hashing.content_hash(value)
    assert hashing.is_hash_of(stored, _shuffled(value, shuffler))
    assert hashing.content_hash(hashing.pruned(value)) == stored
    assert metadata.is_dns_label(stored)
    assert re.fullmatch(r"1[b-df-hj-np-tv-z2-9]{15}", stored)


def _shuffled(value: Json, shuffler: random.Random) -> Json:
    if isinstance(value, dict):
        keys = list(value)
        shuffler.shuffle(keys)
        return {key: _shuffled(value[key], shuffler) for key in keys}
    return [_shuffled(below, shuffler) for below in value] if isinstance(value, list) else value
