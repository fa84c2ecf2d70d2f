"""Metrics: what each metric of an autoscaler says about its target, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from spinney.api.core.pod import Pod
from spinney.decisions import demand
from spinney.decisions.demand import Failed, Load, Ratio, Sorted
from spinney.decisions.usage import Sample
from spinney.meta import quantities
from spinney.meta.documents import Document, Json, is_integer, object_at, string_at
from spinney.meta.records import Record

DIGITS_SHOWN = 3
"""To how many digits averages are shown, so that a flicker writes nothing."""


class Proposal(Record):
    """What one metric says."""

    replicas: int
    name: str
    """What the metric is called in sentences."""

    status: Document
    """What is shown of it."""


class Advice(Record):
    """What all metrics of an autoscaler say together."""

    replicas: int | None
    """None where they give no answer."""

    name: str = ""
    """The metric that asks for the most."""

    shown: tuple[Document, ...] = ()
    """What is shown of those that gave an answer."""

    reason: str = ""
    message: str = ""


def advice(metrics: Sequence[Document], load: Load) -> Advice:
    """Return what metrics ask for: the most of them, unless one that fails might ask for more."""
    found: list[Proposal] = []
    failures: list[tuple[str, str]] = []
    for metric in metrics:
        try:
            found.append(proposal(metric, load))
        except Failed as failure:
            text = f"the HPA was unable to compute the replica count: {failure}"
            failures.append((failure_reason(metric), text))
    shown = tuple(each.status for each in found)
    highest = max(found, key=lambda each: each.replicas, default=None)
    if highest is None and not failures:
        text = "the HPA was unable to compute the replica count: it has no metrics"
        return Advice(replicas=None, reason="FailedComputeMetricsReplicas", message=text)
    if highest is None or (failures and highest.replicas < load.replicas):
        reason, text = failures[0]
        return Advice(replicas=None, shown=shown, reason=reason, message=text)
    message = f"the HPA was able to successfully calculate a replica count from {highest.name}"
    if failures:
        message += f"; {len(failures)} of {len(metrics)} metrics gave no answer: {failures[0][1]}"
    return Advice(replicas=highest.replicas, name=highest.name, shown=shown, message=message)


# One metric


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
    known = ("Resource", "ContainerResource", "Pods", "Object", "External")
    return f"FailedGet{kind}Metric" if kind in known else "InvalidMetricSource"


# The three sorts of metrics


class _Answer(Record):
    """What a metric says, and what was measured."""

    replicas: int
    current: Document


def _by_resource(source: Document, container: str, load: Load) -> Proposal:
    resource = string_at(source, ["name"])
    target = object_at(source, ["target"])
    share, average = _positive(target.get("averageUtilization")), _amount(target, "averageValue")
    what = "container resource" if container else "resource"
    if not resource or (share is None and average is None):
        raise Failed(
            f"invalid {what} metric source: neither an average utilization target nor an average "
            "value target was set"
        )
    name, sought = f"{resource} {what}", "usage"
    if average is None:
        name, sought = f"{name} utilization (percentage of request)", "utilization"
    try:
        answer = _resource_answer(resource, container, share, average, load)
    except Failed as failure:
        raise Failed(f"failed to get {resource} {sought}: {failure}") from failure
    shown: Document = {"name": resource, "current": answer.current}
    status: Document = {"type": "Resource", "resource": shown}
    if container:
        shown["container"] = container
        status = {"type": "ContainerResource", "containerResource": shown}
    return Proposal(replicas=answer.replicas, name=name, status=status)


def _resource_answer(
    resource: str, container: str, share: int | None, average: int | None, load: Load
) -> _Answer:
    """Return what usage says: by an average amount, else by a share of what pods ask for."""
    measured = _measured(load, lambda sample: _used(sample, resource, container))
    if not measured:
        in_container = f" in container {container}" if container else ""
        raise Failed(
            f"unable to get metrics for resource {resource}{in_container}: "
            "no metrics returned from resource metrics API"
        )
    found = demand.sort(load, measured, resource)
    if average is not None:
        return _average_answer(load, found, average)
    assert share is not None, "one of the two targets is given"
    asked = {
        sample.pod.metadata.name: _asked(sample.pod, resource, container)
        for sample in load.samples
        if sample.pod.metadata.name not in found.ignored
    }
    full = max(100, share)
    replicas = demand.replicas(
        load, found, _utilization(asked, share), lambda name: asked[name] * full // 100
    )
    percent = _percent(found.measured, asked)
    current: Document = {"averageUtilization": percent, **_current(found.measured)}
    return _Answer(replicas=replicas, current=current)


def _average_answer(load: Load, found: Sorted, average: int) -> _Answer:
    replicas = demand.replicas(load, found, _ratio_to(average), lambda _name: average)
    return _Answer(replicas=replicas, current=_current(found.measured))


def _by_pods(source: Document, load: Load) -> Proposal:
    name = string_at(source, ["metric", "name"])
    average = _amount(object_at(source, ["target"]), "averageValue")
    if average is None:
        raise Failed("invalid pods metric source: no average value target was set")
    try:
        if object_at(source, ["metric", "selector"]):
            raise Failed(f"metric {name} is served without a selector only")
        measured = _measured(load, lambda s: None if s.usage is None else s.usage.values.get(name))
        if not measured:
            raise Failed(
                f"unable to get metric {name}: no metrics returned from custom metrics API"
            )
        answer = _average_answer(load, demand.sort(load, measured, ""), average)
    except Failed as failure:
        raise Failed(f"failed to get pods metric value: {failure}") from failure
    shown: Document = {"metric": {"name": name}, "current": answer.current}
    return Proposal(
        replicas=answer.replicas,
        name=f"pods metric {name}",
        status={"type": "Pods", "pods": shown},
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
                f"missing request for {resource} in container {name} of Pod {pod.metadata.name}"
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
