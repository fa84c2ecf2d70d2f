"""Running one attempt of a container: from what is laid out for it to what is told of its end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import resource
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from spinney.meta.errors import ApiError, SpinneyError
from spinney.meta.records import Record
from spinney.nodes.processes import ends, environments, isolating, leftovers, records, starting
from spinney.nodes.processes.announcing import Announcer
from spinney.nodes.processes.channels import Channel
from spinney.nodes.processes.containers import Container
from spinney.nodes.processes.ends import End
from spinney.nodes.processes.isolating import Isolated
from spinney.nodes.processes.logfile import LogFile
from spinney.nodes.processes.records import Attempt
from spinney.nodes.processes.sandboxes import Sandboxes
from spinney.nodes.processes.scribe import Scribe
from spinney.nodes.processes.spawner import launching
from spinney.nodes.processes.spawner.plans import Plan
from spinney.nodes.processes.spawning import Isolation, Spawner
from spinney.ports import Clock, ContainerState

LOG = logging.getLogger("spinney.nodes.processes")

P = ParamSpec("P")
T = TypeVar("T")


class Settings(Record):
    """What may be chosen of how processes are run."""

    isolation: Isolation | None = None
    """Which namespaces containers get; None for the most this machine gives."""

    log_bytes_max: int = 10 * 1024 * 1024
    """How large a log's file grows before another is begun."""

    log_files_max: int = 3
    """How many files of one attempt's log are kept."""

    processes_max: int = 16384
    """How many processes and threads one container may have, where that can be held."""

    log_patience: timedelta = timedelta(seconds=2)
    """How long an end waits for output that somebody outside the container keeps open."""


