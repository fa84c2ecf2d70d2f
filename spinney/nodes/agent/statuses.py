"""The status of a pod: a function of what its containers do, and of what was told before.

What comes out is to be merged into the pod's status, so what others keep there stays (its quality
of service, conditions of theirs). `is_told` says whether writing it would change anything.

    status = statuses.pod_status(pod, containers, host_ip=…, pod_ip=…, started_at=…, now=now)
    if not statuses.is_told(pod, status):
        await writer.patch(ref, {"status": status}, only_if, "status")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from spinney.api.core.pod import (
    ContainerStateRunning,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodContainerState,
    PodStatus,
)
from spinney.meta import conditions, records, times
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.documents import Document, Json, string_at
from spinney.meta.records import Record

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ENDED: Final = (SUCCEEDED, FAILED)
ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"

SCHEDULED, INITIALIZED = "PodScheduled", "Initialized"
CONTAINERS_READY, READY = "ContainersReady", "Ready"
READY_TO_START = "PodReadyToStartContainers"
"""False while something of the whole pod holds its containers back, with the reason."""

CREATING, INITIALIZING = "ContainerCreating", "PodInitializing"


class Verdict(Record):
    """How a pod was ended as a whole, beyond what its containers say."""

    reason: str
    message: str = ""


def pod_status(
    pod: Pod,
    containers: Mapping[str, ContainerStatus],
    *,
    host_ip: str,
    pod_ip: str,
    started_at: datetime,
    now: datetime,
    held: ContainerStateWaiting | None = None,
    verdict: Verdict | None = None,
    is_over: bool = False,
) -> Document:
    """Return the status of a pod of a node.

    `containers` says of each container, init containers too, what it does; one that is missing has
    not been made yet. `held` is why nothing of the pod may start; `verdict` that it was ended,
    which makes it Failed once nothing of it runs; `is_over` that nothing of it will run again.
    """
    first = [_known(pod, containers, spec, is_init=True) for spec in pod.spec.init_containers]
    main = [_known(pod, containers, spec, is_init=False) for spec in pod.spec.containers]
    if held is not None:
        first, main = [_holding(one, held) for one in first], [_holding(one, held) for one in main]
    phase = _phase(pod, first, main, verdict)
    if is_over and phase not in ENDED:
        succeeded = all(_exit_code(one) == 0 for one in main)
        phase = SUCCEEDED if succeeded else FAILED
    told = _conditions(pod, phase, first, main, held, now)
    status: Document = {
        "phase": phase,
        "conditions": [records.encode(condition) for condition in told],
        "startTime": times.format_time(pod.status.start_time or started_at),
        "containerStatuses": _documents(pod.spec.containers, main),
    }
    if first:
        status["initContainerStatuses"] = _documents(pod.spec.init_containers, first)
    if host_ip:
        status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    if pod_ip:
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    status |= _word(pod, phase, verdict)
    return status


def all_running(pod: Pod, since: datetime) -> dict[str, ContainerStatus]:
    """Return what the main containers of a pod do while all of them run and are ready.

    The cheap way for whoever runs pods without looking into them.
    """
    state = PodContainerState(running=ContainerStateRunning(started_at=since))
    return {
        name: ContainerStatus(name=name, ready=True, started=True, state=state)
        for name in (string_at(spec, ["name"]) for spec in pod.spec.containers)
    }


def is_told(pod: Pod, status: Document) -> bool:
    """Whether a pod's status says all this already."""
    before = pod.status
    after = records.decode(PodStatus, {key: value for key, value in status.items() if value})
    fields = zip(PodStatus.__struct_fields__, PodStatus.__struct_encode_fields__, strict=True)
    return all(
        getattr(before, field) == getattr(after, field) for field, key in fields if key in status
    )


# Containers


def is_sidecar(spec: Document) -> bool:
    """Whether an init container stays, beside the main containers."""
    return spec.get("restartPolicy") == ALWAYS


def _known(
    pod: Pod, containers: Mapping[str, ContainerStatus], spec: Document, *, is_init: bool
) -> ContainerStatus:
    name = string_at(spec, ["name"])
    found = containers.get(name)
    if found is not None:
        return found
    reason = INITIALIZING if is_init or pod.spec.init_containers else CREATING
    waiting = PodContainerState(waiting=ContainerStateWaiting(reason=reason))
    return ContainerStatus(name=name, started=False, state=waiting)


def _holding(status: ContainerStatus, held: ContainerStateWaiting) -> ContainerStatus:
    if status.state.waiting is None or status.restart_count:
        return status
    return msgspec.structs.replace(status, state=PodContainerState(waiting=held))


def _documents(specs: Sequence[Document], statuses: Sequence[ContainerStatus]) -> list[Json]:
    return [_document(spec, status) for spec, status in zip(specs, statuses, strict=True)]


def _document(spec: Document, status: ContainerStatus) -> Document:
    """Return a status with the fields that clients take for granted, whatever they say."""
    return {
        **records.encode(status),
        "ready": status.ready,
        "restartCount": status.restart_count,
        "image": string_at(spec, ["image"]),
        "imageID": "",
        "state": _state(status.state),
        "lastState": _state(status.last_state),
    }


