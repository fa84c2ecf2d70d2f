"""The life of one container: its attempts, one after another, and what is looked at meanwhile.

| stage       | what comes in           | next stage                                     |
|-------------|-------------------------|------------------------------------------------|
| waiting     | its turn                | starting                                       |
| starting    | it runs                 | running                                        |
|             | it lacks something      | blocked                                        |
|             | it could not be started | backing off, or ended                          |
| blocked     | that may be there now   | waiting                                        |
| running     | it is to end            | stopping                                       |
|             | it ended                | backing off, or ended                          |
| stopping    | it ended                | backing off, or ended                          |
| backing off | the time is over        | waiting, for the next attempt                  |
| ended       |                         |                                                |

An attempt begins only after the one before it ended, so there are never two. Whether it is run
again says the pod's restart policy; when, the back-off: at once, then after 10 s, doubling to 5
minutes; a container that ran for 10 minutes begins anew.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.pod import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodContainerState,
)
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.errors import InvariantViolation
from spinney.nodes.agent import probes, statuses
from spinney.nodes.agent.instructions import (
    Hook,
    HookDone,
    Instruction,
    Moment,
    Probe,
    Probed,
    RunHook,
    Start,
    Stop,
    Tell,
)
from spinney.nodes.agent.probes import ProbeKind, Probing
from spinney.ports import ContainerState

BACKOFF_FIRST: Final = timedelta(seconds=10)
BACKOFF_MAX: Final = timedelta(minutes=5)
RAN_WELL: Final = timedelta(minutes=10)
"""After so long, the next end is the first again."""

KILL_SLACK: Final = timedelta(seconds=2)
"""How much longer than its grace a container may take before it is killed again."""

KILL_AGAIN: Final = timedelta(seconds=10)
AFTER_HOOK_SECONDS_MIN: Final = 2
"""What is left to end in, however long the hook before it took."""

CRASH_LOOP: Final = "CrashLoopBackOff"
UNKNOWN_END: Final = "ContainerStatusUnknown"
UNKNOWN_CODE: Final = 137


class Role(enum.Enum):
    """What a container is to its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class Stage(enum.Enum):
    """Where a container is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    BLOCKED = "blocked"
    RUNNING = "running"
    STOPPING = "stopping"
    BACKING_OFF = "backing off"
    ENDED = "ended"


ALIVE: Final = (Stage.STARTING, Stage.RUNNING, Stage.STOPPING)
"""Something of it may run."""


class ContainerLife:
    """One container of one pod."""

    def __init__(self, spec: Document, role: Role, policy: str, where: str) -> None:
        """Begin before the first attempt; `where` names the pod as people know it."""
        self.spec = spec
        self.name = string_at(spec, ["name"])
        self.role = role
        self.stage = Stage.WAITING
        self.attempt = 0
        self._policy = policy
        self._where = where
        self._why = ContainerStateWaiting()
        self._last: ContainerStateTerminated | None = None
        self._before: ContainerStateTerminated | None = None
        self._started_at: datetime | None = None
        self._running_since = timedelta()
        self._ends_in_a_row = 0
        self._again_at = timedelta()
        self._probings: dict[ProbeKind, Probing] = {}
        self._hook_under_way: Hook | None = None
        self._is_set_up = False
        self._asked_by: timedelta | None = None
        self._kill_at: timedelta | None = None
        self._is_concluded = False

    # What is true of it

    @property
    def is_alive(self) -> bool:
        """Whether something of it may run."""
        return self.stage in ALIVE

    @property
    def has_begun(self) -> bool:
        """Whether any attempt ever ran."""
        return self._started_at is not None or self._last is not None

    @property
    def exit_code(self) -> int | None:
        """How it ended for good; None as long as it has not."""
        return None if self.stage is not Stage.ENDED or self._last is None else self._last.exit_code

    @property
    def is_done(self) -> bool:
        """Whether those after it may start: it is an init container that succeeded, or serves."""
        if self.role is Role.INIT:
            return self.exit_code == 0
        return self.is_started

    @property
    def is_started(self) -> bool:
        """Whether it runs, its hook is through and its startup probe passed."""
        startup = self._probings.get(ProbeKind.STARTUP)
        return (
            self.stage in (Stage.RUNNING, Stage.STOPPING)
            and self._is_set_up
            and (startup is None or startup.passes is True)
        )

    @property
    def is_ready(self) -> bool:
        """Whether it serves."""
        readiness = self._probings.get(ProbeKind.READINESS)
        return self.is_started and (readiness is None or readiness.passes is True)

    # Beginning

    def resume(
        self, status: ContainerStatus | None, known: ContainerState | None, now: Moment
    ) -> None:
        """Take up a life that began before this process: as it was told, and as it is found."""
        if status is None:
            status = ContainerStatus(name=self.name)
        state, last = status.state, status.last_state.terminated
        self.attempt = status.restart_count
        self._last = None if state.waiting is not None else last
        if known is not None and known.attempt >= self.attempt:
            if known.attempt > self.attempt:
                self._last = state.terminated or last
            self.attempt, self.stage = known.attempt, Stage.STARTING
            if known.started_at is not None:
                self._begin(known.started_at, now, is_set_up=True)
            if known.ended_at is not None:
                self._end(_terminated(known), now)
        elif state.running is not None:
            self._started_at = state.running.started_at
            self._end(self._unknown(now), now)
        elif state.terminated is not None:
            self._started_at = state.terminated.started_at
            self._end(state.terminated, now)
        elif last is not None:
            self._end(last, now)

    def _unknown(self, now: Moment) -> ContainerStateTerminated:
        return ContainerStateTerminated(
            exit_code=UNKNOWN_CODE,
            reason=UNKNOWN_END,
            message="the agent of the node ended, and how the container ended is not known",
            started_at=self._started_at,
            finished_at=now.wall.replace(microsecond=0),
        )

    def start(self) -> Iterator[Instruction]:
        """Start the next attempt, if it waits for nothing but its turn."""
        if self.stage is Stage.WAITING:
            self.stage = Stage.STARTING
            self._started_at = None
            yield Start(container=self.name, attempt=self.attempt)

    def blocked(self, reason: str, message: str) -> Iterator[Instruction]:
        """Note that it was not started, as it lacks something."""
        if self.stage is Stage.STARTING:
            self.stage = Stage.BLOCKED
            self._why = ContainerStateWaiting(reason=reason, message=message)
            yield Tell(reason="FailedStart", note=f"Error: {message}", is_warning=True)
        elif self.stage is Stage.STOPPING:
            self.stage = Stage.ENDED

    def unblock(self) -> None:
        """Note that what it lacks may be there."""
        if self.stage is Stage.BLOCKED:
            self.stage = Stage.WAITING

    # Running

    def became(self, state: ContainerState, now: Moment) -> Iterator[Instruction]:
        """Take what the runtime tells of the current attempt."""
        if state.attempt != self.attempt or not self.is_alive:
            return
        if state.started_at is not None and self._started_at is None:
            self._begin(state.started_at, now, is_set_up=False)
            if state.ended_at is None:
                yield Tell(reason="Started", note=f"Started container {self.name}")
                yield from self._set_up()
        if state.ended_at is not None:
            if state.started_at is None and state.reason:
                yield self._failure(state.message or state.reason)
            yield from self._end(_terminated(state), now)

    def start_failed(self, reason: str, message: str, now: Moment) -> Iterator[Instruction]:
        """Note that the current attempt could not be started."""
        if not self.is_alive:
            return
        yield self._failure(message)
        moment = now.wall.replace(microsecond=0)
        failed = ContainerStateTerminated(
            exit_code=128, reason=reason, message=message, started_at=moment, finished_at=moment
        )
        yield from self._end(failed, now)

    def _failure(self, message: str) -> Tell:
        return Tell(reason="FailedStart", note=f"Error: {message}", is_warning=True)

    def _begin(self, started_at: datetime, now: Moment, *, is_set_up: bool) -> None:
        self._started_at = started_at.replace(microsecond=0)
        self._running_since = now.elapsed
        if self.stage is not Stage.STARTING:
            return
        self.stage = Stage.RUNNING
        self._probings = {}
        self._is_set_up = is_set_up or not self._has(Hook.POST_START)
        self._hook_under_way = self._kill_at = None

    def _set_up(self) -> Iterator[Instruction]:
        if not self._is_set_up and self.stage is Stage.RUNNING:
            self._hook_under_way = Hook.POST_START
            yield RunHook(container=self.name, attempt=self.attempt, hook=Hook.POST_START)

    def _has(self, hook: Hook) -> bool:
        return bool(object_at(self.spec, ["lifecycle", hook.value]))

    def hook_done(self, done: HookDone, now: Moment, grace_seconds: int) -> Iterator[Instruction]:
        """Take the end of a hook."""
        if done.attempt != self.attempt or self._hook_under_way is not done.hook:
            return
        self._hook_under_way = None
        if done.hook is Hook.POST_START:
            self._is_set_up = not done.fault
            if done.fault and self.stage is Stage.RUNNING:
                yield Tell(
                    reason="FailedPostStartHook",
                    note=f"PostStartHook failed: {done.fault}",
                    is_warning=True,
                )
                yield from self.stop(grace_seconds, now)
            return
        if done.fault:
            yield Tell(
                reason="FailedPreStopHook",
                note=f"PreStopHook failed: {done.fault}",
                is_warning=True,
            )
        yield from self._signal(now)

    # Ending

    def stop(self, grace_seconds: int, now: Moment, note: str = "") -> Iterator[Instruction]:
        """End the current attempt within a grace; sooner, where it was told to end later."""
        due = now.elapsed + timedelta(seconds=grace_seconds)
        if self.stage is Stage.STOPPING:
            if self._asked_by is not None and due < self._asked_by:
                self._asked_by, self._kill_at = due, due + KILL_SLACK
                self._hook_under_way = None
                yield Stop(container=self.name, attempt=self.attempt, grace_seconds=grace_seconds)
            return
        if not self.is_alive:
            return
        was_running = self.stage is Stage.RUNNING
        self.stage = Stage.STOPPING
        self._asked_by, self._kill_at = due, due + KILL_SLACK
        if was_running:
            told = note or f"Stopping container {self.name}"
            yield Tell(reason="Killing", note=told)
        if was_running and grace_seconds > 0 and self._has(Hook.PRE_STOP):
            self._hook_under_way = Hook.PRE_STOP
            yield RunHook(container=self.name, attempt=self.attempt, hook=Hook.PRE_STOP)
            return
        yield Stop(container=self.name, attempt=self.attempt, grace_seconds=grace_seconds)

    def _signal(self, now: Moment) -> Iterator[Instruction]:
        """Go on to the signal after a hook, with what is left of the grace."""
        if self.stage is not Stage.STOPPING or self._kill_at is None:
            return
        left = (self._kill_at - KILL_SLACK - now.elapsed) // timedelta(seconds=1)
        grace = max(left, AFTER_HOOK_SECONDS_MIN)
        self._kill_at = now.elapsed + timedelta(seconds=grace) + KILL_SLACK
        yield Stop(container=self.name, attempt=self.attempt, grace_seconds=grace)

    def _end(self, ended: ContainerStateTerminated, now: Moment) -> Iterator[Instruction]:
        ran = now.elapsed - self._running_since if self._started_at is not None else timedelta()
        self._before, self._last = self._last, ended
        self._probings, self._hook_under_way, self._kill_at = {}, None, None
        if ran >= RAN_WELL:
            self._ends_in_a_row = 0
        if not self._is_run_again(ended.exit_code):
            self.stage = Stage.ENDED
            return iter(())
        self.stage = Stage.BACKING_OFF
        delay = backoff(self._ends_in_a_row)
        self._ends_in_a_row += 1
        self._again_at = now.elapsed + delay
        note = f"Back-off restarting failed container {self.name} in pod {self._where}"
        self._why = ContainerStateWaiting(
            reason=CRASH_LOOP,
            message=f"back-off {_told(delay)} restarting failed container={self.name} "
            f"pod={self._where}",
        )
        return iter((Tell(reason="BackOff", note=note, is_warning=True),) if delay else ())

    def _is_run_again(self, exit_code: int) -> bool:
        if self._is_concluded:
            return False
        if self.role is Role.SIDECAR:
            return True
        if exit_code == 0 and self.role is Role.INIT:
            return False
        if self._policy == statuses.ALWAYS:
            return True
        return self._policy == statuses.ON_FAILURE and exit_code != 0

    def conclude(self, *, is_gone: bool = False) -> None:
        """Let it not be run again; `is_gone` where nothing of it is left."""
        self._is_concluded = True
        if is_gone or not self.is_alive:
            self.stage, self._probings, self._hook_under_way = Stage.ENDED, {}, None

    # Time

    def tick(self, now: Moment, spread: timedelta) -> Iterator[Instruction]:
        """Do what is due."""
        if self.stage is Stage.BACKING_OFF and self._again_at <= now.elapsed:
            self.stage = Stage.WAITING
            self.attempt += 1
        if self.stage is Stage.STOPPING and self._kill_at is not None:
            if self._hook_under_way is Hook.PRE_STOP:
                if self._kill_at - KILL_SLACK <= now.elapsed:
                    self._hook_under_way = None
                    yield from self._signal(now)
            elif self._kill_at <= now.elapsed:
                self._kill_at = now.elapsed + KILL_AGAIN
                yield Stop(container=self.name, attempt=self.attempt, grace_seconds=0)
        if self.stage is Stage.RUNNING and self._is_set_up:
            self._place_probes(now, spread)
            for kind, probing in self._probings.items():
                if probing.due is not None and probing.due <= now.elapsed:
                    probing.begin()
                    yield Probe(container=self.name, attempt=self.attempt, kind=kind)

    def _place_probes(self, now: Moment, spread: timedelta) -> None:
        """Look at what is declared: at startup first, at the rest once that passed."""
        specs = probes.probe_specs(self.spec)
        for kind, spec in specs.items():
            if kind in self._probings:
                continue
            if kind is not ProbeKind.STARTUP and not self.is_started:
                continue
            first = max(now.elapsed, self._running_since + spec.initial_delay)
            self._probings[kind] = Probing(spec, first, spread)

    def probed(self, found: Probed, now: Moment, grace_seconds: int) -> Iterator[Instruction]:
        """Take what a probe found."""
        probing = self._probings.get(found.kind)
        if found.attempt != self.attempt or probing is None or self.stage is not Stage.RUNNING:
            return
        if probing.due is not None:
            return
        if not probing.take(now.elapsed, is_success=found.is_success):
            return
        kind = found.kind
        if not found.is_success:
            yield Tell(
                reason="Unhealthy",
                note=f"{kind.word} probe failed: {found.message}",
                key=f"{self.name} {kind.value}",
                is_warning=True,
            )
        if kind is ProbeKind.READINESS:
            return
        if kind is ProbeKind.STARTUP and probing.passes:
            probing.begin()
        if probing.passes is False:
            grace = probing.spec.grace_seconds
            word = kind.word.lower()
            yield from self.stop(
                grace_seconds if grace is None else grace,
                now,
                f"Container {self.name} failed {word} probe, will be restarted",
            )

    def wake_at(self) -> timedelta | None:
        """Return when something is due next."""
        if self.stage is Stage.BACKING_OFF:
            return self._again_at
        if self.stage is Stage.STOPPING and self._kill_at is not None:
            in_hook = self._hook_under_way is Hook.PRE_STOP
            return self._kill_at - KILL_SLACK if in_hook else self._kill_at
        if self.stage is Stage.RUNNING:
            dues = [each.due for each in self._probings.values() if each.due is not None]
            return min(dues, default=None)
        return None

    # Telling

    def status(self) -> ContainerStatus | None:
        """Return what is told of it; None where there is nothing to tell yet."""
        last = PodContainerState(terminated=self._last) if self._last else PodContainerState()
        if self.stage in (Stage.RUNNING, Stage.STOPPING) and self._started_at is not None:
            running = ContainerStateRunning(started_at=self._started_at)
            return ContainerStatus(
                name=self.name,
                ready=self.is_ready,
                started=self.is_started,
                restart_count=self.attempt,
                state=PodContainerState(running=running),
                last_state=last,
            )
        if self.stage is Stage.ENDED and self._last is not None:
            before = self._before
            return ContainerStatus(
                name=self.name,
                ready=self.role is Role.INIT and self._last.exit_code == 0,
                started=False,
                restart_count=self.attempt,
                state=PodContainerState(terminated=self._last),
                last_state=PodContainerState(terminated=before) if before else PodContainerState(),
            )
        if self.stage in (Stage.BLOCKED, Stage.BACKING_OFF):
            waiting = self._why
        elif self._last is not None:
            waiting = ContainerStateWaiting(reason=statuses.CREATING)
        else:
            return None
        return ContainerStatus(
            name=self.name,
            started=False,
            restart_count=self.attempt,
            state=PodContainerState(waiting=waiting),
            last_state=last,
        )

    def validate(self) -> None:
        """Check it against itself; raises InvariantViolation."""
        if self.stage is not Stage.RUNNING and self._probings and self.stage is not Stage.STOPPING:
            raise InvariantViolation(f"{self.name} is {self.stage.value}, and is looked at")
        if self.stage is Stage.STOPPING and self._kill_at is None:
            raise InvariantViolation(f"{self.name} is to end, and nobody says by when")
        if self._ends_in_a_row < 0 or self.attempt < 0:
            raise InvariantViolation(f"{self.name} counts backwards")


def backoff(ends_in_a_row: int) -> timedelta:
    """Return how long to wait after so many ends in a row before this one."""
    if ends_in_a_row == 0:
        return timedelta()
    doubled: timedelta = BACKOFF_FIRST * 2 ** min(ends_in_a_row - 1, 10)
    return min(doubled, BACKOFF_MAX)


def _told(delay: timedelta) -> str:
    minutes, seconds = divmod(delay // timedelta(seconds=1), 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _terminated(state: ContainerState) -> ContainerStateTerminated:
    code = state.exit_code
    if code is None:
        code = 128 + state.signal if state.signal is not None else UNKNOWN_CODE
    assert state.ended_at is not None
    return ContainerStateTerminated(
        exit_code=code,
        signal=state.signal,
        reason=state.reason or ("Completed" if code == 0 else "Error"),
        message=state.message,
        started_at=(state.started_at or state.ended_at).replace(microsecond=0),
        finished_at=state.ended_at.replace(microsecond=0),
    )


def by_name(lives: list[ContainerLife]) -> Mapping[str, ContainerLife]:
    """Return containers by their names."""
    return {life.name: life for life in lives}
