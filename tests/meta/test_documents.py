"""Documents: reading and changing copies."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import documents
from spinney.meta.documents import Json
from tests.meta.values import ANY_JSON, CLEAN_TEXTS, JSON, nested

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)

POD: documents.Document = {"spec": {"containers": [{"name": "a"}], "nodeName": "n", "n": 1}}


def test_values_are_found_by_path() -> None:
    assert documents.value_at(POD, ("spec", "containers", 0, "name")) == "a"
    for path in (("spec", 0), ("spec", "containers", 1), ("spec", "containers", -1), ("a", "b")):
        assert documents.value_at(POD, path) is None
    assert documents.string_at(POD, ("spec", "nodeName")) == "n"
    assert documents.string_at(POD, ("spec", "n")) == ""
    assert documents.object_at(POD, ("spec", "n")) == {}
    assert documents.list_at(POD, ("spec", "containers")) == [{"name": "a"}]
    assert documents.list_at(POD, ("spec",)) == []
    assert documents.strings({"a": "b", "c": 1}) == {"a": "b"}
    assert documents.strings("a") == {}


@pytest.mark.law
@given(OBJECTS, PATHS, JSON)
def test_setting_a_value_changes_a_copy(document: dict, path: list[str], value: Json) -> None:
    before = copy.deepcopy(document)
    changed = documents.with_value(document, path, value)
    assert document == before
    assert documents.value_at(changed, path) is value
    for key in document.keys() - {path[0]}:
        assert changed[key] is document[key]
    assert documents.value_at(documents.without(changed, path), path) is None


@pytest.mark.law
@given(OBJECTS, PATHS)
def test_removing_what_is_not_there_changes_nothing(document: dict, path: list[str]) -> None:
    before = copy.deepcopy(document)
    once = documents.without(document, path)
    assert documents.without(once, path) is once
    assert document == before


@pytest.mark.law
@given(OBJECTS)
def test_leaves_make_the_document_again(document: dict) -> None:
    for path, leaf in documents.leaves(document):
        assert documents.value_at(document, path) is leaf or path == ()
    assert len(dict(documents.leaves(document))) == len(list(documents.leaves(document)))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ([1], [True], False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": [1, {}]}, {"a": [1, {}]}, True),
        (None, False, False),
        ("1", 1, False),
    ],
)
def test_sameness_is_that_of_json(one: Json, other: Json, is_same: bool) -> None:
    assert documents.same(one, other) is is_same
    assert documents.same(other, one) is is_same


@pytest.mark.law
@given(st.dictionaries(CLEAN_TEXTS, JSON))
def test_a_plain_copy_is_the_same(value: dict) -> None:
    assert documents.same(documents.plain(value), value)
    assert documents.same(documents.plain(nested(documents.DEPTH_MAX)), nested(100))


def test_what_is_not_json_is_not_made_plain() -> None:
    with pytest.raises(TypeError, match="not JSON: bytes"):
        documents.plain({"a": (b"",)})


@pytest.mark.law
@given(ANY_JSON)
def test_an_integer_is_no_boolean(value: Json) -> None:
    assert documents.is_integer(value) == (type(value) is int)
