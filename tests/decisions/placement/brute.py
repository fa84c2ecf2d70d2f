"""Brute force: every way to put a few pods on a few machines, judged by the words of the rules.

It shares no code with what it judges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from spinney.decisions.placement.demands import GangDemand, PodDemand
from spinney.decisions.placement.machines import HOSTNAME, Machine, Resident

Assignment = Mapping[str, str]
"""The node of each pod that has one, by uid; bound pods among them."""


def domain(machine: Machine, key: str, levels: Sequence[str]) -> tuple[str, ...] | None:
    if key == HOSTNAME:
        return (machine.name,)
    if key not in machine.labels:
        return None
    above = levels[: levels.index(key)] if key in levels else ()
    return (*(machine.labels.get(level, "") for level in above), machine.labels[key])


def scopes(gang: GangDemand) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield what must share a domain: group names, required key, preferred key."""
    names = tuple(part.name for part in gang.groups)
    yield names, gang.pack.required_key, gang.pack.preferred_key
    for config in gang.configs:
        yield config.group_names, config.pack.required_key, config.pack.preferred_key
    for part in gang.groups:
        yield (part.name,), part.pack.required_key, part.pack.preferred_key


def shares(
    gang: GangDemand,
    machines: Mapping[str, Machine],
    assigned: Assignment,
    names: Sequence[str],
    key: str,
    levels: Sequence[str],
) -> bool:
    members = [
        found.uid
        for part in gang.groups
        if part.name in names
        for found in (*part.waiting, *part.bound)
    ]
    nodes = [machines[assigned[uid]] for uid in members if uid in assigned]
    found = {domain(node, key, levels) for node in nodes}
    return len(found) <= 1 and None not in found


def may_go(pod: PodDemand, machine: Machine) -> bool:
    shape = pod.shape
    if not machine.is_ready or not machine.is_schedulable:
        return False
    if any(machine.labels.get(key) != value for key, value in shape.node_selector):
        return False
    if shape.required_terms and not any(
        term.matches(machine.name, machine.labels) for term in shape.required_terms
    ):
        return False
    return all(
        taint.effect == "PreferNoSchedule" or any(t.covers(taint) for t in shape.tolerations)
        for taint in machine.taints
    )


def fits(
    pods: Sequence[PodDemand],
    assigned: Assignment,
    machines: Mapping[str, Machine],
    residents: Sequence[tuple[str, Resident]],
) -> bool:
    """Whether the pods have room beside what is there."""
    for name, machine in machines.items():
        come = [pod for pod in pods if assigned.get(pod.uid) == name]
        if not come:
            continue
        there = [found for node, found in residents if node == name]
        for resource in {key for pod in come for key, _ in pod.shape.requests}:
            used = sum(dict(found.requests).get(resource, 0) for found in there)
            used += sum(dict(pod.shape.requests).get(resource, 0) for pod in come)
            if used > machine.allocatable.get(resource, 0):
                return False
        ports = [port for pod in come for port in pod.shape.host_ports]
        taken = [port for found in there for port in found.host_ports]
        if len({port.port for port in ports}) < len(ports):
            return False
        if {port.port for port in ports} & {port.port for port in taken}:
            return False
    return all(may_go(pod, machines[assigned[pod.uid]]) for pod in pods if pod.uid in assigned)


def holds(
    gang: GangDemand,
    machines: Mapping[str, Machine],
    residents: Sequence[tuple[str, Resident]],
    placed: Assignment,
    levels: Sequence[str],
) -> bool:
    """Whether an assignment of waiting pods is allowed, and as much as the gang needs."""
    pods = [pod for part in gang.groups for pod in part.waiting]
    bound = {
        found.uid: found.node
        for part in gang.groups
        for found in part.bound
        if found.node in machines
    }
    for part in gang.groups:
        count = sum(pod.uid in placed for pod in part.waiting) + len(part.bound)
        if count < part.min_replicas:
            return False
    assigned = {**bound, **placed}
    for names, required, _ in scopes(gang):
        concerned = any(
            pod.uid in placed for part in gang.groups if part.name in names for pod in part.waiting
        )
        if required and concerned and not shares(gang, machines, assigned, names, required, levels):
            return False
    return fits(pods, placed, machines, residents)


def score(
    gang: GangDemand, machines: Mapping[str, Machine], placed: Assignment, levels: Sequence[str]
) -> int:
    bound = {
        found.uid: found.node
        for part in gang.groups
        for found in part.bound
        if found.node in machines
    }
    assigned = {**bound, **placed}
    met = [
        shares(gang, machines, assigned, names, preferred, levels)
        for names, _, preferred in scopes(gang)
        if preferred and names
    ]
    return 1000 * sum(met) // len(met) if met else 1000


def assignments(
    gang: GangDemand,
    machines: Mapping[str, Machine],
    residents: Sequence[tuple[str, Resident]],
    levels: Sequence[str],
) -> Iterator[Assignment]:
    """Yield every allowed assignment that gives the gang what it needs."""
    pods = [pod for part in gang.groups for pod in part.waiting if not pod.is_gated]
    choices = [
        [None, *(name for name, machine in machines.items() if may_go(pod, machine))]
        for pod in pods
    ]
    for chosen in itertools.product(*choices):
        placed = {pod.uid: node for pod, node in zip(pods, chosen, strict=True) if node}
        if holds(gang, machines, residents, placed, levels):
            yield placed
