"""Field sets. Laws: they are sets; `fieldsV1` and back gives the same set."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given
from made import SCHEMA, hostile, hostile_objects, json_values, objects, outcome

from spinney.meta.errors import BadRequest
from spinney.meta.patches.fields import NONE, FieldSet, fields_of, path_text
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.schemas import ANY

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"a"}', 'v:"x"', "v:1", "i:0"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=6)


@pytest.mark.law
@given(PATH_SETS, PATH_SETS)
def test_is_a_set_of_paths(one, other):
    ours, theirs = FieldSet.of(one), FieldSet.of(other)
    assert set(ours.paths()) == one
    assert set((ours | theirs).paths()) == one | other
    assert set((ours & theirs).paths()) == one & other
    assert set((ours - theirs).paths()) == one - other
    assert (ours == theirs) is (one == other)
    assert bool(ours) is bool(one)
    assert all((path in ours) is (path in one) for path in one | other)
    assert (ours | ours, ours & ours, ours - ours) == (ours, ours, NONE)
    assert hash(ours | theirs) == hash(theirs | ours)


@pytest.mark.law
@given(PATH_SETS)
def test_json_form_gives_the_same_set(paths):
    fields = FieldSet.of(paths)
    assert FieldSet.from_json(fields.to_json()) == fields


@pytest.mark.law
@given(objects())
def test_json_form_of_a_document_gives_the_same_set(document):
    fields = fields_of(with_metadata(SCHEMA), document)
    assert FieldSet.from_json(fields.to_json()) == fields
    assert all(path_text(path) for path in fields.paths())


@pytest.mark.law
@given(hostile_objects(), hostile())
def test_refuses_anything_else_with_our_own_errors(document, told):
    for schema in (SCHEMA, ANY, None):
        fields = fields_of(schema, document)
        assert all(path_text(path) for path in fields.paths())
    outcome(FieldSet.from_json, told)


@pytest.mark.law
@given(json_values())
def test_without_a_schema_objects_are_merged_and_lists_are_not(value):
    for path in fields_of(None, value).paths():
        assert all(element.startswith("f:") for element in path)


def test_tells_what_a_document_sets():
    document = {
        "metadata": {"labels": {"a": "x"}, "finalizers": ["f"], "ownerReferences": [{"uid": "1"}]},
        "spec": {
            "replicas": 3,
            "items": [{"name": "a", "args": ["1"], "ports": [{"number": 80}], "flags": []}],
            "selector": {"a": "x"},
            "data": {},
            "unknown": {"list": [1, 2], "null": None},
        },
    }
    item = {
        ".": {},
        "f:name": {},
        "f:args": {},
        "f:ports": {'k:{"number":80,"protocol":"TCP"}': {".": {}, "f:number": {}}},
    }
    assert fields_of(with_metadata(SCHEMA), document).to_json() == {
        "f:metadata": {
            "f:labels": {"f:a": {}},
            "f:finalizers": {'v:"f"': {}},
            "f:ownerReferences": {'k:{"uid":"1"}': {}},
        },
        "f:spec": {
            "f:replicas": {},
            "f:items": {'k:{"name":"a"}': item},
            "f:selector": {},
            "f:data": {},
            "f:unknown": {".": {}, "f:list": {}},
        },
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:spec", "f:items", 'k:{"name":"a"}', "f:image"), '.spec.items[name="a"].image'),
        (("f:ports", 'k:{"number":80,"protocol":"TCP"}'), '.ports[number=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
        (("f:list", "i:3"), ".list[3]"),
        (("f:annotations", "f:a.b/c"), ".annotations.a.b/c"),
    ],
)
def test_shows_paths_as_kubectl_does(path, text):
    assert path_text(path) == text


def test_reads_keys_in_any_order_and_passes_over_sorts_nobody_knows():
    told = {'k:{"b":1,"a":2.0}': {}, "z:new": {"f:x": {}}, "f:a": {".": {}, "f:b": {}}}
    fields = FieldSet.from_json(told)
    assert set(fields.paths()) == {('k:{"a":2,"b":1}',), ("f:a",), ("f:a", "f:b")}


@pytest.mark.parametrize("told", [[], {"f:a": 1}, {"x": {}}, {"k:[]": {}}, {"v:": {}}, {"i:x": {}}])
def test_refuses_what_is_no_fields_v1(told):
    with pytest.raises(BadRequest, match="fieldsV1"):
        FieldSet.from_json(told)
