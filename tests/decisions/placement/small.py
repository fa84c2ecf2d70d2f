"""Small worlds for placing: machines, gangs, and Hypothesis strategies for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.api.core.node import Taint
from spinney.decisions.placement import amounts
from spinney.decisions.placement.attraction import (
    NodeRequirement,
    NodeTerm,
    Preference,
    Toleration,
)
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import (
    BoundPod,
    GangDemand,
    GroupDemand,
    Pack,
    PackConfig,
    PodDemand,
    PodShape,
)
from spinney.decisions.placement.machines import HOSTNAME, Machine, Resident
from spinney.decisions.placement.outcomes import Placement
from spinney.decisions.placement.requesting import HostPort
from spinney.meta.references import Ref

ZONE, RACK = "zone", "rack"
LEVELS = (ZONE, RACK)
GPU = "nvidia.com/gpu"
NO_PACK = Pack()
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def machine(
    name: str,
    cpu: int = 4,
    gpu: int = 0,
    labels: Mapping[str, str] | None = None,
    pods: int = 110,
    **more: object,
) -> Machine:
    offered = {"cpu": cpu, "pods": pods} | ({GPU: gpu} if gpu else {})
    found = {HOSTNAME: name, **(labels or {})}
    return Machine(name=name, labels=found, allocatable=offered, **more)  # type: ignore[arg-type]


def shape(cpu: int = 1, gpu: int = 0, **more: object) -> PodShape:
    asked = amounts.amounts({"cpu": cpu, GPU: gpu, "pods": 1})
    return PodShape(requests=asked, **more)  # type: ignore[arg-type]


def pod_ref(name: str) -> Ref:
    return Ref(kind=groupkinds.POD, namespace="default", name=name)


def gang_ref(name: str) -> Ref:
    return Ref(kind=groupkinds.GANG, namespace="default", name=name)


def pod(name: str, of: PodShape, priority: int = 0, **more: object) -> PodDemand:
    return PodDemand(
        ref=pod_ref(name),
        uid=f"uid-{name}",
        shape=of,
        priority=priority,
        **more,  # type: ignore[arg-type]
    )


def group(
    name: str,
    shapes: Iterable[PodShape],
    least: int | None = None,
    bound: Iterable[str] = (),
    pack: Pack = NO_PACK,
    priority: int = 0,
) -> GroupDemand:
    """Pods are named after the group; bound ones after those that wait."""
    waiting = tuple(pod(f"{name}-{at}", of, priority) for at, of in enumerate(shapes))
    there = tuple(
        BoundPod(ref=pod_ref(f"{name}-{at}"), uid=f"uid-{name}-{at}", node=node)
        for at, node in enumerate(bound, len(waiting))
    )
    return GroupDemand(
        name=name,
        min_replicas=len(waiting) + len(there) if least is None else least,
        waiting=waiting,
        bound=there,
        pack=pack,
    )


def gang(
    *groups: GroupDemand,
    name: str = "gang",
    pack: Pack = NO_PACK,
    configs: tuple[PackConfig, ...] = (),
    priority: int = 0,
    age: int = 0,
) -> GangDemand:
    return GangDemand(
        ref=gang_ref(name),
        uid=f"uid-{name}",
        groups=groups,
        pack=pack,
        configs=configs,
        priority=priority,
        created=BEGIN + timedelta(seconds=age),
    )


def resident(
    name: str, of: PodShape, priority: int = 0, whole: str = "", age: int = 0, leaving: bool = False
) -> Resident:
    return Resident(
        ref=pod_ref(name),
        uid=f"uid-{name}",
        requests=of.requests,
        host_ports=of.host_ports,
        priority=priority,
        gang=gang_ref(whole) if whole else None,
        created=BEGIN + timedelta(seconds=age),
        is_leaving=leaving,
    )


def cluster(machines: Iterable[Machine], residents: Iterable[tuple[str, Resident]] = ()) -> Cluster:
    made = Cluster()
    for found in machines:
        made.put_machine(found)
    for node, there in residents:
        made.put_resident(node, there)
    return made


def taken(made: Cluster, of: GangDemand, placement: Placement) -> None:
    """Let a gang be where it was placed."""
    pods = {found.uid: found for part in of.groups for found in part.waiting}
    for binding in placement.bindings:
        found = pods[binding.uid]
        made.put_resident(
            binding.node,
            Resident(
                ref=found.ref,
                uid=found.uid,
                requests=found.shape.requests,
                host_ports=found.shape.host_ports,
                priority=of.priority,
                gang=of.ref,
                created=of.created,
            ),
        )


# Strategies

TAINTS = (
    Taint(key="gpu", effect="NoSchedule"),
    Taint(key="busy", effect="PreferNoSchedule"),
)
TOLERANT = (Toleration(key="gpu", operator="Exists"),)


@st.composite
def machines(draw: st.DrawFn, most: int = 4, plain: bool = False) -> tuple[Machine, ...]:
    count = draw(st.integers(1, most))
    found = []
    for at in range(count):
        labels = {}
        if draw(st.integers(0, 9)):
            labels[ZONE] = draw(st.sampled_from("ab"))
        if draw(st.integers(0, 9)):
            labels[RACK] = draw(st.sampled_from("rst"))
        odd = 0 if plain else draw(st.integers(0, 11))
        found.append(
            machine(
                f"n{at}",
                cpu=draw(st.integers(0, 5)),
                gpu=draw(st.sampled_from([0, 0, 2, 4])),
                labels=labels,
                pods=draw(st.sampled_from([1, 2, 9])),
                is_schedulable=odd != 1,
                is_ready=odd != 2,
                taints=TAINTS[:1] if odd == 3 else TAINTS[1:] if odd == 4 else (),
            )
        )
    return tuple(found)


@st.composite
def shapes(draw: st.DrawFn, plain: bool = False) -> PodShape:
    more: dict[str, object] = {}
    odd = 0 if plain else draw(st.integers(0, 14))
    if odd == 1:
        more["node_selector"] = ((ZONE, "a"),)
    elif odd == 2:
        not_here = NodeRequirement(key=RACK, operator="NotIn", values=("r",))
        more["required_terms"] = (NodeTerm(requirements=(not_here,)),)
    elif odd == 3:
        more["tolerations"] = TOLERANT
    elif odd == 4:
        more["host_ports"] = (HostPort(port=80),)
    elif odd == 5:
        liked = NodeTerm(requirements=(NodeRequirement(key=ZONE, operator="In", values=("b",)),))
        more["preferences"] = (Preference(weight=10, term=liked),)
    return shape(draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 1, 2])), **more)


@st.composite
def packs(draw: st.DrawFn) -> Pack:
    keys = st.sampled_from(["", "", "", ZONE, RACK, HOSTNAME])
    return Pack(required_key=draw(keys), preferred_key=draw(keys))


@st.composite
def gangs(
    draw: st.DrawFn, nodes: tuple[str, ...], most: int = 4, plain: bool = False, exact: bool = False
) -> GangDemand:
    """A gang of few pods; `exact` ones need all of them."""
    group_count = draw(st.integers(1, 3))
    left = most
    found = []
    for at in range(group_count):
        count = draw(st.integers(0 if at else 1, max(1, left))) if left else 0
        left -= count
        mixed = draw(st.integers(0, 3)) == 0
        base = draw(shapes(plain))
        asked = [draw(shapes(plain)) if mixed else base for _ in range(count)]
        there = draw(st.lists(st.sampled_from(nodes), max_size=1)) if nodes else []
        total = count + len(there)
        least = total if exact else draw(st.integers(0, total))
        found.append(group(f"g{at}", asked, least=least, bound=there, pack=draw(packs())))
    names = [part.name for part in found]
    configs = tuple(
        PackConfig(
            name=f"c{at}",
            group_names=tuple(draw(st.lists(st.sampled_from(names), unique=True, min_size=1))),
            pack=draw(packs()),
        )
        for at in range(draw(st.integers(0, 2)))
    )
    return gang(*found, pack=draw(packs()), configs=configs)


@st.composite
def worlds(
    draw: st.DrawFn, most: int = 4, plain: bool = False, exact: bool = False
) -> tuple[tuple[Machine, ...], tuple[tuple[str, Resident], ...], GangDemand]:
    """Machines, what occupies them, and a gang whose bound pods are among that."""
    there = draw(machines(most, plain))
    names = tuple(found.name for found in there)
    bound_on = names if draw(st.integers(0, 3)) == 0 else ()
    asked = draw(gangs(bound_on, most, plain, exact))
    occupants = [
        (draw(st.sampled_from(names)), resident(f"x{at}", draw(shapes(plain))))
        for at in range(draw(st.integers(0, 2)))
    ]
    for part in asked.groups:
        for found in part.bound:
            member = Resident(
                ref=found.ref, uid=found.uid, requests=shape(1).requests, gang=asked.ref
            )
            occupants.append((found.node, member))
    return there, tuple(occupants), asked
