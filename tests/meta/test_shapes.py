"""Shapes: defaults and faults, on any document."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import errors, shapes
from spinney.meta.documents import DEPTH_MAX, Document, Json, same
from spinney.meta.durations import Duration
from spinney.meta.quantities import IntOrString
from spinney.meta.records import Field, Record
from spinney.meta.schemas import Schema, schema_of
from spinney.meta.shapes import Shape
from tests.meta.values import ANY_JSON, nested


class Item(Record):
    name: Annotated[str, Field("", required=True)]
    port: Annotated[int, Field("", minimum=1, maximum=65535)] = 80
    surge: Annotated[IntOrString, Field("")] = "25%"


class Thing(Record):
    kind: Annotated[str, Field("", enum=("A", "B"))] = "A"
    label: Annotated[str, Field("", pattern="^[a-z]+$", min_length=2, max_length=4)] = ""
    on: bool = True
    ratio: float | None = None
    wait: Annotated[Duration, Field("")] = Duration()
    since: datetime | None = None
    data: Annotated[str, Field("", format="byte")] = ""
    cpu: Annotated[str, Field("", format="quantity")] = ""
    items: Annotated[tuple[Item, ...], Field("", list_keys=("name",), min_items=1)] = ()
    names: Annotated[tuple[str, ...], Field("", set_list=True)] = ()
    labels: Mapping[str, str] = {}
    one: Item | None = None


SCHEMA = schema_of(Thing, lambda name: Schema(open=True, type_name=name))
SHAPE = Shape(SCHEMA)
FIELDS = [*SCHEMA.properties, "unknown", "a.b", "]"]
DOCUMENTS = st.dictionaries(
    st.sampled_from(FIELDS),
    ANY_JSON
    | st.lists(
        st.dictionaries(st.sampled_from(["name", "port", "surge", "x"]), ANY_JSON), max_size=3
    )
    | st.dictionaries(st.sampled_from(["name", "port", "1", "9" * 5000]), ANY_JSON),
)


def told(document: Document) -> list[str]:
    return list(map(str, SHAPE.faults(document)))


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"kind": "C"}, 'kind: Unsupported value: "C": supported values: "A", "B"'),
        ({"kind": True}, 'kind: Invalid value: true: must be a string: write "true" in quotes'),
        ({"label": "a"}, 'label: Invalid value: "a": must have at least 2 characters'),
        ({"label": "aaaaa"}, 'label: Invalid value: "aaaaa": must have at most 4 characters'),
        ({"label": "A-"}, 'label: Invalid value: "A-": must match ^[a-z]+$'),
        ({"on": "yes"}, 'on: Invalid value: "yes": must be true or false'),
        ({"ratio": True}, "ratio: Invalid value: true: must be a number"),
        ({"wait": "4"}, 'wait: Invalid value: "4": must be a duration with a unit'),
        ({"since": "x"}, 'since: Invalid value: "x": must be a time such as'),
        ({"data": "é"}, 'data: Invalid value: "é": must be base64'),
        ({"items": []}, "items: Required value: must have at least one item"),
        ({"items": {}}, "items: Invalid value: {}: must be a list"),
        ({"items": [{"port": 1}]}, "items[0].name: Required value"),
        ({"items": [{"name": "a", "port": 0}]}, "items[0].port: Invalid value: 0: must be greater"),
        ({"items": [{"name": "a"}, {"name": "a"}]}, 'items[1].name: Duplicate value: "a"'),
        ({"items": [{"name": "a", "surge": 1.5}]}, "must be an integer or a string"),
        ({"names": ["a", "b", "a"]}, 'names[2]: Duplicate value: "a"'),
        ({"labels": {"a.b/c": 1}}, "labels[a.b/c]: Invalid value: 1: must be a string"),
        ({"one": 1}, "one: Invalid value: 1: must be an object"),
        ({"knid": 1}, 'knid: Unknown field: did you mean "kind"?'),
        ({"zzzzzz": 1}, "zzzzzz: Unknown field: the kind has no such field"),
    ],
)
def test_a_fault_of_shape_is_told(document: Document, fault: str) -> None:
    (only,) = told(document)
    assert only.startswith(fault) or fault in only


@pytest.mark.parametrize(
    ("value", "what"),
    [("4Gi", None), (8, None), (1.5, 'write "1.5" in quotes'), ("x", "must be"), (True, "must be")],
)
def test_quantities_are_strings_or_integers(value: Json, what: str | None) -> None:
    shape = Shape(Schema(type="object", properties={"cpu": Schema(format="quantity")}))
    found = [str(fault) for fault in shape.faults({"cpu": value})]
    assert (what is None and not found) or what in found[0]


def test_defaults_are_filled_at_every_depth() -> None:
    filled = SHAPE.fill_defaults({"items": [{"name": "a", "port": None}], "on": None, "one": {}})
    assert filled == {
        "kind": "A",
        "on": True,
        "items": [{"name": "a", "port": 80, "surge": "25%"}],
        "one": {"port": 80, "surge": "25%"},
    }


def test_a_whole_float_becomes_an_integer() -> None:
    assert same(SHAPE.fill_defaults({"one": {"port": 3.0}})["one"]["port"], 3)
    assert same(SHAPE.fill_defaults({"one": {"port": 3.5}})["one"]["port"], 3.5)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", ()),
        ("spec.items[0].name", ("spec", "items", 0, "name")),
        ("labels[app.kubernetes.io/name]", ("labels", "app.kubernetes.io/name")),
        ("labels[٣]", ("labels", "٣")),
        ("labels[" + "9" * 5000 + "]", ("labels", "9" * 5000)),
    ],
    ids=["empty", "list", "label", "digit", "digits"],
)
def test_paths_are_read_in_steps(path: str, steps: tuple) -> None:
    assert shapes.steps(path) == steps


def test_faults_are_sorted_by_field_and_told_once() -> None:
    faults = SHAPE.faults({"x": 1, "one": 2, "items": [{}, {}], "kind": 1}) * 2
    paths = [fault.path for fault in shapes.in_field_order(SCHEMA, faults)]
    assert paths == ["kind", "items[0].name", "items[1].name", "one", "x"]


@pytest.mark.law
@given(DOCUMENTS)
def test_defaulting_is_idempotent_and_overwrites_nothing(document: Document) -> None:
    filled = SHAPE.fill_defaults(document)
    assert SHAPE.fill_defaults(filled) is filled
    _check_kept(document, filled, SCHEMA)


def _check_kept(old: Json, new: Json, schema: Schema | None) -> None:
    if isinstance(old, dict):
        assert isinstance(new, dict)
        for key, below in old.items():
            if below is not None:
                inner = schema and (schema.properties.get(key) or schema.values)
                _check_kept(below, new[key], inner or None)
    elif isinstance(old, list):
        assert isinstance(new, list)
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            _check_kept(one, other, schema.items if schema else None)
    else:
        assert new == old or old != old


@pytest.mark.law
@given(DOCUMENTS)
def test_faults_of_any_document_can_be_told(document: Document) -> None:
    faults = SHAPE.faults(document)
    for fault in shapes.in_field_order(SCHEMA, faults):
        assert str(fault)
        errors.shown(fault.found).encode()


@pytest.mark.law
@given(ANY_JSON)
def test_any_value_has_a_shape_or_faults(value: Json) -> None:
    for schema in (SCHEMA, *SCHEMA.properties.values(), Schema(format="quantity")):
        shape = Shape(Schema(type="object", properties={"a": schema}))
        document = shape.fill_defaults({"a": value})
        assert all(str(fault) for fault in shape.faults(document))


def test_the_deepest_document_is_walked() -> None:
    assert told({"one": nested(DEPTH_MAX - 1)})
    assert SHAPE.fill_defaults({"labels": nested(DEPTH_MAX - 1)})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("replica", ', did you mean "replicas"?'),
        ("REPLICAS", ', did you mean "replicas"?'),
        ("x", ""),
    ],
)
def test_near_names_are_hinted_at(name: str, hint: str) -> None:
    assert shapes.did_you_mean(name, ["replicas", "template"]) == hint
    assert shapes.did_you_mean("x" * 101, ["x" * 100]) == ""
