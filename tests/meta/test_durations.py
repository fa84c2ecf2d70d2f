"""Durations in Go's syntax: tables, and laws of coming back."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import durations

SPANS = st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000))


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("4h", timedelta(hours=4)),
        ("1h30m", timedelta(minutes=90)),
        ("0", timedelta()),
        ("0s", timedelta()),
        ("-1.5h", timedelta(minutes=-90)),
        ("+1s", timedelta(seconds=1)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("1m1m", timedelta(minutes=2)),
        ("1500us", timedelta(microseconds=1500)),
        ("1500µs", timedelta(microseconds=1500)),
        ("999ns", timedelta()),
        ("-999ns", timedelta()),
    ],
)
def test_go_durations_are_read(text: str, span: timedelta) -> None:
    assert durations.parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must be a duration such as"),
        ("-", "must be a duration such as"),
        ("90", 'must be a duration with a unit, such as "90s"'),
        ("1d", "days are not a unit"),
        ("1h 30m", "units: h, m, s"),
        ("1x", "must be a duration"),
        (".s", "must be a duration"),
        ("٣s", "must be a duration"),
        ("293y", "must be a duration"),
        ("9999999h", "must be shorter than 292 years"),
        ("1" * 70 + "s", "must be a duration"),
    ],
)
def test_an_error_says_what_must_hold(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"^must be") as raised:
        durations.parse_duration(text)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (5400, "1h30m"),
        (3601.5, "1h1.5s"),
        (0.0015, "1500us"),
        (0.2, "200ms"),
        (-60, "-1m"),
    ],
)
def test_the_shortest_text_is_written(seconds: float, text: str) -> None:
    assert durations.format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.law
@given(SPANS)
def test_durations_come_back(span: timedelta) -> None:
    assert durations.parse_duration(durations.format_duration(span)) == span


@pytest.mark.law
@given(st.text(max_size=80) | st.text("0123456789.hmsunµ-+", max_size=20))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        found = durations.parse_duration(text)
    except ValueError as error:
        told = str(error)
    else:
        told = "must be"
        assert durations.parse_duration(durations.format_duration(found)) == found
    assert told.startswith("must be")
