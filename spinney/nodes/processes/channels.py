"""The agent's end of a socket to a keeper or to the spawner: messages, with descriptors beside."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

from spinney.nodes.processes.spawner import messages
from spinney.nodes.processes.spawner.messages import Message

_CREDENTIALS = struct.Struct("3i")


class Channel:
    """One end, in an event loop. Messages arrive whole and in order, or not at all."""

    def __init__(self, end: socket.socket) -> None:
        """Own a socket."""
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket = end
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self.process_id = 0
        """The process that sent last, by the number this process knows it under."""

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Return a channel and the socket at its other end."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), theirs

    async def receive(self) -> Message | None:
        """Return the next message; None once the other end is gone."""
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(
                    messages.BYTES_MAX, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except BlockingIOError:
                await self._wait(self._loop.add_reader, self._loop.remove_reader)
                continue
            except OSError:
                return None
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                    self.process_id = _CREDENTIALS.unpack(content)[0] or self.process_id
            return messages.decode(data) if data else None

    async def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message; the descriptors stay the caller's. Raises OSError if nobody is there."""
        data = messages.encode(message)
        async with self._sending:
            while True:
                try:
                    socket.send_fds(self._socket, [data], list(descriptors))
                except BlockingIOError:
                    await self._wait(self._loop.add_writer, self._loop.remove_writer)
                else:
                    return

    async def _wait(self, add: Callable[..., Any], remove: Callable[[int], bool]) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        descriptor = self._socket.fileno()
        add(descriptor, _wake, ready)
        try:
            await ready
        finally:
            with contextlib.suppress(OSError, ValueError):
                remove(descriptor)

    def close(self) -> None:
        """Let go; the other end takes it for our end."""
        self._socket.close()


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
