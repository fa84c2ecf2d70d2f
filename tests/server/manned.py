"""What tests of running pods share: a served world with a machine, and clients that upgrade."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import json

import aiohttp

from spinney.server import spdy
from tests.server.machines import NODE, Machine
from tests.server.served import ADMIN, MERGE, PODS, pod, served

SECONDS_MAX = 20


def manned(test=None, **options):
    """Make a test of a coroutine that is given a client and a machine; nothing may be left over."""

    def decorate(function):
        @functools.wraps(function)
        def run(*arguments, **named):
            async def main():
                machine = Machine()
                async with served(nodes=machine, **options) as client:
                    machine.clock = client.clock
                    before = asyncio.all_tasks()
                    await function(client, machine, *arguments, **named)
                    await nothing_left(client, machine, before)

            asyncio.run(main())
            gc.collect()

        del run.__wrapped__
        run.__signature__ = _without(function, ("client", "machine"))
        return run

    return decorate if test is None else decorate(test)


def _without(function, names):
    signature = inspect.signature(function)
    kept = [each for name, each in signature.parameters.items() if name not in names]
    return signature.replace(parameters=kept)


async def nothing_left(client, machine, before=None):
    """Wait until nothing goes on any more; fail, saying what does, where something is left."""

    def left():
        tasks = set() if before is None else work_of(asyncio.all_tasks()) - work_of(before)
        found = {
            "conversations": client.server.conversation_count,
            "commands": machine.running,
            "connections": machine.connected,
            "readers": sum(log.readers for logs in machine.logs_of.values() for log in logs),
            "tasks": tasks,
        }
        return {name: what for name, what in found.items() if what}

    try:
        await until(lambda: not left())
    except TimeoutError:
        raise AssertionError(f"left over: {left()}") from None


def work_of(tasks):
    """Return tasks, but those of connections that are merely open."""
    return {task for task in tasks if "RequestHandler.start" not in repr(task)}


async def until(condition):
    """Wait until something is so."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 what is waited for is on both sides of a socket
            await asyncio.sleep(0.002)


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
ENDED = {"terminated": {"exitCode": 3, "reason": "Error"}}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def status_of(name, state, last=None):
    return {
        "name": name,
        "image": "app",
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": last or {},
    }


async def place(client, name="web", containers=("main",), state=RUNNING, last=None, **metadata):
    """Make a pod that is on the machine; returns its uid."""
    document = pod(name, **metadata)
    spec = {
        "nodeName": NODE,
        "containers": [{"name": each, "image": "app"} for each in containers],
    }
    made = await client.post(PODS, {**document, "spec": spec})
    assert made.status == 201, made.body
    if state:
        statuses = [status_of(each, state, last) for each in containers]
        body = {"status": {"phase": "Running", "containerStatuses": statuses}}
        told = await client.do("PATCH", f"{PODS}/{name}/status", body, content_type=MERGE)
        assert told.status == 200, told.body
    return made.json["metadata"]["uid"]


class SocketClient:
    """A client that speaks through a WebSocket, as kubectl from 1.30 on does."""

    def __init__(self, socket):
        self.socket = socket
        self.received = {1: b"", 2: b"", 3: b""}

    async def send(self, channel, data):
        await self.socket.send_bytes(bytes([channel]) + data)

    async def type(self, data):
        await self.send(0, data)

    async def end_input(self):
        await self.send(255, b"\0")

    async def resize(self, columns, rows):
        await self.send(4, json.dumps({"Width": columns, "Height": rows}).encode())

    async def read_until(self, text, channel=1):
        while text not in self.received[channel]:
            assert await self._next(), f"ended before {text}: {self.received}"

    async def status(self):
        """Return how the command ended."""
        while await self._next():
            pass
        return json.loads(self.received[3]) if self.received[3] else None

    async def _next(self):
        message = await asyncio.wait_for(self.socket.receive(), SECONDS_MAX)
        if message.type is not aiohttp.WSMsgType.BINARY:
            return False
        self.received[message.data[0]] += message.data[1:]
        return True

    async def leave(self):
        await self.socket.close()

    @property
    def output(self):
        return self.received[1]

    @property
    def errors(self):
        return self.received[2]


@contextlib.asynccontextmanager
async def socket(client, path, *protocols, token=ADMIN):
    headers = {"Authorization": f"Bearer {token}"}
    async with client.session.ws_connect(
        client.base + path, protocols=protocols, headers=headers, max_msg_size=0
    ) as opened:
        yield opened


class SpdyClient:
    """A client that speaks SPDY, as kubectl up to 1.29 does."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._encoder, self._decoder = spdy.Encoder(), spdy.Decoder()
        self._last = -1
        self.accepted = set()
        self.received = {}
        self.over = {}
        self.resets = {}
        self.pings = []
        self.is_away = False
        self.is_ended = False

    def open(self, **headers):
        self._last += 2
        self.received[self._last] = b""
        self.send(self._encoder.opened(self._last, headers))
        return self._last

    def send(self, frame):
        self._writer.write(frame)

    def write(self, stream, data, *, is_last=False):
        self.send(spdy.data(stream, data, is_last=is_last))

    async def turn(self):
        """Take what came; whether there will be more."""
        data = await asyncio.wait_for(self._reader.read(65536), SECONDS_MAX)
        if not data:
            self.is_ended = True
            return False
        for frame in self._decoder.feed(data):
            if isinstance(frame, spdy.Answered):
                self.accepted.add(frame.stream)
            elif isinstance(frame, spdy.Data):
                self.received[frame.stream] += frame.data
                if frame.is_last:
                    self.over[frame.stream] = True
            elif isinstance(frame, spdy.Reset):
                self.resets[frame.stream] = frame.status
            elif isinstance(frame, spdy.Ping):
                self.pings.append(frame.number)
            elif isinstance(frame, spdy.GoneAway):
                self.is_away = True
        return True

    async def until(self, condition):
        while not condition():
            assert await self.turn(), f"ended: {self.received}, {self.resets}"

    async def close(self):
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def spdy_client(client, path, *protocols, token=ADMIN, method="POST", follows=b""):
    """Upgrade to SPDY; gives the client, or the answer where it was refused."""
    reader, writer = await asyncio.open_connection(client.host, int(client.port))
    offered = "".join(f"X-Stream-Protocol-Version: {each}\r\n" for each in protocols)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\n"
        f"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n{offered}Content-Length: 0\r\n\r\n"
    )
    writer.write(head.encode() + follows)
    try:
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS_MAX)
        if not answer.startswith(b"HTTP/1.1 101"):
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            yield json.loads(await reader.readexactly(length))
            return
        yield SpdyClient(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
