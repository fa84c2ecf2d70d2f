"""Records: frozen typed views of documents, and how a field of one is declared.

A field is declared once, with its type, its default and what a reader must know of it::

    replicas: Annotated[int, Field("How many copies of the whole system run.", minimum=0)] = 0

Decoding, the kind's schema, its CRD, `spinney fields` and the reference pages are all made from
that line (`meta/schemas.py` reads it).
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TypeVar, dataclass_transform

import msgspec

from spinney.meta.documents import Document, Json, plain
from spinney.meta.durations import Duration, format_duration, parse_duration
from spinney.meta.errors import DecodeError
from spinney.meta.times import format_time


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class RecordMeta(msgspec.StructMeta):
    """Makes every record keyword-only; msgspec would ask each class to say so itself."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **config: bool | str
    ) -> RecordMeta:
        """Make the class, with `kw_only` unless it says otherwise."""
        config.setdefault("kw_only", True)
        return super().__new__(cls, name, bases, namespace, **config)  # type: ignore[arg-type]


class Record(
    msgspec.Struct,
    metaclass=RecordMeta,
    frozen=True,
    gc=False,
    rename="camel",
    omit_defaults=True,
):
    """A frozen, keyword-only value. In JSON its fields are spelled in camelCase.

    Lists are tuples and maps are `Mapping`s, so nothing below it changes either. Where camelCase
    would lie (`podIP`), the field says its JSON name with `msgspec.field(name=…)`.
    """


class Rule(Record):
    """A CEL rule of a schema: what the API server of a cluster checks by itself."""

    rule: str
    message: str
    field_path: str = ""
    reason: str = "FieldValueInvalid"
    optional_old_self: bool = False


class Field:
    """What a reader must know of one field beyond its type and default. Lives in `Annotated`."""

    __slots__ = (
        "atomic",
        "core",
        "doc",
        "enum",
        "example",
        "format",
        "list_keys",
        "max_length",
        "maximum",
        "min_items",
        "min_length",
        "minimum",
        "ours",
        "pattern",
        "required",
        "set_list",
    )

    def __init__(
        self,
        doc: str,
        *,
        required: bool = False,
        minimum: int | None = None,
        maximum: int | None = None,
        min_length: int | None = None,
        max_length: int | None = None,
        min_items: int | None = None,
        pattern: str = "",
        enum: tuple[str, ...] = (),
        format: str = "",
        list_keys: tuple[str, ...] = (),
        set_list: bool = False,
        atomic: bool = False,
        core: str = "",
        example: str = "",
        ours: bool = False,
    ) -> None:
        """Declare a field.

        `core` names the Kubernetes definition that is its schema; `list_keys` makes a list a map
        by these keys and `set_list` a set, for merging; `ours` marks what Grove does not know.
        """
        self.doc = doc
        self.required = required
        self.minimum = minimum
        self.maximum = maximum
        self.min_length = min_length
        self.max_length = max_length
        self.min_items = min_items
        self.pattern = pattern
        self.enum = enum
        self.format = format
        self.list_keys = list_keys
        self.set_list = set_list
        self.atomic = atomic
        self.core = core
        self.example = example
        self.ours = ours


R = TypeVar("R", bound=Record)


def decode(record: type[R], document: Document) -> R:
    """Return the typed view of a document; unknown fields are passed over.

    Raises DecodeError naming the field where a value is not of its type.
    """
    try:
        return msgspec.convert(document, record, dec_hook=_decode_value)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _translated(error) from error


def decode_bytes(record: type[R], body: bytes) -> R:
    """Return the typed view of a document still in JSON, without building the document."""
    try:
        return msgspec.json.decode(body, type=record, dec_hook=_decode_value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _translated(error) from error


def encode(record: Record) -> Document:
    """Return a record as a document; fields that have their default are left out.

    Instants are written in whole seconds, as nearly all documents hold them.
    """
    body = _encode_json(record)
    if _OTHER_INSTANT.search(body):
        document = _plain(
            msgspec.to_builtins(record, enc_hook=_encode_value, builtin_types=(datetime,))
        )
    else:
        document = _decode_json(body)
    assert isinstance(document, dict)
    return document


_OTHER_INSTANT = re.compile(rb"T\d\d:\d\d:\d\d(?!Z)")
"""An instant that is not written as documents hold it; or a text that looks like one."""


def _plain(value: object) -> Json:
    """Return what msgspec made of a record as JSON: lists for tuples, texts for instants."""
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(below) for below in value]
    return format_time(value) if isinstance(value, datetime) else plain(value)


def _decode_value(wanted: type, value: Json) -> object:
    if wanted is Duration and isinstance(value, str):
        return parse_duration(value)
    raise ValueError(f"Expected `{wanted.__name__}`, got `{type(value).__name__}`")


def _encode_value(value: object) -> Json:
    if isinstance(value, Duration):
        return format_duration(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _translated(error: Exception) -> DecodeError:
    """Turn msgspec's `… - at `$.spec.x`` into our error with a path."""
    text, _, where = str(error).partition(" - at ")
    path = where.strip("`").removeprefix("$").lstrip(".")
    return DecodeError(text, path=path)


_encode_json = msgspec.json.Encoder(enc_hook=_encode_value).encode
_decode_json = msgspec.json.Decoder().decode
