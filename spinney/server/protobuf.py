"""Protobuf bodies as documents: what typed kubectl commands and Go operators send.

A body is four magic bytes and an envelope with the kind and the object. What fields an object has
stands in `messages.json` (see `tools/protobuf.py`); a field it does not know is passed over, as a
server passes over what a newer client says. Nothing is ever encoded: replies are JSON.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import msgspec

from spinney.meta import durations, times
from spinney.meta.documents import DEPTH_MAX, Document, Json
from spinney.meta.errors import DecodeError

MAGIC = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Raw: TypeAlias = "int | bytes"


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One field of a message, as `messages.json` has it."""

    number: int
    name: str
    type: str
    flags: str

    @property
    def is_omitted_when_empty(self) -> bool:
        """Whether JSON leaves it out where it is empty."""
        return "o" in self.flags


class _Tables(msgspec.Struct, frozen=True):
    version: str
    kinds: dict[str, str]
    messages: dict[str, tuple[Field, ...]]


@functools.cache
def _tables() -> _Tables:
    with open(f"{__file__.rpartition('/')[0]}/messages.json", "rb") as file:
        return msgspec.json.decode(file.read(), type=_Tables)


@functools.cache
def _fields(message: str) -> Mapping[int, Field]:
    return {field.number: field for field in _tables().messages[message]}


def knows(api_version: str, kind: str) -> bool:
    """Whether objects of a kind can be read from protobuf."""
    return f"{api_version}/{kind}" in _tables().kinds


def decode(body: bytes, api_version: str = "", kind: str = "") -> Document:
    """Return the object in a body; raises DecodeError saying what is wrong with it.

    The kind is the one the body names; where it names none, the one given.
    """
    if not body.startswith(MAGIC):
        raise DecodeError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"{list(MAGIC)}".replace(",", "")
        )
    envelope = {number: value for number, _, value in _walk(memoryview(body)[4:])}
    named = {
        number: value for number, _, value in _walk(memoryview(_as_bytes(envelope.get(1, b""))))
    }
    api_version = _as_text(named.get(1, b"")) or api_version
    kind = _as_text(named.get(2, b"")) or kind
    if _as_text(envelope.get(3, b"")):
        raise DecodeError("the object within the protobuf body must not be encoded once more")
    message = _tables().kinds.get(f"{api_version}/{kind}")
    if message is None:
        raise DecodeError(
            f'no kind "{kind}" of "{api_version}" can be read from protobuf: send JSON'
        )
    found = _object(memoryview(_as_bytes(envelope.get(2, b""))), message, 1)
    return {"kind": kind, "apiVersion": api_version, **found}


