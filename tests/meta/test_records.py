"""Records: encoding, decoding, and where a decode error points."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import records
from spinney.meta.durations import Duration
from spinney.meta.errors import DecodeError
from spinney.meta.records import Field, Record
from tests.meta.values import ANY_JSON


class Part(Record):
    name: str
    pod_ip: str = msgspec.field(default="", name="podIP")


class Whole(Record):
    replica_count: Annotated[int, Field("How many.", minimum=0)] = 1
    wait: Duration = Duration()
    since: datetime | None = None
    parts: tuple[Part, ...] = ()
    labels: Mapping[str, str] = {}


PARTS = st.builds(Part, name=st.text(max_size=5), pod_ip=st.text(max_size=5))
WHOLES = st.builds(
    Whole,
    replica_count=st.integers(-(2**31), 2**31),
    wait=st.timedeltas(timedelta(days=-9000), timedelta(days=9000)).map(
        lambda span: Duration(microseconds=span // timedelta(microseconds=1))
    ),
    since=st.none()
    | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=0)),
    parts=st.lists(PARTS, max_size=3).map(tuple),
    labels=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)


def test_a_record_is_frozen_and_keyword_only() -> None:
    with pytest.raises(TypeError):
        Part("a")
    with pytest.raises(AttributeError):
        Part(name="a").name = "b"


def test_a_record_is_written_in_camel_case_without_defaults() -> None:
    record = Whole(replica_count=2, wait=Duration(hours=4), parts=(Part(name="a", pod_ip="::1"),))
    assert records.encode(record) == {
        "replicaCount": 2,
        "wait": "4h",
        "parts": [{"name": "a", "podIP": "::1"}],
    }
    assert records.encode(Whole()) == {}


def test_instants_are_written_in_whole_seconds() -> None:
    instant = datetime(2026, 11, 19, 8, 30, 1, 999_999, tzinfo=UTC)
    assert records.encode(Whole(since=instant)) == {"since": "2026-11-19T08:30:01Z"}


def test_unknown_fields_are_passed_over() -> None:
    assert records.decode(Part, {"name": "a", "x": [1]}) == Part(name="a")


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"replicaCount": "1"}, "replicaCount"),
        ({"parts": [{}]}, "parts[0]"),
        ({"parts": [{"name": "a", "podIP": 1}]}, "parts[0].podIP"),
        ({"wait": "4"}, "wait"),
        ({"since": "now"}, "since"),
    ],
)
def test_a_decode_error_names_the_field(document: dict, path: str) -> None:
    with pytest.raises(DecodeError) as raised:
        records.decode(Whole, document)
    assert raised.value.path == path
    with pytest.raises(DecodeError) as raised:
        records.decode_bytes(Whole, msgspec.json.encode(document))
    assert raised.value.path == path


@pytest.mark.law
@given(WHOLES)
def test_records_come_back(record: Whole) -> None:
    document = records.encode(record)
    assert records.decode(Whole, document) == record
    assert records.decode_bytes(Whole, msgspec.json.encode(document)) == record


@pytest.mark.law
@given(st.dictionaries(st.sampled_from(["replicaCount", "wait", "since", "parts"]), ANY_JSON))
def test_any_document_decodes_or_says_why(document: dict) -> None:
    try:
        found = records.decode(Whole, document)
    except DecodeError:
        return
    assert isinstance(found, Whole)


@pytest.mark.law
@given(st.binary(max_size=30))
def test_any_bytes_decode_or_say_why(body: bytes) -> None:
    for text in (body, b'{"wait":' + body + b"}", b'{"x":' + b"[" * 100_000):
        try:
            records.decode_bytes(Whole, text)
        except DecodeError:
            continue
