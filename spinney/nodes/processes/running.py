"""Running one attempt of a container: from what is laid out for it to what is told of its end."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec

from spinney.meta.errors import ApiError, SpinneyError
from spinney.nodes.processes import (
    allowances,
    blaming,
    cgroups,
    ends,
    environments,
    gpus,
    isolating,
    leftovers,
    records,
    starting,
)
from spinney.nodes.processes.abilities import Abilities
from spinney.nodes.processes.allowances import Allowance
from spinney.nodes.processes.announcing import Announcer
from spinney.nodes.processes.blaming import Suspect
from spinney.nodes.processes.cgroups import Groups
from spinney.nodes.processes.channels import Channel
from spinney.nodes.processes.containers import Container
from spinney.nodes.processes.ends import End
from spinney.nodes.processes.gpus import Allotment
from spinney.nodes.processes.logfile import LogFile
from spinney.nodes.processes.records import Attempt
from spinney.nodes.processes.sandboxes import Sandboxes
from spinney.nodes.processes.scribe import Scribe
from spinney.nodes.processes.settings import Settings
from spinney.nodes.processes.spawner import launching
from spinney.nodes.processes.spawner.plans import Plan
from spinney.nodes.processes.spawning import Isolation, LastingSpawner, Spawner
from spinney.ports import Clock, ContainerState

LOG = logging.getLogger("spinney.nodes.processes")

P = ParamSpec("P")
T = TypeVar("T")


class Machine:
    """What all containers are run with."""

    def __init__(
        self,
        pods: Sandboxes,
        clock: Clock,
        settings: Settings,
        outer: Mapping[str, str],
        spawner: Spawner,
        groups: Groups,
        abilities: Abilities,
        allotment: Allotment,
    ) -> None:
        """Run containers of these pods."""
        self.sandboxes = pods
        self.abilities = abilities
        self.allotment = allotment
        self.groups = groups
        self.living: dict[tuple[str, str], Container] = {}
        """By pod and name: what runs, or is about to."""

        self.announcer = Announcer()
        self.hosts_file = pods.shared / "hosts"
        self._clock = clock
        self._settings = settings
        self._outer = outer
        self._files_max = allowances.raise_files_max()
        self.allowance: Allowance | None = None
        if cgroups.PIDS not in groups.controllers and os.getuid() != 0:
            self.allowance = Allowance(settings.processes_max, clock.elapsed)
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pods")
        self._scribe = Scribe(clock.now)
        self._spawner = LastingSpawner(spawner)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls, pods: Sandboxes, clock: Clock, settings: Settings, outer: Mapping[str, str]
    ) -> Machine:
        """Find out what this machine gives, and begin."""
        scratch = pods.shared / "mounting"
        scratch.mkdir(exist_ok=True)
        spawner, groups, abilities = await isolating.begin(settings, pods.world, scratch)
        numbers = settings.gpus
        if numbers is None:
            numbers = await asyncio.to_thread(gpus.find, outer)
        allotment = Allotment(numbers)
        abilities = msgspec.structs.replace(abilities, gpu_count=len(allotment.numbers))
        return cls(pods, clock, settings, outer, spawner, groups, abilities, allotment)

    async def on_disk(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do work on the disk in the one thread that does it for pods."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._disk, functools.partial(call, *args, **kwargs))

    def run(self, container: Container) -> None:
        """Run a container to its end."""
        self.living[container.key] = container
        name = f"container {container.plan.name}"
        task = asyncio.get_running_loop().create_task(self._live(container), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, container: Container) -> None:
        try:
            state = await self._state_at_end(container)
            await self._keep(container, state)
            container.state = state
        finally:
            self.living.pop(container.key, None)
            container.started.set()
            container.ended.set()
        self.announcer.announce(state)

    async def _state_at_end(self, container: Container) -> ContainerState:
        """Run a container, and return what is to be told of its end."""
        try:
            end = await self._run(container)
        except ApiError as error:
            end = End(exit_code=ends.START_ERROR_CODE, reason=ends.START_ERROR, message=str(error))
        except (OSError, SpinneyError) as error:
            told = f"it could not be started: {error}"
            end = End(exit_code=ends.START_ERROR_CODE, reason=ends.START_ERROR, message=told)
        finally:
            self.allotment.give_back(container.key)
        now = self._clock.now()
        return msgspec.structs.replace(
            container.state,
            ended_at=now,
            started_at=container.state.started_at or now,
            exit_code=end.exit_code,
            signal=end.signal,
            reason=end.reason,
            message=end.message,
        )

    async def _run(self, container: Container) -> End:
        wanted = container.plan.devices.get(gpus.RESOURCE, 0)
        container.gpus = self.allotment.take(container.key, wanted)
        log = await self.on_disk(self._lay_out, container)
        channel = await self._fork(container, log)
        code = await container.follow(channel, functools.partial(self._tell_started, container))
        if code is None and container.failure is None:
            await asyncio.to_thread(self._sweep, container)
        is_out_of_memory = await asyncio.to_thread(self._close_groups, container)
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
        end = ends.end(code, is_out_of_memory=is_out_of_memory, was_killed=container.was_killed)
        if end.reason == ends.ERROR and container.plan.ports and not container.was_asked:
            message = await asyncio.to_thread(
                blaming.blame,
                container.plan.ports,
                self._suspect(container),
                [self._suspect(each) for each in self.living.values() if each is not container],
                starting.log_path(container.plan, container.sandbox),
            )
            if message:
                return msgspec.structs.replace(end, reason=ends.ADDRESS_IN_USE, message=message)
        return end

    def _suspect(self, container: Container) -> Suspect:
        sandbox = container.sandbox
        kept = self.sandboxes.get(sandbox.pod_uid)
        return Suspect(
            keeper=container.keeper_id,
            pod_uid=sandbox.pod_uid,
            pod=f"{kept.namespace}/{kept.name}" if kept is not None else sandbox.hostname,
            container=container.plan.name,
            ip=sandbox.ip,
        )

    def _lay_out(self, container: Container) -> LogFile:
        """Make what a container needs on the disk, and take note that it is about to run."""
        plan, sandbox = container.plan, container.sandbox
        starting.work_folder(plan, sandbox).mkdir(parents=True, exist_ok=True)
        path = starting.log_path(plan, sandbox)
        container.groups = self.groups.make(
            f"{sandbox.pod_uid}.{plan.name}.{plan.attempt}",
            memory_bytes=plan.memory_bytes,
            processes_max=self._settings.processes_max,
        )
        if self.allowance is not None:
            container.processes_max = self.allowance.now()
        begun = msgspec.structs.replace(container.state, started_at=self._clock.now())
        records.write(Path(sandbox.root), self._attempt(container, begun))
        return LogFile(path, self._settings.log_bytes_max, self._settings.log_files_max)

    async def _fork(self, container: Container, log: LogFile) -> Channel:
        output_ours, output = os.pipe2(os.O_CLOEXEC)
        errors_ours, errors = os.pipe2(os.O_CLOEXEC)
        container.writing = self._scribe.take(log, output_ours, errors_ours)
        try:
            plan = self._keeper_plan(container)
            return await self._spawner.fork(plan, output, errors)
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
            gpus=gpus.visible(self.allotment, container.gpus),
            outer=self._outer,
        )
        return starting.keeper_plan(
            plan,
            sandbox,
            container.environment,
            starting.mounts(
                plan, sandbox, self.hosts_file, hosts_are_seen=self.abilities.hosts_are_seen
            ),
            own_mounts=self.abilities.isolation is not Isolation.NOTHING,
            groups=cgroups.procs_files(container.groups),
            files_max=self._files_max,
            processes_max=container.processes_max,
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
        root = Path(container.sandbox.root)
        try:
            await self.on_disk(records.write, root, self._attempt(container, state))
        except OSError as error:
            LOG.warning(
                "a container's record could not be kept",
                extra={"container": state.container, "pod": state.pod_uid, "error": str(error)},
            )

    def _attempt(self, container: Container, state: ContainerState) -> Attempt:
        path = starting.log_path(container.plan, container.sandbox)
        return Attempt(state=state, log_path=str(path), gpus=container.gpus)

    def _close_groups(self, container: Container) -> bool:
        """End what is left in a container's groups; returns whether it ran out of memory."""
        if not container.groups:
            return False
        is_out_of_memory = cgroups.is_out_of_memory(container.groups)
        cgroups.end(container.groups)
        cgroups.remove(container.groups, container.keeper_id)
        return is_out_of_memory

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

    async def close(self) -> None:
        """Let go of everything; no container runs any more."""
        await asyncio.gather(*self._tasks)
        self._spawner.close()
        await asyncio.to_thread(self._scribe.close)
        await asyncio.to_thread(self.groups.close)
        self._disk.shutdown()
