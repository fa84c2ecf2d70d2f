"""Conditions: times of transition, order, sameness."""

from datetime import UTC, datetime, timedelta

from spinney.meta import conditions, records
from spinney.meta.conditions import Condition

NOON = datetime(2026, 11, 19, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def _set(old: tuple[Condition, ...], status: str, message: str = "", now: datetime = NOON):
    return conditions.set_condition(old, "Available", status, "Because", message, now, 3)


def test_the_time_of_transition_moves_only_with_the_status() -> None:
    first = _set((), "False")
    told = _set(first, "False", "still", LATER)
    turned = _set(told, "True", "still", LATER)
    whole = NOON.replace(microsecond=0)
    assert [each[0].last_transition_time - whole for each in (first, told, turned)] == [
        timedelta(),
        timedelta(),
        timedelta(minutes=5),
    ]


def test_the_same_conditions_come_back_when_nothing_changed() -> None:
    first = _set((), "True")
    assert _set(first, "True", now=LATER) is first


def test_order_is_kept() -> None:
    three = tuple(Condition(type=name) for name in ("A", "Available", "B"))
    after = _set(three, "True")
    assert [each.type for each in after] == ["A", "Available", "B"]
    assert _set(after[:1], "True")[1].type == "Available"


def test_a_condition_is_found_by_its_type() -> None:
    found = _set((), "True")
    assert conditions.is_true(found, "Available")
    assert not conditions.is_true(found, "Other")
    assert conditions.find(found, "Other") is None
    assert not conditions.is_true(_set((), "Unknown"), "Available")


def test_a_condition_is_written_as_kubernetes_writes_it() -> None:
    assert records.encode(_set((), "True", "all of it")[0]) == {
        "type": "Available",
        "status": "True",
        "reason": "Because",
        "message": "all of it",
        "lastTransitionTime": "2026-11-19T12:00:00Z",
        "observedGeneration": 3,
    }
