"""A machine for tests of the server: pods whose containers are processes, and are nothing more.

It fills `ports.Nodes` and `ports.PodRuntime`. What containers print is kept in memory; commands
run beside them, with pipes or with a terminal; connections go to this machine's own ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from dataclasses import dataclass, field
from datetime import datetime

from spinney.meta import times
from spinney.meta.errors import Conflict, NotFound, Unavailable
from spinney.meta.references import Precondition, Ref
from spinney.ports import Change, Identity

NODE = "bench"


@dataclass
class Log:
    """What one attempt of a container printed."""

    lines: list[tuple[datetime, bytes]] = field(default_factory=list)
    is_ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    readers: int = 0

    def add(self, line: bytes, now: datetime) -> None:
        self.lines.append((now, line))
        self.changed.set()

    def end(self) -> None:
        self.is_ended = True
        self.changed.set()


class Machine:
    """One node."""

    def __init__(self, clock=None, node=NODE):
        self.clock = clock
        self.node = node
        self.logs_of: dict[tuple[str, str], list[Log]] = {}
        self.usages = {}
        self.node_usages = {}
        self.running = 0
        self.connected = 0
        self.unreachable = ""

    # Nodes

    def runtime(self, node):
        if node != self.node:
            raise Unavailable(f'node "{node}" is not run by this control plane')
        if self.unreachable:
            raise Unavailable(self.unreachable)
        return self

    def usage(self, pod_uid):
        return self.usages.get(pod_uid)

    def node_usage(self, node):
        return self.node_usages.get(node)

    # Logs

    def log(self, pod_uid, container="main"):
        """Return the log of a new attempt of a container."""
        made = Log()
        self.logs_of.setdefault((pod_uid, container), []).append(made)
        return made

    async def logs(self, pod_uid, container, options):
        attempts = self.logs_of.get((pod_uid, container), [])
        at = -2 if options.previous else -1
        if len(attempts) < -at:
            raise NotFound(f"container {container} has no log")
        log = attempts[at]
        log.readers += 1
        try:
            seen = 0
            if options.tail_lines is not None:
                seen = max(len(log.lines) - options.tail_lines, 0)
            left = options.limit_bytes
            while True:
                log.changed.clear()
                for when, text in log.lines[seen:]:
                    seen += 1
                    if options.since is not None and when < options.since:
                        continue
                    stamp = f"{times.format_time(when)} ".encode() if options.timestamps else b""
                    line = stamp + text + b"\n"
                    if left is not None:
                        line = line[:left]
                        left -= len(line)
                    if line:
                        yield line
                if log.is_ended or not options.follow or left == 0:
                    return
                await log.changed.wait()
        finally:
            log.readers -= 1

    # Commands

    async def exec(self, _pod_uid, _container, command, console, *, terminal=False):
        self.running += 1
        try:
            if terminal:
                return await self._with_terminal(command, console)
            return await self._with_pipes(command, console)
        finally:
            self.running -= 1

    async def _with_pipes(self, command, console):
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except FileNotFoundError:
            await console.write_error(f"{command[0]}: not found\n".encode())
            return 127

        async def feed():
            with contextlib.suppress(ConnectionError):
                while data := await console.read():
                    process.stdin.write(data)
                    await process.stdin.drain()
            process.stdin.close()

        feeding = asyncio.create_task(feed())
        copying = [
            asyncio.create_task(_copied(process.stdout, console.write)),
            asyncio.create_task(_copied(process.stderr, console.write_error)),
        ]
        try:
            await asyncio.gather(*copying)
            return await process.wait()
        finally:
            await self._cleaned(process, feeding, *copying)

    async def _with_terminal(self, command, console):
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        os.set_blocking(ours, False)

        async def feed():
            while data := await console.read():
                os.write(ours, data)

        async def resize():
            while (size := await console.resized()) is not None:
                window = struct.pack("HHHH", size.rows, size.columns, 0, 0)
                fcntl.ioctl(ours, termios.TIOCSWINSZ, window)

        loop = asyncio.get_running_loop()
        printed: asyncio.Queue[bytes] = asyncio.Queue()

        def readable():
            try:
                data = os.read(ours, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(ours)
            printed.put_nowait(data)

        loop.add_reader(ours, readable)
        tasks = [asyncio.create_task(feed()), asyncio.create_task(resize())]
        try:
            while data := await printed.get():
                await console.write(data)
            return await process.wait()
        finally:
            loop.remove_reader(ours)
            await self._cleaned(process, *tasks)
            os.close(ours)

    async def _cleaned(self, process, *tasks):
        """End a command and what served it, even where this is cancelled too."""

        async def clean():
            self.running += 1
            try:
                process._transport.close()
                await _through(*tasks)
                await process.wait()
            finally:
                self.running -= 1

        await asyncio.shield(asyncio.ensure_future(clean()))

    # Connections

    async def connect(self, _pod_uid, port):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            raise Unavailable(f"nobody listens on port {port} of the pod") from error
        return Connection(self, reader, writer)


class Connection:
    """Fills `ports.Streams`."""

    def __init__(self, machine, reader, writer):
        self._machine = machine
        self._reader = reader
        self._writer = writer
        machine.connected += 1

    async def read(self):
        return await self._reader.read(65536)

    async def write(self, data):
        self._writer.write(data)
        await self._writer.drain()

    async def end(self):
        self._writer.write_eof()

    async def close(self):
        self._machine.connected -= 1
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def _copied(reader, write):
    while data := await reader.read(65536):
        await write(data)


async def _through(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# Pods that run


class Keeper:
    """Runs, as processes of this machine, the containers of all pods that are on the node."""

    def __init__(self, world, machine, clock):
        self._world = world
        self._machine = machine
        self._clock = clock
        self._kind = world.catalog.resource("", "v1", "pods")
        self._tasks: dict[str, asyncio.Task] = {}

    def attach(self):
        """Begin to look at pods."""
        self._world.store.attach(self._kind.stored_kind, self._world.store.version, self)

    def deliver(self, events):
        for event in events:
            document, uid = event.stored.document(), event.stored.uid
            if event.change is Change.DELETED:
                if uid in self._tasks:
                    self._tasks[uid].cancel()
            elif document["spec"].get("nodeName") == self._machine.node:
                if document["metadata"].get("deletionTimestamp"):
                    self._tasks[uid].cancel()
                elif uid not in self._tasks:
                    self._tasks[uid] = asyncio.create_task(self._run(document, uid))

    def cut(self):
        raise AssertionError("the store told the keeper no more")

    async def close(self):
        """End all processes."""
        self._world.store.detach(self)
        await _through(*self._tasks.values())

    async def _run(self, document, uid):
        names = [container["name"] for container in document["spec"]["containers"]]
        states = dict.fromkeys(names)
        try:
            async with asyncio.TaskGroup() as group:
                for container in document["spec"]["containers"]:
                    group.create_task(self._contain(document, uid, container, states))
        except asyncio.CancelledError:
            await self._gone(document)
            raise

    async def _contain(self, document, uid, container, states):
        name = container["name"]
        command = [*container.get("command", ()), *container.get("args", ())]
        starts = 2 if document["spec"].get("restartPolicy") == "OnFailure" else 1
        last: dict = {}
        for attempt in range(starts):
            if not command:
                return
            log = self._machine.log(uid, name)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            began = times.format_time(self._clock.now())
            running = {"running": {"startedAt": began}}
            try:
                states[name] = _status(container, running, last, attempt)
                await self._tell(document, states)
                async for line in process.stdout:
                    log.add(line.rstrip(b"\n"), self._clock.now())
                code = await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()
                await process.wait()
                log.end()
            ended = {"exitCode": code, "reason": "Error" if code else "Completed"}
            ended |= {"startedAt": began, "finishedAt": times.format_time(self._clock.now())}
            states[name] = _status(container, {"terminated": ended}, last, attempt)
            last = {"terminated": ended}
        await self._tell(document, states)

    async def _tell(self, document, states):
        known = [state for state in states.values() if state]
        is_over = all("terminated" in state["state"] for state in known)
        status = {
            "phase": "Succeeded" if is_over else "Running",
            "podIP": "127.0.0.1",
            "containerStatuses": known,
        }
        metadata = document["metadata"]
        kind = self._kind.names.group_kind
        ref = Ref(kind=kind, namespace=metadata["namespace"], name=metadata["name"])
        with contextlib.suppress(NotFound):
            await self._world.writer(Identity(user="node", manager="node")).patch(
                ref, {"status": status}, Precondition(uid=metadata["uid"]), "status"
            )

    async def _gone(self, document):
        metadata = document["metadata"]
        kind = self._kind.names.group_kind
        ref = Ref(kind=kind, namespace=metadata["namespace"], name=metadata["name"])
        with contextlib.suppress(NotFound, Conflict):
            await self._world.writer(Identity(user="node", manager="node")).delete(
                ref, Precondition(uid=metadata["uid"]), grace_seconds=0, propagation="Background"
            )


def _status(container, state, last, restarts):
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": "running" in state,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
    }
