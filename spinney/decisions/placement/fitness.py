"""Fitness: whether a machine would do for a pod if it were empty, how well, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from spinney.api.core.node import Taint
from spinney.decisions.placement import amounts, attraction
from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.machines import HOSTNAME, Machine

Path: TypeAlias = tuple[str, ...]
"""Node labels, broadest first, that tell a domain of the last one. None of them: all machines."""

Domain: TypeAlias = tuple[str, ...]
"""The values of a path's labels. So two racks of one name in two zones are two."""

MISSING = "\0"
"""Stands in a domain for a broader label that its machines lack."""

Tier: TypeAlias = tuple[int, ...]
"""How well a machine suits a pod beside what it has free; the least is the best."""

NOT_READY = "NotReady"
CORDONED = "Cordoned"
NODE_SELECTOR = "NodeSelector"
AFFINITY = "Affinity"
TAINT = "Taint"

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_SOFT = attraction.PREFER_NO_SCHEDULE


def path(key: str, levels: tuple[str, ...]) -> Path:
    """Return by which labels the domains of a label are told.

    A label that is no level of the network stands alone, but that a host is within all of them.
    """
    if key in levels:
        return levels[: levels.index(key) + 1]
    return (*levels, key) if key == HOSTNAME else (key,)


def domain(machine: Machine, path: Path) -> Domain | None:
    """Return in which domain a machine is; None where it lacks the label."""
    if not path:
        return ()
    labels = machine.labels
    if path[-1] not in labels and path[-1] != HOSTNAME:
        return None
    return tuple([labels.get(key, machine.name if key == HOSTNAME else MISSING) for key in path])


def faults(shape: PodShape, machine: Machine) -> Iterator[str]:
    """Yield why a machine would not do for a pod though it were empty: reasons, in order."""
    if not machine.is_ready:
        yield NOT_READY
    if not machine.is_schedulable and not _is_tolerated(shape, _CORDON):
        yield CORDONED
    labels = machine.labels
    if any(labels.get(key) != value for key, value in shape.node_selector):
        yield NODE_SELECTOR
    terms = shape.required_terms
    if terms and not any(term.matches(machine.name, labels) for term in terms):
        yield AFFINITY
    if next(hard_taints(shape, machine), None) is not None:
        yield TAINT


def hard_taints(shape: PodShape, machine: Machine) -> Iterator[Taint]:
    """Yield the taints of a machine that keep a pod off."""
    for taint in machine.taints:
        # A cordon is told as what it is.
        if taint.effect != _SOFT and taint.key != _CORDON.key and not _is_tolerated(shape, taint):
            yield taint


def _is_tolerated(shape: PodShape, taint: Taint) -> bool:
    return any(toleration.covers(taint) for toleration in shape.tolerations)


def tier(shape: PodShape, machine: Machine) -> Tier:
    """Return how well a machine suits a pod: liked ones first, and none that others need more."""
    soft = sum(
        taint.effect == _SOFT and not _is_tolerated(shape, taint) for taint in machine.taints
    )
    liked = sum(
        preference.weight
        for preference in shape.preferences
        if preference.term.matches(machine.name, machine.labels)
    )
    wanted = {name for name, _ in shape.requests}
    idle = sum(
        value > 0 and name not in wanted and amounts.is_extended(name)
        for name, value in machine.allocatable.items()
    )
    return (soft, -liked, idle)
