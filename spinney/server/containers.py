"""Containers: which one of a pod is meant, and whether it can be asked. Pure.

Words are those of Kubernetes' server and of its kubelet, which people search for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spinney.meta import errors
from spinney.meta.documents import Document, list_at, object_at, string_at
from spinney.meta.errors import BadRequest
from spinney.meta.records import Record

DEFAULT_ANNOTATION = "kubectl.kubernetes.io/default-container"

_LISTS = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)
_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class Place(Record):
    """One container of a pod, and the node to ask about it."""

    pod: str
    uid: str
    node: str
    version: int
    """The version of the world in which it was there."""

    container: str = ""


def chosen(pod: Document, wanted: str) -> str:
    """Return the container that is meant: the one named, or the only or default one.

    Raises BadRequest where none is, saying which there are.
    """
    name = string_at(pod, ["metadata", "name"])
    regular, initial, ephemeral = (_names(pod, field) for field, _ in _LISTS)
    if wanted:
        if wanted not in (*regular, *initial, *ephemeral):
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    default = string_at(pod, ["metadata", "annotations", DEFAULT_ANNOTATION])
    if default in regular:
        return default
    if len(regular) == 1:
        return regular[0]
    told = f"a container name must be specified for pod {name}"
    if regular:
        told += f", choose one of: [{' '.join(regular)}]"
    if initial:
        told += f" or one of the init containers: [{' '.join(initial)}]"
    if ephemeral:
        told += f" or one of the ephemeral containers: [{' '.join(ephemeral)}]"
    raise BadRequest(told)


def is_previous(pod: Document, container: str, *, previous: bool) -> bool:
    """Whether the log that is asked for is that of the attempt before the newest.

    Raises BadRequest where there is no log yet, or none before. What a container that waits to be
    started again did last is its newest attempt, asked for with `previous` or without.
    """
    name, quoted = string_at(pod, ["metadata", "name"]), errors.json_string(container)
    where = f"container {quoted} in pod {errors.json_string(name)}"
    status = _status(pod, container)
    if status is None:
        raise BadRequest(f"{where} is not available")
    state, last = object_at(status, ["state"]), object_at(status, ["lastState"])
    is_waiting = not {"running", "terminated"} & state.keys()
    if previous:
        if "terminated" not in last:
            raise BadRequest(
                f"previous terminated container {quoted} in pod {errors.json_string(name)} "
                "not found"
            )
        return not is_waiting
    if is_waiting and "terminated" not in last:
        raise BadRequest(f"{where} {_why_waiting(state)}")
    return False


def check_runs(pod: Document, container: str) -> None:
    """Raise BadRequest where a container does not run, so that nothing can be run in it."""
    state = object_at(_status(pod, container) or {}, ["state"])
    if "running" in state:
        return
    if "terminated" in state:
        code = object_at(state, ["terminated"]).get("exitCode", 0)
        why = f"it ended with exit code {code}"
    else:
        why = f"it {_why_waiting(state)}"
    quoted = errors.json_string(container)
    raise BadRequest(f"unable to upgrade connection: container not found ({quoted}): {why}")


def _why_waiting(state: Document) -> str:
    reason = string_at(state, ["waiting", "reason"])
    if not reason:
        return "is waiting to start - no logs yet"
    return f"is waiting to start: {_WAITING.get(reason, reason)}"


def _names(pod: Document, field: str) -> Sequence[str]:
    return [string_at(container, ["name"]) for container in list_at(pod, ["spec", field])]


def _status(pod: Document, container: str) -> Document | None:
    return next((s for s in _statuses(pod) if s.get("name") == container), None)


def _statuses(pod: Document) -> Iterator[Document]:
    for _, field in _LISTS:
        for status in list_at(pod, ["status", field]):
            if isinstance(status, dict):
                yield status
