"""For whom a pod's main containers wait, before they are started (rule 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spinney.api import labels
from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.decisions import pods
from spinney.decisions.making.pods import STARTS_AFTER
from spinney.ports import Reader

REASON: Final = "WaitingForPodCliques"
_BY_CLIQUE: Final = f"label:{labels.PODCLIQUE}"


def cliques(pod: Pod) -> tuple[tuple[str, int], ...]:
    """Return the PodCliques a pod starts after, and how many pods of each must be ready."""
    return tuple(_entries(pod.metadata.annotations.get(STARTS_AFTER, "")))


def _entries(text: str) -> Iterator[tuple[str, int]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = part.partition("=")
        yield name, int(count) if count.isdigit() and count.isascii() else 1


def held(pod: Pod, reader: Reader) -> ContainerStateWaiting | None:
    """Return why a pod's main containers may not start yet; None where they may."""
    missing = [
        f"{name} ({ready} of {count} pods ready)"
        for name, count in cliques(pod)
        if (ready := _ready_count(pod.metadata.namespace, name, reader)) < count
    ]
    if not missing:
        return None
    return ContainerStateWaiting(
        reason=REASON, message=f"starts after PodClique {', '.join(missing)}"
    )


def _ready_count(namespace: str, clique: str, reader: Reader) -> int:
    members = reader.list(Pod, namespace=namespace, by=(_BY_CLIQUE, clique))
    return sum(map(pods.is_ready, members))
