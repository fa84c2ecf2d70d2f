"""SPDY/3.1: frames as bytes and back. Pure; what a session makes of them is `multiplexing`'s.

kubectl up to 1.30 speaks it for exec, attach and port-forward, and every later one puts it inside
a WebSocket for port-forward. A connection carries streams: each begins with headers, has data in
both directions, and each direction ends by itself. Headers are compressed with one zlib stream a
direction, primed with a dictionary, so that all header blocks must be read in order, none left out.

Windows are not kept: the clients there are keep none, and TCP holds back who sends too fast.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spinney.meta.records import Record

VERSION = 3
CONTROL_BYTES_MAX = 64 * 1024
"""How long a frame that is no data may be: headers are short."""

HEADER_BYTES_MAX = 64 * 1024
"""How long the headers of one frame may be once they are unpacked."""

HEADERS_MAX = 64
DATA_BYTES_MAX = 64 * 1024
"""In frames of at most this size data is sent; those that come may be of any."""

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS = 1, 2, 3, 4, 6, 7, 8
FIN = 1

PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL, INTERNAL_ERROR = 1, 2, 3, 5, 6
"""Why a stream is reset."""

_STREAM_MASK = 0x7FFFFFFF
_CONTROL = 0x80000000 | VERSION << 16
_HEAD = struct.Struct(">II")
_NUMBER = struct.Struct(">I")

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status "
    "200_OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


DICTIONARY = (
    b"".join(_NUMBER.pack(len(word)) + word.replace("_", " ").encode() for word in _WORDS.split())
    + _REST.encode()
)
"""What both sides have seen before the first header, as the protocol fixes it."""

Headers = Mapping[str, str]


class Garbled(Exception):
    """The peer: what came is no SPDY/3.1, and nothing after it can be understood."""


class Opened(Record):
    """A stream begins."""

    stream: int
    headers: Headers
    is_last: bool = False
    """Whether nothing more will come in it."""


class Answered(Record):
    """A stream is accepted, or more is said of it."""

    stream: int
    headers: Headers
    is_last: bool = False


class Data(Record):
    """Some bytes of a stream; a long frame comes in pieces."""

    stream: int
    data: bytes
    is_last: bool = False


class Reset(Record):
    """A stream ends in both directions, at once."""

    stream: int
    status: int


class Ping(Record):
    """To be sent back as it is."""

    number: int


class GoneAway(Record):
    """No more streams will begin."""

    last_stream: int


Frame: TypeAlias = Opened | Answered | Data | Reset | Ping | GoneAway


class Decoder:
    """Takes bytes as they come, gives frames."""

    def __init__(self) -> None:
        """Begin at the first byte of a connection."""
        self._waiting = bytearray()
        self._inflater = zlib.decompressobj(zdict=DICTIONARY)
        self._left = 0
        self._stream = 0
        self._is_last = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are whole with these bytes; raises Garbled."""
        self._waiting += data
        while True:
            if self._left:
                if not self._waiting:
                    return
                yield self._piece()
                continue
            if len(self._waiting) < _HEAD.size:
                return
            first, second = _HEAD.unpack_from(self._waiting)
            length = second & 0xFFFFFF
            if not first & 0x80000000:
                del self._waiting[: _HEAD.size]
                if not first:
                    raise Garbled("data of stream 0, which is none")
                self._stream, self._left, self._is_last = first, length, bool(second >> 24 & FIN)
                if not length:
                    yield Data(stream=first, data=b"", is_last=self._is_last)
                continue
            if first >> 16 & 0x7FFF != VERSION:
                raise Garbled(f"version {first >> 16 & 0x7FFF} of SPDY, expected {VERSION}")
            if length > CONTROL_BYTES_MAX:
                raise Garbled(f"a control frame of {length} bytes, more than {CONTROL_BYTES_MAX}")
            if len(self._waiting) < _HEAD.size + length:
                return
            body = bytes(self._waiting[_HEAD.size : _HEAD.size + length])
            del self._waiting[: _HEAD.size + length]
            frame = self._control(first & 0xFFFF, bool(second >> 24 & FIN), body)
            if frame is not None:
                yield frame

    def _piece(self) -> Data:
        data = bytes(self._waiting[: self._left])
        del self._waiting[: len(data)]
        self._left -= len(data)
        return Data(stream=self._stream, data=data, is_last=self._is_last and not self._left)

    def _control(self, kind: int, is_last: bool, body: bytes) -> Frame | None:
        """Return what a control frame says; None for what needs no answer: windows, settings."""
        if kind == SYN_STREAM:
            headers = self._headers(body[10:])
            return Opened(stream=_stream(body, 10), headers=headers, is_last=is_last)
        if kind in (SYN_REPLY, HEADERS):
            headers = self._headers(body[4:])
            return Answered(stream=_stream(body, 4), headers=headers, is_last=is_last)
        if kind == RST_STREAM:
            return Reset(stream=_stream(body, 8), status=_number(body, 4))
        if kind == PING:
            return Ping(number=_number(body, 0))
        if kind == GOAWAY:
            return GoneAway(last_stream=_number(body, 0) & _STREAM_MASK)
        return None

    def _headers(self, packed: bytes) -> Headers:
        try:
            block = self._inflater.decompress(packed, HEADER_BYTES_MAX + 1)
        except zlib.error as error:
            raise Garbled(f"headers that cannot be unpacked: {error}") from error
        if len(block) > HEADER_BYTES_MAX:
            raise Garbled(f"headers of more than {HEADER_BYTES_MAX} bytes")
        count = _number(block, 0)
        if count > HEADERS_MAX:
            raise Garbled(f"{count} headers, more than {HEADERS_MAX}")
        found: dict[str, str] = {}
        at = _NUMBER.size
        for _ in range(count):
            name, at = _text(block, at)
            value, at = _text(block, at)
            found[name.lower()] = value
        return found


