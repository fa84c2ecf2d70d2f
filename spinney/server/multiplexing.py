"""Multiplexing: streams of a client over one link, in SPDY/3.1's frames.

The client begins every stream; the server accepts it, reads and writes it, and ends its half. What
a stream's reader leaves unread holds the whole link back once too much of it waits, as TCP would.
"""

from __future__ import annotations

import asyncio
from collections import deque

from spinney.server import spdy
from spinney.server.asking import LOG
from spinney.server.inboxes import Inbox
from spinney.server.links import Link

STREAMS_MAX = 1024
"""How many streams of one link may be open; a client that wants more is refused those."""


class Stream:
    """One stream; fills what `ports.Streams` asks but for its close."""

    def __init__(self, session: Session, number: int, headers: spdy.Headers) -> None:
        """Belong to a session."""
        self.number = number
        self.headers = headers
        self.inbox = Inbox()
        self.gone = asyncio.Event()
        """Set once the stream is cut."""

        self.is_ended_there = False
        self.is_ended_here = False
        self._session = session

    @property
    def is_cut(self) -> bool:
        """Whether both halves are over."""
        return self.is_ended_here and self.is_ended_there

    async def read(self) -> bytes:
        """Return what came next, b"" at the end."""
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        """Send; raises ConnectionResetError once the stream is over."""
        for at in range(0, len(data), spdy.DATA_BYTES_MAX):
            if self.is_ended_here:
                raise ConnectionResetError("the stream has ended")
            part = data[at : at + spdy.DATA_BYTES_MAX]
            await self._session.send(spdy.data(self.number, part))

    async def end(self) -> None:
        """Send nothing more; what comes in is still read."""
        if self.is_ended_here:
            return
        self.is_ended_here = True
        self._session.forget_ended(self)
        await self._session.send(spdy.data(self.number, b"", is_last=True))

    async def reset(self, status: int = spdy.CANCEL) -> None:
        """End both halves at once."""
        if self.is_cut:
            return
        self.cut()
        await self._session.send(spdy.reset(self.number, status))

    def cut(self) -> None:
        """Take it for over, in both directions."""
        self.is_ended_here = self.is_ended_there = True
        self.gone.set()
        self.inbox.drop()
        self._session.forget_ended(self)


class Session:
    """The streams of one link."""

    def __init__(self, link: Link, stall_seconds: float) -> None:
        """Speak over a link, to a client that may read nothing for so long."""
        self._link = link
        self._stall_seconds = stall_seconds
        self._encoder = spdy.Encoder()
        self._decoder = spdy.Decoder()
        self._streams: dict[int, Stream] = {}
        self._opened: deque[Stream] = deque()
        self._came = asyncio.Event()
        self._newest = 0
        self._is_over = False

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    async def accept(self) -> Stream | None:
        """Return the next stream the client begins; None once there will be no other."""
        while not self._opened:
            if self._is_over:
                return None
            self._came.clear()
            await self._came.wait()
        return self._opened.popleft()

    async def run(self) -> None:
        """Read the link until it ends, or what comes is no SPDY."""
        try:
            while data := await self._link.read():
                for frame in self._decoder.feed(data):
                    await self._take(frame)
        except spdy.Garbled as error:
            LOG.info("a client spoke no SPDY and was cut", extra={"reason": error})
            self._link.abort()
        except ConnectionError:
            LOG.debug("a client left")
        finally:
            self._is_over = True
            for stream in list(self._streams.values()):
                stream.cut()
            self._came.set()

    async def send(self, frame: bytes) -> None:
        """Send a frame; a client that reads nothing for too long is cut."""
        try:
            async with asyncio.timeout(self._stall_seconds):
                await self._link.write(frame)
        except TimeoutError as error:
            LOG.info("a client that reads nothing was cut")
            self._link.abort()
            raise ConnectionResetError("the client reads nothing") from error

    async def finish(self) -> None:
        """Say that the session is over; what was sent before still arrives."""
        await self.send(spdy.gone_away(self._newest))

    def forget_ended(self, stream: Stream) -> None:
        """Forget a stream whose halves are both over."""
        if stream.is_cut:
            self._streams.pop(stream.number, None)

    async def _take(self, frame: spdy.Frame) -> None:
        if isinstance(frame, spdy.Data):
            await self._take_data(frame)
        elif isinstance(frame, spdy.Opened):
            await self._take_opened(frame)
        elif isinstance(frame, spdy.Reset):
            if (stream := self._streams.get(frame.stream)) is not None:
                stream.cut()
        elif isinstance(frame, spdy.Ping) and frame.number % 2:
            await self.send(spdy.ping(frame.number))
        elif isinstance(frame, spdy.Answered) and frame.is_last:
            await self._take_data(spdy.Data(stream=frame.stream, data=b"", is_last=True))

    async def _take_data(self, frame: spdy.Data) -> None:
        if frame.stream > self._newest:
            raise spdy.Garbled(f"data of stream {frame.stream}, which never began")
        stream = self._streams.get(frame.stream)
        if stream is None or stream.is_ended_there:
            return
        await stream.inbox.put(frame.data)
        if frame.is_last:
            stream.is_ended_there = True
            stream.inbox.end()
            self.forget_ended(stream)

    async def _take_opened(self, frame: spdy.Opened) -> None:
        if frame.stream % 2 == 0 or frame.stream <= self._newest:
            raise spdy.Garbled(f"stream {frame.stream} after stream {self._newest}")
        self._newest = frame.stream
        if len(self._streams) >= STREAMS_MAX:
            await self.send(spdy.reset(frame.stream, spdy.REFUSED_STREAM))
            return
        stream = Stream(self, frame.stream, frame.headers)
        self._streams[frame.stream] = stream
        if frame.is_last:
            stream.is_ended_there = True
            stream.inbox.end()
        await self.send(self._encoder.answered(frame.stream, {}))
        self._opened.append(stream)
        self._came.set()
