"""Demand: how many replicas pods make necessary that use more or less than is aimed at.

The rule is Kubernetes': replicas × (what is measured / what is aimed at), rounded up, and no change
within a tolerance. Pods nothing is known of, and pods that are not ready yet, are counted so that
they never make the answer bolder: when it would grow, as if they used nothing; when it would
shrink, missing ones as if they used all that was granted (or just what is aimed at).

A replica of one pod is Kubernetes' case. Where a replica has several pods, as a scaling group's
has, what the pods make necessary is divided among replicas of that size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction

from spinney.decisions import pods
from spinney.decisions.usage import Sample
from spinney.meta import conditions
from spinney.meta.quantities import NANO
from spinney.meta.records import Record

CPU = "cpu"
CPU_WARM_UP = timedelta(minutes=5)
"""For so long after its start a pod's processor time counts only as far as it was ready for it."""

FIRST_READINESS = timedelta(seconds=30)
"""A pod not ready since this soon after its start never was ready."""

Ratio = Callable[[Mapping[str, int]], Fraction]
"""What is measured by what is aimed at, of measurements by pod."""


class Failed(Exception):
    """A metric gives no answer; the message says why."""


class Shape(Record):
    """How many pods so many replicas have: those that are there, as they should be."""

    replicas: int = 1
    pods: int = 1


class Tolerance(Record):
    """How far off the aim nothing is done, in billionths, for too little and for too much."""

    down: int = NANO // 10
    up: int = NANO // 10

    def covers(self, ratio: Fraction) -> bool:
        """Whether a ratio is near enough to 1."""
        return 1 - Fraction(self.down, NANO) <= ratio <= 1 + Fraction(self.up, NANO)


class Load(Record):
    """What is known of a target when it is asked how many replicas it needs."""

    now: datetime
    replicas: int
    samples: tuple[Sample, ...] = ()
    shape: Shape = Shape()
    tolerance: Tolerance = Tolerance()


# Which pods count how


class Sorted(Record):
    """Pods by how they count, each by its name."""

    ready_count: int
    measured: Mapping[str, int]
    """Of pods that count as they are."""

    unready: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]


def sort(load: Load, measured: Mapping[str, int], resource: str) -> Sorted:
    """Return how each pod of a target counts; raises Failed where none counts as it is."""
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []
    ready: list[str] = []
    for sample in load.samples:
        name = sample.pod.metadata.name
        if pods.is_terminating(sample.pod) or sample.pod.status.phase == "Failed":
            ignored.append(name)
        elif sample.pod.status.phase == "Pending":
            unready.append(name)
        elif name not in measured:
            missing.append(name)
        elif resource == CPU and _is_warming_up(sample, load.now):
            unready.append(name)
        else:
            ready.append(name)
    if not ready:
        raise Failed("did not receive metrics for targeted pods (pods might be unready)")
    return Sorted(
        ready_count=len(ready),
        measured={name: measured[name] for name in ready},
        unready=tuple(unready),
        missing=tuple(missing),
        ignored=tuple(ignored),
    )


def _is_warming_up(sample: Sample, now: datetime) -> bool:
    """Whether a pod's processor time says nothing yet: it is spent on starting."""
    pod, usage = sample.pod, sample.usage
    ready = conditions.find(pod.status.conditions, "Ready")
    began = pod.status.start_time
    if ready is None or began is None or usage is None:
        return True
    since = ready.last_transition_time or began
    is_unready = ready.status == conditions.FALSE
    if began + CPU_WARM_UP > now:
        return is_unready or usage.measured_at < since + usage.window
    return is_unready and began + FIRST_READINESS > since


def replicas(load: Load, found: Sorted, ratio_of: Ratio, at_most: Callable[[str], int]) -> int:
    """Return how many replicas there should be; `at_most` is what a missing pod may have used."""
    ratio = ratio_of(found.measured)
    grows_past_unready = bool(found.unready) and ratio > 1
    if not grows_past_unready and not found.missing:
        if load.tolerance.covers(ratio):
            return load.replicas
        return _in_replicas(ratio * found.ready_count, load.shape)
    filled = dict(found.measured)
    for name in found.missing:
        if ratio != 1:
            filled[name] = at_most(name) if ratio < 1 else 0
    if grows_past_unready:
        filled.update(dict.fromkeys(found.unready, 0))
    again = ratio_of(filled)
    if load.tolerance.covers(again) or (ratio < 1 < again) or (again < 1 < ratio):
        return load.replicas
    wanted = _in_replicas(again * len(filled), load.shape)
    if (again < 1 and wanted > load.replicas) or (again > 1 and wanted < load.replicas):
        return load.replicas
    return wanted


def _in_replicas(pod_count: Fraction, shape: Shape) -> int:
    """Return how many replicas so many pods make, rounded up."""
    if shape.replicas <= 0 or shape.pods <= 0:
        return math.ceil(pod_count)
    return math.ceil(pod_count * shape.replicas / shape.pods)
