"""Pods, PodCliques and groups in one letter or word, for tables of statuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.meta.times import format_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CURRENT, OUTDATED = "1current", "1outdated"
ENDED: Document = {"terminated": {"exitCode": 1, "finishedAt": format_time(NOW)}}

# letter: (phase, on a node, ready, container, terminating)
LETTERS: dict[str, tuple[str, bool, bool, Document, bool]] = {
    "R": ("Running", True, True, {"ready": True, "started": True}, False),  # ready
    "S": ("Running", True, False, {"ready": False, "started": False}, False),  # starting
    "N": ("Running", True, False, {"ready": False, "started": True}, False),  # started, not ready
    "E": ("Running", True, False, {"ready": False, "lastState": ENDED}, False),  # ended badly
    "P": ("Pending", False, False, {}, False),  # waits for a node
    "G": ("Pending", False, False, {}, False),  # held back by a gate
    "T": ("Running", True, True, {"ready": True, "started": True}, True),  # ready, and going
    "F": ("Failed", True, False, {}, False),
    "D": ("Succeeded", True, False, {}, False),
    "U": ("Unknown", True, False, {}, False),
}


def pod(
    letter: str,
    index: int = 0,
    *,
    template_hash: str = CURRENT,
    created: datetime | None = NOW,
    owner: str = "it",
) -> Pod:
    """Return the pod a letter stands for."""
    phase, has_node, is_ready, container, is_going = LETTERS[letter]
    metadata: Document = {
        "name": f"{owner}-{index}",
        "uid": f"uid-{owner}-{index}",
        "labels": {labels.POD_INDEX: str(index), labels.POD_TEMPLATE_HASH: template_hash},
    }
    if created is not None:
        metadata["creationTimestamp"] = format_time(created)
    if is_going:
        metadata["deletionTimestamp"] = format_time(NOW)
    told: list[Json] = [
        {"type": "PodScheduled", "status": "True" if has_node else "False"},
        {"type": "Ready", "status": "True" if is_ready else "False"},
    ]
    spec: Document = {"nodeName": "node"} if has_node else {}
    if letter == "G":
        spec["schedulingGates"] = [{"name": labels.GATE}]
    status: Document = {"phase": phase, "conditions": told}
    if container:
        status["containerStatuses"] = [{"name": "main", **container}]
    return records.decode(Pod, {"metadata": metadata, "spec": spec, "status": status})


def pods(letters: str) -> tuple[Pod, ...]:
    """Return pods, one a letter; a small letter is of an outdated template."""
    return tuple(
        pod(each.upper(), index, template_hash=CURRENT if each.isupper() else OUTDATED)
        for index, each in enumerate(letters)
    )


def clique(
    name: str = "it",
    *,
    replicas: int = 1,
    least: int | None = None,
    status: Document | None = None,
    carried: dict[str, str] | None = None,
    going: bool = False,
) -> PodClique:
    """Return a PodClique."""
    metadata: Document = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "generation": 2,
        "labels": {labels.PART_OF: "set", labels.POD_TEMPLATE_HASH: CURRENT, **(carried or {})},
    }
    if going:
        metadata["deletionTimestamp"] = format_time(NOW)
    spec: Document = {"roleName": name, "podSpec": {}, "replicas": replicas}
    if least is not None:
        spec["minAvailable"] = least
    return records.decode(PodClique, {"metadata": metadata, "spec": spec, "status": status or {}})


def ago(seconds: int) -> datetime:
    """Return an instant before now."""
    return NOW - timedelta(seconds=seconds)