class Machine:
    """What all containers are run with."""

    def __init__(
        self,
        pods: Sandboxes,
        clock: Clock,
        settings: Settings,
        outer: Mapping[str, str],
        spawner: Spawner,
        isolated: Isolated,
    ) -> None:
        """Run containers of these pods."""
        self.sandboxes = pods
        self.isolated = isolated
        self.announcer = Announcer()
        self.hosts_file = pods.shared / "hosts"
        self._clock = clock
        self._settings = settings
        self._outer = outer
        self._files_max = _raise_files_max()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pods")
        self._scribe = Scribe(clock.now)
        self._spawner: Spawner | None = None
        self._respawning = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._use(spawner)

    @classmethod
    async def open(
        cls, pods: Sandboxes, clock: Clock, settings: Settings, outer: Mapping[str, str]
    ) -> Machine:
        """Find out what this machine gives, and begin."""
        scratch = pods.shared / "mounting"
        scratch.mkdir(exist_ok=True)
        spawner, isolated = await isolating.begin(settings.isolation, scratch)
        return cls(pods, clock, settings, outer, spawner, isolated)

    async def on_disk(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do work on the disk in the one thread that does it for pods."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._disk, functools.partial(call, *args, **kwargs))

    def run(self, container: Container) -> None:
        """Run a container to its end."""
        self._begin(self._live(container), f"container {container.plan.name}")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, container: Container) -> None:
        try:
            end = await self._run(container)
        except ApiError as error:
            end = End(exit_code=ends.START_ERROR_CODE, reason=ends.START_ERROR, message=str(error))
        except (OSError, SpinneyError) as error:
            told = f"it could not be started: {error}"
            end = End(exit_code=ends.START_ERROR_CODE, reason=ends.START_ERROR, message=told)
        now = self._clock.now()
        state = msgspec.structs.replace(
            container.state,
            ended_at=now,
            started_at=container.state.started_at or now,
            exit_code=end.exit_code,
            signal=end.signal,
            reason=end.reason,
            message=end.message,
        )
        await self._keep(container, state)
        container.state = state
        container.started.set()
        container.ended.set()
        self.announcer.announce(state)

    async def _run(self, container: Container) -> End:
        log = await self.on_disk(self._lay_out, container)
        channel = await self._fork(container, log)
        code = await container.follow(channel, functools.partial(self._tell_started, container))
        if code is None and container.failure is None:
            await asyncio.to_thread(self._sweep, container)
        await self._wait_log(container)
        if (failure := container.failure) is not None:
            path = container.environment.get("PATH", launching.PATH)
            return ends.start_failure(
                failure.stage,
                failure.number,
                failure.subject,
                failure.text,
                container.plan.command,
                path,
            )
        return ends.end(code, is_out_of_memory=False, was_killed=container.was_killed)

    def _lay_out(self, container: Container) -> LogFile:
        """Make what a container needs on the disk, and take note that it is about to run."""
        plan, sandbox = container.plan, container.sandbox
        starting.work_folder(plan, sandbox).mkdir(parents=True, exist_ok=True)
        path = starting.log_path(plan, sandbox)
        begun = msgspec.structs.replace(container.state, started_at=self._clock.now())
        records.write(Path(sandbox.root), Attempt(state=begun, log_path=str(path)))
        return LogFile(path, self._settings.log_bytes_max, self._settings.log_files_max)

    async def _fork(self, container: Container, log: LogFile) -> Channel:
        output_ours, output = os.pipe2(os.O_CLOEXEC)
        errors_ours, errors = os.pipe2(os.O_CLOEXEC)
        container.writing = self._scribe.take(log, output_ours, errors_ours)
        try:
            plan = self._keeper_plan(container)
            for _ in range(2):
                spawner = await self._running_spawner()
                try:
                    return await spawner.fork(plan, output, errors)
                except OSError:
                    self._lose(spawner)
            raise OSError("the process that starts containers ended twice")
        finally:
            os.close(output)
            os.close(errors)

    def _keeper_plan(self, container: Container) -> Plan:
        plan, sandbox = container.plan, container.sandbox
        kept = self.sandboxes.get(sandbox.pod_uid)
        if kept is not None:
            sandbox = kept.sandbox
        container.environment = environments.environment(
            plan,
            sandbox,
            world=self.sandboxes.world,
            hosts_file=str(self.hosts_file),
            gpus=None,
            outer=self._outer,
        )
        isolated = self.isolated
        return starting.keeper_plan(
            plan,
            sandbox,
            container.environment,
            starting.mounts(plan, sandbox, self.hosts_file, hosts_are_seen=isolated.hosts_are_seen),
            own_mounts=isolated.isolation is not Isolation.NOTHING,
            groups=(),
            files_max=self._files_max,
            processes_max=0,
        )

    def _tell_started(self, container: Container) -> None:
        container.state = msgspec.structs.replace(
            container.state,
            started_at=self._clock.now(),
            message="; ".join(container.notes),
        )
        container.started.set()
        self.announcer.announce(container.state)

    async def _keep(self, container: Container, state: ContainerState) -> None:
        """Keep what is known of a container; a full disk must not hold its life up."""
        path = starting.log_path(container.plan, container.sandbox)
        try:
            await self.on_disk(
                records.write,
                Path(container.sandbox.root),
                Attempt(state=state, log_path=str(path)),
            )
        except OSError as error:
            LOG.warning(
                "a container's record could not be kept",
                extra={"container": state.container, "pod": state.pod_uid, "error": str(error)},
            )

    def _sweep(self, container: Container) -> None:
        """End what a keeper that was killed left behind."""
        own = f"{container.state.pod_uid}/{container.plan.name}/{container.plan.attempt}"
        leftovers.end_marked(self.sandboxes.world, lambda marker: marker != own)

    async def _wait_log(self, container: Container) -> None:
        """Wait until all output is in the log; not for ever, where somebody else holds it open."""
        writing = container.writing
        if writing is None:
            return
        if not await self.first(writing.ended.wait(), self._settings.log_patience):
            self._scribe.drop(writing)
            await writing.ended.wait()

    async def first(self, work: Coroutine[Any, Any, Any], most: timedelta) -> bool:
        """Wait for something, or a time; returns whether it happened."""
        loop = asyncio.get_running_loop()
        waiting = loop.create_task(work)
        sleeping = loop.create_task(self._clock.sleep(most))
        try:
            await asyncio.wait((waiting, sleeping), return_when=asyncio.FIRST_COMPLETED)
            return waiting.done()
        finally:
            waiting.cancel()
            sleeping.cancel()

    async def stop(self, container: Container, grace_seconds: int) -> None:
        """Ask a container to end, kill it after the grace period, and wait for its end."""
        if container.ended.is_set():
            return
        await container.started.wait()
        if grace_seconds > 0 and not container.ended.is_set():
            await container.ask_to_end()
            await self.first(container.ended.wait(), timedelta(seconds=grace_seconds))
        if not container.ended.is_set():
            await container.kill()
            await container.ended.wait()

    async def settle(self, attempt: Attempt) -> ContainerState:
        """Return how an attempt of an agent before this one ended."""
        state = attempt.state
        if state.exit_code is not None:
            return state
        end = ends.unknown("the agent that ran it ended first, and it was ended with it")
        state = msgspec.structs.replace(
            state,
            ended_at=self._clock.now(),
            exit_code=end.exit_code,
            reason=end.reason,
            message=end.message,
        )
        root = self.sandboxes.root(state.pod_uid)
        await self.on_disk(records.write, root, msgspec.structs.replace(attempt, state=state))
        return state

    async def _running_spawner(self) -> Spawner:
        async with self._respawning:
            if self._spawner is None:
                self._use(await Spawner.start(self.isolated.isolation))
            assert self._spawner is not None
            return self._spawner

    def _use(self, spawner: Spawner) -> None:
        self._spawner = spawner

    def _lose(self, spawner: Spawner) -> None:
        if self._spawner is spawner:
            spawner.close()
            self._spawner = None

    async def close(self) -> None:
        """Let go of everything; no container runs any more."""
        await asyncio.gather(*self._tasks)
        if self._spawner is not None:
            self._spawner.close()
        await asyncio.to_thread(self._scribe.close)
        self._disk.shutdown()


def _raise_files_max() -> tuple[int, int]:
    """Let this process open as many files as it may; returns what containers are to have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
