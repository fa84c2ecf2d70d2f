"""Logs: a constant message, and what it is about as fields.

    log.info("created", extra=logs.fields(object=ref, controller="podclique"))

One line of JSON a record for machines, one line of words for people. Both name the fields alike.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

import msgspec

from spinney.meta.documents import Document, Json
from spinney.meta.references import Ref
from spinney.meta.times import format_micro_time

LOGGER_NAME: Final = "spinney"
_ATTRIBUTE: Final = "fields"
_encode = msgspec.json.Encoder().encode


def logger(part: str) -> logging.Logger:
    """Return the logger of a part of Spinney: `spinney.engine`."""
    return logging.getLogger(f"{LOGGER_NAME}.{part}")


def fields(**values: object) -> Mapping[str, object]:
    """Return fields as `extra` of a logging call; those that are None or "" are left out."""
    return {_ATTRIBUTE: {key: value for key, value in values.items() if value not in (None, "")}}


def fields_of(record: logging.LogRecord) -> Document:
    """Return what a record is about, as JSON."""
    found = getattr(record, _ATTRIBUTE, None)
    if not isinstance(found, Mapping):
        return {}
    return {str(key): _told(value) for key, value in found.items()}


def _told(value: object) -> Json:
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_told(each) for each in value]
    return str(value)


def _instant(record: logging.LogRecord) -> str:
    return format_micro_time(datetime.fromtimestamp(record.created, tz=UTC))


class JsonFormatter(logging.Formatter):
    """A line of JSON a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        line: Document = {
            "time": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = str(record.exc_info[1])
            line["trace"] = "".join(traceback.format_exception(record.exc_info[1]))
        return _encode(line).decode(errors="replace")


class HumanFormatter(logging.Formatter):
    """A line of words a record: time, level, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own."""
        words = [f"{_instant(record)[11:23]} {record.levelname:<7} {record.getMessage()}"]
        words += [f"{key}={_worded(value)}" for key, value in fields_of(record).items()]
        line = "  ".join(words)
        if record.exc_info and record.exc_info[1] is not None:
            trace = "".join(traceback.format_exception(record.exc_info[1]))
            line = f"{line}\n{trace.rstrip()}"
        return line


def _worded(value: Json) -> str:
    if isinstance(value, str) and value and not any(sign in value for sign in ' "\n='):
        return value
    return _encode(value).decode(errors="replace")


def set_up(stream: TextIO, *, json: bool, level: int = logging.INFO) -> None:
    """Send all of Spinney's log to a stream; calling it again replaces what was set up before."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if json else HumanFormatter())
    root = logging.getLogger(LOGGER_NAME)
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
