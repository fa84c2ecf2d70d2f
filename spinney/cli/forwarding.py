"""`spinney port-forward`: ports of a pod, reached from here.

Each connection to a local port has a WebSocket of its own, with a channel for its bytes and one
for what went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
from datetime import timedelta

import aiohttp

from spinney.cli import connecting, entering, failing
from spinney.cli.connecting import Session
from spinney.cli.usage import Usage
from spinney.kube import client
from spinney.kube.resources import Resource
from spinney.meta.documents import string_at
from spinney.meta.errors import BadRequest, NotFound, SpinneyError
from spinney.meta.records import Record

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PORT_MAX = 65535
LINGER = timedelta(seconds=1)
"""How long the pod may be silent once nothing more comes from here, before a connection is closed.

That the client has said all cannot be passed on: this protocol has no word for it.
"""

READ_BYTES = 65536


class Forward(Record):
    """A local port, 0 for any that is free, and the pod's."""

    local: int
    remote: int


class CannotListen(SpinneyError):
    """The user: a local port cannot be had."""


def run(arguments: argparse.Namespace) -> int:
    """Forward until it is interrupted; returns the exit code."""
    name = entering.pod_name(arguments.pod)
    forwards = [parse(text) for text in arguments.ports]
    return connecting.talk(arguments, lambda session: _forward(session, arguments, name, forwards))


def parse(text: str) -> Forward:
    """Return what [LOCAL:]REMOTE means; raises Usage."""
    first, colon, second = text.partition(":")
    local, remote = (first or "0", second) if colon else (first, first)
    if not _is_port(remote, least=1) or not _is_port(local, least=0):
        raise Usage(
            f'"{text}": must be [LOCAL:]REMOTE, ports from 1 to {PORT_MAX}: 8080, 9000:8080, '
            "or :8080 for any free one"
        )
    return Forward(local=int(local), remote=int(remote))


def _is_port(text: str, *, least: int) -> bool:
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return is_number and least <= int(text) <= PORT_MAX


async def _forward(
    session: Session, arguments: argparse.Namespace, name: str, forwards: list[Forward]
) -> int:
    pods = (await session.client.resources()).named("pods")
    pod = await session.client.get(pods, session.namespace, name)
    phase = string_at(pod, ["status", "phase"])
    if phase != "Running":
        raise BadRequest(
            f"pod {name} does not run: its phase is {phase or 'Pending'}; "
            f"spinney why pod/{name} tells why"
        )
    forwarder = _Forwarder(session, pods, name)
    async with contextlib.AsyncExitStack() as stack:
        for forward in forwards:
            server = await _listen(forwarder, arguments.address, forward)
            await stack.enter_async_context(server)
            here = server.sockets[0].getsockname()
            host = f"[{here[0]}]" if ":" in here[0] else here[0]
            session.screen.line(f"Forwarding from {host}:{here[1]} -> {forward.remote}")
        return await forwarder.run()


async def _listen(forwarder: _Forwarder, address: str, forward: Forward) -> asyncio.Server:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # the command ends: nobody waits for it
            await forwarder.serve(forward.remote, reader, writer)

    place = f"{address}:{forward.local}"
    try:
        return await asyncio.start_server(connected, address, forward.local)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = f"something listens there already; any free port: :{forward.remote}"
        elif error.errno == errno.EACCES:
            advice = f"ports below 1024 are root's: 1{forward.local:04}:{forward.remote}"
        else:
            advice = error.strerror or str(error)
        raise CannotListen(f"cannot listen on {place}: {advice}") from error


class _Forwarder:
    """Carries connections to a pod, until that is gone."""

    def __init__(self, session: Session, pods: Resource, name: str) -> None:
        self._session = session
        self._path = client.place(pods, session.namespace, name, "portforward")
        self._name = name
        self._gone = asyncio.Event()

    async def run(self) -> int:
        """Wait until the pod is gone; returns the exit code."""
        await self._gone.wait()
        self._session.screen.note(f"pod {self._name} is gone")
        return failing.NO

    async def serve(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry one connection; what goes wrong with it is told, and the others go on."""
        screen = self._session.screen
        screen.line(f"Handling connection for {writer.get_extra_info('sockname')[1]}")
        carrier = self._session.client.transport
        query = [("ports", str(port))]
        try:
            async with carrier.socket(self._path, query=query, protocols=(PROTOCOL,)) as socket:
                await self._carry(port, socket, reader, writer)
        except NotFound:
            self._gone.set()
        except SpinneyError as error:
            screen.note(f"port {port}: {failing.text(error)}")
        except ConnectionError:
            return
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _carry(
        self,
        port: int,
        socket: aiohttp.ClientWebSocketResponse,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async def send() -> None:
            while data := await reader.read(READ_BYTES):
                await socket.send_bytes(bytes([DATA]) + data)
            while not quiet.is_set():
                quiet.set()
                await self._session.clock.sleep(LINGER)
            await socket.close()

        quiet = asyncio.Event()
        sending = asyncio.create_task(send())
        begun: set[int] = set()
        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                quiet.clear()
                channel, data = message.data[0], message.data[1:]
                if channel not in begun:
                    begun.add(channel)
                    data = data[2:]
                if channel == ERROR and data:
                    told = data.decode("utf-8", "replace").strip()
                    self._session.screen.note(f"port {port}: {told}")
                elif channel == DATA and data:
                    writer.write(data)
                    await writer.drain()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
