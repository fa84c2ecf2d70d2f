"""Demand: how many replicas a metric says a target should have.

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

from spinney.api.core.pod import Pod
from spinney.decisions import pods
from spinney.decisions.usage import Sample
from spinney.meta import conditions, quantities
from spinney.meta.documents import Document, Json, is_integer, object_at, string_at
from spinney.meta.quantities import NANO
from spinney.meta.records import Record

CPU = "cpu"
CPU_WARM_UP = timedelta(minutes=5)
"""For so long after its start a pod's processor time counts only as far as it was ready for it."""

FIRST_READINESS = timedelta(seconds=30)
"""A pod not ready since this soon after its start never was ready."""

DIGITS_SHOWN = 3
"""To how many digits averages are shown, so that a flicker writes nothing."""

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


class Proposal(Record):
    """What one metric says."""

    replicas: int
    name: str
    """What the metric is called in sentences."""

    status: Document
    """What is shown of it."""


def proposal(metric: Document, load: Load) -> Proposal:
    """Return how many replicas a metric of an autoscaler asks for; raises Failed."""
    kind = string_at(metric, ["type"])
    if kind == "Resource":
        source = object_at(metric, ["resource"])
        return _by_resource(source, "", load)
    if kind == "ContainerResource":
        source = object_at(metric, ["containerResource"])
        return _by_resource(source, string_at(source, ["container"]), load)
    if kind == "Pods":
        return _by_pods(object_at(metric, ["pods"]), load)
    if kind in ("Object", "External"):
        raise Failed(
            f"nobody here serves metrics of type {kind}; use Resource, ContainerResource or Pods"
        )
    raise Failed(f'unknown metric source type "{kind}"')


def failure_reason(metric: Document) -> str:
    """Return the reason by which people are told that a metric gives no answer."""
    kind = string_at(metric, ["type"])
    known = {"Resource", "ContainerResource", "Pods", "Object", "External"}
    return f"Failed{'Get' + kind + 'Metric' if kind in known else 'ComputeMetricsReplicas'}"


# The three sorts of metrics


