"""What is true of a pod, told from what its status says."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import labels
from spinney.api.core.pod import ContainerStatus, Pod
from spinney.meta import conditions

ENDED_PHASES = ("Succeeded", "Failed")
SCHEDULING_GATED = "SchedulingGated"


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_ended(pod: Pod) -> bool:
    """Whether nothing of it will run again."""
    return pod.status.phase in ENDED_PHASES


def is_active(pod: Pod) -> bool:
    """Whether it is there to stay: neither being deleted nor ended."""
    return not is_terminating(pod) and not is_ended(pod)


def is_scheduled(pod: Pod) -> bool:
    """Whether it has a node."""
    return bool(pod.spec.node_name) or conditions.is_true(pod.status.conditions, "PodScheduled")


def is_ready(pod: Pod) -> bool:
    """Whether it serves: ready, and not on its way out."""
    return is_active(pod) and says_ready(pod)


def says_ready(pod: Pod) -> bool:
    """Whether its status says that it is ready, be it on its way out or not."""
    return conditions.is_true(pod.status.conditions, "Ready")


def is_gated(pod: Pod) -> bool:
    """Whether a scheduling gate holds it back, be it Grove's or another."""
    return bool(pod.spec.scheduling_gates) and not is_scheduled(pod)


def has_our_gate(pod: Pod) -> bool:
    """Whether it still waits for its gang to be whole."""
    return any(gate.name == labels.GATE for gate in pod.spec.scheduling_gates)


def has_failed_before(pod: Pod) -> bool:
    """Whether it is not ready and some container of it ended badly before."""
    return not is_ready(pod) and any(
        status.last_state.terminated is not None and status.last_state.terminated.exit_code != 0
        for status in _statuses(pod)
    )


def is_started_but_not_ready(pod: Pod) -> bool:
    """Whether some container of it has started and does not serve."""
    if is_ready(pod) or has_failed_before(pod):
        return False
    return any(
        status.started is True and not status.ready for status in pod.status.container_statuses
    )


def _statuses(pod: Pod) -> Iterable[ContainerStatus]:
    yield from pod.status.init_container_statuses
    yield from pod.status.container_statuses


def index_of(pod: Pod) -> int | None:
    """Return a pod's index in its PodClique, as its label says; None where it says nothing."""
    return labels.number(pod.metadata.labels, labels.POD_INDEX)


def template_hash(pod: Pod) -> str:
    """Return which pod template it was made from."""
    return pod.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")


def planned_indexes(pods: Iterable[Pod], replicas: int) -> tuple[int, ...]:
    """Return the indexes at which pods are missing: the lowest free ones, as many as are missing.

    A pod that is being deleted holds its name until it is gone, and counts until then, so that
    there are never more pods than wanted.
    """
    there = tuple(pods)
    taken = {index_of(pod) for pod in there}
    missing = max(0, replicas - len(there))
    free = (index for index in range(replicas) if index not in taken)
    return tuple(index for index, _ in zip(free, range(missing), strict=False))
