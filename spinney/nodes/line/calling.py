"""The control plane's side of the line: a runtime that is elsewhere, and the connection held to it.

`Line.hold` is the node's liveness: it returns when the agent, or the connection to it, is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from spinney.api.core.pod import Pod
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta import records
from spinney.meta.documents import is_integer, object_at
from spinney.meta.errors import Unavailable
from spinney.nodes.line import frames, sockets
from spinney.nodes.line.frames import BadFrame, Wire
from spinney.nodes.line.messages import (
    ABOUT,
    CONNECT,
    EXEC,
    HOLD,
    LEAVE,
    LOGS,
    Ask,
    Hello,
    Used,
)
from spinney.ports import (
    Clock,
    Console,
    ContainerPlan,
    ContainerState,
    LogOptions,
    Sandbox,
    Streams,
    VolumeContent,
)

USAGE_AGE_MAX: Final = timedelta(seconds=60)
"""What was measured longer ago is not told."""


class Line:
    """The line to one agent. Fills `roster.Host` for its node."""

    def __init__(self, node: str, path: Path, clock: Clock) -> None:
        """Reach a node's agent at a path; nothing is opened yet."""
        self.node = node
        self.hello: Hello | None = None
        """What the agent said; None while it is not connected."""

        self._path = path
        self._clock = clock
        self._runtime = RemoteRuntime(node, path)
        self._used = Used()

    @property
    def is_connected(self) -> bool:
        """Whether the agent is there."""
        return self.hello is not None

    async def hold(self, world: str, version: str, on_connected: Callable[[Hello], None]) -> None:
        """Hold the connection until it is lost.

        Raises OSError where there is no agent, Conflict where it serves another world.
        """
        wire = await _asked(self._path, Ask(what=HOLD, world=world, version=version))
        try:
            told = await wire.receive_json()
            self.hello = records.decode(Hello, object_at(told, ["hello"]))
            on_connected(self.hello)
            while True:
                told = await wire.receive_json()
                body = msgspec.json.encode(object_at(told, ["used"]))
                self._used = msgspec.json.decode(body, type=Used)
        except (ConnectionError, msgspec.MsgspecError):
            if self.hello is None:
                raise
        finally:
            self.hello, self._used = None, Used()
            wire.abort()

    # The host

    def runtime(self, node: str) -> RemoteRuntime | None:
        """Return what runs the node's pods; raises Unavailable while its agent is not there."""
        if node != self.node:
            return None
        if not self.is_connected:
            raise Unavailable(
                f'the agent of node "{node}" is not connected: it is being started, or its log '
                "says why not"
            )
        return self._runtime

    def usage(self, pod_uid: str) -> PodUsage | None:
        """Return what was last measured of a pod."""
        found = self._used.pods.get(pod_uid)
        return found if found is not None and self._is_fresh(found) else None

    def node_usage(self, node: str) -> NodeUsage | None:
        """Return what was last measured of the node."""
        found = self._used.node if node == self.node else None
        return found if found is not None and self._is_fresh(found) else None

    def _is_fresh(self, found: PodUsage | NodeUsage) -> bool:
        return self._clock.now() - found.measured_at <= USAGE_AGE_MAX


async def leave(path: Path, grace_seconds: int) -> None:
    """Have the agent at a path end its pods and itself; raises OSError where there is none."""
    wire = await _asked(path, Ask(what=LEAVE, grace_seconds=grace_seconds))
    try:
        await wire.receive_json()
    except ConnectionError:
        return
    finally:
        wire.abort()


async def about(path: Path) -> Hello:
    """Return what the agent at a path says of itself; raises OSError where there is none."""
    wire = await _asked(path, Ask(what=ABOUT))
    try:
        return records.decode(Hello, object_at(await wire.receive_json(), ["hello"]))
    finally:
        wire.abort()


async def _asked(path: Path, ask: Ask) -> Wire:
    wire = await sockets.connect(path)
    await wire.send(frames.JSON, msgspec.json.encode(ask))
    return wire