def _walk(data: memoryview) -> Iterator[tuple[int, int, Raw]]:
    """Yield the fields of a message: number, wire type, value."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Raw
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if size > end - at:
                raise DecodeError("a protobuf field ends beyond its message")
            value, at = bytes(data[at : at + size]), at + size
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            if size > end - at:
                raise DecodeError("a protobuf field ends beyond its message")
            value, at = bytes(data[at : at + size]), at + size
        else:
            raise DecodeError(f"a protobuf field has a wire type of {wire}, which there is not")
        if number == 0:
            raise DecodeError("a protobuf field has the number 0, which there is not")
        yield number, wire, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DecodeError("a protobuf number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _as_bytes(value: Raw) -> bytes:
    if isinstance(value, bytes):
        return value
    raise DecodeError("a protobuf field holds a number where bytes are expected")


def _as_text(value: Raw) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise DecodeError("a protobuf string is not UTF-8") from error


def _as_signed(value: Raw) -> int:
    if not isinstance(value, int):
        raise DecodeError("a protobuf field holds bytes where a number is expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def _as_number(value: Raw) -> float:
    if isinstance(value, int) or len(value) not in (4, 8):
        raise DecodeError("a protobuf field holds no floating-point number")
    number: float = struct.unpack("<d" if len(value) == 8 else "<f", value)[0]
    if number != number or number in (float("inf"), float("-inf")):
        raise DecodeError("a protobuf field holds a number JSON cannot hold")
    return number


def _object(data: memoryview, message: str, depth: int) -> Document:
    if depth > DEPTH_MAX:
        raise DecodeError(f"the object nests more than {DEPTH_MAX} deep")
    fields = _fields(message)
    found: Document = {}
    for number, wire, raw in _walk(data):
        field = fields.get(number)
        if field is None:
            continue
        if "m" in field.flags:
            _put_entry(found, field, _as_bytes(raw), depth)
        elif "r" in field.flags:
            _append(found, field, wire, raw, depth)
        else:
            value = _value(field.type, raw, depth)
            if "i" in field.flags and isinstance(value, dict):
                found.update(value)
            else:
                found[field.name] = value
    return _spelled(found, fields)


def _spelled(found: Document, fields: Mapping[int, Field]) -> Document:
    """Return an object as JSON has it: without what is empty and left out then."""
    omitted = {field.name for field in fields.values() if field.is_omitted_when_empty}
    return {
        name: value
        for name, value in found.items()
        if value is not None and not (name in omitted and value in ("", 0, False, [], {}))
    }


def _put_entry(found: Document, field: Field, entry: bytes, depth: int) -> None:
    key, value = "", _EMPTY.get(field.type, {})
    for number, _, raw in _walk(memoryview(entry)):
        if number == 1:
            key = _as_text(raw)
        elif number == 2:
            value = _value(field.type, raw, depth)
    entries = found.setdefault(field.name, {})
    assert isinstance(entries, dict)
    entries[key] = value


_EMPTY: Mapping[str, Json] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "bool": False}


def _append(found: Document, field: Field, wire: int, raw: Raw, depth: int) -> None:
    items = found.setdefault(field.name, [])
    assert isinstance(items, list)
    if wire == _BYTES and field.type in ("int32", "int64", "bool"):
        data, at = memoryview(_as_bytes(raw)), 0
        while at < len(data):
            number, at = _varint(data, at)
            items.append(_value(field.type, number, depth))
    else:
        items.append(_value(field.type, raw, depth))


def _value(type_: str, raw: Raw, depth: int) -> Json:
    scalar = _SCALARS.get(type_)
    if scalar is not None:
        return scalar(raw)
    data = memoryview(_as_bytes(raw))
    if type_.startswith("="):
        return _WELL_KNOWN[type_[1:]](data, depth)
    found = _object(data, type_, depth + 1)
    return found.get("items", []) if type_.startswith("*") else found


_SCALARS: Mapping[str, Callable[[Raw], Json]] = {
    "string": _as_text,
    "bytes": lambda raw: base64.b64encode(_as_bytes(raw)).decode(),
    "bool": lambda raw: bool(_as_signed(raw)),
    "int32": _as_signed,
    "int64": _as_signed,
    "double": _as_number,
    "float": _as_number,
}


def _instant(data: memoryview) -> datetime | None:
    seconds = nanos = 0
    for number, _, raw in _walk(data):
        if number == 1:
            seconds = _as_signed(raw)
        elif number == 2:
            nanos = _as_signed(raw)
    if not seconds and not nanos:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            seconds=seconds, microseconds=nanos // 1000
        )
    except OverflowError as error:
        raise DecodeError("a protobuf time is beyond the years 1 to 9999") from error


def _time(data: memoryview, _depth: int) -> Json:
    instant = _instant(data)
    return None if instant is None else times.format_time(instant)


def _micro_time(data: memoryview, _depth: int) -> Json:
    instant = _instant(data)
    return None if instant is None else times.format_micro_time(instant)


def _duration(data: memoryview, _depth: int) -> Json:
    nanos = 0
    for number, _, raw in _walk(data):
        if number == 1:
            nanos = _as_signed(raw)
    return durations.format_duration(timedelta(microseconds=nanos // 1000))


def _quantity(data: memoryview, _depth: int) -> Json:
    text = "0"
    for number, _, raw in _walk(data):
        if number == 1:
            text = _as_text(raw)
    return text


def _int_or_string(data: memoryview, _depth: int) -> Json:
    kind, number, text = 0, 0, ""
    for field, _, raw in _walk(data):
        if field == 1:
            kind = _as_signed(raw)
        elif field == 2:
            number = _as_signed(raw)
        elif field == 3:
            text = _as_text(raw)
    return text if kind == 1 else number


def _raw(data: memoryview, _depth: int) -> Json:
    body = b""
    for number, _, raw in _walk(data):
        if number == 1:
            body = _as_bytes(raw)
    if not body:
        return None
    try:
        value: Json = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DecodeError(f"a protobuf field that holds JSON: {error}") from error
    return value


def _schema_or(bare: str) -> Callable[[memoryview, int], Json]:
    """Return how to read what is a schema, or a truth value, or a list of something."""

    def read(data: memoryview, depth: int) -> Json:
        schema: Json = None
        others: list[Json] = []
        allows = False
        for number, _, raw in _walk(data):
            if (number == 1) != (bare == "bool"):
                schema = _object(memoryview(_as_bytes(raw)), "JSONSchemaProps", depth + 1)
            elif bare == "bool":
                allows = bool(_as_signed(raw))
            else:
                others.append(_value(bare, raw, depth))
        if schema is not None:
            return schema
        return allows if bare == "bool" else others

    return read


_WELL_KNOWN: Mapping[str, Callable[[memoryview, int], Json]] = {
    "time": _time,
    "microtime": _micro_time,
    "duration": _duration,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "raw": _raw,
    "schemaorbool": _schema_or("bool"),
    "schemaorarray": _schema_or("JSONSchemaProps"),
    "schemaorstrings": _schema_or("string"),
}
