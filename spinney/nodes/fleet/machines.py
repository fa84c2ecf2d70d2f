"""Machines: the Node objects of simulated nodes, as they should be.

What a simulated node tells of itself is worked out from its shape. What others wrote on it stays:
labels and taints beyond those of the shape, and whether it is cordoned.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from spinney.api.core.node import Node
from spinney.meta import conditions, records
from spinney.meta.conditions import TRUE, UNKNOWN
from spinney.meta.documents import Document, Json, same
from spinney.meta.records import Record
from spinney.nodes.fleet.shapes import Shape

SIMULATED: Final = "spinney.dev/simulated"
"""The label of simulated nodes; its value is `true`."""

VANISHED: Final = "sim.spinney.dev/vanished"
"""The annotation that has a simulated node stop answering while it is `true`."""

NODE_ADDRESSES: Final = int(ipaddress.IPv4Address("240.0.0.0"))
"""Where the addresses of simulated nodes begin: reserved ones, which no real machine has."""

SHAPE_ADDRESSES: Final = 2**17
"""How many addresses each shape has."""

VERSION: Final = "v1.33.0"
"""The version of Kubernetes whose nodes they behave like."""

_GONE = "the node no longer answers: it was told to vanish"


class Machine(Record):
    """One simulated node."""

    name: str
    shape: Shape
    index: int
    """Its index within the shape."""

    address: str


def machines(shapes: Sequence[Shape]) -> Iterator[Machine]:
    """Yield the machines of shapes, in order."""
    for shape_index, shape in enumerate(shapes):
        first = NODE_ADDRESSES + shape_index * SHAPE_ADDRESSES + 1
        for index, name in enumerate(shape.node_names()):
            address = str(ipaddress.IPv4Address(first + index))
            yield Machine(name=name, shape=shape, index=index, address=address)


def is_vanished(node: Node) -> bool:
    """Whether a node was told to stop answering."""
    return node.metadata.annotations.get(VANISHED) == "true"


def labels(machine: Machine) -> Mapping[str, str]:
    """Return the labels of a machine."""
    return {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "simulated",
        SIMULATED: "true",
        **machine.shape.domains(machine.index),
        **machine.shape.labels,
    }


def document(machine: Machine, now: datetime) -> Document:
    """Return the Node of a machine that was not there before."""
    taints: list[Json] = [records.encode(taint) for taint in machine.shape.taints]
    spec: Document = {"taints": taints} if taints else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": {**labels(machine)}},
        "spec": spec,
        "status": status(machine, None, now),
    }


def label_changes(machine: Machine, node: Node) -> Document | None:
    """Return what must be merged into a Node for its labels to be right, None where they are."""
    wanted = labels(machine)
    missing: Document = {
        key: value for key, value in wanted.items() if node.metadata.labels.get(key) != value
    }
    return {"metadata": {"labels": missing}} if missing else None


def status(machine: Machine, node: Node | None, now: datetime) -> Document:
    """Return what a machine tells of itself, or what is told of it once it does not answer."""
    capacity: Document = {**machine.shape.capacity}
    before = () if node is None else node.status.conditions
    if node is not None and is_vanished(node):
        ready = conditions.set_condition(before, "Ready", UNKNOWN, "NodeStatusUnknown", _GONE, now)
    else:
        told = "its pods are simulated: no process runs"
        ready = conditions.set_condition(before, "Ready", TRUE, "Simulated", told, now)
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [records.encode(condition) for condition in ready],
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "simulated://1",
            "kernelVersion": "simulated",
            "kubeProxyVersion": VERSION,
            "kubeletVersion": VERSION,
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "simulated",
            "systemUUID": "",
        },
    }


def is_told(machine: Machine, node: Node, now: datetime) -> bool:
    """Whether a Node says already what its machine would tell."""
    wanted = status(machine, node, now)
    found = records.encode(node.status)
    fields = ("capacity", "allocatable", "conditions", "addresses")
    return all(same(found.get(field), wanted[field]) for field in fields)
