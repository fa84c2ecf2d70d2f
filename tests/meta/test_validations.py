"""Validations: the formats of texts, and the words that have no type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import validations
from spinney.meta.documents import Json
from spinney.meta.schemas import Schema
from tests.meta.values import ANY_JSON


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("byte", ("", "YQ=="), ("%", "YQ=")),
        ("cidr", ("10.0.0.0/8", "fd00::/8"), ("10.0.0.0", "10.0.0.0/33")),
        ("date", ("2025-01-31",), ("2025-02-30", "1.1.2025")),
        ("date-time", ("2025-01-31T12:00:00Z",), ("2025-01-31", "12:00")),
        ("duration", ("1h30m", "0", "1d", "1.5s"), ("1", "h", "1y")),
        ("email", ("a@b.c",), ("a", "a b@c")),
        ("hostname", ("a.example.com", "a"), ("-a", "a..b", "a_b")),
        ("ipv4", ("10.0.0.1",), ("::1", "10.0.0.256")),
        ("ipv6", ("::1",), ("10.0.0.1",)),
        ("mac", ("00:00:5e:00:53:01", "00-00-5E-00-53-01"), ("00:00", "00:00-5e:00:53:01")),
        ("password", ("any",), ()),
        ("uri", ("https://a/b", "/a", "s3://b"), ("a", "")),
        ("uuid", ("123e4567-e89b-12d3-a456-426614174000",), ("123",)),
        (
            "uuid4",
            ("123e4567-e89b-42d3-a456-426614174000",),
            ("123e4567-e89b-12d3-a456-426614174000",),
        ),
    ],
)
def test_a_format_takes_and_refuses(form: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    says = validations.FORMATS[form]
    assert [says(text) for text in good] == [""] * len(good)
    assert all(says(text) for text in bad)


def test_no_format_is_both_judged_and_not() -> None:
    assert not set(validations.UNJUDGED) & set(validations.FORMATS)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (Schema(minimum=2), (2, "x", None), (1, 1.5)),
        (Schema(minimum=2, exclusive_minimum=True), (2.5, "x"), (2,)),
        (Schema(maximum=2, exclusive_maximum=True), (1,), (2,)),
        (Schema(max_length=2), ("ab", 1), ("abc",)),
        (Schema(min_length=2), ("ab", 1), ("a",)),
        (Schema(pattern="^a"), ("ab", 1), ("b",)),
        (Schema(enum=("a",)), ("a",), ("b", 1)),
        (Schema(choices=(1, None)), (1, None), (True, "1", 1.5)),
        (Schema(max_items=1), ([1], "ab"), ([1, 2],)),
        (Schema(min_items=1), ([1], ""), ([],)),
        (Schema(min_properties=1), ({"a": 1}, []), ({},)),
        (Schema(max_properties=1), ({"a": 1}, [1, 2]), ({"a": 1, "b": 2},)),
        (Schema(required=("a",)), ({"a": None}, 1), ({},)),
        (Schema(type="integer"), (1, 1.0), (1.5, "1", True)),
        (Schema(type="number"), (1, 1.5), (True, "1")),
        (Schema(items=Schema(minimum=1)), ([1], {"a": 0}), ([0],)),
        (Schema(values=Schema(minimum=1)), ({"a": 1}, [0]), ({"a": 0},)),
        (Schema(multiple_of=0.1), (0.3, 1), (0.35,)),
        (Schema(never=Schema(minimum=1)), (0,), (1,)),
        (Schema(one_of=(Schema(minimum=1), Schema(maximum=1))), (0, 2), (1,)),
        (Schema(any_of=(Schema(minimum=5), Schema(maximum=1))), (0, 6), (3,)),
        (Schema(all_of=(Schema(minimum=1), Schema(maximum=5))), (1, 5), (0, 6)),
    ],
    ids=repr,
)
def test_a_word_says_something_of_values_of_its_type_alone(
    schema: Schema, good: tuple[Json, ...], bad: tuple[Json, ...]
) -> None:
    check = validations.loose(schema)
    assert [validations.faults(check, value) for value in good] == [[]] * len(good)
    for value in bad:
        assert len(validations.faults(check, value)) == 1, value


EVERYTHING = Schema(
    minimum=1,
    maximum=5,
    multiple_of=2,
    pattern="a",
    max_items=1,
    min_properties=1,
    required=("name",),
    choices=(1, "a"),
    items=Schema(enum=("a",)),
    any_of=(Schema(min_length=1), Schema(never=Schema(maximum=2))),
    one_of=(Schema(), Schema(type="string", text_format="ipv4")),
)


@pytest.mark.law
@given(ANY_JSON)
def test_whatever_comes_is_judged(value: Json) -> None:
    for fault in validations.faults(validations.loose(EVERYTHING), value):
        assert str(fault)


@pytest.mark.law
@given(st.floats() | st.integers())
def test_any_number_is_a_multiple_or_not(value: float) -> None:
    for factor in (1, 3, 0.1, 1e-300, 1e300):
        check = validations.loose(Schema(multiple_of=factor))
        assert len(validations.faults(check, value)) <= 1
