"""Evidence: what became of the pods that are not ready, in a few words (rule 4.3).

Told from what their statuses say, in words that stay the same from one restart to the next, so that
a pod that crashes again and again does not have them written again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spinney.api import names
from spinney.api.core.pod import ContainerStateTerminated, ContainerStatus, Pod
from spinney.api.podclique import PodClique
from spinney.decisions import pods

PODS_TOLD = 3
MESSAGE_LENGTH_MAX = 200


def of_clique(clique: PodClique, members: Sequence[Pod]) -> str:
    """Return what became of those pods of a PodClique that are not ready; "" where all are."""
    there = {pod.metadata.name: pod for pod in members}
    wanted = [names.pod(clique.metadata.name, index) for index in range(clique.spec.replicas)]
    told = [
        text
        for name in wanted
        if (text := f"{name} is not there" if name not in there else of_pod(there[name]))
    ]
    more = [f"{len(told) - PODS_TOLD} more"] if len(told) > PODS_TOLD else []
    return ", ".join([*told[:PODS_TOLD], *more])


def of_pod(pod: Pod) -> str:
    """Return why a pod is not ready; "" where it is."""
    name = pod.metadata.name
    if pods.is_ready(pod):
        return ""
    for status, ended in _endings(pod):
        return f"{name}: {ending(status.name, ended)}"
    if pods.is_terminating(pod):
        return f"{name} is being deleted"
    if pod.status.reason:
        message = f": {pod.status.message[:MESSAGE_LENGTH_MAX]}" if pod.status.message else ""
        return f"{name}: {pod.status.reason}{message}"
    if not pods.is_scheduled(pod):
        return f"{name} has no node"
    return f"{name} is not ready"


def ending(container: str, ended: ContainerStateTerminated) -> str:
    """Return how a container ended: its exit code, why, and what it said last."""
    text = f"{container} ended with exit code {ended.exit_code}"
    if ended.reason and ended.reason not in ("Error", "Completed"):
        text = f"{text} ({ended.reason})"
    said = " ".join(ended.message.split())
    return f"{text}: {said[-MESSAGE_LENGTH_MAX:]}" if said else text


def _endings(pod: Pod) -> Iterator[tuple[ContainerStatus, ContainerStateTerminated]]:
    """Yield how containers of a pod ended last, those that failed."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None and ended.exit_code != 0 and not status.ready:
            yield status, ended
