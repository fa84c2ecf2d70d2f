"""Why a container of a pod is not ready."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.decisions.causes import looks, scenes
from spinney.decisions.causes.looks import Link
from spinney.decisions.causes.scenes import Scene
from spinney.meta.documents import Document, Json, list_at, object_at, string_at, value_at

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
ORDER_CONTAINER = "grove-initc"
"""The init container that, on a cluster, waits for those a pod starts after."""

_STARTING = frozenset({"ContainerCreating", "PodInitializing", ""})


def statuses(pod: Document) -> Iterator[tuple[Document, Document]]:
    """Yield each container with its status, those that run first first."""
    for spec, status in (
        ("initContainers", "initContainerStatuses"),
        ("containers", "containerStatuses"),
    ):
        told = {
            string_at(each, ["name"]): each
            for each in list_at(pod, ["status", status])
            if isinstance(each, dict)
        }
        for container in list_at(pod, ["spec", spec]):
            if isinstance(container, dict):
                yield container, told.get(string_at(container, ["name"]), {})


def has_begun(status: Document) -> bool:
    """Whether a container runs, or has ended before, so that it may have written something."""
    paths = (["state", "running"], ["state", "terminated"], ["lastState", "terminated"])
    return any(value_at(status, path) is not None for path in paths)


def has_run(pod: Document) -> bool:
    """Whether any container of a pod has begun, but for the one that waits for others."""
    return any(
        has_begun(status)
        for container, status in statuses(pod)
        if string_at(container, ["name"]) != ORDER_CONTAINER
    )


def ended_badly(pod: Document) -> Iterator[Link]:
    """Yield what is told of each container that has ended with a fault."""
    for container, status in statuses(pod):
        ended = object_at(status, ["state", "terminated"])
        if ended and scenes.number_at(ended, "exitCode"):
            yield _link(pod, container, _word(ended), f"ended: {how(ended)}", _said(pod, container))


def troubles(scene: Scene, pod: Document) -> Iterator[Link]:
    """Yield what keeps each container of a pod from being ready."""
    has_begun = True
    for container, status in statuses(pod):
        is_first = _is_init(pod, container)
        if not is_first and not has_begun:
            return
        found = _trouble(scene, pod, container, status, is_first=is_first)
        if found is not None:
            has_begun = has_begun and not is_first
            yield found


def _is_init(pod: Document, container: Document) -> bool:
    return any(each is container for each in list_at(pod, ["spec", "initContainers"]))


def _trouble(
    scene: Scene, pod: Document, container: Document, status: Document, *, is_first: bool
) -> Link | None:
    if status.get("ready") is True:
        return None
    ended = object_at(status, ["state", "terminated"])
    if ended:
        if not scenes.number_at(ended, "exitCode"):
            if is_first or string_at(pod, ["spec", "restartPolicy"]) != "Always":
                return None
            told = "ended with exit code 0, and is to run on: it is started again"
            return _link(pod, container, "Completed", told, _said(pod, container), ended)
        return _link(pod, container, _word(ended), f"ended: {how(ended)}", _said(pod, container))
    if value_at(status, ["state", "running"]) is not None:
        if is_first and not _is_sidecar(container):
            told = "is to end before the others begin, and still runs"
            return _link(pod, container, "Initializing", told, _said(pod, container), status)
        return _probed(scene, pod, container, status)
    waiting = object_at(status, ["state", "waiting"])
    return _waiting(scene, pod, container, status, waiting) if status or waiting else None


def _is_sidecar(container: Document) -> bool:
    return container.get("restartPolicy") == "Always"


def _waiting(
    scene: Scene, pod: Document, container: Document, status: Document, waiting: Document
) -> Link:
    reason = string_at(waiting, ["reason"])
    message = scenes.one_line(string_at(waiting, ["message"]))
    before = object_at(status, ["lastState", "terminated"])
    count = scenes.number_at(status, "restartCount")
    if reason == "CrashLoopBackOff" or (before and scenes.number_at(before, "exitCode")):
        times = f" {count} times" if count > 1 else ""
        last = how(before) if before else message or "nobody saw how"
        told = f"ends again and again, started anew{times}; last: {last}"
        said = _said(pod, container, previous=True)
        return _link(pod, container, "CrashLoopBackOff", told, said, before)
    if reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"):
        image = string_at(container, ["image"])
        told = f"its image {image} cannot be had{f': {message}' if message else ''}"
        return _link(pod, container, reason, told, "mend the image's name, or the right to pull it")
    if reason in ("CreateContainerConfigError", "CreateContainerError"):
        event = scene.last_event(pod, "Failed", "FailedMount")
        told = message or scenes.one_line(string_at(event, ["message"])) or "no reason is given"
        remedy = "make the ConfigMap or Secret it names; it is tried again by itself"
        return _link(pod, container, reason, f"cannot be made: {told}", remedy)
    if reason in _STARTING:
        event = scene.last_event(pod)
        said = scenes.one_line(string_at(event, ["message"])) if event is not None else ""
        told = "is being started" + (f": {message or said}" if message or said else "")
        see = looks.describe(scenes.ref_of(pod))
        return _link(pod, container, reason or "Waiting", told, f"wait; if it stays so, see {see}")
    told = f"cannot start: {reason}" + (f": {message}" if message else "")
    remedy = "do what it says"
    return _link(pod, container, reason, told, remedy)


def _probed(scene: Scene, pod: Document, container: Document, status: Document) -> Link:
    """Tell of a container that runs and is not ready: some probe has not succeeded."""
    is_started = status.get("started") is not False
    probe = "readinessProbe" if is_started else "startupProbe"
    name = "readiness" if is_started else "startup"
    event = scene.last_event(pod, "Unhealthy", "ProbeError")
    said = scenes.one_line(string_at(event, ["message"])) if event is not None else ""
    running = object_at(status, ["state", "running"])
    if said:
        told = f"runs, and is not ready: {said}"
    elif object_at(container, [probe]):
        told = f"runs, and its {name} probe ({_probe_text(container[probe])}) has not succeeded yet"
    else:
        told = "runs, and is not told to be ready"
    remedy = f"see what it does: {_log(pod, container)}"
    return _link(pod, container, "ProbeNotPassed", told, remedy, running)


def _probe_text(probe: Json) -> str:
    for sort, word in (("httpGet", "GET"), ("tcpSocket", "connect to"), ("grpc", "grpc")):
        found = object_at(probe, [sort])
        if found:
            path = string_at(found, ["path"]) or ("/" if sort == "httpGet" else "")
            return " ".join(f"{word} {path} port {found.get('port')}".split())
    command = list_at(probe, ["exec", "command"])
    return "exec " + " ".join(str(word) for word in command) if command else "unknown"


def how(ended: Document) -> str:
    """Return how a container ended, with the last it said where that was kept."""
    code, signal = scenes.number_at(ended, "exitCode"), scenes.number_at(ended, "signal")
    signal = signal or (code - 128 if 128 < code < 160 else 0)
    reason = string_at(ended, ["reason"])
    parts = [f"exit code {code}"]
    if reason == "OOMKilled":
        parts.append("it needed more memory than it may have")
    elif signal:
        parts.append(_SIGNALS.get(signal, f"signal {signal}"))
    elif code in (126, 127):
        parts.append("its command could not be run" if code == 126 else "its command is not there")
    if reason and reason not in ("Error", "Completed", "OOMKilled"):
        parts.append(reason)
    message = scenes.one_line(string_at(ended, ["message"]))
    return ", ".join(parts) + (f": {message}" if message else "")


def _word(ended: Document) -> str:
    return string_at(ended, ["reason"]) or "Error"


def _log(pod: Document, container: Document, *, previous: bool = False) -> str:
    rest = f" -c {string_at(container, ['name'])}" if _has_several(pod) else ""
    ref = scenes.ref_of(pod)
    return looks.command("logs", ref, rest + (" --previous" if previous else ""))


def _has_several(pod: Document) -> bool:
    return sum(1 for _ in statuses(pod)) > 1


def _said(pod: Document, container: Document, *, previous: bool = False) -> str:
    return f"mend what makes it end; what it said: {_log(pod, container, previous=previous)}"


def _link(
    pod: Document,
    container: Document,
    reason: str,
    sentence: str,
    remedy: str,
    state: Document | None = None,
) -> Link:
    name = string_at(container, ["name"])
    since = scenes.instant_at(state, "finishedAt") or scenes.instant_at(state, "startedAt")
    ready = scenes.transition(scenes.condition(pod, "Ready"))
    return Link(
        about=scenes.ref_of(pod),
        reason=reason,
        sentence=f"container {name} {sentence}" if _has_several(pod) else sentence,
        since=since or ready or scenes.instant_at(pod, "metadata", "creationTimestamp"),
        remedy=remedy,
        container=name,
    )
