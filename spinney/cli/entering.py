"""`spinney exec`: runs a command in a container, with what is typed here as its input.

Over a WebSocket; each message begins with the number of its channel.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncIterator, Iterator
from typing import TextIO

import aiohttp
import msgspec

from spinney.cli import connecting, failing
from spinney.cli.connecting import Session
from spinney.cli.usage import Usage
from spinney.kube import client
from spinney.kube.resources import Resource
from spinney.kube.transport import Unreachable
from spinney.meta.documents import Document, is_object, list_at, string_at
from spinney.meta.errors import ApiError

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""The first lets us say that the input has ended."""

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
READ_BYTES = 65536
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit code."""
    if not arguments.command:
        raise Usage("say which command, after --: spinney exec POD -- COMMAND [ARGUMENT...]")
    name = pod_name(arguments.pod)
    return connecting.talk(arguments, lambda session: _exec(session, arguments, name))


def pod_name(word: str) -> str:
    """Return the name of the pod that is meant; raises Usage where something else is."""
    kind, slash, name = word.partition("/")
    if not slash:
        return word
    if kind.casefold() not in ("pod", "pods", "po") or not name:
        raise Usage(f'"{word}": a pod is meant, NAME or pod/NAME; spinney tree shows which are')
    return name


async def _exec(session: Session, arguments: argparse.Namespace, name: str) -> int:
    pods = (await session.client.resources()).named("pods")
    pod = await session.client.get(pods, session.namespace, name)
    container = arguments.container or _default(session, pod)
    is_terminal = arguments.tty
    if is_terminal and not _is_terminal(sys.stdin):
        session.screen.note("the input is no terminal: -t does not change it here")
    query = [
        *(("command", word) for word in arguments.command),
        ("container", container),
        ("stdin", _flag(arguments.stdin)),
        ("stdout", "true"),
        ("stderr", _flag(not is_terminal)),
        ("tty", _flag(is_terminal)),
    ]
    async with _opened(session, pods, name, query) as socket:
        with raw(sys.stdin, is_wanted=is_terminal and arguments.stdin):
            return await _Talk(socket, has_input=arguments.stdin, is_terminal=is_terminal).run()


@contextlib.asynccontextmanager
async def _opened(
    session: Session, pods: Resource, name: str, query: list[tuple[str, str]]
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    path = client.place(pods, session.namespace, name, "exec")
    carrier = session.client.transport
    async with carrier.socket(path, query=query, protocols=PROTOCOLS) as socket:
        yield socket


def _flag(holds: bool) -> str:
    return "true" if holds else "false"


def _default(session: Session, pod: Document) -> str:
    """Return the container that is meant where none is named."""
    names = [string_at(each, ["name"]) for each in list_at(pod, ["spec", "containers"])]
    annotated = string_at(pod, ["metadata", "annotations", DEFAULT_CONTAINER])
    chosen = annotated if annotated in names else names[0] if names else ""
    if len(names) > 1 and not annotated:
        session.screen.note(f'container "{chosen}" is meant, out of: {", ".join(names)} (see -c)')
    return chosen


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


@contextlib.contextmanager
def raw(stream: TextIO, *, is_wanted: bool) -> Iterator[None]:
    """Let every key be passed on as it is, where the input is a terminal."""
    if not is_wanted or not _is_terminal(stream):
        yield
        return
    descriptor = stream.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Talk:
    """A conversation with a command."""

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, *, has_input: bool, is_terminal: bool
    ) -> None:
        self._socket = socket
        self._has_input = has_input
        self._is_terminal = is_terminal

    async def run(self) -> int:
        """Pass on what is typed and printed; returns the exit code."""
        tasks = []
        if self._is_terminal:
            tasks.append(asyncio.create_task(self._tell_sizes()))
        if self._has_input:
            tasks.append(asyncio.create_task(self._pass_input()))
        try:
            return await self._print()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _print(self) -> int:
        outputs = {STDOUT: sys.stdout, STDERR: sys.stderr}
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == ERROR:
                return _exit_code(data)
            stream = outputs.get(channel)
            if stream is not None and data:
                stream.buffer.write(data)
                stream.buffer.flush()
        raise Unreachable("the connection was lost before the command ended")

    async def _pass_input(self) -> None:
        async for data in typed(sys.stdin):
            await self._socket.send_bytes(bytes([STDIN]) + data)
        if self._socket.protocol == PROTOCOLS[0]:
            await self._socket.send_bytes(bytes([CLOSE, STDIN]))

    async def _tell_sizes(self) -> None:
        """Tell how large the terminal is, and when that changes."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        changed.set()
        loop.add_signal_handler(signal.SIGWINCH, changed.set)
        try:
            while True:
                await changed.wait()
                changed.clear()
                columns, rows = shutil.get_terminal_size()
                size = msgspec.json.encode({"Width": columns, "Height": rows})
                await self._socket.send_bytes(bytes([RESIZE]) + size)
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)


def _exit_code(data: bytes) -> int:
    """Return what a command ended with; raises ApiError where it could not be run."""
    try:
        status = msgspec.json.decode(data)
    except msgspec.DecodeError:
        status = None
    if not is_object(status):
        raise Unreachable("how the command ended was told in no known way")
    if string_at(status, ["status"]) == "Success":
        return 0
    for cause in list_at(status, ["details", "causes"]):
        code = string_at(cause, ["message"])
        if string_at(cause, ["reason"]) == "ExitCode" and code.isdigit():
            return int(code) & 0xFF or failing.NO
    raise ApiError.from_status(status)


async def typed(stream: TextIO) -> AsyncIterator[bytes]:
    """Yield what comes in from a stream: a terminal, a pipe or a file.

    A thread reads it, since files cannot be waited for; it is left behind when the command ends,
    as nothing can wake it from a terminal.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue(1)

    def read() -> None:
        with contextlib.suppress(RuntimeError, OSError, ValueError):
            while True:
                data = _read(stream)
                asyncio.run_coroutine_threadsafe(queue.put(data), loop).result()
                if not data:
                    return

    threading.Thread(target=read, daemon=True, name="input").start()
    while data := await queue.get():
        yield data


def _read(stream: TextIO) -> bytes:
    try:
        descriptor = stream.fileno()
    except OSError:
        return stream.buffer.read(READ_BYTES)
    return os.read(descriptor, READ_BYTES)
