"""A runtime whose containers are scripts: they start, serve, exit, hang as they were told to.

    runtime = ScriptedRuntime(clock, lambda pod, plan: Script(ready_after=seconds(2)))

Implements `ports.PodRuntime` under virtual time. Nothing real runs: what listens on a port of a pod
answers HTTP as the script says, commands in a container end as the script says, and a container
that ignores its stop signal goes on until it is killed. A `crash` is the death of the agent: what
ran is gone, and `adopt` of the next life tells so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from spinney.api.core.pod import Pod
from spinney.meta.errors import BadRequest, Conflict, NotFound
from spinney.meta.records import Record
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

KILLED, TERMINATED = 137, 143
NOTHING = timedelta()


class Script(Record):
    """How one attempt of a container behaves."""

    start_takes: timedelta = NOTHING
    start_fault: str = ""
    """Why it cannot be started at all."""

    exits_after: timedelta | None = None
    """None: it runs until it is told to end."""

    exit_code: int = 0
    exit_reason: str = ""
    ready_after: timedelta | None = NOTHING
    """When it begins to answer; None: never."""

    hangs_after: timedelta | None = None
    """When it stops answering, though it runs on."""

    ignores_stop: bool = False
    stop_takes: timedelta = NOTHING
    output: bytes = b""


Choose = Callable[[Pod, ContainerPlan], Script]
"""What a container of a pod does, attempt by attempt."""


def _well(_pod: Pod, _plan: ContainerPlan) -> Script:
    return Script()


class _Running:
    """One attempt that runs, or is about to."""

    def __init__(self, script: Script, plan: ContainerPlan, began: timedelta) -> None:
        self.script = script
        self.plan = plan
        self.began = began
        self.state: ContainerState | None = None
        self.over = asyncio.Event()
        self.told_to_end: asyncio.Event = asyncio.Event()
        self.killed: asyncio.Event = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []


class ScriptedRuntime:
    """One node's pods, played."""

    def __init__(self, clock: Clock, choose: Choose = _well) -> None:
        """Play what `choose` says of each attempt."""
        self.clock = clock
        self.choose = choose
        self.pods: dict[str, tuple[Pod, Sandbox]] = {}
        self.volumes: dict[str, Mapping[str, VolumeContent]] = {}
        self.names: Mapping[str, Sequence[str]] = {}
        self.plans: list[ContainerPlan] = []
        """Every start there was, in order."""
        self._attempts: dict[tuple[str, str], _Running] = {}
        self._listeners: list[asyncio.Queue[ContainerState]] = []
        self._count = 0

    # The port

    async def prepare(self, pod: Pod, volumes: Mapping[str, VolumeContent]) -> Sandbox:
        """Give a pod its address."""
        uid = pod.metadata.uid
        self.volumes[uid] = volumes
        if uid not in self.pods:
            self._count += 1
            high, low = divmod(self._count, 250)
            sandbox = Sandbox(
                pod_uid=uid,
                ip=f"127.128.{high}.{low + 1}",
                hostname=pod.spec.hostname or pod.metadata.name,
                root=f"/pods/{uid}",
                volumes={name: f"/pods/{uid}/volumes/{name}" for name in volumes},
            )
            self.pods[uid] = (pod, sandbox)
        return self.pods[uid][1]

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        """Begin an attempt."""
        if sandbox.pod_uid not in self.pods:
            raise NotFound(f'pod "{sandbox.pod_uid}" is not prepared')
        key = (sandbox.pod_uid, container.name)
        former = self._attempts.get(key)
        if former is not None:
            if former.plan.attempt >= container.attempt:
                return
            if not former.over.is_set():
                raise Conflict(f"attempt {former.plan.attempt} of {container.name} runs still")
        script = self.choose(self.pods[sandbox.pod_uid][0], container)
        running = _Running(script, container, self.clock.elapsed())
        self._attempts[key] = running
        self.plans.append(container)
        task = asyncio.get_running_loop().create_task(
            self._play(sandbox.pod_uid, running), name=f"container {container.name}"
        )
        running.tasks.append(task)

    async def stop(self, pod_uid: str, container: str, grace_seconds: int) -> None:
        """Ask a container to end; returns when it has."""
        running = self._attempts.get((pod_uid, container))
        if running is None or running.over.is_set():
            return
        running.told_to_end.set()
        try:
            async with asyncio.timeout(grace_seconds):
                await running.over.wait()
        except TimeoutError:
            running.killed.set()
            await running.over.wait()

    async def remove(self, pod_uid: str) -> None:
        """End and forget a pod."""
        mine = [key for key in self._attempts if key[0] == pod_uid]
        for key in mine:
            self._attempts[key].killed.set()
        for key in mine:
            await self._attempts[key].over.wait()
            del self._attempts[key]
        self.pods.pop(pod_uid, None)
        self.volumes.pop(pod_uid, None)

    async def adopt(self) -> tuple[ContainerState, ...]:
        """Return what runs, and what ended."""
        return tuple(each.state for each in self._attempts.values() if each.state is not None)

    async def events(self) -> AsyncIterator[ContainerState]:
        """Yield what becomes of containers, from now on."""
        queue: asyncio.Queue[ContainerState] = asyncio.Queue()
        self._listeners.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.remove(queue)

    async def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield what the script says it prints; following, until it ends."""
        running = self._attempts.get((pod_uid, container))
        if running is None:
            raise NotFound(f'container "{container}" of pod "{pod_uid}" has not been started')
        lines = running.script.output.splitlines(keepends=True)
        if options.tail_lines is not None:
            lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
        for line in lines:
            yield line
        if options.follow:
            await running.over.wait()

    async def exec(
        self,
        pod_uid: str,
        container: str,
        command: tuple[str, ...],
        console: Console,
        *,
        terminal: bool = False,  # noqa: ARG002 - the port has it
    ) -> int:
        """Run a command: `true`, `false` and `exit N` do so, `cat` echoes, all else is a probe.

        A probe succeeds while the container answers.
        """
        running = self._attempts.get((pod_uid, container))
        if running is None or running.over.is_set():
            raise BadRequest(f'container "{container}" is not running')
        match command:
            case ("true",):
                return 0
            case ("false",):
                return 1
            case ("exit", code):
                return int(code)
            case ("cat",):
                while data := await console.read():
                    await console.write(data)
                return 0
        if self.is_answering(pod_uid, container):
            return 0
        await console.write_error(b"not ready")
        return 1

    async def connect(self, pod_uid: str, port: int) -> Streams:
        """Connect to whatever of a pod answers; raises ConnectionRefusedError."""
        for (uid, name), running in self._attempts.items():
            serves = not running.plan.ports or port in running.plan.ports
            if uid == pod_uid and serves and self.is_answering(uid, name):
                return _Answering()
        raise ConnectionRefusedError(111, "Connection refused")

    async def set_hosts(self, names: Mapping[str, Sequence[str]]) -> None:
        """Have pods resolve these names."""
        self.names = names

    # For tests

    def is_running(self, pod_uid: str, container: str) -> bool:
        """Whether an attempt of a container runs."""
        running = self._attempts.get((pod_uid, container))
        return running is not None and running.state is not None and not running.over.is_set()

    def is_answering(self, pod_uid: str, container: str) -> bool:
        """Whether a container would answer now."""
        if not self.is_running(pod_uid, container):
            return False
        running = self._attempts[(pod_uid, container)]
        script, age = running.script, self.clock.elapsed() - running.began - self._lead(running)
        if script.ready_after is None or age < script.ready_after:
            return False
        return script.hangs_after is None or age < script.hangs_after

    @staticmethod
    def _lead(running: _Running) -> timedelta:
        return running.script.start_takes

    @property
    def running_count(self) -> int:
        """How many containers run."""
        return sum(self.is_running(*key) for key in self._attempts)

    def kill(self, pod_uid: str, container: str) -> None:
        """End a container as the kernel would."""
        self._attempts[(pod_uid, container)].killed.set()

    async def crash(self) -> ScriptedRuntime:
        """Die with all that runs; returns the runtime of the next life, which knows what was."""
        for running in self._attempts.values():
            for task in running.tasks:
                task.cancel()
            await asyncio.gather(*running.tasks, return_exceptions=True)
        after = ScriptedRuntime(self.clock, self.choose)
        after.pods, after.volumes, after._count = self.pods, self.volumes, self._count
        after.plans = self.plans
        for key, running in self._attempts.items():
            if running.state is None:
                continue
            if running.state.ended_at is None:
                unknown = _ended(running.state, self.clock.now(), KILLED, "ContainerStatusUnknown")
                running.state = unknown
            running.over.set()
            after._attempts[key] = running
        return after

    async def close(self) -> None:
        """End everything."""
        for pod_uid in list(self.pods):
            await self.remove(pod_uid)

    # Playing

    async def _play(self, pod_uid: str, running: _Running) -> None:
        script, plan = running.script, running.plan
        asked = ContainerState(pod_uid=pod_uid, container=plan.name, attempt=plan.attempt)
        try:
            await self._until(script.start_takes, running.killed)
            if script.start_fault:
                self._tell(running, _ended(asked, self.clock.now(), 128, "StartError", script))
                return
            began = _started(asked, self.clock.now())
            self._tell(running, began)
            code, reason = await self._run(running)
            self._tell(running, _ended(began, self.clock.now(), code, reason))
        finally:
            running.over.set()

    async def _run(self, running: _Running) -> tuple[int, str]:
        script = running.script
        ends = asyncio.Event()
        waits = [running.killed] if script.ignores_stop else [running.killed, running.told_to_end]
        watching = [asyncio.ensure_future(_ring(event, ends)) for event in waits]
        try:
            if not await self._until(script.exits_after, ends):
                return script.exit_code, script.exit_reason
            if running.killed.is_set() or await self._until(script.stop_takes, running.killed):
                return KILLED, ""
            return TERMINATED, ""
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _until(self, duration: timedelta | None, event: asyncio.Event) -> bool:
        """Wait for a time; returns whether an event came first."""
        if duration == NOTHING:
            return event.is_set()
        seconds = None if duration is None else duration.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True

    def _tell(self, running: _Running, state: ContainerState) -> None:
        running.state = state
        if state.ended_at is not None:
            running.over.set()
        for queue in self._listeners:
            queue.put_nowait(state)


async def _ring(event: asyncio.Event, other: asyncio.Event) -> None:
    await event.wait()
    other.set()


def _started(asked: ContainerState, now: datetime) -> ContainerState:
    return ContainerState(
        pod_uid=asked.pod_uid, container=asked.container, attempt=asked.attempt, started_at=now
    )


def _ended(
    state: ContainerState, now: datetime, code: int, reason: str, script: Script | None = None
) -> ContainerState:
    return ContainerState(
        pod_uid=state.pod_uid,
        container=state.container,
        attempt=state.attempt,
        started_at=state.started_at,
        ended_at=now,
        exit_code=code,
        reason=reason,
        message="" if script is None else script.start_fault,
    )


class _Answering:
    """A connection to something that answers every request with 200."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._is_done = False

    async def read(self) -> bytes:
        """Return the answer, once it was asked."""
        await self._asked.wait()
        if self._is_done:
            return b""
        self._is_done = True
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    async def write(self, _data: bytes) -> None:
        """Take the question."""
        self._asked.set()

    async def end(self) -> None:
        """Ask nothing more."""

    async def close(self) -> None:
        """End."""
        self._is_done = True
        self._asked.set()
