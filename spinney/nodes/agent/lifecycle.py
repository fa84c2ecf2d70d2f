"""The life of one pod on its node: events in, instructions out.

| stage     | what comes in                                  | next stage |
|-----------|------------------------------------------------|------------|
| placed    |                                                | preparing  |
| preparing | its place is made                              | up         |
|           | it lacks something, or that failed             | blocked    |
| blocked   | that may be there now, or the time is over     | preparing  |
| up        | all its containers came to their end           | ended      |
| any above | it is deleted, or its deadline passed          | ending     |
| ending    | nothing runs; it is not deleted                | ended      |
|           | nothing runs; it is deleted                    | removing   |
| ended     | it is deleted                                  | removing   |
| any       | its object is gone                             | removing   |
| removing  | nothing is left                                | removed    |

While it is up, init containers run in their order, each to its end (a sidecar until it has
started), then the main containers together, unless something holds those back; sidecars end last,
in reverse order. Nothing here waits: `wake_at` says when the next `Tick` is due.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.pod import ContainerStateWaiting, ContainerStatus, Pod
from spinney.meta.documents import Document
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.nodes.agent import containers, statuses
from spinney.nodes.agent.containers import ContainerLife, Role, Stage
from spinney.nodes.agent.instructions import (
    Became,
    Blocked,
    DeleteObject,
    Event,
    Gone,
    HookDone,
    Instruction,
    Leave,
    Moment,
    Prepare,
    Prepared,
    PrepareFailed,
    Probed,
    Remove,
    Removed,
    Seen,
    StartFailed,
    Tell,
    Tick,
    Unblocked,
)
from spinney.nodes.agent.statuses import Verdict
from spinney.ports import ContainerState

DEFAULT_GRACE_SECONDS: Final = 30
DEADLINE: Final = Verdict(
    reason="DeadlineExceeded",
    message="Pod was active on the node longer than the specified deadline",
)
_OVER: Final = timedelta(seconds=1)
"""A stored whole second counts from its end (rule 7.2)."""


class PodStage(enum.Enum):
    """Where a pod is in its life."""

    PLACED = "placed"
    PREPARING = "preparing"
    BLOCKED = "blocked"
    UP = "up"
    ENDING = "ending"
    ENDED = "ended"
    REMOVING = "removing"
    REMOVED = "removed"


_PAST_START: Final = (PodStage.ENDING, PodStage.ENDED, PodStage.REMOVING, PodStage.REMOVED)


class View(Record):
    """What is to be told of a pod."""

    containers: dict[str, ContainerStatus]
    started_at: datetime
    ip: str = ""
    held: ContainerStateWaiting | None = None
    verdict: Verdict | None = None
    is_over: bool = False

    is_passing: bool = False
    """Whether it is about to change: telling it now would have to be told anew at once."""

    def status(self, pod: Pod, host_ip: str, now: datetime) -> Document:
        """Return the pod's status."""
        return statuses.pod_status(
            pod,
            self.containers,
            host_ip=host_ip,
            pod_ip=self.ip,
            started_at=self.started_at,
            now=now,
            held=self.held,
            verdict=self.verdict,
            is_over=self.is_over,
        )


