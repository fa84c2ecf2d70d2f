"""The scribe: one thread that reads what all containers print, and writes it to their logs.

It is a thread so that a slow disk stops no event loop. Each turn it reads at most 64 KiB of each
output that has some, so that one that never stops does not starve the others.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import selectors
import threading
from collections.abc import Callable
from datetime import datetime

from spinney.nodes.processes.logfile import LogFile, Stream

READ_BYTES = 64 * 1024


class Writing:
    """The log of a container that is being written, seen from the event loop."""

    def __init__(self, log: LogFile, loop: asyncio.AbstractEventLoop) -> None:
        """Watch a log."""
        self.log = log
        self.ended = asyncio.Event()
        """Both outputs have been closed and all of it is written."""

        self.open_count = 0
        self.is_dropped = False
        self.followers: set[asyncio.Event] = set()
        """Who wants to know that there is more."""

        self._loop = loop

    def has_more(self) -> None:
        """Tell the followers; called by the scribe."""
        if self.followers:
            self._call(self._wake)

    def has_ended(self) -> None:
        """Tell that all is written; called by the scribe."""
        self._call(self._end)

    def _call(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _wake(self) -> None:
        for each in self.followers:
            each.set()

    def _end(self) -> None:
        self.ended.set()
        self._wake()


class Scribe:
    """The thread."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        """Start it; `now` says what time lines get."""
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._orders: collections.deque[Callable[[], None]] = collections.deque()
        self._selector = selectors.DefaultSelector()
        self._waiting, self._waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._waiting, selectors.EVENT_READ)
        self._is_closing = False
        self._writings: set[Writing] = set()
        self._thread = threading.Thread(target=self._run, name="scribe", daemon=True)
        self._thread.start()

    def take(self, log: LogFile, output: int, errors: int) -> Writing:
        """Write a log from two pipes, which are the scribe's from now on."""
        writing = Writing(log, self._loop)
        self._order(lambda: self._register(writing, output, errors))
        return writing

    def drop(self, writing: Writing) -> None:
        """End a log whose outputs somebody keeps open."""
        self._order(lambda: self._drop(writing))

    def close(self) -> None:
        """End all logs and the thread; waits for it."""
        self._order(self._end)
        self._thread.join()
        self._selector.close()
        os.close(self._waiting)
        os.close(self._waking)

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        with contextlib.suppress(BlockingIOError):
            os.write(self._waking, b"!")

    def _run(self) -> None:
        while not self._is_closing:
            for key, _ in self._selector.select():
                if key.fd == self._waiting:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._waiting, 4096)
                else:
                    self._read(key)
            while self._orders:
                self._orders.popleft()()

    def _register(self, writing: Writing, output: int, errors: int) -> None:
        self._writings.add(writing)
        writing.open_count = 2
        for descriptor, name in ((output, "stdout"), (errors, "stderr")):
            os.set_blocking(descriptor, False)
            stream = Stream(name, writing.log, self._now)
            self._selector.register(descriptor, selectors.EVENT_READ, (writing, stream))

    def _read(self, key: selectors.SelectorKey) -> None:
        writing, stream = key.data
        try:
            data = os.read(key.fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            stream.feed(data)
            writing.has_more()
        else:
            self._end_stream(key)

    def _end_stream(self, key: selectors.SelectorKey) -> None:
        writing, stream = key.data
        self._selector.unregister(key.fd)
        os.close(key.fd)
        stream.end()
        writing.open_count -= 1
        if writing.open_count == 0:
            self._writings.discard(writing)
            writing.log.close()
            writing.has_ended()

    def _drop(self, writing: Writing) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data is not None and key.data[0] is writing:
                self._end_stream(key)

    def _end(self) -> None:
        for writing in list(self._writings):
            self._drop(writing)
        self._is_closing = True
