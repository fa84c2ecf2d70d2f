"""Cursors: paths, typed reads, faults; they walk anything."""

import pytest
from hypothesis import given

from spinney.meta import shapes
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Json
from tests.meta.values import ANY_JSON

DOCUMENT: Json = {"spec": {"items": [{"n": 1}, 2], "wait": "4h", "on": True, "tags": ["a", 1]}}


def test_a_cursor_knows_its_path() -> None:
    spec = Cursor(DOCUMENT)["spec"]
    assert spec["items"].path == "spec.items"
    assert [item.path for item in spec["items"]] == ["spec.items[0]", "spec.items[1]"]
    assert spec.entry("a.b/c").path == "spec[a.b/c]"
    assert [(key, below.path) for key, below in Cursor({"a": 1}, "labels").entries()] == [
        ("a", "labels[a]")
    ]
    assert Cursor(DOCUMENT).at("spec", "wait").path == "spec.wait"


def test_a_value_of_another_type_reads_as_none() -> None:
    spec = Cursor(DOCUMENT)["spec"]
    assert (spec["on"].boolean(), spec["on"].integer(), spec["on"].string()) == (True, None, None)
    assert str(spec["wait"].duration()) == "4:00:00"
    assert spec["on"].duration() is None
    assert spec["tags"].strings() == ("a",)
    assert [item["n"].integer() for item in spec["items"]] == [1, None]
    assert not spec["missing"]["deeper"]
    assert list(spec["wait"]) == []
    assert spec["wait"].object() is None


def test_faults_stand_where_the_cursor_does() -> None:
    wait = Cursor(DOCUMENT).at("spec", "wait")
    assert list(
        map(
            str,
            [
                wait.required("why"),
                wait.invalid("must be short"),
                wait.ill_typed("must be a list"),
                wait.duplicate(),
                wait.not_found("no such thing"),
                wait.not_supported(["a", "b"]),
                wait.forbidden("may not change"),
            ],
        )
    ) == [
        "spec.wait: Required value: why",
        'spec.wait: Invalid value: "4h": must be short',
        'spec.wait: Invalid value: "4h": must be a list',
        'spec.wait: Duplicate value: "4h"',
        'spec.wait: Not found: "4h": no such thing',
        'spec.wait: Unsupported value: "4h": supported values: "a", "b"',
        "spec.wait: Forbidden: may not change",
    ]


@pytest.mark.law
@given(ANY_JSON)
def test_a_cursor_walks_anything(value: Json) -> None:
    cursor = Cursor(value, "a")
    below = [cursor["a"], cursor.entry("b"), *cursor, *(item for _, item in cursor.entries())]
    for each in (cursor, *below):
        each.string(), each.integer(), each.boolean(), each.object(), each.strings()
        each.duration()
        str(each.invalid("must hold"))
        shapes.steps(each.path)
