"""The log of a world: a file of limited size, a line a message, its values as `key=value`."""

from __future__ import annotations

import logging
import logging.handlers
import os
import time
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path

import msgspec

BYTES_MAX = 10 * 1024 * 1024
FILES_KEPT = 2
"""Older ones, beside the one that is written: `log.1`, `log.2`."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Formatter(logging.Formatter):
    """Writes `2026-11-19T08:30:00.123Z INFO spinney.app listening address=…`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s%(fields)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time in UTC, to the millisecond."""
        text = time.strftime(datefmt or "%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{text}.{int(record.msecs):03d}Z"

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        given = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        about = given.pop("fields", None)
        if isinstance(about, Mapping):
            given |= about
        record.fields = "".join(f" {key}={_shown(value)}" for key, value in given.items())
        return super().format(record)


def _shown(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable() and not any(letter in text for letter in ' "=')
    return text if is_plain and text else msgspec.json.encode(text).decode()


class _File(logging.handlers.RotatingFileHandler):
    """A file that its owner alone may read, each anew."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(
            self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        return open(descriptor, "a", encoding=self.encoding)


def begin(file: Path) -> None:
    """Log to a file, for this whole process; its owner alone may read it."""
    handler = _File(file, maxBytes=BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8")
    handler.setFormatter(_Formatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
