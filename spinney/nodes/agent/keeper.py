"""The keeper of one pod: carries out what the pod's life asks for, and brings it what happens.

It holds no policy: `lifecycle` decides, `telling` tells. What the runtime refuses, whatever the
reason, becomes an event of the life, so nothing is lost and nothing hangs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Final

from spinney.api.core.pod import Pod
from spinney.engine import logs
from spinney.engine.validation import Validation
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.errors import SpinneyError
from spinney.nodes.agent import environment, volumes, waiting
from spinney.nodes.agent import instructions as said
from spinney.nodes.agent.instructions import Event, Hook, Instruction
from spinney.nodes.agent.lacking import Lacking
from spinney.nodes.agent.lifecycle import PodLife
from spinney.nodes.agent.probes import probe_specs
from spinney.nodes.agent.station import Station, ref_of
from spinney.nodes.agent.telling import Telling
from spinney.ports import ContainerState, Sandbox

SPREAD_MAX: Final = timedelta(seconds=1)
SANDBOX_FAULT: Final = "FailedCreatePodSandBox"
START_FAULT: Final = "StartError"
EVENTS_AT_ONCE: Final = 100
REMOVE_AGAIN: Final = timedelta(seconds=5)

_log = logs.logger("agent")


class Keeper:
    """Keeps one pod."""

    def __init__(self, pod: Pod, station: Station, known: Sequence[ContainerState] = ()) -> None:
        """Keep a pod, of whose containers some may be known to the runtime."""
        self.uid = pod.metadata.uid
        self.ref = ref_of(pod)
        self._station = station
        self._life = PodLife(pod, station.now, known, station.entropy.jitter(SPREAD_MAX))
        self.telling = Telling(pod, station, self._life.view)
        self._inbox: deque[Event] = deque()
        self._bell = asyncio.Event()
        self._sandbox: Sandbox | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._preparing: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._is_gone = False
        self._validation = Validation(self._life.validate, lambda: 1)

    # What happens

    @property
    def pod(self) -> Pod:
        """The pod, as it was last seen."""
        return self._life.pod

    def give(self, event: Event) -> None:
        """Bring something that happened."""
        if isinstance(event, said.Leave):
            self._idle.clear()
        self._inbox.append(event)
        self._bell.set()

    def see(self, pod: Pod) -> None:
        """Bring the pod as it is stored now."""
        self.give(said.Seen(pod=pod, held=waiting.held(pod, self._station.reader)))
        self.telling.ring()

    def waits_for(self, clique: str) -> bool:
        """Whether the pod starts after a PodClique, and has not started yet."""
        awaited = any(name == clique for name, _ in waiting.cliques(self.pod))
        return awaited and self._life.is_held

    def gone(self) -> None:
        """Bring that the pod is stored no more."""
        self._is_gone = True
        self.give(said.Gone())
        self.telling.ring()

    def settings_changed(self, sort: str, name: str) -> None:
        """Bring that a config map or secret of its namespace was made or changed."""
        self.give(said.Unblocked())
        if self._sandbox is not None and (sort, name) in volumes.references(self.pod.spec.volumes):
            self._spawn(self._refresh(), "refresh volumes")

    async def wait_idle(self) -> None:
        """Wait until nothing of the pod runs."""
        await self._idle.wait()

    # Running

    async def run(self) -> None:
        """Keep the pod, until nothing of it is left here and it is stored no more."""
        telling = asyncio.create_task(self.telling.run(), name=f"telling of {self.ref}")
        try:
            while True:
                self._live()
                if self._is_gone and self._life.is_removed:
                    return
                await self._rest()
                if telling.done():
                    telling.result()
        finally:
            telling.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(telling, *self._tasks, return_exceptions=True)

    def _live(self) -> None:
        """Let the life take what happened, or at least that time went on."""
        count = min(len(self._inbox), EVENTS_AT_ONCE)
        events = [self._inbox.popleft() for _ in range(count)] or [said.Tick()]
        for event in events:
            for instruction in self._life.handle(event, self._station.now):
                self._carry_out(instruction)
            self._validation.step()
        self.telling.ring()
        if self._life.is_idle:
            self._idle.set()
        else:
            self._idle.clear()

    async def _rest(self) -> None:
        if self._inbox:
            await self._station.clock.sleep(timedelta())
            return
        self._bell.clear()
        due = self._life.wake_at()
        seconds = None
        if due is not None:
            seconds = max((due - self._station.clock.elapsed()) / timedelta(seconds=1), 0)
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return

    # Acting

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case said.Tell():
                self._station.tell(self.pod, instruction)
            case said.DeleteObject():
                self.telling.delete()
            case said.Prepare():
                self._preparing = self._spawn(self._prepare(), "prepare")
            case said.Start(container=name, attempt=attempt):
                self._starts[name] = self._spawn(self._start(name, attempt), f"start {name}")
            case said.Stop():
                self._spawn(self._stop(instruction), f"stop {instruction.container}")
            case said.RunHook():
                self._spawn(self._hook(instruction), f"hook of {instruction.container}")
            case said.Probe():
                self._spawn(self._probe(instruction), f"probe of {instruction.container}")
            case said.Remove():
                self._spawn(self._remove(), "remove")

    def _spawn(self, work: Coroutine[object, object, None], what: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=f"{what} of {self.ref}")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            said_of = logs.fields(object=self.ref, what=task.get_name())
            _log.error("an act on a pod failed", extra=said_of, exc_info=error)

    async def _prepare(self) -> None:
        pod = self.pod
        try:
            content = volumes.contents(self._station.givens(pod, pod.status.pod_ip))
            self._sandbox = await self._station.runtime.prepare(pod, content)
        except Lacking as lacking:
            self.give(
                said.PrepareFailed(reason=lacking.reason, message=lacking.message, is_blocked=True)
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told and tried again
            self.give(said.PrepareFailed(reason=SANDBOX_FAULT, message=self._fault(error)))
        else:
            self.give(said.Prepared(ip=self._sandbox.ip))

    async def _refresh(self) -> None:
        """Bring the volumes up to date, so that what runs sees it; a start is told of elsewhere."""
        try:
            content = volumes.contents(self._station.givens(self.pod, self.pod.status.pod_ip))
            await self._station.runtime.prepare(self.pod, content)
        except (SpinneyError, OSError) as error:
            said_of = logs.fields(object=self.ref, why=error)
            _log.warning("volumes could not be brought up to date", extra=said_of)

    async def _start(self, name: str, attempt: int) -> None:
        assert self._sandbox is not None
        try:
            givens = self._station.givens(self.pod, self._sandbox.ip)
            plan = environment.container_plan(
                self._spec(name), attempt, givens, self._station.images
            )
            await self._station.runtime.start(self._sandbox, plan)
        except Lacking as lacking:
            self.give(
                said.Blocked(
                    container=name,
                    attempt=attempt,
                    reason=lacking.reason,
                    message=lacking.message,
                )
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told and tried again
            self.give(
                said.StartFailed(
                    container=name, attempt=attempt, reason=START_FAULT, message=self._fault(error)
                )
            )

    async def _stop(self, instruction: said.Stop) -> None:
        """End a container, once its start came to an end of its own, or at once without grace.

        A start that was cut off may leave nothing behind that would tell of its end.
        """
        name, grace = instruction.container, instruction.grace_seconds
        starting = self._starts.get(name)
        is_cut = starting is not None and not starting.done() and grace == 0
        if starting is not None and not starting.done():
            if is_cut:
                starting.cancel()
            await asyncio.wait([starting])
        try:
            await self._station.runtime.stop(self.uid, name, grace)
        except (SpinneyError, OSError) as error:
            said_of = logs.fields(object=self.ref, container=name, why=error)
            _log.warning("a container could not be told to end", extra=said_of)
        if is_cut:
            message = "it was ended before it ran"
            self.give(
                said.StartFailed(
                    container=name,
                    attempt=instruction.attempt,
                    reason=START_FAULT,
                    message=message,
                )
            )

    async def _hook(self, instruction: said.RunHook) -> None:
        name, hook = instruction.container, instruction.hook
        spec = self._spec(name)
        ip = self._sandbox.ip if self._sandbox is not None else ""
        how = object_at(spec, ["lifecycle", hook.value])
        try:
            fault = await self._station.prober.run_hook(self.pod, spec, how, ip)
        except Exception as error:  # noqa: BLE001 - a hook that cannot be run has failed
            fault = self._fault(error)
        self.give(
            said.HookDone(container=name, attempt=instruction.attempt, hook=Hook(hook), fault=fault)
        )

    async def _probe(self, instruction: said.Probe) -> None:
        name = instruction.container
        spec = self._spec(name)
        ip = self._sandbox.ip if self._sandbox is not None else ""
        probe = probe_specs(spec)[instruction.kind]
        try:
            found = await self._station.prober.look(self.pod, spec, probe, ip)
            is_success, message = found.is_success, found.message
        except Exception as error:  # noqa: BLE001 - a probe that cannot be done has failed
            is_success, message = False, self._fault(error)
        self.give(
            said.Probed(
                container=name,
                attempt=instruction.attempt,
                kind=instruction.kind,
                is_success=is_success,
                message=message,
            )
        )

    async def _remove(self) -> None:
        under_way = [task for task in (self._preparing, *self._starts.values()) if task is not None]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
        while True:
            try:
                await self._station.runtime.remove(self.uid)
            except Exception as error:  # noqa: BLE001 - nothing may be left behind: tried again
                said_of = logs.fields(object=self.ref, why=self._fault(error))
                _log.error("a pod could not be taken off the node", extra=said_of)
                await self._station.clock.sleep(REMOVE_AGAIN)
            else:
                break
        self.give(said.Removed())

    def _spec(self, name: str) -> Document:
        for spec in (*self.pod.spec.init_containers, *self.pod.spec.containers):
            if string_at(spec, ["name"]) == name:
                return spec
        raise KeyError(name)

    def _fault(self, error: Exception) -> str:
        """Return what is told of an error; what is neither ours nor the system's is a bug."""
        if not isinstance(error, (SpinneyError, OSError)):
            _log.error("a bug", extra=logs.fields(object=self.ref), exc_info=error)
        return str(error) or type(error).__name__
