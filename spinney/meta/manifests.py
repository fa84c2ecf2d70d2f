"""Manifests: what a user writes, as documents; several in a text, YAML or JSON, as kubectl reads.

A text is split at its document markers before anything is parsed, so that what is wrong with one
document leaves the others readable. What scalars mean is told in `meta/scalars.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from spinney.meta import complaints, composing, scalars
from spinney.meta.composing import Composed
from spinney.meta.documents import DEPTH_MAX, Document, Json
from spinney.meta.errors import DecodeError, FieldError
from spinney.meta.tokens import NotJson, Tokens

DOCUMENT_BYTES_MAX = 3 * 1024 * 1024
"""How large one document may be; a text of several may be larger."""

_BOM = b"\xef\xbb\xbf"
_MARKER = re.compile(rb"(?:---|\.\.\.)(?<![^\r\n]...)(?=[ \t\r\n]|\Z)")
_DIRECTIVES = re.compile(rb"(?:(?:[ \t]*+(?:#[^\r\n]*+)?|%[^\r\n]*+)(?:\r\n|\r|\n))++")
_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
_LEAD = re.compile(rf"(?:(?:[ \t\r\n]++|[#%][^\r\n]*+)*+---(?=[ \t\r\n]|\Z))?+{_BLANK.pattern}")
_JSON_BLANK = re.compile(r"[ \t\r\n]*+")
_JSON_START = re.compile(r'[\[{][ \t\r\n]*+["\[{}\]0-9-]')
_TO_BRACKET = re.compile(r'[^][{}"]*+(?:"(?:[^"\\\n]++|\\.)*+"[^][{}"]*+)*+([][{}])')
_NEXT_VALUE = re.compile(r"\n(?=[{\[])")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class Manifest:
    """One document of a text, or what kept it from being read, with the lines of its fields."""

    __slots__ = ("_compose", "_composed", "document", "duplicates", "error", "line")

    def __init__(
        self,
        *,
        line: int,
        document: Json = None,
        error: DecodeError | None = None,
        duplicates: tuple[FieldError, ...] = (),
        compose: Callable[[], Composed] | None = None,
    ) -> None:
        """Hold a document that begins at a line; `compose` makes it anew, with lines."""
        self.line = line
        self.document = document
        self.error = error
        self.duplicates = duplicates
        self._compose = compose
        self._composed: Composed | None = None

    def line_of(self, path: str) -> int:
        """Return the line, from 1, of a field, or of the nearest thing above it that is there."""
        if self._composed is None and self._compose is not None:
            self._composed = self._compose()
        found = self._composed.line_of(path) if self._composed is not None else 0
        return found or self.line


def load(data: bytes) -> Iterator[Manifest]:
    """Yield the documents of a text in order; those that hold nothing but comments are left out.

    Raises nothing: a document that cannot be read comes with its error in place of its value.
    """
    if data[:4].count(0) >= 2 or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield _refused("the text is UTF-16 or UTF-32, or binary: save it as UTF-8", 1)
        return
    for piece, line in _pieces(data.removeprefix(_BOM)):
        try:
            text = piece.decode()
        except UnicodeDecodeError as error:
            yield _not_utf8(error, line)
        else:
            yield from _documents(text, line)


def load_json(body: bytes) -> Manifest:
    """Return the one document of a body that must be JSON; what is wrong comes as its error."""
    try:
        text = body.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        return _not_utf8(error, 1)
    start = _after(_JSON_BLANK, text, 0)
    line = 1 + text.count("\n", 0, start)
    if _is_too_large(text, start, len(text)):
        return _too_large(line)
    if text[start : start + 1] not in ("{", "["):
        return _json_slowly(text, start, line)[0]
    manifest, end = _json_value(text, start, line)
    rest = _after(_JSON_BLANK, text, end)
    if manifest.error is None and rest < len(text):
        found = composing.shown(text[rest:])
        return _refused(f"not JSON: {found} follows the value", 1 + text.count("\n", 0, rest))
    return manifest


def _refused(message: str, line: int) -> Manifest:
    return Manifest(line=line, error=DecodeError(message, line=line))


def _not_utf8(error: UnicodeDecodeError, line: int) -> Manifest:
    at = error.start
    message = f"byte 0x{error.object[at]:02x} is not UTF-8: save the text as UTF-8"
    return _refused(message, line + _breaks(error.object[:at]))


def _is_too_large(text: str, start: int, end: int) -> bool:
    size = end - start
    if size <= DOCUMENT_BYTES_MAX < 4 * size and not text.isascii():
        size = len(text[start:end].encode())
    return size > DOCUMENT_BYTES_MAX


def _too_large(line: int) -> Manifest:
    most = DOCUMENT_BYTES_MAX // 1024 // 1024
    return _refused(f"document is larger than {most} MiB: split it, or move data out of it", line)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that fits everywhere ends."""
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _breaks(data: bytes) -> int:
    return data.count(b"\n") + (data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0)


