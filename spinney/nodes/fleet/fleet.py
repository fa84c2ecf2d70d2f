"""The fleet: all simulated nodes of a process, and what becomes of the pods bound to them.

A pod or a node that changed, or whose time has come, is looked at once, however often it was
named: what is to be done with it is worked out from what stands there (`lives`, `machines`), and is
one write. Nothing is written while nothing happens, and nothing runs per node or per pod.

    changes, timers ──► queue ──► look ──► lives.step ──► one write, or a time to look again
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Final

from spinney.api import groupkinds
from spinney.api.core.node import Node
from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.engine import backoff, logs, verdicts
from spinney.engine.alarms import Alarm
from spinney.engine.queue import Queue
from spinney.engine.validation import Validation
from spinney.engine.verdicts import Refusal, Verdict
from spinney.meta.documents import Document
from spinney.meta.errors import InvariantViolation, NotFound, Unavailable
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref
from spinney.nodes.fleet import answers, lives, machines, plans
from spinney.nodes.fleet.addresses import Addresses
from spinney.nodes.fleet.answers import SimulatedRuntime
from spinney.nodes.fleet.lives import Moment, Step
from spinney.nodes.fleet.machines import Machine
from spinney.nodes.fleet.plans import BadPlan
from spinney.nodes.fleet.shapes import MILLION, Shape
from spinney.nodes.fleet.turns import Turns
from spinney.ports import Change, Clock, Entropy, Reader, Writer

IN_FLIGHT_MAX: Final = 128
"""How many writes are under way at the same time."""

TURN: Final = 32
"""After so many looks in a row, others have their turn."""

WRITE_MAX: Final = timedelta(seconds=30)
"""How long the answer to one write is waited for; then it counts as not given."""

NO_TIME: Final = timedelta()

_log = logs.logger("nodes")


class FleetStatistics(Record):
    """How a fleet stands."""

    nodes: int
    pods: int
    """How many pods are on its nodes."""

    waiting: int
    """How many of them wait for others to be ready."""

    silent: int
    """How many nodes do not answer."""


class _Life:
    """What is remembered of one pod beside what its object tells."""

    __slots__ = ("ip", "since", "stage", "uid")

    def __init__(self, pod: Pod, since: timedelta) -> None:
        self.uid = pod.metadata.uid
        self.stage = lives.stage(pod)
        self.since = since
        """Since when it has been in its stage, on the clock's `elapsed`."""

        self.ip = pod.status.pod_ip