def _state(state: PodContainerState) -> Document:
    document = records.encode(state)
    if state.terminated is not None:
        document["terminated"] = {
            **records.encode(state.terminated),
            "exitCode": state.terminated.exit_code,
        }
    if state.running is not None and "running" not in document:
        document["running"] = {}
    return document


# Phase


def _phase(
    pod: Pod,
    first: Sequence[ContainerStatus],
    main: Sequence[ContainerStatus],
    verdict: Verdict | None,
) -> str:
    """Return the phase; an ended pod stays ended."""
    if pod.status.phase in ENDED:
        return pod.status.phase
    everything = [*first, *main]
    is_any_running = any(one.state.running is not None for one in everything)
    if verdict is not None and not is_any_running:
        return FAILED
    policy = pod.spec.restart_policy
    for spec, one in zip(pod.spec.init_containers, first, strict=True):
        if is_sidecar(spec) or _exit_code(one) == 0:
            continue
        is_final = policy == NEVER and one.state.terminated is not None
        return FAILED if is_final and not is_any_running else PENDING
    if any(_never_ran(one) for one in main):
        return PENDING
    ended = [one.state.terminated for one in main if one.state.terminated is not None]
    if len(ended) < len(main) or is_any_running or policy == ALWAYS:
        return RUNNING
    if all(each.exit_code == 0 for each in ended):
        return SUCCEEDED
    return FAILED if policy == NEVER else RUNNING


def _exit_code(status: ContainerStatus) -> int | None:
    return None if status.state.terminated is None else status.state.terminated.exit_code


def _never_ran(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.last_state.terminated is None


def _word(pod: Pod, phase: str, verdict: Verdict | None) -> Document:
    """Return the reason and message of the whole pod; null takes away what no longer holds."""
    if pod.status.phase in ENDED:
        return {}
    if phase == FAILED and verdict is not None:
        return {"reason": verdict.reason, "message": verdict.message}
    if pod.status.reason or pod.status.message:
        return {"reason": None, "message": None}
    return {}


# Conditions


def _conditions(
    pod: Pod,
    phase: str,
    first: Sequence[ContainerStatus],
    main: Sequence[ContainerStatus],
    held: ContainerStateWaiting | None,
    now: datetime,
) -> tuple[Condition, ...]:
    found = pod.status.conditions
    if held is not None:
        found = conditions.set_condition(
            found, READY_TO_START, FALSE, held.reason, held.message, now
        )
    elif conditions.find(found, READY_TO_START) is not None:
        found = conditions.set_condition(found, READY_TO_START, TRUE, "", "", now)
    ready = _containers_ready(pod, phase, first, main)
    said = {
        INITIALIZED: _initialized(pod, phase, first),
        READY: _ready(pod, ready),
        CONTAINERS_READY: ready,
        SCHEDULED: (TRUE, "", ""),
    }
    for name, (status, reason, message) in said.items():
        found = conditions.set_condition(found, name, status, reason, message, now)
    return found


_Said = tuple[str, str, str]


def _initialized(pod: Pod, phase: str, first: Sequence[ContainerStatus]) -> _Said:
    if phase == SUCCEEDED:
        return TRUE, "PodCompleted", ""
    missing = [
        one.name
        for spec, one in zip(pod.spec.init_containers, first, strict=True)
        if not (one.started if is_sidecar(spec) else _exit_code(one) == 0)
    ]
    if missing and phase not in (RUNNING, FAILED):
        message = f"containers with incomplete status: [{' '.join(missing)}]"
        return FALSE, "ContainersNotInitialized", message
    if missing and phase == FAILED:
        return FALSE, "PodFailed", ""
    return TRUE, "", ""


def _containers_ready(
    pod: Pod, phase: str, first: Sequence[ContainerStatus], main: Sequence[ContainerStatus]
) -> _Said:
    if phase in ENDED:
        return FALSE, "PodCompleted" if phase == SUCCEEDED else "PodFailed", ""
    beside = [
        one for spec, one in zip(pod.spec.init_containers, first, strict=True) if is_sidecar(spec)
    ]
    unready = [one.name for one in (*beside, *main) if not one.ready]
    if unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        return FALSE, "ContainersNotReady", message
    return TRUE, "", ""


def _ready(pod: Pod, containers_ready: _Said) -> _Said:
    if containers_ready[0] != TRUE:
        return containers_ready
    for gate in pod.spec.readiness_gates:
        found = conditions.find(pod.status.conditions, gate.condition_type)
        if found is None:
            said = f'corresponding condition of pod readiness gate "{gate.condition_type}"'
            return FALSE, "ReadinessGatesNotReady", f"{said} does not exist."
        if found.status != TRUE:
            said = f'the status of pod readiness gate "{gate.condition_type}" is not "True"'
            return FALSE, "ReadinessGatesNotReady", f"{said}, but {found.status}"
    return TRUE, "", ""
