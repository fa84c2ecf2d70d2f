"""The process runtime: pods as processes of this machine. Fills `ports.PodRuntime`.

What each part does: `sandboxes` a pod's folder and address, `spawning` and `spawner/` the
processes, `running` one attempt of a container from start to end, `scribe` and `reading` its log,
`records` what is remembered of it, `leftovers` what an agent before this one left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from spinney.api.core.pod import Pod
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta.errors import BadRequest, Conflict, NotFound
from spinney.nodes.processes import (
    capacity,
    cgroups,
    connecting,
    environments,
    execs,
    hosts,
    leftovers,
    measuring,
    reading,
    records,
    sandboxes,
    starting,
)
from spinney.nodes.processes.abilities import Abilities
from spinney.nodes.processes.containers import Container
from spinney.nodes.processes.measuring import Meter, Subject
from spinney.nodes.processes.running import Machine
from spinney.nodes.processes.sandboxes import Sandboxes
from spinney.nodes.processes.settings import Settings
from spinney.ports import (
    Clock,
    Console,
    ContainerPlan,
    ContainerState,
    Entropy,
    LogOptions,
    Sandbox,
    Streams,
    VolumeContent,
)

WORLD_LETTERS = 12
"""How long the name of a world is, by which its processes are marked."""


class ProcessRuntime:
    """The pods of one folder, as processes."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        """Run pods with a machine that is open."""
        self._machine = machine
        self._clock = clock
        self._sandboxes = machine.sandboxes
        self._containers: dict[tuple[str, str], Container] = {}
        """By pod and name: the newest attempt of each that was started here."""

        self._latest: dict[tuple[str, str], int] = {}
        self._names: hosts.Names = {}
        self._meter = Meter()

    @classmethod
    async def open(
        cls,
        folder: Path,
        clock: Clock,
        entropy: Entropy,
        settings: Settings | None = None,
        outer: Mapping[str, str] | None = None,
    ) -> ProcessRuntime:
        """Begin to run the pods whose folders are below `folder`.

        `outer` is the environment PATH and HOME are taken from; this process's own unless given.
        Raises OSError, or SpawnerFailed where an isolation was asked for that cannot be had.
        """
        pods = await asyncio.to_thread(Sandboxes, folder, entropy.suffix(WORLD_LETTERS))
        machine = await Machine.open(
            pods, clock, settings or Settings(), environments.outer() if outer is None else outer
        )
        runtime = cls(machine, clock)
        await runtime._write_hosts()
        return runtime

    async def prepare(self, pod: Pod, volumes: Mapping[str, VolumeContent]) -> Sandbox:
        """Make a pod's folder, address and volumes; called again, bring its volumes up to date."""
        is_new = self._sandboxes.get(pod.metadata.uid) is None
        scope = self._machine.abilities.isolation.value
        sandbox = await self._machine.on_disk(self._sandboxes.prepare, pod, volumes, scope)
        if is_new:
            await self._write_hosts()
        return sandbox

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        """Start one attempt of a container; returns once it runs, or cannot.

        What became of it is told by `events`. An attempt that was started before is left alone.
        Raises NotFound for a pod that is not prepared, Conflict while an earlier attempt runs.
        """
        key = (sandbox.pod_uid, container.name)
        former = self._containers.get(key)
        if container.attempt <= self._latest.get(key, -1):
            if former is not None and former.plan.attempt == container.attempt:
                await former.started.wait()
            return
        if self._sandboxes.get(sandbox.pod_uid) is None:
            raise NotFound(f'pod "{sandbox.pod_uid}" is not prepared')
        if former is not None and not former.ended.is_set():
            raise Conflict(
                f'container "{container.name}": attempt {former.plan.attempt} runs still'
            )
        begun = Container(sandbox, container)
        self._containers[key] = begun
        self._latest[key] = container.attempt
        self._machine.run(begun)
        await begun.started.wait()

    async def stop(self, pod_uid: str, container: str, grace_seconds: int) -> None:
        """Send a container its stop signal, kill all of it after the grace period; waits for it."""
        found = self._containers.get((pod_uid, container))
        if found is not None:
            await self._machine.stop(found, grace_seconds)

    async def remove(self, pod_uid: str) -> None:
        """End a pod at once, and delete its folder."""
        mine = [key for key in self._containers if key[0] == pod_uid]
        await asyncio.gather(*(self._machine.stop(self._containers[key], 0) for key in mine))
        for key in mine:
            del self._containers[key]
        for key in [key for key in self._latest if key[0] == pod_uid]:
            del self._latest[key]
        self._machine.allotment.forget(pod_uid)
        removed = await self._machine.on_disk(self._sandboxes.forget, pod_uid)
        if removed is not None:
            await asyncio.to_thread(sandboxes.delete, removed)
            await self._write_hosts()

    async def adopt(self) -> tuple[ContainerState, ...]:
        """End what an agent before this one left, and return the newest attempt of each container.

        Whatever was running when that agent died has reason `ContainerStatusUnknown`.
        """
        if not self._machine.living:
            await self._clear_groups()
        await asyncio.to_thread(leftovers.end_marked, self._sandboxes.world, self._is_ours)
        found: dict[tuple[str, str], ContainerState] = {}
        for kept in self._sandboxes.all():
            uid = kept.sandbox.pod_uid
            for attempt in await self._machine.on_disk(records.attempts, Path(kept.sandbox.root)):
                key = (uid, attempt.state.container)
                if key not in self._containers:
                    self._machine.allotment.remember(key, attempt.gpus)
                    found[key] = await self._machine.settle(attempt)
                    self._latest[key] = attempt.state.attempt
        for folder in self._sandboxes.removed():
            await asyncio.to_thread(sandboxes.delete, folder)
        found.update({key: each.state for key, each in self._containers.items()})
        return tuple(found[key] for key in sorted(found))

    async def _clear_groups(self) -> None:
        """End what is in control groups of this world, and remove those of an agent before."""
        current = self._machine.groups.folders
        for folder in await self._machine.on_disk(self._sandboxes.former_groups, current):
            await asyncio.to_thread(cgroups.clear, folder)
            if folder not in current:
                await asyncio.to_thread(cgroups.remove, (folder,), 0)

    def _is_ours(self, marker: str) -> bool:
        """Whether a process is of a container that runs here."""
        pod_uid, name, attempt = marker.split("/")
        found = self._containers.get((pod_uid, name))
        return found is not None and str(found.plan.attempt) == attempt and not found.ended.is_set()

    def events(self) -> AsyncIterator[ContainerState]:
        """Yield what becomes of containers, from now on; the first to ask hears all."""
        return self._machine.announcer.listen()

    async def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield a container's output; raises NotFound, BadRequest."""
        key = (pod_uid, container)
        kept = self._sandboxes.get(pod_uid)
        if kept is None or key not in self._latest:
            raise NotFound(f'container "{container}" of pod "{pod_uid}" has not been started')
        latest = self._latest[key]
        number = latest - 1 if options.previous else latest
        current = self._containers.get(key)
        if current is not None and current.plan.attempt == number:
            path = starting.log_path(current.plan, kept.sandbox)
            writing = current.writing
        else:
            attempts = await self._machine.on_disk(records.attempts, Path(kept.sandbox.root))
            paths = [
                attempt.log_path
                for attempt in attempts
                if (attempt.state.container, attempt.state.attempt) == (container, number)
            ]
            if not paths:
                raise BadRequest(
                    f'previous terminated container "{container}" in pod "{kept.name}" not found'
                )
            path, writing = Path(paths[0]), None
        try:
            async for chunk in reading.read(path, writing, options):
                yield chunk
        except FileNotFoundError:
            return

    async def exec(
        self,
        pod_uid: str,
        container: str,
        command: tuple[str, ...],
        console: Console,
        *,
        terminal: bool = False,
    ) -> int:
        """Run a command beside a container; returns its exit code. Raises NotFound, BadRequest."""
        found = self._containers.get((pod_uid, container))
        if found is None:
            raise NotFound(f'container "{container}" of pod "{pod_uid}" has not been started')
        if not found.is_running:
            raise BadRequest(f'container "{container}" is not running')
        if not command:
            raise BadRequest("a command is needed")
        return await execs.run(found, found.environment, command, console, terminal=terminal)

    async def connect(self, pod_uid: str, port: int) -> Streams:
        """Open a connection to a port of a pod; raises NotFound, Unavailable."""
        kept = self._sandboxes.get(pod_uid)
        if kept is None:
            raise NotFound(f'pod "{pod_uid}" is not on this node')
        return await connecting.connect(kept.sandbox.ip, port, kept.name)

    async def set_hosts(self, names: hosts.Names) -> None:
        """Have pods resolve these names, in place of those before. Seen by those that run, too."""
        self._names = dict(names)
        await self._write_hosts()

    async def _write_hosts(self) -> None:
        await self._machine.on_disk(self._put_hosts, self._names)

    def _put_hosts(self, names: hosts.Names) -> None:
        pairs = [(kept.sandbox.hostname, kept.sandbox.ip) for kept in self._sandboxes.all()]
        content = hosts.text(hosts.system_text(), names, pairs)
        hosts.write(self._machine.hosts_file, content)

    async def usage(self) -> dict[str, PodUsage]:
        """Return what each pod used since this was asked last; the caller sets the pace."""
        subjects = [
            Subject(
                key=key,
                attempt=each.plan.attempt,
                keeper=each.keeper_id,
                groups=each.groups,
                started_at=each.state.started_at,
            )
            for key, each in self._machine.living.items()
            if each.is_running and each.state.started_at is not None
        ]
        counted = await asyncio.to_thread(measuring.count, subjects)
        return self._meter.measured(subjects, counted, self._clock.now())

    async def node_usage(self) -> NodeUsage:
        """Return what the whole machine used since this was asked last."""
        cpu, memory = await asyncio.to_thread(measuring.count_node)
        return self._meter.measured_node(cpu, memory, self._clock.now())

    def capacity(self) -> dict[str, int]:
        """Return how much this machine has of each resource, in billionths of a unit."""
        return capacity.capacity(self._sandboxes.folder, self._machine.abilities.gpu_count)

    @property
    def abilities(self) -> Abilities:
        """What this machine lets the runtime do."""
        return self._machine.abilities

    async def close(self) -> None:
        """End every container at once, and what was needed to run them."""
        await asyncio.gather(*(self._machine.stop(each, 0) for each in self._containers.values()))
        await self._machine.close()
