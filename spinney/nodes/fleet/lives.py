"""Lives: what becomes of a simulated pod next, told from the pod itself.

    starting ──► running ──► ended              by restart policy, at its end
        ▲           │  ▲
      held          ▼  │                        starts after others; its plan cannot be followed
                 back-off                       each of them ──► ending, once it is deleted

Which stage a pod is in stands in its status; how long it has been there is told from outside.
Each step is one write at most, and says when to look again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.pod import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodContainerState,
)
from spinney.decisions import pods
from spinney.meta import conditions, durations
from spinney.meta.documents import Document, string_at
from spinney.meta.records import Record
from spinney.nodes.agent import lifecycle, statuses
from spinney.nodes.agent.statuses import Verdict
from spinney.nodes.fleet.plans import Plan

STARTING, RUNNING, BACK_OFF = "starting", "running", "back-off"
ENDING, ENDED = "ending", "ended"

SECOND: Final = timedelta(seconds=1)
NO_TIME: Final = timedelta()
BACK_OFF_FIRST: Final = timedelta(seconds=10)
BACK_OFF_MAX: Final = timedelta(minutes=5)
_DOUBLINGS_MAX = 6

TERMINATED_CODE: Final = 143
"""What the containers of a pod that is told to end exit with: 128 and the signal's number."""

START_FAILED_CODE: Final = 1
"""What they exit with where their start fails by lot."""

_DELETED = Verdict(reason="Deleted", message="it was deleted before it ended")


class Moment(Record):
    """What a pod's next step depends on beside the pod."""

    now: datetime
    age: timedelta
    """How long it has been in its stage."""

    host_ip: str
    pod_ip: str
    held: ContainerStateWaiting | None = None
    """Why it may not start yet."""

    start_fails: bool = False
    """Whether a start at this moment fails."""


class Step(Record):
    """What is to be done with a pod now."""

    status: Document | None = None
    """What is to be merged into its status."""

    removes: bool = False
    """Whether its object is to go: nothing of it runs."""

    wake_after: timedelta | None = None
    """When to look again though nothing happened."""


_NOTHING = Step()
_NO_STATE = PodContainerState()


def stage(pod: Pod) -> tuple[str, int]:
    """Return which stage a pod is in, and how often its containers were started again."""
    if pods.is_terminating(pod):
        return ENDING, 0
    if pods.is_ended(pod):
        return ENDED, 0
    for status in pod.status.container_statuses:
        if status.state.running is not None:
            return RUNNING, status.restart_count
        if status.state.terminated is not None or status.last_state.terminated is not None:
            return BACK_OFF, status.restart_count
    return STARTING, 0


def stage_began_at(pod: Pod) -> datetime | None:
    """Return since when a pod has been in its stage, as far as it tells."""
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        grace = timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
        return metadata.deletion_timestamp - grace
    for status in pod.status.container_statuses:
        if status.state.running is not None:
            return status.state.running.started_at
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None:
            return ended.finished_at
    return None


def step(pod: Pod, plan: Plan, moment: Moment) -> Step:
    """Return what is to be done with a pod."""
    word, restart_count = stage(pod)
    if word == ENDED:
        return _NOTHING
    if word == ENDING:
        return _ending(pod, plan, moment)
    left = _time_left(pod, moment)
    if left is not None and left <= NO_TIME:
        return Step(status=_ended_whole(pod, moment, lifecycle.DEADLINE))
    if word == STARTING:
        found = _starting(pod, plan, moment)
    elif word == RUNNING:
        found = _running(pod, plan, moment, restart_count)
    else:
        found = _backing_off(pod, plan, moment, restart_count)
    if found.status is None and found.wake_after is None and left is not None:
        return Step(wake_after=left)
    if found.wake_after is not None and left is not None and left < found.wake_after:
        return Step(status=found.status, wake_after=left)
    return found