def _by_resource(source: Document, container: str, load: Load) -> Proposal:
    resource = string_at(source, ["name"])
    target = object_at(source, ["target"])
    share, average = _positive(target.get("averageUtilization")), _amount(target, "averageValue")
    in_container = f" in container {container}" if container else ""
    what = "container resource" if container else "resource"
    if not resource or (share is None and average is None):
        raise Failed(
            f"invalid {what} metric source: neither an average utilization target nor an average "
            "value target was set"
        )
    measured = _measured(load, lambda sample: _used(sample, resource, container))
    if not measured:
        raise Failed(
            f"failed to get {resource} {'utilization' if average is None else 'usage'}: "
            f"unable to get metrics for resource {resource}{in_container}: "
            "no metrics returned from resource metrics API"
        )
    sorted_ = _sort(load, measured, resource)
    if average is not None:
        replicas = _replicas(load, sorted_, _ratio_to(average), lambda _name: average)
        name = f"{resource} {what}"
        current = _current(sorted_.measured)
    else:
        assert share is not None
        asked = {
            sample.pod.metadata.name: _asked(sample.pod, resource, container)
            for sample in load.samples
            if sample.pod.metadata.name not in sorted_.ignored
        }
        full = max(100, share)
        ratio = _utilization(asked, share)
        replicas = _replicas(load, sorted_, ratio, lambda name: asked[name] * full // 100)
        name = f"{resource} {what} utilization (percentage of request)"
        percent = _percent(sorted_.measured, asked)
        current = {"averageUtilization": percent, **_current(sorted_.measured)}
    shown: Document = {"name": resource, "current": current}
    if container:
        shown["container"] = container
        return Proposal(
            replicas=replicas,
            name=name,
            status={"type": "ContainerResource", "containerResource": shown},
        )
    return Proposal(replicas=replicas, name=name, status={"type": "Resource", "resource": shown})


def _by_pods(source: Document, load: Load) -> Proposal:
    name = string_at(source, ["metric", "name"])
    average = _amount(object_at(source, ["target"]), "averageValue")
    if average is None:
        raise Failed("invalid pods metric source: no average value target was set")
    if object_at(source, ["metric", "selector"]):
        raise Failed(f"failed to get pods metric value: {name} is served without a selector only")
    measured = _measured(load, lambda s: None if s.usage is None else s.usage.values.get(name))
    if not measured:
        raise Failed(
            f"failed to get pods metric value: unable to get metric {name}: "
            "no metrics returned from custom metrics API"
        )
    sorted_ = _sort(load, measured, "")
    replicas = _replicas(load, sorted_, _ratio_to(average), lambda _name: average)
    shown: Document = {"metric": {"name": name}, "current": _current(sorted_.measured)}
    return Proposal(
        replicas=replicas, name=f"pods metric {name}", status={"type": "Pods", "pods": shown}
    )


def _positive(value: Json) -> int | None:
    return value if is_integer(value) and value > 0 else None


def _amount(where: Document, field: str) -> int | None:
    """Return an amount above nothing in billionths; None where there is none."""
    value = where.get(field)
    if not isinstance(value, str) and not is_integer(value):
        return None
    try:
        return _positive(quantities.parse_quantity(value))
    except ValueError:
        return None


# What is measured, and what is asked for


def _measured(load: Load, value_of: Callable[[Sample], int | None]) -> dict[str, int]:
    found = ((sample.pod.metadata.name, value_of(sample)) for sample in load.samples)
    return {name: value for name, value in found if value is not None}


def _used(sample: Sample, resource: str, container: str) -> int | None:
    """Return how much of a resource a pod used; None where that is not known of all containers."""
    if sample.usage is None:
        return None
    used = sample.usage.containers
    if container:
        if container not in used:
            name = sample.pod.metadata.name
            raise Failed(f"container {container} not present in metrics for pod {name}")
        return used[container].get(resource)
    amounts = [amounts.get(resource) for amounts in used.values()]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _asked(pod: Pod, resource: str, container: str) -> int:
    """Return how much of a resource a pod asks for; raises Failed where it does not say."""
    whole = _amount(object_at(pod.spec.resources or {}, ["requests"]), resource)
    if whole is not None and not container:
        return whole
    total = 0
    for found in _lasting(pod):
        name = string_at(found, ["name"])
        if container and name != container:
            continue
        amount = _amount(object_at(found, ["resources", "requests"]), resource)
        if amount is None:
            raise Failed(
                f"failed to get {resource} utilization: missing request for {resource} in "
                f"container {name} of Pod {pod.metadata.name}"
            )
        total += amount
    return total


def _lasting(pod: Pod) -> list[Document]:
    """Return the containers that run as long as the pod does, sidecars among them."""
    sidecars = [c for c in pod.spec.init_containers if string_at(c, ["restartPolicy"]) == "Always"]
    return [*pod.spec.containers, *sidecars]


def _ratio_to(target: int) -> Ratio:
    return lambda measured: Fraction(sum(measured.values()), target * len(measured))


def _utilization(asked: Mapping[str, int], target: int) -> Ratio:
    return lambda measured: Fraction(_percent(measured, asked), target)


def _percent(measured: Mapping[str, int], asked: Mapping[str, int]) -> int:
    total = sum(asked.get(name, 0) for name in measured)
    if total <= 0:
        raise Failed("no metrics returned matched known pods")
    return sum(measured.values()) * 100 // total


def _current(measured: Mapping[str, int]) -> Document:
    average = sum(measured.values()) // len(measured)
    unit = 10 ** max(0, len(str(average)) - DIGITS_SHOWN)
    return {"averageValue": quantities.format_quantity(-(-average // unit) * unit)}


# Which pods count how


class _Sorted(Record):
    """Pods by how they count, by name."""

    ready_count: int
    measured: Mapping[str, int]
    """Of pods that count as they are."""

    unready: tuple[str, ...]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]


def _sort(load: Load, measured: Mapping[str, int], resource: str) -> _Sorted:
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
    return _Sorted(
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


def _replicas(load: Load, found: _Sorted, ratio_of: Ratio, at_most: Callable[[str], int]) -> int:
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
