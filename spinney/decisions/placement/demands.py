"""Demands: what is to be placed, a gang at a time."""

from __future__ import annotations

from datetime import datetime

from spinney.api import groupkinds
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGangTopologyConstraint
from spinney.decisions import pods
from spinney.decisions.placement import attraction, requesting
from spinney.decisions.placement.amounts import Amounts
from spinney.decisions.placement.attraction import NodeTerm, Preference, Toleration
from spinney.decisions.placement.requesting import HostPort
from spinney.meta.records import Record
from spinney.meta.references import Ref

NEVER = "Never"
"""The preemption policy of pods for which nobody is evicted."""


class PodShape(Record, order=True, cache_hash=True):
    """All of a pod that decides where it may go. Pods of one shape are interchangeable."""

    requests: Amounts
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeTerm, ...] = ()
    """One of them must match; none where nothing is required."""

    preferences: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()


class PodDemand(Record):
    """One pod that may be in need of a node."""

    ref: Ref
    uid: str
    shape: PodShape
    priority: int = 0
    can_preempt: bool = True
    """Whether others may be evicted for it."""

    is_gated: bool = False
    """Whether something holds it back from being placed."""

    not_honoured: tuple[str, ...] = ()
    """Fields of its spec that bear on where it should go and that nobody here looks at."""


class Pack(Record):
    """Node labels whose value pods must, or should, share; empty where nothing is asked."""

    required_key: str = ""
    preferred_key: str = ""


class BoundPod(Record):
    """A pod of a gang that has its node already."""

    ref: Ref
    uid: str
    node: str


class GroupDemand(Record):
    """The pods of one PodClique in a gang."""

    name: str
    min_replicas: int
    """How many must have a node for the gang to run, those that have one counted."""

    waiting: tuple[PodDemand, ...] = ()
    bound: tuple[BoundPod, ...] = ()
    pack: Pack = Pack()


class PackConfig(Record):
    """Groups that must be close together: one copy of a scaling group."""

    name: str
    group_names: tuple[str, ...]
    pack: Pack = Pack()


class GangDemand(Record):
    """A gang: placed as far as its groups ask, or not at all."""

    ref: Ref
    uid: str
    groups: tuple[GroupDemand, ...]
    pack: Pack = Pack()
    configs: tuple[PackConfig, ...] = ()
    priority: int = 0
    created: datetime | None = None

    @property
    def can_preempt(self) -> bool:
        """Whether others may be evicted for it: for all that wait of it."""
        return all(pod.can_preempt for group in self.groups for pod in group.waiting)

    @property
    def is_running(self) -> bool:
        """Whether some pod of it has a node already, so that it only wants to be whole again."""
        return any(group.bound for group in self.groups)


def pod_demand(pod: Pod) -> PodDemand:
    """Return what a pod asks of the node it goes to.

    Its `spec.priority` must be resolved; a pod that has none has priority 0.
    """
    spec = pod.spec
    shape = PodShape(
        requests=requesting.requests(spec),
        node_selector=tuple(sorted(spec.node_selector.items())),
        required_terms=attraction.required_terms(spec.affinity),
        preferences=attraction.preferences(spec.affinity),
        tolerations=attraction.tolerations(spec.tolerations),
        host_ports=requesting.host_ports(spec),
    )
    return PodDemand(
        ref=Ref(
            kind=groupkinds.POD, namespace=pod.metadata.namespace or "", name=pod.metadata.name
        ),
        uid=pod.metadata.uid,
        shape=shape,
        priority=spec.priority or 0,
        can_preempt=spec.preemption_policy != NEVER,
        is_gated=pods.is_gated(pod),
        not_honoured=tuple(
            f"spec.affinity.{field}"
            for field in ("podAffinity", "podAntiAffinity")
            if (spec.affinity or {}).get(field)
        ),
    )


def gang_of_one(pod: PodDemand, created: datetime | None = None) -> GangDemand:
    """Return the gang that a pod outside any PodGang is."""
    group = GroupDemand(name=pod.ref.name, min_replicas=1, waiting=(pod,))
    return GangDemand(
        ref=pod.ref, uid=pod.uid, groups=(group,), priority=pod.priority, created=created
    )


def pack(constraint: PodGangTopologyConstraint | None) -> Pack:
    """Return what a constraint of a PodGang asks for."""
    if constraint is None or constraint.pack_constraint is None:
        return Pack()
    found = constraint.pack_constraint
    return Pack(required_key=found.required, preferred_key=found.preferred)


def levels(binding: ClusterTopologyBinding | None) -> tuple[str, ...]:
    """Return the node labels of a cluster's network, broadest first; none where none is known."""
    return tuple(level.key for level in binding.spec.levels) if binding is not None else ()