def _time_left(pod: Pod, moment: Moment) -> timedelta | None:
    """Return how long a pod may go on; a stored whole second counts from its end (rule 7.2)."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None:
        return None
    if pod.status.start_time is None:
        return timedelta(seconds=seconds) - moment.age
    return pod.status.start_time + timedelta(seconds=seconds + 1) - moment.now


# Stages


def _starting(pod: Pod, plan: Plan, moment: Moment) -> Step:
    if moment.held is not None:
        status = _status(pod, {}, moment, held=moment.held)
        return _NOTHING if statuses.is_told(pod, status) else Step(status=status)
    if moment.age < plan.start:
        return Step(wake_after=plan.start - moment.age)
    return Step(status=_begun(pod, plan, moment, 0))


def _running(pod: Pod, plan: Plan, moment: Moment, restart_count: int) -> Step:
    if plan.runs_for is not None and moment.age >= plan.runs_for:
        return Step(status=_run_ended(pod, moment, plan.exit_code, restart_count))
    if plan.ready is not None and moment.age >= plan.ready and not _is_ready(pod):
        since = stage_began_at(pod) or moment.now
        found = _all(pod, running_since=since, restart_count=restart_count, is_ready=True)
        status = _status(pod, found, moment)
        if not statuses.is_told(pod, status):
            return Step(status=status)
    waits = [] if plan.runs_for is None else [plan.runs_for - moment.age]
    if plan.ready is not None and plan.ready > moment.age:
        waits.append(plan.ready - moment.age)
    return Step(wake_after=min(waits, default=None))


def _is_ready(pod: Pod) -> bool:
    """Whether a pod says that it is ready; whoever lost sight of it may have said it is not."""
    return conditions.is_true(pod.status.conditions, statuses.READY)


def _backing_off(pod: Pod, plan: Plan, moment: Moment, restart_count: int) -> Step:
    wait = back_off(restart_count)
    if moment.age < wait:
        return Step(wake_after=wait - moment.age)
    return Step(status=_begun(pod, plan, moment, restart_count + 1))


def back_off(restart_count: int) -> timedelta:
    """Return how long containers wait that ended, after so many starts beyond the first."""
    if restart_count == 0:
        return NO_TIME
    wait: timedelta = BACK_OFF_FIRST * 2 ** min(restart_count - 1, _DOUBLINGS_MAX)
    return min(BACK_OFF_MAX, wait)


def _ending(pod: Pod, plan: Plan, moment: Moment) -> Step:
    grace = pod.metadata.deletion_grace_period_seconds or 0
    takes = min(plan.stop, timedelta(seconds=grace))
    if moment.age < takes and not pods.is_ended(pod):
        return Step(wake_after=takes - moment.age)
    status: Document | None = None
    if pod.metadata.finalizers and not pods.is_ended(pod):
        status = _ended_whole(pod, moment, _DELETED)
    return Step(status=status, removes=grace > 0)


# What is told


def _begun(pod: Pod, plan: Plan, moment: Moment, restart_count: int) -> Document:
    """Return the status of a pod whose containers start; those that end at once have ended."""
    if moment.start_fails:
        return _run_ended(pod, moment, START_FAILED_CODE, restart_count)
    if plan.runs_for == NO_TIME:
        return _run_ended(pod, moment, plan.exit_code, restart_count)
    found = _all(
        pod,
        running_since=moment.now,
        restart_count=restart_count,
        is_ready=plan.ready == NO_TIME,
    )
    return _status(pod, found, moment)


def _run_ended(pod: Pod, moment: Moment, code: int, restart_count: int) -> Document:
    """Return the status of a pod whose containers all ended, and may start again."""
    policy = pod.spec.restart_policy
    starts_again = policy == statuses.ALWAYS or (policy == statuses.ON_FAILURE and code != 0)
    found = _all(pod, ended=_ended(pod, moment, code), restart_count=restart_count)
    if starts_again:
        wait = durations.format_duration(back_off(restart_count))
        name = pod.metadata.name
        waiting = ContainerStateWaiting(
            reason="CrashLoopBackOff", message=f"starts again {wait} after it ended; pod {name}"
        )
        found = {
            container: ContainerStatus(
                name=container,
                started=False,
                restart_count=restart_count,
                state=PodContainerState(waiting=waiting),
                last_state=status.state,
            )
            for container, status in found.items()
        }
    return _status(pod, found, moment)


def _ended_whole(pod: Pod, moment: Moment, verdict: Verdict) -> Document:
    """Return the status of a pod that was ended from outside."""
    found: dict[str, ContainerStatus] = {}
    for status in pod.status.container_statuses:
        ended = status.state.terminated or status.last_state.terminated
        if status.state.running is not None:
            found = _all(
                pod,
                ended=_ended(pod, moment, TERMINATED_CODE),
                restart_count=status.restart_count,
            )
        elif ended is not None:
            state = PodContainerState(terminated=ended)
            found = _all(pod, ended=state, restart_count=status.restart_count)
    return _status(pod, found, moment, verdict=verdict)


def _ended(pod: Pod, moment: Moment, code: int) -> PodContainerState:
    began = stage_began_at(pod) if stage(pod)[0] == RUNNING else None
    return PodContainerState(
        terminated=ContainerStateTerminated(
            exit_code=code,
            reason="Error" if code else "Completed",
            started_at=began or moment.now,
            finished_at=moment.now,
        )
    )


def _all(
    pod: Pod,
    *,
    running_since: datetime | None = None,
    ended: PodContainerState = _NO_STATE,
    restart_count: int = 0,
    is_ready: bool = False,
) -> dict[str, ContainerStatus]:
    """Return what all containers of a pod do, which is the same."""
    state = ended
    if running_since is not None:
        state = PodContainerState(running=ContainerStateRunning(started_at=running_since))
    last = {status.name: status.last_state for status in pod.status.container_statuses}
    found = {
        name: ContainerStatus(
            name=name,
            ready=is_ready,
            started=running_since is not None,
            restart_count=restart_count,
            state=state,
            last_state=last.get(name, _NO_STATE),
        )
        for name in (string_at(spec, ["name"]) for spec in pod.spec.containers)
    }
    if pod.spec.init_containers:
        since = running_since
        if ended.terminated is not None:
            since = ended.terminated.started_at
        found |= {status.name: status for status in _first(pod, state, since)}
    return found


def _first(pod: Pod, state: PodContainerState, since: datetime | None) -> Iterator[ContainerStatus]:
    """Yield what the init containers did: sidecars go as the others do, the rest has ended."""
    done = PodContainerState(
        terminated=ContainerStateTerminated(reason="Completed", started_at=since, finished_at=since)
    )
    for spec in pod.spec.init_containers:
        name = string_at(spec, ["name"])
        if statuses.is_sidecar(spec):
            runs = state.running is not None
            yield ContainerStatus(name=name, ready=runs, started=runs, state=state)
        else:
            yield ContainerStatus(name=name, ready=True, started=False, state=done)


def _status(
    pod: Pod,
    containers: dict[str, ContainerStatus],
    moment: Moment,
    *,
    held: ContainerStateWaiting | None = None,
    verdict: Verdict | None = None,
) -> Document:
    return statuses.pod_status(
        pod,
        containers,
        host_ip=moment.host_ip,
        pod_ip=pod.status.pod_ip or moment.pod_ip,
        started_at=moment.now,
        now=moment.now,
        held=held,
        verdict=verdict,
    )
