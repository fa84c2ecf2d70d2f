"""Machines: nodes as placing sees them, and what occupies them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spinney.api.core.node import Node, Taint
from spinney.decisions.placement import amounts
from spinney.decisions.placement.amounts import Amounts
from spinney.decisions.placement.demands import PodDemand
from spinney.decisions.placement.requesting import HostPort
from spinney.meta import conditions
from spinney.meta.records import Record
from spinney.meta.references import Ref

HOSTNAME = "kubernetes.io/hostname"
"""The label every node has in a real cluster; a node without it counts as having its name there."""


class Machine(Record):
    """A node: what it has, and who may come."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    is_schedulable: bool = True
    """False where it is cordoned."""

    is_ready: bool = True
    allocatable: Mapping[str, int] = {}


class Resident(Record):
    """A pod that occupies a part of a machine, or is about to."""

    ref: Ref
    uid: str
    requests: Amounts
    host_ports: tuple[HostPort, ...] = ()
    priority: int = 0
    gang: Ref | None = None
    """Its gang; None where it is in none, and is one by itself."""

    created: datetime | None = None
    """When its gang was made."""

    is_leaving: bool = False
    """Whether it is being deleted, and its part will be free."""

    @property
    def whole(self) -> Ref:
        """What it leaves with: its gang, or itself."""
        return self.gang or self.ref


def machine(node: Node) -> Machine:
    """Return a node as placing sees it."""
    labels = dict(node.metadata.labels)
    labels.setdefault(HOSTNAME, node.metadata.name)
    return Machine(
        name=node.metadata.name,
        labels=labels,
        taints=tuple(sorted(node.spec.taints, key=lambda taint: (taint.key, taint.effect))),
        is_schedulable=not node.spec.unschedulable and node.metadata.deletion_timestamp is None,
        is_ready=conditions.is_true(node.status.conditions, "Ready"),
        allocatable={
            name: amounts.offered(value, name)
            for name, value in (node.status.allocatable or node.status.capacity).items()
        },
    )


def resident(
    pod: PodDemand,
    *,
    gang: Ref | None = None,
    created: datetime | None = None,
    is_leaving: bool = False,
) -> Resident:
    """Return what a pod is to the machine it is on."""
    return Resident(
        ref=pod.ref,
        uid=pod.uid,
        requests=pod.shape.requests,
        host_ports=pod.shape.host_ports,
        priority=pod.priority,
        gang=gang,
        created=created,
        is_leaving=is_leaving,
    )
