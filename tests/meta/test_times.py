"""Times: RFC 3339 there and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import times

INSTANTS = st.integers(-(3 * 10**16), 2 * 10**17).map(
    lambda microseconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-19T08:30:00Z", datetime(2026, 11, 19, 8, 30, tzinfo=UTC)),
        ("2026-11-19t08:30:00z", datetime(2026, 11, 19, 8, 30, tzinfo=UTC)),
        ("2026-11-19T08:30:00+02:00", datetime(2026, 11, 19, 6, 30, tzinfo=UTC)),
        ("2026-11-19T08:30:00.5Z", datetime(2026, 11, 19, 8, 30, 0, 500_000, tzinfo=UTC)),
        ("2026-11-19T08:30:00.123456789Z", datetime(2026, 11, 19, 8, 30, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_rfc_3339_is_read(text: str, instant: datetime) -> None:
    assert times.parse_time(text) == instant


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-19",
        "2026-11-19T08:30:00",
        "2026-02-30T08:30:00Z",
        "2026-11-19T25:30:00Z",
        "2026-11-19T08:30:00+25:00",
        "0001-01-01T00:00:00+01:00",
        "2026-11-19T08:30:00Z\n",
        "٢٠26-11-19T08:30:00Z",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be a time"):
        times.parse_time(text)


@pytest.mark.law
@given(INSTANTS, st.integers(-14, 14))
def test_times_come_back(instant: datetime, hours: int) -> None:
    elsewhere = instant.astimezone(timezone(timedelta(hours=hours)))
    assert times.parse_time(times.format_micro_time(elsewhere)) == instant
    assert times.parse_time(times.format_time(elsewhere)) == instant.replace(microsecond=0)


@pytest.mark.law
@given(
    st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
)
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    try:
        found = times.parse_time(text)
    except ValueError as error:
        told = str(error)
    else:
        told = "must be a time"
        assert found.tzinfo is UTC
    assert told.startswith("must be a time")
