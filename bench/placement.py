"""Placing alone: 5,000 nodes, gangs of 4 and of 1,000, with and without a rack they must share.

Beside it, in the same run, the plain way: every pod by itself, looking at every node. Kubernetes'
own scheduler is published to place 560 to 630 pods a second in gangs of 4 on 5,000 nodes, and 950
on one machine of another maker; another program on other machines, so a hint and no ratio.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import NamedTuple

from spinney.api import groupkinds
from spinney.decisions.placement import amounts, machines, placing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import (
    GangDemand,
    GroupDemand,
    Pack,
    PodDemand,
    PodShape,
)
from spinney.decisions.placement.machines import Machine
from spinney.decisions.placement.outcomes import Placement
from spinney.decisions.placement.spots import Spot
from spinney.meta.references import Ref

NODES = 5_000
RACK_NODES = 40
ZONE_NODES = 1_000
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"
LEVELS = (ZONE, RACK)
GPU = "nvidia.com/gpu"
GIB = 2**30
PLAIN_PODS = 200
ROUNDS = 3
AIM_PODS_A_SECOND = 5_000

SMALL = PodShape(requests=amounts.amounts({"cpu": 4_000, "memory": 16 * GIB, GPU: 1, "pods": 1}))
LARGE = PodShape(requests=amounts.amounts({"cpu": 2_000, "memory": 4 * GIB, "pods": 1}))


class _Case(NamedTuple):
    name: str
    gangs: int
    pods: int
    shape: PodShape
    pack: Pack


CASES = (
    _Case("gangs of 4", 1_500, 4, SMALL, Pack()),
    _Case("gangs of 4, one rack each", 1_500, 4, SMALL, Pack(required_key=RACK)),
    _Case("gangs of 1,000", 6, 1_000, LARGE, Pack()),
    _Case("gangs of 1,000, one rack each", 6, 1_000, LARGE, Pack(required_key=RACK)),
)


def _cluster() -> Cluster:
    cluster = Cluster()
    for at in range(NODES):
        name = f"node-{at:04}"
        cluster.put_machine(
            Machine(
                name=name,
                labels={
                    machines.HOSTNAME: name,
                    ZONE: f"zone-{at // ZONE_NODES}",
                    RACK: f"rack-{at // RACK_NODES:03}",
                },
                allocatable={"cpu": 96_000, "memory": 1024 * GIB, GPU: 8, "pods": 110},
            )
        )
    return cluster


def _gang(case: _Case, number: int) -> GangDemand:
    pods = tuple(
        PodDemand(
            ref=Ref(kind=groupkinds.POD, namespace="default", name=f"g{number}-{at:04}"),
            uid=f"{number}-{at}",
            shape=case.shape,
        )
        for at in range(case.pods)
    )
    return GangDemand(
        ref=Ref(kind=groupkinds.GANG, namespace="default", name=f"g{number}"),
        uid=f"{number}",
        groups=(GroupDemand(name="worker", min_replicas=case.pods, waiting=pods),),
        pack=case.pack,
    )


def _placed(case: _Case) -> float:
    """Return how many pods a second were placed and taken in."""
    cluster = _cluster()
    gangs = [_gang(case, number) for number in range(case.gangs + 1)]
    first, *rest = gangs
    _take(cluster, first)
    gc.collect()
    began = time.perf_counter()
    for gang in rest:
        _take(cluster, gang)
    return case.gangs * case.pods / (time.perf_counter() - began)


def _take(cluster: Cluster, gang: GangDemand) -> None:
    outcome = placing.place(cluster, gang, LEVELS)
    assert isinstance(outcome, Placement), outcome
    pods = {pod.uid: pod for group in gang.groups for pod in group.waiting}
    for binding in outcome.bindings:
        there = machines.resident(pods[binding.uid], gang=gang.ref)
        cluster.put_resident(binding.node, there)


def _plainly(case: _Case) -> float:
    """Return how many pods a second the plain way places: all nodes for every pod, no gangs."""
    spots = [*_cluster().spots()]
    gc.collect()
    began = time.perf_counter()
    for _ in range(PLAIN_PODS):
        best: tuple[int, str] | None = None
        chosen: Spot | None = None
        for spot in spots:
            room = spot.capacity(case.shape)
            if room and (best is None or (room, spot.name) < best):
                best, chosen = (room, spot.name), spot
        assert chosen is not None, "there is room"
        chosen.take(case.shape, 1)
    return PLAIN_PODS / (time.perf_counter() - began)


def _refused() -> float:
    """Return how many looks a second at gangs that do not fit."""
    cluster = _cluster()
    case = _Case("", 0, 4, SMALL, Pack(required_key=RACK))
    for spot in cluster.spots():
        cluster.take(spot.name, SMALL, 8)
    gangs = [_gang(case, number) for number in range(501)]
    placing.place(cluster, gangs[0], LEVELS)
    gc.collect()
    began = time.perf_counter()
    for gang in gangs[1:]:
        placing.place(cluster, gang, LEVELS)
    return 500 / (time.perf_counter() - began)


def run() -> Iterator[str]:
    """Yield pods a second of every case, and how many times that is the plain way."""
    for case in CASES:
        plain = max(_plainly(case) for _ in range(ROUNDS))
        placed = max(_placed(case) for _ in range(ROUNDS))
        verdict = "within" if placed >= AIM_PODS_A_SECOND else "below"
        yield (
            f"{case.name}, {NODES} nodes: {placed:,.0f} pods/s, {placed / plain:.0f} times the "
            f"plain way ({plain:,.0f} pods/s); {verdict} the aim of {AIM_PODS_A_SECOND:,}"
        )
    yield f"gangs that do not fit, {NODES} full nodes: {_refused():,.0f} looks/s"