def _number(body: bytes, at: int) -> int:
    if len(body) < at + _NUMBER.size:
        raise Garbled("a frame that ends too soon")
    number: int = _NUMBER.unpack_from(body, at)[0]
    return number


def _stream(body: bytes, length_min: int) -> int:
    if len(body) < length_min:
        raise Garbled("a frame that ends too soon")
    stream = _number(body, 0) & _STREAM_MASK
    if not stream:
        raise Garbled("stream 0, which is none")
    return stream


def _text(block: bytes, at: int) -> tuple[str, int]:
    length = _number(block, at)
    at += _NUMBER.size
    if len(block) < at + length:
        raise Garbled("a header that ends too soon")
    return block[at : at + length].decode("latin-1"), at + length


class Encoder:
    """Makes frames into bytes; what carries headers must be sent in the order it was made."""

    def __init__(self) -> None:
        """Begin at the first byte of a connection."""
        self._deflater = zlib.compressobj(zdict=DICTIONARY)

    def opened(self, stream: int, headers: Headers, *, is_last: bool = False) -> bytes:
        """Return what begins a stream."""
        body = struct.pack(">IIH", stream, 0, 0) + self._headers(headers)
        return _control(SYN_STREAM, body, FIN if is_last else 0)

    def answered(self, stream: int, headers: Headers, *, is_last: bool = False) -> bytes:
        """Return what accepts a stream."""
        body = _NUMBER.pack(stream) + self._headers(headers)
        return _control(SYN_REPLY, body, FIN if is_last else 0)

    def _headers(self, headers: Headers) -> bytes:
        parts = [_NUMBER.pack(len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1"), value.encode("latin-1")):
                parts += [_NUMBER.pack(len(text)), text]
        packed = self._deflater.compress(b"".join(parts))
        return packed + self._deflater.flush(zlib.Z_SYNC_FLUSH)


def data(stream: int, content: bytes, *, is_last: bool = False) -> bytes:
    """Return bytes of a stream, at most DATA_BYTES_MAX of them, as a frame."""
    return _HEAD.pack(stream, (FIN << 24 if is_last else 0) | len(content)) + content


def reset(stream: int, status: int) -> bytes:
    """Return what ends a stream at once."""
    return _control(RST_STREAM, _HEAD.pack(stream, status))


def ping(number: int) -> bytes:
    """Return a ping, or the answer to one."""
    return _control(PING, _NUMBER.pack(number))


def gone_away(last_stream: int) -> bytes:
    """Return what says that no more streams are taken."""
    return _control(GOAWAY, _HEAD.pack(last_stream, 0))


def _control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return _HEAD.pack(_CONTROL | kind, flags << 24 | len(body)) + body
