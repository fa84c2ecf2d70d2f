"""Replies: answers as status, headers and bytes; errors as the `Status` documents kubectl knows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

import msgspec
import yaml

from spinney.meta.documents import Document, Json
from spinney.meta.errors import ApiError
from spinney.meta.records import Record
from spinney.server import negotiation

GZIP_BYTES_MIN = 128 * 1024
"""Smaller answers are not worth compressing."""

WARNINGS_BYTES_MAX = 4096
"""How much of a reply's headers warnings may take."""

CHUNK_BYTES = 256 * 1024
"""In pieces of about this size large answers are written."""

_GZIP_LEVEL = 1
_encode = msgspec.json.Encoder().encode


class Reply(Record):
    """An answer that is there whole."""

    status: int = 200
    body: bytes = b""
    media: str = negotiation.JSON
    headers: tuple[tuple[str, str], ...] = ()


def encoded(value: Json, media: str = negotiation.JSON) -> bytes:
    """Return a value as bytes of a media type."""
    if media == negotiation.YAML:
        return yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True).encode()
    return _encode(value)


_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def of(
    document: Document,
    *,
    status: int = 200,
    warnings: Iterable[str] = (),
    media: str = negotiation.JSON,
) -> Reply:
    """Return the reply that carries a document."""
    return Reply(
        status=status, body=encoded(document, media), media=media, headers=warned(warnings)
    )


def of_error(error: ApiError) -> Reply:
    """Return the reply that tells of an error."""
    headers: list[tuple[str, str]] = []
    if error.retry_after_seconds is not None:
        headers.append(("Retry-After", str(error.retry_after_seconds)))
    if error.code == 401:
        headers.append(("WWW-Authenticate", 'Bearer realm="spinney"'))
    return Reply(status=error.code, body=_status_bytes(error.to_status()), headers=tuple(headers))


def _status_bytes(status: Document) -> bytes:
    try:
        return _encode(status)
    except (OverflowError, ValueError, RecursionError):
        bare: Document = {
            **status,
            "message": str(status["message"]).encode(errors="replace").decode(),
        }
        bare.pop("details", None)
        return _encode(bare)


def success(details: Document) -> Document:
    """Return the `Status` that says something was done."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def text(body: str, status: int = 200) -> Reply:
    """Return a reply of plain text."""
    return Reply(status=status, body=body.encode(), media="text/plain; charset=utf-8")


def warned(warnings: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return a Warning header for each warning, as many as fit."""
    headers, left = [], WARNINGS_BYTES_MAX
    for warning in dict.fromkeys(warnings):
        line = f'299 - "{_quotable(warning)}"'
        left -= len(line)
        if left < 0:
            break
        headers.append(("Warning", line))
    return tuple(headers)


def _quotable(warning: str) -> str:
    """Return a warning as a header may hold it: on one line, in ASCII, quotes escaped."""
    line = " ".join("".join(c if c.isprintable() else " " for c in warning).split())
    plain = line.replace("\\", "\\\\").replace('"', '\\"')
    return plain.encode("ascii", "replace").decode()


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether a client takes compressed answers."""
    for part in headers.get("Accept-Encoding", "").split(","):
        name, _, quality = part.partition(";")
        if name.strip() == "gzip" and quality.replace(" ", "") not in ("q=0", "q=0.0"):
            return True
    return False


def gzipped(body: bytes) -> bytes:
    """Return bytes compressed."""
    squeeze = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31)
    return squeeze.compress(body) + squeeze.flush()
