"""Machines: the Node object of a node that an agent keeps, as it should be. Pure.

What others wrote on it stays: labels and taints of theirs, and whether it is cordoned.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from spinney.api.core.node import Node
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN
from spinney.meta.documents import Document, same
from spinney.meta.records import Record

KUBELET_VERSION: Final = "v1.33.0"
"""The version of Kubernetes whose nodes it behaves like."""

CONNECTED: Final = (TRUE, "AgentReady", "the agent of the node runs its pods")
ENDED: Final = (FALSE, "AgentEnded", "the agent of the node has ended its pods and itself")
LOST: Final = (
    UNKNOWN,
    "NodeStatusUnknown",
    "the connection to the agent of the node is lost: whether its pods run is not known",
)

Readiness = tuple[str, str, str]
"""Status, reason and message of the condition Ready."""


class Hardware(Record):
    """What a machine has, as it was measured."""

    capacity: Mapping[str, str]
    architecture: str = "amd64"
    kernel: str = ""
    system: str = "linux"
    image: str = ""
    hostname: str = ""
    runtime: str = "process://1"


def labels(name: str, hardware: Hardware) -> dict[str, str]:
    """Return the labels of a node."""
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": hardware.system,
        "kubernetes.io/arch": hardware.architecture,
    }


def document(
    name: str, ip: str, hardware: Hardware, readiness: Readiness, now: datetime
) -> Document:
    """Return the Node of a machine that was not there before."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels(name, hardware)}},
        "spec": {},
        "status": status(None, name, ip, hardware, readiness, now),
    }


def label_changes(node: Node, hardware: Hardware) -> Document | None:
    """Return what must be merged into a Node for its labels to be right, None where they are."""
    missing: Document = {
        key: value
        for key, value in labels(node.metadata.name, hardware).items()
        if node.metadata.labels.get(key) != value
    }
    return {"metadata": {"labels": missing}} if missing else None


def status(
    node: Node | None,
    name: str,
    ip: str,
    hardware: Hardware,
    readiness: Readiness,
    now: datetime,
) -> Document:
    """Return what a machine tells of itself."""
    before = () if node is None else node.status.conditions
    told = conditions.set_condition(before, "Ready", *readiness, now)
    for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        if conditions.find(told, pressure) is None:
            told = conditions.set_condition(told, pressure, FALSE, "NotWatched", "", now)
    return {
        "capacity": {**hardware.capacity},
        "allocatable": {**hardware.capacity},
        "conditions": [records.encode(condition) for condition in told],
        "addresses": [
            {"type": "InternalIP", "address": ip},
            {"type": "Hostname", "address": hardware.hostname or name},
        ],
        "nodeInfo": {
            "architecture": hardware.architecture,
            "bootID": "",
            "containerRuntimeVersion": hardware.runtime,
            "kernelVersion": hardware.kernel,
            "kubeProxyVersion": KUBELET_VERSION,
            "kubeletVersion": KUBELET_VERSION,
            "machineID": "",
            "operatingSystem": hardware.system,
            "osImage": hardware.image,
            "systemUUID": "",
        },
    }


def is_told(node: Node, wanted: Document) -> bool:
    """Whether a Node says all this already."""
    found = records.encode(node.status)
    fields = ("capacity", "allocatable", "conditions", "addresses")
    return all(same(found.get(field), wanted[field]) for field in fields)


def lost(node: Node, now: datetime, readiness: Readiness = LOST) -> Document | None:
    """Return the conditions of a node nobody hears of any more; None where they say so already."""
    told = conditions.set_condition(node.status.conditions, "Ready", *readiness, now)
    if told == node.status.conditions:
        return None
    return {"conditions": [records.encode(condition) for condition in told]}
