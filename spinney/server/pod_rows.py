"""A pod's row: how many containers are ready, and the one word for how the pod is."""

from __future__ import annotations

from datetime import datetime

from spinney.meta import times
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    value_at,
)
from spinney.server import ages

_NONE = "<none>"
_ENDED = ("Succeeded", "Failed")


def _objects(document: Json, *path: str) -> list[Document]:
    return [item for item in list_at(document, path) if isinstance(item, dict)]


class _Restarts:
    """How often containers began again, and when the last one ended before that."""

    def __init__(self) -> None:
        self.count = 0
        self.last: datetime | None = None

    def add(self, status: Document) -> None:
        count = status.get("restartCount")
        self.count += count if is_integer(count) else 0
        ended = string_at(status, ["lastState", "terminated", "finishedAt"])
        if not ended:
            return
        try:
            instant = times.parse_time(ended)
        except ValueError:
            return
        if self.last is None or instant > self.last:
            self.last = instant

    def text(self, now: datetime) -> str:
        if self.count == 0 or self.last is None:
            return str(self.count)
        return f"{self.count} ({ages.duration(int((now - self.last).total_seconds()))} ago)"


def cells(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a pod."""
    spec, status = object_at(document, ["spec"]), object_at(document, ["status"])
    starters = _objects(spec, "initContainers")
    sidecars = {
        string_at(container, ["name"])
        for container in starters
        if container.get("restartPolicy") == "Always"
    }
    word, starting, ready, restarts = _starting(status, len(starters), sidecars)
    if not starting or _condition(status, "Initialized"):
        word, running_ready, restarts = _running(status, word, sidecars)
        ready += running_ready
    if string_at(document, ["metadata", "deletionTimestamp"]):
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif status.get("phase") not in _ENDED:
            word = "Terminating"
    total = len(_objects(spec, "containers")) + len(sidecars)
    addresses = _objects(status, "podIPs")
    return [
        string_at(document, ["metadata", "name"]),
        f"{ready}/{total}",
        word,
        restarts.text(now),
        ages.age(value_at(document, ["metadata", "creationTimestamp"]), now),
        (string_at(addresses[0], ["ip"]) if addresses else string_at(status, ["podIP"])) or _NONE,
        string_at(spec, ["nodeName"]) or _NONE,
        string_at(status, ["nominatedNodeName"]) or _NONE,
        _gates(spec, status),
    ]


def _first_word(status: Document) -> str:
    word = string_at(status, ["reason"]) or string_at(status, ["phase"])
    for condition in _objects(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return word


def _starting(
    status: Document, starter_count: int, sidecars: set[str]
) -> tuple[str, bool, int, _Restarts]:
    """Walk the init containers, in order, to the first that is not done."""
    word, ready, restarts = _first_word(status), 0, _Restarts()
    for index, container in enumerate(_objects(status, "initContainerStatuses")):
        restarts.add(container)
        state = object_at(container, ["state"])
        ended = state.get("terminated")
        if isinstance(ended, dict) and ended.get("exitCode") == 0:
            continue
        if string_at(container, ["name"]) in sidecars and container.get("started") is True:
            ready += container.get("ready") is True
            continue
        waiting = string_at(state, ["waiting", "reason"])
        if isinstance(ended, dict):
            word = f"Init:{_end_word(ended)}"
        elif waiting and waiting != "PodInitializing":
            word = f"Init:{waiting}"
        else:
            word = f"Init:{index}/{starter_count}"
        return word, True, ready, restarts
    return word, False, ready, restarts


def _end_word(ended: Document) -> str:
    reason = string_at(ended, ["reason"])
    if reason:
        return reason
    signal = ended.get("signal")
    if is_integer(signal) and signal != 0:
        return f"Signal:{signal}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _running(status: Document, word: str, sidecars: set[str]) -> tuple[str, int, _Restarts]:
    """Walk the containers, last to first, so that the first has the last word."""
    restarts, ready, is_running = _Restarts(), 0, False
    for container in _objects(status, "initContainerStatuses"):
        if string_at(container, ["name"]) in sidecars:
            restarts.add(container)
    for container in reversed(_objects(status, "containerStatuses")):
        restarts.add(container)
        state = object_at(container, ["state"])
        waiting, ended = string_at(state, ["waiting", "reason"]), state.get("terminated")
        if waiting:
            word = waiting
        elif isinstance(ended, dict):
            word = _end_word(ended)
        elif container.get("ready") is True and isinstance(state.get("running"), dict):
            is_running = True
            ready += 1
    if word == "Completed" and is_running:
        word = "Running" if _condition(status, "Ready") else "NotReady"
    return word, ready, restarts


def _condition(status: Document, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in _objects(status, "conditions")
    )


def _gates(spec: Document, status: Document) -> str:
    gates = _objects(spec, "readinessGates")
    if not gates:
        return _NONE
    met = sum(_condition(status, string_at(gate, ["conditionType"])) for gate in gates)
    return f"{met}/{len(gates)}"


def conditions(document: Document) -> list[Json]:
    """Return what marks the row of a pod that ended, so that kubectl may leave it out."""
    phase = string_at(document, ["status", "phase"])
    if phase not in _ENDED:
        return []
    told = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }
    return [{"type": "Completed", "status": "True", "reason": phase, "message": told[phase]}]
