"""SPDY's frames: what is written is read again, and nothing that comes breaks the reader."""

from __future__ import annotations

import contextlib
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.server import spdy

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
HEADERS = st.dictionaries(NAMES, st.text(st.characters(max_codepoint=255), max_size=40), max_size=8)
NUMBERS = st.integers(1, 0x7FFFFFFF)
FRAMES = st.one_of(
    st.builds(spdy.Opened, stream=NUMBERS, headers=HEADERS, is_last=st.booleans()),
    st.builds(spdy.Answered, stream=NUMBERS, headers=HEADERS, is_last=st.booleans()),
    st.builds(spdy.Data, stream=NUMBERS, data=st.binary(max_size=2000), is_last=st.booleans()),
    st.builds(spdy.Reset, stream=NUMBERS, status=st.integers(1, 11)),
    st.builds(spdy.Ping, number=st.integers(0, 2**32 - 1)),
    st.builds(spdy.GoneAway, last_stream=st.integers(0, 0x7FFFFFFF)),
)


def written(frames):
    encoder, parts = spdy.Encoder(), []
    for frame in frames:
        if isinstance(frame, spdy.Opened):
            parts.append(encoder.opened(frame.stream, frame.headers, is_last=frame.is_last))
        elif isinstance(frame, spdy.Answered):
            parts.append(encoder.answered(frame.stream, frame.headers, is_last=frame.is_last))
        elif isinstance(frame, spdy.Data):
            parts.append(spdy.data(frame.stream, frame.data, is_last=frame.is_last))
        elif isinstance(frame, spdy.Reset):
            parts.append(spdy.reset(frame.stream, frame.status))
        elif isinstance(frame, spdy.Ping):
            parts.append(spdy.ping(frame.number))
        else:
            parts.append(spdy.gone_away(frame.last_stream))
    return b"".join(parts)


def joined(frames):
    """Return frames with the pieces of one stream's neighbouring data put together."""
    made = []
    for frame in frames:
        before = made[-1] if made else None
        if (
            isinstance(frame, spdy.Data)
            and isinstance(before, spdy.Data)
            and before.stream == frame.stream
            and not before.is_last
        ):
            whole = before.data + frame.data
            made[-1] = spdy.Data(stream=frame.stream, data=whole, is_last=frame.is_last)
        else:
            made.append(frame)
    return made


@pytest.mark.law
@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(1, 60), max_size=80))
def test_what_is_written_is_read_however_it_is_cut(frames, cuts):
    data, decoder, found = written(frames), spdy.Decoder(), []
    for size in [*cuts, len(data) + 1]:
        piece, data = data[:size], data[size:]
        found += decoder.feed(piece)
    assert joined(found) == joined(frames)


@pytest.mark.law
@given(st.lists(FRAMES, max_size=3), st.binary(max_size=300))
def test_garbage_is_found_out_or_harmless(frames, garbage):
    decoder = spdy.Decoder()
    assert joined(decoder.feed(written(frames))) == joined(frames)
    with contextlib.suppress(spdy.Garbled):
        for frame in decoder.feed(garbage):
            assert len(getattr(frame, "data", b"")) <= len(garbage)


@pytest.mark.law
@given(st.lists(FRAMES, min_size=1, max_size=4), st.data())
def test_a_bit_that_flipped_never_breaks_the_reader(frames, drawn):
    data = bytearray(written(frames))
    at = drawn.draw(st.integers(0, len(data) * 8 - 1))
    data[at // 8] ^= 1 << at % 8
    with contextlib.suppress(spdy.Garbled):
        list(spdy.Decoder().feed(bytes(data)))


def test_the_dictionary_is_the_protocols():
    """Its checksum stands in the first header block of every SPDY/3 client there is."""
    assert zlib.adler32(spdy.DICTIONARY) == 0xE3C6A7C2
    assert spdy.Encoder().opened(1, {})[18:24] == bytes.fromhex("78bbe3c6a7c2")


def test_headers_that_unpack_to_very_many_are_refused():
    packer = zlib.compressobj(zdict=spdy.DICTIONARY)
    bomb = packer.compress(b"\0" * 500_000) + packer.flush(zlib.Z_SYNC_FLUSH)
    body = struct.pack(">IIH", 1, 0, 0) + bomb
    frame = struct.pack(">II", 0x80030001, len(body)) + body
    with pytest.raises(spdy.Garbled, match="headers of more than"):
        list(spdy.Decoder().feed(frame))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (struct.pack(">II", 0x80020001, 0), "version 2 of SPDY"),
        (struct.pack(">II", 0x80030001, 0xFFFFFF), "a control frame of 16777215 bytes"),
        (struct.pack(">II", 0x80030006, 0), "ends too soon"),
        (struct.pack(">II", 0x80030003, 4) + b"\0\0\0\1", "ends too soon"),
        (struct.pack(">II", 0x80030001, 10) + b"\0\0\0\1" + b"\0" * 6, "ends too soon"),
        (struct.pack(">II", 0x80030003, 8) + b"\0" * 8, "stream 0"),
        (struct.pack(">II", 0, 1) + b"x", "stream 0"),
        (struct.pack(">II", 0x80030001, 14) + b"\0\0\0\1" + b"\xff" * 10, "cannot be unpacked"),
    ],
)
def test_what_is_no_frame_is_named(frame, why):
    with pytest.raises(spdy.Garbled, match=why):
        list(spdy.Decoder().feed(frame))


def test_settings_and_windows_need_no_answer():
    settings = struct.pack(">III", 0x80030004, 4, 0)
    window = struct.pack(">IIII", 0x80030009, 8, 1, 65536)
    assert list(spdy.Decoder().feed(settings + window + spdy.ping(1))) == [spdy.Ping(number=1)]