class PodLife:
    """One pod, by its uid."""

    def __init__(
        self,
        pod: Pod,
        now: Moment,
        known: Sequence[ContainerState] = (),
        spread: timedelta = timedelta(),
    ) -> None:
        """Begin, or go on from what the pod's status tells and what was found on the node.

        `known` is the newest found of each container; `spread` shifts its probes.
        """
        self.pod = pod
        self.stage = PodStage.PLACED
        self._spread = spread
        self._held: ContainerStateWaiting | None = None
        self._block: ContainerStateWaiting | None = None
        self._again_at: timedelta | None = None
        self._prepare_failures = 0
        self._verdict: Verdict | None = None
        self._ends_at = timedelta()
        self._is_leaving = self._is_deleted = False
        self._ip = pod.status.pod_ip
        self._started_at = pod.status.start_time or now.wall.replace(microsecond=0)
        self._deadline_at = self._deadline(now)
        where = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
        policy = pod.spec.restart_policy
        self.first = [
            ContainerLife(
                spec, Role.SIDECAR if statuses.is_sidecar(spec) else Role.INIT, policy, where
            )
            for spec in pod.spec.init_containers
        ]
        self.main = [ContainerLife(spec, Role.MAIN, policy, where) for spec in pod.spec.containers]
        self._lives = containers.by_name([*self.first, *self.main])
        told = {
            one.name: one
            for one in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        }
        found = {state.container: state for state in known}
        for life in self._lives.values():
            life.resume(told.get(life.name), found.get(life.name), now)
        if pod.status.phase in statuses.ENDED:
            self.stage, self._ends_at = PodStage.ENDED, now.elapsed
            for life in self._lives.values():
                life.conclude()
                if life.is_alive:
                    self.stage = PodStage.ENDING

    def _deadline(self, now: Moment) -> timedelta | None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None:
            return None
        due: timedelta = self._started_at + _OVER + timedelta(seconds=seconds) - now.wall
        return now.elapsed + due

    # Events

    def handle(self, event: Event, now: Moment) -> tuple[Instruction, ...]:
        """Take what happened; returns what is to be done."""
        done = [*self._take(event, now)]
        while more := [*self._advance(now)]:
            done += more
        return tuple(done)

    def _take(self, event: Event, now: Moment) -> Iterator[Instruction]:
        match event:
            case Seen():
                yield from self._seen(event, now)
            case Gone():
                self._is_deleted = True
                if self.stage not in (PodStage.REMOVING, PodStage.REMOVED):
                    self.stage = PodStage.REMOVING
                    yield Remove()
            case Prepared(ip=ip):
                if self.stage is PodStage.PREPARING:
                    self.stage, self._ip, self._block = PodStage.UP, ip or self._ip, None
                    self._prepare_failures = 0
            case PrepareFailed():
                yield from self._prepare_failed(event, now)
            case Unblocked():
                self._unblock()
            case Removed():
                if self.stage is PodStage.REMOVING:
                    self.stage = PodStage.REMOVED
                    for life in self._lives.values():
                        life.conclude(is_gone=True)
                    yield DeleteObject()
            case Leave(grace_seconds=grace):
                self._is_leaving = True
                self._end_all(now, grace)
            case Tick():
                pass
            case _:
                yield from self._of_container(event, now)

    def _of_container(
        self, event: Became | Blocked | StartFailed | HookDone | Probed, now: Moment
    ) -> Iterator[Instruction]:
        name = event.state.container if isinstance(event, Became) else event.container
        attempt = event.state.attempt if isinstance(event, Became) else event.attempt
        life = self._lives.get(name)
        if life is None or life.attempt != attempt:
            return
        match event:
            case Became(state=state):
                yield from life.became(state, now)
            case Blocked(reason=reason, message=message):
                yield from life.blocked(reason, message)
            case StartFailed(reason=reason, message=message):
                yield from life.start_failed(reason, message, now)
            case HookDone():
                yield from life.hook_done(event, now, self._grace_seconds)
            case Probed():
                yield from life.probed(event, now, self._grace_seconds)

    def _seen(self, event: Seen, now: Moment) -> Iterator[Instruction]:
        if event.pod.metadata.uid != self.pod.metadata.uid:
            raise InvariantViolation(f"{self.pod.metadata.name} is shown a pod of another uid")
        was, self.pod, self._held = self.pod, event.pod, event.held
        if was.spec.active_deadline_seconds != self.pod.spec.active_deadline_seconds:
            self._deadline_at = self._deadline(now)
        if self.pod.metadata.deletion_timestamp is None:
            return
        grace = self.pod.metadata.deletion_grace_period_seconds or 0
        self._is_deleted = True
        if self.stage is PodStage.ENDED:
            self.stage = PodStage.REMOVING
            yield Remove()
        elif self.stage not in (PodStage.REMOVING, PodStage.REMOVED):
            self._end_all(now, grace)

    def _prepare_failed(self, event: PrepareFailed, now: Moment) -> Iterator[Instruction]:
        if self.stage is not PodStage.PREPARING:
            return
        self.stage = PodStage.BLOCKED
        self._block = ContainerStateWaiting(reason=event.reason, message=event.message)
        self._prepare_failures += 1
        delay = containers.backoff(self._prepare_failures)
        self._again_at = None if event.is_blocked else now.elapsed + delay
        yield Tell(reason=event.reason, note=event.message, is_warning=True)

    def _unblock(self) -> None:
        if self.stage is PodStage.BLOCKED:
            self.stage = PodStage.PLACED
        for life in self._lives.values():
            life.unblock()

    def _end_all(self, now: Moment, grace_seconds: int) -> None:
        """End the pod within a grace; sooner, where it was told to end later."""
        due = now.elapsed + timedelta(seconds=grace_seconds)
        if self.stage is not PodStage.ENDING:
            if self.stage in (PodStage.ENDED, PodStage.REMOVING, PodStage.REMOVED):
                return
            self.stage, self._ends_at = PodStage.ENDING, due
        self._ends_at = min(self._ends_at, due)

    @property
    def _grace_seconds(self) -> int:
        given = self.pod.spec.termination_grace_period_seconds
        return DEFAULT_GRACE_SECONDS if given is None else given

    # What follows

    def _advance(self, now: Moment) -> Iterator[Instruction]:
        """Do what the stage asks for; called until nothing more comes of it."""
        if self._deadline_at is not None and self._deadline_at <= now.elapsed:
            self._deadline_at = None
            if self.stage not in (PodStage.ENDED, PodStage.REMOVING, PodStage.REMOVED):
                self._verdict = DEADLINE
                self._end_all(now, self._grace_seconds)
                yield Tell(reason=DEADLINE.reason, note=DEADLINE.message)
        if self.stage in (PodStage.REMOVING, PodStage.REMOVED):
            return
        if self.stage is PodStage.BLOCKED and self._is_due(self._again_at, now):
            self.stage = PodStage.PLACED
        if self.stage is PodStage.PLACED:
            self.stage = PodStage.PREPARING
            yield Prepare()
        elif self.stage is PodStage.UP:
            yield from self._go_on(now)
        elif self.stage is PodStage.ENDING:
            yield from self._go_down(now)

    @staticmethod
    def _is_due(at: timedelta | None, now: Moment) -> bool:
        return at is not None and at <= now.elapsed

    def _go_on(self, now: Moment) -> Iterator[Instruction]:
        """Start whose turn it is; end what is no longer needed."""
        for life in self._lives.values():
            yield from life.tick(now, self._spread)
        if self._is_finished:
            yield from self._end_sidecars(now, self._grace_seconds)
            if not any(life.is_alive for life in self._lives.values()):
                self.stage = PodStage.ENDED
            return
        has_begun = any(life.has_begun for life in self.main)
        for life in self.first:
            yield from life.start()
            if not life.is_done and not has_begun:
                return
        if has_begun or self._held is None:
            for life in self.main:
                yield from life.start()

    @property
    def _is_finished(self) -> bool:
        """Whether nothing more is to be run: the work is done, or it failed for good."""
        if all(life.stage is Stage.ENDED for life in self.main):
            return True
        return any(
            life.role is Role.INIT and life.stage is Stage.ENDED and life.exit_code != 0
            for life in self.first
        )

    def _go_down(self, now: Moment) -> Iterator[Instruction]:
        """End the containers, those others rely on last; what waits is not started any more."""
        grace = max(0, -((now.elapsed - self._ends_at) // timedelta(seconds=1)))
        for life in self._lives.values():
            life.conclude()
            yield from life.tick(now, self._spread)
            if life.role is not Role.SIDECAR:
                yield from life.stop(grace, now)
        if not self._is_any_alive_but_sidecars or self._is_due(self._ends_at, now):
            yield from self._end_sidecars(now, grace)
        if any(life.is_alive for life in self._lives.values()):
            return
        if self._is_deleted:
            self.stage = PodStage.REMOVING
            yield Remove()
        else:
            self.stage = PodStage.ENDED

    @property
    def _is_any_alive_but_sidecars(self) -> bool:
        return any(life.is_alive for life in self._lives.values() if life.role is not Role.SIDECAR)

    def _end_sidecars(self, now: Moment, grace_seconds: int) -> Iterator[Instruction]:
        """End sidecars, the last one first, each after the one before; all of them when it is late.

        Those that do not run are not run again.
        """
        is_late = self.stage is PodStage.ENDING and self._is_due(self._ends_at, now)
        for life in reversed(self.first):
            life.conclude()
            if life.is_alive:
                yield from life.stop(grace_seconds, now)
                if not is_late:
                    return

    # Telling

    def wake_at(self) -> timedelta | None:
        """Return when the next tick is due; None where nothing is."""
        dues: list[timedelta | None] = []
        if self.stage in (PodStage.UP, PodStage.ENDING):
            dues += [life.wake_at() for life in self._lives.values()]
        if self.stage is PodStage.ENDING and any(
            life.role is Role.SIDECAR and life.stage in (Stage.STARTING, Stage.RUNNING)
            for life in self.first
        ):
            dues.append(self._ends_at)
        if self.stage is PodStage.BLOCKED:
            dues.append(self._again_at)
        if self.stage not in (PodStage.ENDED, PodStage.REMOVING, PodStage.REMOVED):
            dues.append(self._deadline_at)
        return min((due for due in dues if due is not None), default=None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it runs, nor will without a word from outside."""
        return self.stage in (PodStage.ENDED, PodStage.REMOVED)

    @property
    def is_removed(self) -> bool:
        """Whether nothing of it is left on the node."""
        return self.stage is PodStage.REMOVED

    def view(self) -> View:
        """Return what is to be told."""
        found = {name: life.status() for name, life in self._lives.items()}
        held = self._block if self.stage is PodStage.BLOCKED else None
        if held is None and self.is_held:
            held = self._held
        is_over = not self._is_leaving and (self._is_deleted or self._verdict is not None)
        ends = (PodStage.ENDED, PodStage.REMOVING, PodStage.REMOVED)
        return View(
            containers={name: status for name, status in found.items() if status is not None},
            started_at=self._started_at,
            ip=self._ip,
            held=held,
            verdict=self._verdict,
            is_over=is_over and self.stage in ends,
            is_passing=self.stage in (PodStage.PLACED, PodStage.PREPARING)
            or any(life.stage is Stage.STARTING for life in self._lives.values()),
        )

    @property
    def is_held(self) -> bool:
        """Whether the order of starting keeps the main containers back, or may yet."""
        if self._held is None or self.stage in _PAST_START:
            return False
        return not any(life.has_begun for life in self.main)

    def validate(self) -> None:
        """Check the life against itself; raises InvariantViolation."""
        alive = [life.name for life in self._lives.values() if life.is_alive]
        if alive and self.stage in (PodStage.ENDED, PodStage.REMOVED):
            raise InvariantViolation(f"pod is {self.stage.value}, but {alive} run")
        for life in self._lives.values():
            life.validate()
        begun = [life for life in self.main if life.is_alive]
        if begun and self.stage is PodStage.UP:
            for life in self.first:
                if life.role is Role.INIT and life.exit_code != 0:
                    raise InvariantViolation(f"{begun[0].name} runs before {life.name} is done")