class RemoteRuntime:
    """The runtime of an agent, as far as others than its agent may use it."""

    def __init__(self, node: str, path: Path) -> None:
        """Ask at a path."""
        self._node = node
        self._path = path

    async def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield a container's output; raises as the agent's runtime does."""
        ask = Ask(
            what=LOGS,
            pod_uid=pod_uid,
            container=container,
            **msgspec.structs.asdict(options),
        )
        wire = await self._open(ask)
        try:
            while True:
                sort, body = await self._received(wire)
                if sort != frames.DATA:
                    frames.answer(body)
                    return
                yield body
        finally:
            wire.abort()

    async def exec(
        self,
        pod_uid: str,
        container: str,
        command: tuple[str, ...],
        console: Console,
        *,
        terminal: bool = False,
    ) -> int:
        """Run a command in a container; returns its exit code."""
        ask = Ask(
            what=EXEC, pod_uid=pod_uid, container=container, command=command, terminal=terminal
        )
        wire = await self._open(ask)
        helping = [asyncio.create_task(_type(wire, console))]
        if terminal:
            helping.append(asyncio.create_task(_resize(wire, console)))
        try:
            while True:
                sort, body = await self._received(wire)
                if sort == frames.DATA:
                    await console.write(body)
                elif sort == frames.ERRORS:
                    await console.write_error(body)
                else:
                    code = frames.answer(body).get("code")
                    return code if is_integer(code) else 0
        finally:
            for task in helping:
                task.cancel()
            await asyncio.gather(*helping, return_exceptions=True)
            wire.abort()

    async def connect(self, pod_uid: str, port: int) -> Streams:
        """Open a connection to a port of a pod."""
        wire = await self._open(Ask(what=CONNECT, pod_uid=pod_uid, port=port))
        try:
            _, body = await self._received(wire)
            frames.answer(body)
        except BaseException:
            wire.abort()
            raise
        return _Far(wire)

    async def _open(self, ask: Ask) -> Wire:
        try:
            return await _asked(self._path, ask)
        except OSError as error:
            raise self._gone(error) from error

    async def _received(self, wire: Wire) -> tuple[bytes, bytes]:
        try:
            return await wire.receive()
        except BadFrame:
            raise
        except OSError as error:
            raise self._gone(error) from error

    def _gone(self, error: OSError) -> Unavailable:
        return Unavailable(f'the agent of node "{self._node}" is gone: {error.strerror or error}')

    # What only the agent does

    async def prepare(self, pod: Pod, volumes: Mapping[str, VolumeContent]) -> Sandbox:
        """Refuse."""
        self._refuse(pod, volumes)

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        """Refuse."""
        self._refuse(sandbox, container)

    async def stop(self, pod_uid: str, container: str, grace_seconds: int) -> None:
        """Refuse."""
        self._refuse(pod_uid, container, grace_seconds)

    async def remove(self, pod_uid: str) -> None:
        """Refuse."""
        self._refuse(pod_uid)

    async def adopt(self) -> tuple[ContainerState, ...]:
        """Refuse."""
        self._refuse()

    def events(self) -> AsyncIterator[ContainerState]:
        """Refuse."""
        self._refuse()

    def _refuse(self, *_given: object) -> NoReturn:
        raise Unavailable(f'only the agent of node "{self._node}" starts and ends its containers')


class _Far:
    """A connection on the other side of the line; fills ports.Streams."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._is_over = False

    async def read(self) -> bytes:
        while not self._is_over:
            try:
                sort, body = await self._wire.receive()
            except ConnectionError:
                break
            if sort == frames.DATA and body:
                return body
            if sort == frames.END:
                break
        self._is_over = True
        return b""

    async def write(self, data: bytes) -> None:
        if data:
            await self._wire.send(frames.DATA, data)

    async def end(self) -> None:
        await self._wire.send(frames.END)

    async def close(self) -> None:
        self._is_over = True
        await self._wire.close()


async def _type(wire: Wire, console: Console) -> None:
    while data := await console.read():
        await wire.send(frames.DATA, data)
    await wire.send(frames.END)


async def _resize(wire: Wire, console: Console) -> None:
    while (window := await console.resized()) is not None:
        sizes = (window.columns, window.rows)
        await wire.send(
            frames.WINDOW, b"".join(min(size, 0xFFFF).to_bytes(2, "big") for size in sizes)
        )