class Fleet:
    """Runs simulated nodes; a host of the roster."""

    def __init__(
        self,
        shapes: Sequence[Shape],
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """Have nodes of shapes; changes count from now on, and nothing is done before it runs."""
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._machines = {machine.name: machine for machine in machines.machines(shapes)}
        self._usual = {shape.name: plans.usual(shape) for shape in shapes}
        self._queue = Queue()
        self._bell = asyncio.Event()
        self._alarm = Alarm(clock, self._bell.set)
        self._acting: set[asyncio.Task[None]] = set()
        self._lives: dict[Ref, _Life] = {}
        self._refs: dict[str, Ref] = {}
        """Pods by uid."""

        self._turns = Turns(reader)
        self._addresses = Addresses()
        self._unmade = {*self._machines}
        self._silent: set[str] = set()
        self._found: set[Ref] = set()
        """Pods that were there when it began, and have not been looked at yet."""

        self._is_running = False
        self._ready = asyncio.Event()
        self._quiet = asyncio.Event()
        self._runtime = SimulatedRuntime()
        self._validation = Validation(self.validate, lambda: len(self._lives))
        reader.on_change(groupkinds.POD, self._changed)
        if self._machines:
            reader.on_change(groupkinds.NODE, self._changed)

    # Running

    async def run(self) -> None:
        """Make the nodes, and have pods live on them, until cancelled."""
        self._is_running = True
        self._begin()
        looks = 0
        try:
            while True:
                looks += 1
                now = self._clock.elapsed()
                key = self._queue.take(now) if len(self._acting) < IN_FLIGHT_MAX else None
                if key is not None:
                    self._look(key, now)
                    if looks % TURN == 0:
                        await self._clock.sleep(NO_TIME)
                    continue
                self._rest()
                await self._bell.wait()
                self._bell.clear()
        finally:
            self._is_running = False
            self._alarm.stop()
            acting = [*self._acting]
            for task in acting:
                task.cancel()
            await asyncio.gather(*acting, return_exceptions=True)

    def _begin(self) -> None:
        now = self._clock.elapsed()
        if not self._machines:
            self._ready.set()
        by = (f"label:{machines.SIMULATED}", "true")
        left = [node.metadata.name for node in self._reader.list(Node, by=by)]
        for name in dict.fromkeys((*self._machines, *left)):
            self._queue.add(Ref(kind=groupkinds.NODE, namespace="", name=name), now)
        for name in self._machines:
            for ref, pod in self._pods_on(name):
                self._found.add(ref)
                self._addresses.keep(pod.status.pod_ip)
                self._queue.add(ref, now)

    def _pods_on(self, node: str) -> list[tuple[Ref, Pod]]:
        return [(_ref(pod), pod) for pod in self._reader.list(Pod, by=("node", node))]

    def _rest(self) -> None:
        if not self._queue.ready_count:
            self._alarm.set(self._queue.next_due())
        if self._queue.is_settled and not self._acting:
            self._quiet.set()

    def _changed(self, ref: Ref, change: Change) -> None:
        if not self._is_running or change is Change.BOOKMARK:
            return
        if ref.kind == groupkinds.NODE and ref.name not in self._machines:
            return
        self._add(ref)

    def _add(self, ref: Ref) -> None:
        self._queue.add(ref, self._clock.elapsed())
        self._quiet.clear()
        self._bell.set()

    # Looking

    def _look(self, key: Ref, now: timedelta) -> None:
        try:
            if key.kind == groupkinds.NODE:
                doing = self._look_at_node(key)
            else:
                doing = self._look_at_pod(key, now)
        except InvariantViolation:
            raise
        except Exception:  # noqa: BLE001 - no pod may touch another
            _log.exception("a simulated object cannot be run", extra=logs.fields(object=key))
            doing = None
        self._validation.step()
        if doing is None:
            self._queue.finish(key, now)
            return
        task = asyncio.create_task(self._write(key, doing), name=f"fleet: {key}")
        self._acting.add(task)
        task.add_done_callback(self._written)

    def _look_at_pod(self, ref: Ref, now: timedelta) -> Coroutine[None, None, None] | None:
        pod = self._reader.get(Pod, ref.namespace, ref.name)
        for other in self._turns.seen(ref, pod):
            self._add(other)
        life = self._lives.get(ref)
        if life is not None and (pod is None or pod.metadata.uid != life.uid):
            self._forget(ref, life)
            life = None
        machine = None if pod is None else self._machines.get(pod.spec.node_name)
        if pod is None or machine is None:
            return None
        if life is None:
            life = self._known(ref, pod, now)
        if machine.name in self._silent:
            return None
        stage = lives.stage(pod)
        if stage != life.stage:
            life.stage, life.since = stage, now
        step = self._step(ref, pod, machine, life, now)
        if step.status is not None or step.removes:
            return self._carry_out(ref, pod, step)
        if step.wake_after is not None:
            self._queue.add(ref, now, max(step.wake_after, _SOONEST), is_timer=True)
        return None

    def _known(self, ref: Ref, pod: Pod, now: timedelta) -> _Life:
        """Remember a pod; one that was there before has been in its stage for a while."""
        life = _Life(pod, now)
        if ref in self._found:
            self._found.discard(ref)
            began_at = lives.stage_began_at(pod)
            if began_at is not None:
                life.since = now - max(self._clock.now() - began_at, NO_TIME)
        self._lives[ref] = life
        self._refs[life.uid] = ref
        return life

    def _forget(self, ref: Ref, life: _Life) -> None:
        del self._lives[ref], self._refs[life.uid]
        self._found.discard(ref)
        self._turns.forget(ref)
        self._addresses.give_back(life.ip)

    def _step(self, ref: Ref, pod: Pod, machine: Machine, life: _Life, now: timedelta) -> Step:
        held: ContainerStateWaiting | None = None
        plan = self._usual[machine.shape.name]
        word = life.stage[0]
        try:
            plan = plans.plan(pod, plan)
            if word == lives.STARTING:
                held = self._turns.held(ref, pod)
        except BadPlan as error:
            held = ContainerStateWaiting(reason="BadAnnotation", message=str(error))
        if word != lives.STARTING:
            self._turns.forget(ref)
        elif not life.ip:
            life.ip = self._addresses.take()
        moment = Moment(
            now=self._clock.now(),
            age=now - life.since,
            host_ip=machine.address,
            pod_ip=life.ip,
            held=held,
            start_fails=bool(plan.failures_per_million) and self._falls(plan.failures_per_million),
        )
        return lives.step(pod, plan, moment)

    def _falls(self, per_million: int) -> bool:
        drawn = self._entropy.jitter(timedelta(microseconds=MILLION - 1))
        return drawn < timedelta(microseconds=per_million)

    def _look_at_node(self, ref: Ref) -> Coroutine[None, None, None] | None:
        node = self._reader.get(Node, "", ref.name)
        machine = self._machines.get(ref.name)
        if machine is None:
            only_if = Precondition(uid="" if node is None else node.metadata.uid)
            return None if node is None else self._remove(ref, only_if)
        if node is None and ref.name in self._unmade:
            return self._make(machine)
        self._made(ref.name)
        self._listen(ref.name, is_silent=node is None or machines.is_vanished(node))
        if node is None:
            return None
        labels = machines.label_changes(machine, node)
        now = self._clock.now()
        status = (
            None if machines.is_told(machine, node, now) else machines.status(machine, node, now)
        )
        if labels is None and status is None:
            return None
        return self._tell_node(ref, node, labels, status)

    def _made(self, name: str) -> None:
        self._unmade.discard(name)
        if not self._unmade:
            self._ready.set()

    def _listen(self, name: str, *, is_silent: bool) -> None:
        """Note whether a node answers; one that does again takes up its pods where they are."""
        if not is_silent and name in self._silent:
            self._silent.discard(name)
            for ref, _ in self._pods_on(name):
                self._add(ref)
        elif is_silent:
            self._silent.add(name)

    # Writing

    async def _write(self, key: Ref, doing: Coroutine[None, None, None]) -> None:
        try:
            async with asyncio.timeout(WRITE_MAX.total_seconds()):
                await doing
        except NotFound:
            pass
        except Refusal as error:
            failure = verdicts.judged(error)
            if failure.verdict is not Verdict.MOVED:
                told = logs.fields(object=key, reason=failure.message)
                _log.warning("a simulated node could not write", extra=told)
            self._again(key)
            return
        except Exception:  # noqa: BLE001 - no pod may touch another
            _log.exception("a simulated node failed", extra=logs.fields(object=key))
            self._again(key)
            return
        self._queue.finish(key, self._clock.elapsed())

    def _again(self, key: Ref) -> None:
        delay = backoff.RETRY.delay(self._queue.fail(key), self._entropy)
        self._queue.retry(key, self._clock.elapsed(), delay)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._acting.discard(task)
        self._bell.set()

    async def _carry_out(self, ref: Ref, pod: Pod, step: Step) -> None:
        metadata = pod.metadata
        if step.status is not None:
            only_if = Precondition(uid=metadata.uid, resource_version=metadata.resource_version)
            await self._writer.patch(ref, {"status": step.status}, only_if, "status")
        if step.removes:
            only_if = Precondition(uid=metadata.uid)
            await self._writer.delete(ref, only_if, grace_seconds=0, propagation="Background")

    async def _make(self, machine: Machine) -> None:
        await self._writer.create(machines.document(machine, self._clock.now()))
        self._made(machine.name)

    async def _remove(self, ref: Ref, only_if: Precondition) -> None:
        await self._writer.delete(ref, only_if, grace_seconds=None, propagation="Background")

    async def _tell_node(
        self, ref: Ref, node: Node, labels: Document | None, status: Document | None
    ) -> None:
        only_if = Precondition(uid=node.metadata.uid)
        if labels is not None:
            await self._writer.patch(ref, labels, only_if)
        if status is not None:
            await self._writer.patch(ref, {"status": status}, only_if, "status")

    # Being asked

    def runtime(self, node: str) -> SimulatedRuntime | None:
        """Return what runs a node's pods; raises Unavailable where it was told to vanish."""
        if node not in self._machines:
            return None
        if node in self._silent:
            raise Unavailable(f'simulated node "{node}" does not answer')
        return self._runtime

    def usage(self, pod_uid: str) -> PodUsage | None:
        """Return what a pod is said to use."""
        ref = self._refs.get(pod_uid)
        pod = None if ref is None else self._reader.get(Pod, ref.namespace, ref.name)
        if pod is None or pod.metadata.uid != pod_uid or pod.spec.node_name in self._silent:
            return None
        return answers.usage(pod, self._clock.now())

    def node_usage(self, node: str) -> NodeUsage | None:
        """Return what a node is said to use: what its pods do."""
        if node not in self._machines or node in self._silent:
            return None
        now = self._clock.now()
        return answers.node_usage((pod for _, pod in self._pods_on(node)), now)

    @property
    def is_ready(self) -> bool:
        """Whether every node it should have is there, as far as it is its own to make."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Wait until every node it should have is there."""
        await self._ready.wait()

    async def wait_quiet(self) -> None:
        """Wait until nothing is to be done before a time comes or something changes."""
        await self._quiet.wait()

    def statistics(self) -> FleetStatistics:
        """Return how it stands."""
        return FleetStatistics(
            nodes=len(self._machines),
            pods=len(self._lives),
            waiting=len(self._turns),
            silent=len(self._silent),
        )

    def validate(self) -> None:
        """Check what it knows against itself; raises InvariantViolation."""
        self._queue.validate()
        by_uid = {life.uid: ref for ref, life in self._lives.items()}
        held = [life.ip for life in self._lives.values() if life.ip]
        if by_uid != self._refs:
            raise InvariantViolation("pods by uid and by name differ")
        if len(held) != len({*held}):
            raise InvariantViolation("two simulated pods have one address")


_SOONEST: Final = timedelta(milliseconds=1)
"""A time to look again is never nearer than this."""


def _ref(pod: Pod) -> Ref:
    metadata = pod.metadata
    return Ref(kind=groupkinds.POD, namespace=metadata.namespace, name=metadata.name)
