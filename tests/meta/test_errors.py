"""Errors: wording, statuses there and back, values that no JSON text can hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import errors
from spinney.meta.documents import Json
from spinney.meta.errors import ApiError, DecodeError, FieldError
from tests.meta.values import ANY_JSON, nested

CLASSES = [each for each in errors._API_ERRORS if each is not errors.Invalid]


def test_a_fault_reads_as_kubectl_prints_it() -> None:
    fault = FieldError(
        path="spec.replicas",
        reason=errors.INVALID,
        message="must be greater than or equal to 0",
        found=-1,
    )
    assert str(fault) == "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    missing = FieldError(path="spec.name", reason=errors.REQUIRED, message="")
    assert str(missing) == "spec.name: Required value"


def test_invalid_gathers_all_faults() -> None:
    faults = [FieldError(path=path, reason=errors.REQUIRED, message="") for path in "ab"]
    found = errors.Invalid(faults, group="grove.io", kind="PodClique", name="x")
    assert found.message == (
        'PodClique.grove.io "x" is invalid: [a: Required value, b: Required value]'
    )
    assert found.to_status()["details"] == {
        "name": "x",
        "group": "grove.io",
        "kind": "PodClique",
        "causes": [
            {"reason": errors.REQUIRED, "message": "Required value", "field": path} for path in "ab"
        ],
    }
    assert isinstance(ApiError.from_status(found.to_status()), errors.Invalid)


@pytest.mark.parametrize(
    ("conflicts", "message"),
    [
        ([("a", ".x")], 'Apply failed with 1 conflict: conflict with "a": .x'),
        (
            [("a", ".x"), ("a", ".y")],
            'Apply failed with 2 conflicts: conflicts with "a":\n- .x\n- .y',
        ),
        (
            [("b", ".x"), ("a", ".y")],
            'Apply failed with 2 conflicts: conflicts with "a":\n- .y\nconflicts with "b":\n- .x',
        ),
        ([('"\\', ".x")], 'Apply failed with 1 conflict: conflict with "\\"\\\\": .x'),
    ],
)
def test_apply_conflicts_name_managers(conflicts: list[tuple[str, str]], message: str) -> None:
    found = errors.ApplyConflict(
        (errors.Holder(manager=manager), path) for manager, path in conflicts
    )
    assert found.message == message
    assert found.managers == tuple(sorted({manager for manager, _ in conflicts}))
    again = ApiError.from_status(found.to_status())
    assert isinstance(again, errors.ApplyConflict)
    assert again.managers == found.managers


def test_an_updater_that_holds_a_field_is_told_with_where_and_how_it_wrote() -> None:
    holder = errors.Holder(manager="hpa", subresource="scale", api_version="apps/v1")
    found = errors.ApplyConflict([(holder, ".spec.replicas")])
    assert found.message == (
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" '
        "using apps/v1: .spec.replicas"
    )
    assert found.managers == ("hpa",)


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        ({}, errors.Internal),
        ({"code": 409}, errors.AlreadyExists),
        ({"reason": "Conflict", "code": 409}, errors.Conflict),
        ({"reason": "NeverHeard", "code": 404}, errors.NotFound),
        ({"code": 418, "details": [], "message": 1}, errors.Internal),
        ({"details": {"causes": [1, {"reason": "FieldManagerConflict"}]}}, errors.ApplyConflict),
    ],
)
def test_a_foreign_status_is_understood(status: dict, error_class: type) -> None:
    assert type(ApiError.from_status(status)) is error_class


def test_decode_errors_say_where() -> None:
    assert str(DecodeError("no", path="a.b", line=3)) == "line 3: a.b: no"
    assert str(DecodeError("no")) == "no"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ("\ud800", '"?"'),
        (2**70, str(2**70)),
        (["\ud800"], "a list"),
        ({"a": "\ud800"}, "an object"),
        pytest.param(10**5000, "an integer of 16610 bits", id="huge"),
        (float("nan"), "null"),
        ("x" * 200, '"' + "x" * 119 + "… (200 characters)"),
        (nested(3), '{"a":{"a":{}}}'),
    ],
)
def test_any_value_can_be_shown(value: Json, text: str) -> None:
    assert errors.shown(value) == text


@pytest.mark.law
@given(ANY_JSON)
def test_what_is_shown_is_short_and_can_be_written(value: Json) -> None:
    fault = FieldError(path="a", reason=errors.INVALID, message="b", found=value)
    assert len(str(fault).encode()) < 1000


@pytest.mark.law
@given(
    st.sampled_from(CLASSES),
    st.text(max_size=20),
    st.dictionaries(st.sampled_from(["name", "kind", "uid"]), st.text(max_size=5)),
    st.none() | st.integers(0, 100),
)
def test_a_status_gives_the_same_error_back(
    error_class: type[ApiError], message: str, details: dict, retry_after: int | None
) -> None:
    first = error_class(message, details=details, retry_after_seconds=retry_after)
    again = ApiError.from_status(first.to_status())
    assert type(again) is error_class
    assert again.to_status() == first.to_status()
    assert again.retry_after_seconds == retry_after


@pytest.mark.law
@given(st.dictionaries(st.sampled_from(["code", "reason", "details", "message"]), ANY_JSON))
def test_any_status_gives_an_error(status: dict) -> None:
    assert isinstance(ApiError.from_status(status), ApiError)
