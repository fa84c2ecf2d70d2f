"""Streams over one link: each keeps its order, and what nobody reads holds its sender back."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.ports import Window
from spinney.server import spdy
from spinney.server.inboxes import Inbox, Sizes
from spinney.server.multiplexing import Session

SECONDS_MAX = 10


class Pipe:
    """A link whose other end is the test."""

    def __init__(self):
        self.incoming = asyncio.Queue()
        self.sent = []
        self.is_cut = False
        self.taken = 0

    async def read(self):
        data = await self.incoming.get()
        self.taken += len(data)
        return data

    async def write(self, data):
        self.sent.append(data)

    def abort(self):
        self.is_cut = True
        self.incoming.put_nowait(b"")

    def frames(self):
        return list(spdy.Decoder().feed(b"".join(self.sent)))


def run(story):
    """Run a story with a session over a pipe."""

    async def main():
        pipe = Pipe()
        session = Session(pipe, SECONDS_MAX)
        running = asyncio.create_task(session.run())
        async with asyncio.timeout(SECONDS_MAX):
            await story(pipe, session, spdy.Encoder())
            pipe.incoming.put_nowait(b"")
            await running
        assert len(session) == 0

    asyncio.run(main())


@pytest.mark.law
@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=50)), max_size=40),
    st.integers(1, 200),
)
def test_every_stream_keeps_its_bytes_in_order(writes, size):
    async def story(pipe, session, encoder):
        data = b"".join(encoder.opened(2 * n + 1, {"number": str(n)}) for n in range(4))
        data += b"".join(spdy.data(2 * n + 1, part) for n, part in writes)
        data += b"".join(spdy.data(2 * n + 1, b"", is_last=True) for n in range(4))
        for at in range(0, len(data), size):
            pipe.incoming.put_nowait(data[at : at + size])
        for number in range(4):
            stream = await session.accept()
            assert stream.headers == {"number": str(number)}
            found = b""
            while part := await stream.read():
                found += part
            assert found == b"".join(part for n, part in writes if n == number)
            await stream.end()

    run(story)


def test_what_nobody_reads_holds_the_link_back():
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}) + encoder.opened(3, {}))
        for _ in range(100):
            pipe.incoming.put_nowait(spdy.data(1, b"x" * 50_000))
        idle, other = await session.accept(), await session.accept()
        while True:
            before = pipe.taken
            for _ in range(5):
                await asyncio.sleep(0)
            if pipe.taken == before:
                break
        assert pipe.taken < 500_000
        total = 0
        while total < 100 * 50_000:
            total += len(await idle.read())
        pipe.incoming.put_nowait(spdy.data(3, b"now"))
        assert await other.read() == b"now"

    run(story)


def test_a_stream_that_is_reset_lets_the_link_go_on():
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}) + encoder.opened(3, {}))
        idle, other = await session.accept(), await session.accept()
        for _ in range(20):
            pipe.incoming.put_nowait(spdy.data(1, b"x" * 50_000))
        pipe.incoming.put_nowait(spdy.data(3, b"now"))
        await idle.reset()
        assert await other.read() == b"now"
        assert await idle.read() == b""
        with pytest.raises(ConnectionResetError):
            await idle.write(b"late")
        assert spdy.Reset(stream=1, status=spdy.CANCEL) in pipe.frames()
        await idle.reset()

    run(story)


def test_long_writes_go_in_frames_of_a_size():
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}))
        stream = await session.accept()
        await stream.write(b"y" * 200_000)
        await stream.end()
        await stream.end()
        assert max(map(len, pipe.sent)) <= spdy.DATA_BYTES_MAX + 8
        found = [frame for frame in pipe.frames() if isinstance(frame, spdy.Data)]
        assert sum(len(frame.data) for frame in found) == 200_000
        assert [frame.is_last for frame in found][-1:] == [True]

    run(story)


def test_a_stream_that_begins_with_its_end_has_nothing_to_read():
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}, is_last=True))
        stream = await session.accept()
        assert await stream.read() == b""

    run(story)


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_used_again_or_not_the_clients_ends_the_session(number):
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}) + encoder.opened(number, {}))
        assert await session.accept() is not None
        assert await session.accept() is None
        assert pipe.is_cut

    run(story)


def test_what_comes_for_streams_that_are_over_is_passed_over():
    async def story(pipe, session, encoder):
        pipe.incoming.put_nowait(encoder.opened(1, {}) + spdy.reset(1, spdy.CANCEL))
        stream = await session.accept()
        late = spdy.data(1, b"late") + spdy.reset(1, 5) + spdy.gone_away(1) + spdy.ping(2)
        pipe.incoming.put_nowait(late + encoder.answered(1, {}, is_last=True))
        pipe.incoming.put_nowait(encoder.opened(3, {}))
        assert (await session.accept()).number == 3
        assert stream.gone.is_set()
        assert await stream.read() == b""

    run(story)


def test_a_client_that_reads_nothing_is_cut():
    class Stuck(Pipe):
        async def write(self, _data):
            await asyncio.Event().wait()

    async def main():
        pipe = Stuck()
        session = Session(pipe, 0.01)
        running = asyncio.create_task(session.run())
        pipe.incoming.put_nowait(spdy.Encoder().opened(1, {}))
        async with asyncio.timeout(SECONDS_MAX):
            await running
        assert pipe.is_cut

    asyncio.run(main())


@pytest.mark.law
@given(st.lists(st.binary(max_size=30)), st.integers(1, 50))
def test_an_inbox_holds_no_more_than_its_bound_and_one(parts, most):
    async def main():
        inbox, held = Inbox(most), 0

        async def fill():
            nonlocal held
            for part in parts:
                await inbox.put(part)
                held += len(part)
                assert held < most + 30
            inbox.end()
            await inbox.put(b"too late")

        filling = asyncio.create_task(fill())
        found = b""
        while part := await inbox.get():
            found, held = found + part, held - len(part)
        await filling
        assert found == b"".join(parts)

    asyncio.run(main())


def test_a_dropped_inbox_lets_its_sender_go_on():
    async def main():
        inbox = Inbox(1)
        await inbox.put(b"waits")
        sending = asyncio.create_task(inbox.put(b"more"))
        await asyncio.sleep(0)
        assert not sending.done()
        inbox.drop()
        await sending
        await inbox.put(b"still")
        assert await inbox.get() == b""

    asyncio.run(main())


def test_who_waits_for_a_size_learns_of_the_next():
    async def main():
        sizes = Sizes()
        waiting = asyncio.create_task(sizes.get())
        await asyncio.sleep(0)
        sizes.put(Window(columns=1, rows=2))
        assert await waiting == Window(columns=1, rows=2)
        waiting = asyncio.create_task(sizes.get())
        await asyncio.sleep(0)
        sizes.end()
        assert await waiting is None

    asyncio.run(main())
