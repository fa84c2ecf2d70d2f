"""HorizontalPodAutoscaler: scales a target by what is measured of its pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from spinney.api.core.builtin import Finer, built_in
from spinney.api.kinds import Names
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, object_at, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Field, Record

PERIOD_SECONDS_MAX = 1800
WINDOW_SECONDS_MAX = 3600
_CHOICES = ("Disabled", "Max", "Min")
CPU_PERCENT = 80
"""How busy pods should be where nothing is said."""

SOURCES: Mapping[str, str] = {
    "Resource": "resource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
    "ContainerResource": "containerResource",
}
"""In which field a metric of each type says the rest."""


class ScaleTarget(Record):
    """What is scaled."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class HorizontalPodAutoscalerSpec(Record):
    """What is scaled, by what, and within which bounds."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 0
    metrics: Annotated[tuple[Document, ...], Field("What to scale by.")] = ()
    behavior: Annotated[Document | None, Field("How fast to scale.")] = None


class HorizontalPodAutoscalerStatus(Record):
    """What the autoscaler saw and wants."""

    observed_generation: int | None = None
    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: tuple[Document, ...] = ()
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(Record):
    """Scales a target by what is measured of its pods."""

    metadata: ObjectMeta
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


def _policy(kind: str, value: int) -> Document:
    return {"type": kind, "value": value, "periodSeconds": 15}


_SCALE_UP: Document = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [_policy("Pods", 4), _policy("Percent", 100)],
}
_SCALE_DOWN: Document = {"selectPolicy": "Max", "policies": [_policy("Percent", 100)]}
_METRIC: Document = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": CPU_PERCENT},
    },
}


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    if spec.get("metrics") in (None, []):
        document = with_value(document, ["spec", "metrics"], [_METRIC])
    behavior = spec.get("behavior")
    if not isinstance(behavior, dict):
        return document
    filled: dict[str, Json] = dict(behavior)
    for field, defaults in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
        said = behavior.get(field)
        if said is None or isinstance(said, dict):
            filled[field] = {**defaults, **object_at(behavior, [field])}
    return with_value(document, ["spec", "behavior"], filled)


def _rules(new: Cursor) -> Iterator[FieldError]:
    spec = new["spec"]
    least, most = spec["minReplicas"], spec["maxReplicas"]
    low, high = least.integer(), most.integer()
    if low is not None and low < 1:
        yield least.invalid("must be greater than or equal to 1")
    if high is not None and high < 1:
        yield most.invalid("must be greater than 0")
    elif high is not None and low is not None and high < low:
        yield most.invalid("must be greater than or equal to `minReplicas`")
    for field in ("kind", "name"):
        if spec["scaleTargetRef"][field].string() == "":
            yield spec["scaleTargetRef"][field].required()
    for metric in spec["metrics"]:
        kind = metric["type"].string()
        source = SOURCES.get(kind or "")
        if kind is not None and source is None:
            yield metric["type"].not_supported(SOURCES)
        elif source is not None and not metric[source]:
            yield metric[source].required("must populate the given metric source")
        if source is not None:
            yield from _target_rules(metric[source]["target"], on_pods=source in _ON_PODS)
    for field in ("scaleUp", "scaleDown"):
        yield from _behavior_rules(spec["behavior"][field])


_ON_PODS = ("resource", "containerResource")
_TARGETS: Mapping[str, str] = {
    "Utilization": "averageUtilization",
    "Value": "value",
    "AverageValue": "averageValue",
}


def _target_rules(target: Cursor, *, on_pods: bool) -> Iterator[FieldError]:
    if target.object() is None:
        return
    kind, share = target["type"].string(), target["averageUtilization"]
    if kind is not None and kind not in _TARGETS:
        yield target["type"].invalid("must be either Utilization, Value, or AverageValue")
    if (number := share.integer()) is not None and number < 1:
        yield share.invalid("must be greater than 0")
    given = [field for field in _TARGETS.values() if target[field]]
    if on_pods and not share and not target["averageValue"]:
        yield share.required("must set either a target raw value or a target utilization")
    elif not given:
        yield target["averageValue"].required(
            "must set either a target value for metric or a per-pod target"
        )
    if share and target["averageValue"]:
        yield target["averageValue"].forbidden(
            "may not set both a target raw value and a target utilization"
        )


def _behavior_rules(rules: Cursor) -> Iterator[FieldError]:
    window, choice = rules["stabilizationWindowSeconds"], rules["selectPolicy"]
    if (seconds := window.integer()) is not None:
        if seconds < 0:
            yield window.invalid("must be greater than or equal to zero")
        elif seconds > WINDOW_SECONDS_MAX:
            yield window.invalid(f"must be less than or equal to {WINDOW_SECONDS_MAX}")
    if (word := choice.string()) is not None and word not in _CHOICES:
        yield choice.not_supported(_CHOICES)
    if rules.object() is not None and rules["policies"].value == []:
        yield rules["policies"].required("must specify at least one Policy")
    for policy in rules["policies"]:
        kind, value, period = (policy[field] for field in ("type", "value", "periodSeconds"))
        if (word := kind.string()) is not None and word not in ("Pods", "Percent"):
            yield kind.not_supported(("Pods", "Percent"))
        if (number := value.integer()) is not None and number <= 0:
            yield value.invalid("must be greater than zero")
        if (seconds := period.integer()) is not None and seconds <= 0:
            yield period.invalid("must be greater than zero")
        elif seconds is not None and seconds > PERIOD_SECONDS_MAX:
            yield period.invalid(f"must be less than or equal to {PERIOD_SECONDS_MAX}")


KIND = built_in(
    Names(
        group="autoscaling",
        version="v2",
        kind="HorizontalPodAutoscaler",
        plural="horizontalpodautoscalers",
        singular="horizontalpodautoscaler",
        short=("hpa",),
        categories=("all",),
    ),
    HorizontalPodAutoscaler,
    finer={"": Finer(required=("spec",)), "spec.minReplicas": Finer(default=1)},
    has_status=True,
    default=_default,
    rules=_rules,
)