def _pieces(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield what stands between document markers, with its first line.

    A `---` opens a piece and belongs to it, as do directives above it; a `...` ends one.
    """
    start, line, may_direct = 0, 1, True
    for marker in _MARKER.finditer(data):
        piece = data[start : marker.start()]
        is_end = marker[0] == b"..."
        if may_direct and not is_end and b"%" in piece and _DIRECTIVES.fullmatch(piece):
            may_direct = False
            continue
        yield piece, line
        start, line = marker.start(), line + _breaks(piece)
        if is_end:
            start = marker.end()
        may_direct = is_end
    yield data[start:], line


def _documents(text: str, line: int) -> Iterator[Manifest]:
    """Yield the document of one piece, or the JSON values in it one after the other."""
    start = _after(_LEAD, text, 0)
    if start == len(text):
        return
    first = line + _breaks(text[:start].encode())
    if text[start] not in "{[":
        yield _yaml_document(text, line, first)
        return
    manifest, end = _json_value(text, start, first)
    if isinstance(manifest.error, NotJson):
        other = _yaml_document(text, line, first)
        if other.error is None or not _JSON_START.match(text, start):
            yield other
            return
    yield manifest
    line = first
    while (at := _after(_BLANK, text, end)) < len(text):
        line += text.count("\n", start, at)
        start = at
        manifest, end = _json_value(text, start, line)
        yield manifest


def _yaml_document(text: str, line: int, first: int) -> Manifest:
    if _is_too_large(text, 0, len(text)):
        return _too_large(first)

    def again() -> Composed:
        return composing.compose(complaints.events(text, line), line, with_lines=True)

    try:
        composed = composing.compose(complaints.events(text, line), line)
    except DecodeError as error:
        return Manifest(line=first, error=error)
    return Manifest(
        line=first, document=composed.value, duplicates=composed.duplicates, compose=again
    )


def _json_value(text: str, start: int, line: int) -> tuple[Manifest, int]:
    """Read one JSON value that is a list or an object, and tell where the next may begin."""
    end, is_closed = _extent(text, start)
    if _is_too_large(text, start, end):
        return _too_large(line), end
    if is_closed:
        try:
            value, read = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            read = 0
        has_half = text.find("\\u", start, end) >= 0 and _HALF_PAIR.search(text, start, end)
        if read == end and not has_half:
            return Manifest(line=line, document=value, compose=_again(text, start, line)), end
    manifest, read = _json_slowly(text, start, line)
    return manifest, end if manifest.error is not None else read


def _json_slowly(text: str, start: int, line: int) -> tuple[Manifest, int]:
    tokens = Tokens(text, start, line)
    try:
        composed = composing.compose(tokens.next_event, line)
    except DecodeError as error:
        return Manifest(line=line, error=error), len(text)
    manifest = Manifest(
        line=line,
        document=composed.value,
        duplicates=composed.duplicates,
        compose=_again(text, start, line),
    )
    return manifest, tokens.end


def _again(text: str, start: int, line: int) -> Callable[[], Composed]:
    return lambda: composing.compose(Tokens(text, start, line).next_event, line, with_lines=True)


def _extent(text: str, start: int) -> tuple[int, bool]:
    """Return where a JSON value ends, and whether it is closed there, not too deep nor too large.

    Where it is not, it ends where the next line begins with a bracket.
    """
    depth, end = 0, start
    while match := _TO_BRACKET.match(text, end):
        end = match.end()
        depth += 1 if match[1] in "{[" else -1
        if depth == 0:
            return end, True
        if depth > DEPTH_MAX or end - start > DOCUMENT_BYTES_MAX:
            break
    is_large = end - start > DOCUMENT_BYTES_MAX
    following = _NEXT_VALUE.search(text, end if is_large else start + 1)
    return (len(text) if following is None else following.end()), False


def _object(pairs: list[tuple[str, Json]]) -> Document:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=scalars.json_integer,
    parse_float=scalars.json_float,
    parse_constant=_constant,
)
