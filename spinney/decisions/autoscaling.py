"""Autoscaling: what a HorizontalPodAutoscaler does about its target, as Kubernetes' own does.

Each look asks the metrics (`metrics`), holds the answer back (`pacing`), and writes the target's
replicas. What has to be remembered is kept in an annotation of the autoscaler, written before the
target is: stopped between the two, the next look finds a change that did not happen, and makes it.
Where nothing changes, nothing is written.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from spinney.api import groupkinds
from spinney.api.core.horizontalpodautoscaler import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
)
from spinney.decisions import metrics, pacing, reporting
from spinney.decisions.actions import Action, Decision, Emit, Patch
from spinney.decisions.demand import Load, Shape, Tolerance
from spinney.decisions.metrics import Advice
from spinney.decisions.pacing import Memory, Rules
from spinney.decisions.usage import Sample
from spinney.meta import conditions
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
PERIOD = timedelta(seconds=15)
"""How often the metrics are asked."""

MEMORY = "spinney.dev/autoscaler-memory"
"""The annotation an autoscaler's memory is kept in."""

COUNTERS = ("currentReplicas", "desiredReplicas")
WITHIN_RANGE = "DesiredWithinRange"


class Target(Record):
    """What is scaled, as far as its scale tells."""

    ref: Ref
    uid: str
    resource_version: str
    replicas: int
    least: int = 0
    """How few replicas it may be scaled to."""

    selector: str = ""
    """What selects its pods."""

    shape: Shape = Shape()
    is_new: bool = False
    """Whether nobody has looked at it yet: its scale tells no selector."""

    refusal: str = ""
    """Why it cannot be scaled at all; "" where it can."""


class Observation(Record):
    """What is seen of one autoscaler."""

    now: datetime
    autoscaler: HorizontalPodAutoscaler
    target: Target | None = None
    why_no_target: str = ""
    samples: tuple[Sample, ...] = ()
    """Its target's pods, sorted by name, with what is measured of them."""

    rival: str = ""
    """Another autoscaler that scales the same target, and goes first."""


class _Plan(Record):
    """What becomes of a target."""

    desired: int
    why: str
    """The reason of a change, in words."""

    memory: Memory | None = None
    able: tuple[str, str] = (
        "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )
    active: tuple[str, str, str] | None = None
    limited: tuple[str, str, str] | None = None
    metrics: tuple[Document, ...] = ()


def decide(seen: Observation) -> Decision:
    """Return what to do about one autoscaler's target now."""
    if seen.autoscaler.metadata.deletion_timestamp is not None:
        return Decision()
    target = seen.target
    if target is None:
        text = "the HPA controller was unable to get the target's current scale: "
        return _unable(seen, ABLE, "FailedGetScale", text + seen.why_no_target)
    if target.is_new:
        return Decision(wake_after=PERIOD, reasons=(f"{target.ref} is new: it is given time",))
    plan = _plan(seen, target)
    if isinstance(plan, Advice):
        return _no_answer(seen, target, plan)
    refusal = _refusal(seen, target, plan.desired)
    if refusal:
        text = f"the HPA controller was unable to update the target scale: {refusal}"
        return _unable(seen, ABLE, "FailedUpdateScale", text)
    return _follow(seen, target, plan)


def ref_of(autoscaler: HorizontalPodAutoscaler) -> Ref:
    """Return how an autoscaler is referred to."""
    metadata = autoscaler.metadata
    return Ref(kind=groupkinds.AUTOSCALER, namespace=metadata.namespace, name=metadata.name)


def _refusal(seen: Observation, target: Target, desired: int) -> str:
    """Return why a target cannot have so many replicas; "" where it can, or has."""
    if desired == target.replicas:
        return ""
    if desired < target.least:
        most = seen.autoscaler.spec.max_replicas
        return f"the target needs at least {target.least} replicas, maxReplicas is {most}"
    return target.refusal


# What should become of the target


def bounds(seen: Observation) -> tuple[int, int]:
    """Return the fewest and the most replicas a target may have.

    What it must have at least by itself counts too, as far as the most allows it.
    """
    spec = seen.autoscaler.spec
    own = seen.target.least if seen.target is not None else 0
    return min(max(spec.min_replicas, own), spec.max_replicas), spec.max_replicas


def _plan(seen: Observation, target: Target) -> _Plan | Advice:
    """Return what should become of the target, or why the metrics give no answer."""
    least, most = bounds(seen)
    current = target.replicas
    if current == 0 and least != 0:
        text = "scaling is disabled since the replica count of the target is zero"
        return _Plan(desired=0, why="", active=(FALSE, "ScalingDisabled", text))
    if seen.rival:
        return _ambiguous(seen, target)
    memory = _remembered(seen, current)
    if current > most:
        why = "Current number of replicas above Spec.MaxReplicas"
        return _Plan(desired=most, why=why, memory=memory)
    if current < least:
        why = "Current number of replicas below Spec.MinReplicas"
        return _Plan(desired=least, why=why, memory=memory)
    advice = _advice(seen, target)
    if advice.replicas is None:
        return advice
    return _paced(seen, memory, current, advice)


def _remembered(seen: Observation, current: int) -> Memory:
    text = seen.autoscaler.metadata.annotations.get(MEMORY, "")
    memory = pacing.memory_from(text) or Memory(asked=current)
    return pacing.without_undone(memory, current)


def _paced(seen: Observation, memory: Memory, current: int, advice: Advice) -> _Plan:
    """Return what becomes of a target whose metrics gave an answer."""
    assert advice.replicas is not None
    rules = pacing.rules_of(seen.autoscaler.spec.behavior)
    up, down = rules
    memory = pacing.noted(memory, advice.replicas, rules, seen.now)
    steadied = pacing.steadied(memory, current, up, down, seen.now)
    desired, reason, message = _within_limits(seen, memory, current, steadied, rules)
    why = "All metrics below target"
    if desired > current:
        why = f"{advice.name} above target"
    return _Plan(
        desired=desired,
        why=why,
        memory=memory,
        able=_steadiness(advice.replicas, current, steadied),
        active=(TRUE, "ValidMetricFound", advice.message),
        limited=(FALSE if desired == steadied else TRUE, reason, message),
        metrics=advice.shown,
    )


def _steadiness(asked: int, current: int, steadied: int) -> tuple[str, str]:
    if steadied == asked:
        return "ReadyForNewScale", "recommended size matches current size"
    if asked >= current:
        text = "recent recommendations were lower than current one, "
        return "ScaleUpStabilized", text + "applying the lowest recent recommendation"
    text = "recent recommendations were higher than current one, "
    return "ScaleDownStabilized", text + "applying the highest recent recommendation"


def _within_limits(
    seen: Observation, memory: Memory, current: int, wanted: int, rules: tuple[Rules, Rules]
) -> tuple[int, str, str]:
    """Return how far the target may follow now, and what limits it."""
    least, most = bounds(seen)
    up, down = rules
    if wanted > current:
        limit = pacing.growth_limit(up, current, memory.changes, seen.now)
        if limit < most and wanted > limit:
            text = "the desired replica count is increasing faster than the maximum scale rate"
            return limit, "ScaleUpLimit", text
        if wanted > most:
            text = "the desired replica count is more than the maximum replica count"
            return most, "TooManyReplicas", text
    if wanted < current:
        limit = pacing.shrinking_limit(down, current, memory.changes, seen.now)
        if limit > least and wanted < limit:
            text = "the desired replica count is decreasing faster than the maximum scale rate"
            return limit, "ScaleDownLimit", text
        if wanted < least:
            text = "the desired replica count is less than the minimum replica count"
            return least, "TooFewReplicas", text
    return wanted, WITHIN_RANGE, "the desired count is within the acceptable range"


# What the metrics say


def _advice(seen: Observation, target: Target) -> Advice:
    """Return what the metrics say of the target's pods."""
    if not target.selector:
        text = "the HPA target's scale is missing a selector"
        return Advice(replicas=None, reason="InvalidSelector", message=text)
    up, down = pacing.rules_of(seen.autoscaler.spec.behavior)
    load = Load(
        now=seen.now,
        replicas=target.replicas,
        samples=seen.samples,
        shape=target.shape,
        tolerance=Tolerance(down=down.tolerance, up=up.tolerance),
    )
    return metrics.advice(seen.autoscaler.spec.metrics, load)


def _ambiguous(seen: Observation, target: Target) -> Advice:
    both = f"{seen.rival}, {seen.autoscaler.metadata.name}"
    text = f"pods by selector {target.selector} are controlled by multiple HPAs: {both}"
    return Advice(replicas=None, reason="AmbiguousSelector", message=text)


# What is done and told


def _follow(seen: Observation, target: Target, plan: _Plan) -> Decision:
    """Return how a target is brought to where it should be, and what is told of it."""
    autoscaler, now = seen.autoscaler, seen.now
    is_rescaled = plan.desired != target.replicas
    memory = plan.memory
    if is_rescaled and memory is not None:
        rules = pacing.rules_of(autoscaler.spec.behavior)
        memory = pacing.changed(memory, target.replicas, plan.desired, rules, now)
    actions: list[Action] = [*_remember(seen, memory)]
    reasons: list[str] = []
    able = plan.able
    if is_rescaled:
        note = f"New size: {plan.desired}; reason: {plan.why}"
        actions += [
            _rescale(target, plan.desired),
            _told(seen, "Normal", "SuccessfulRescale", note),
        ]
        reasons.append(note)
        text = f"the HPA controller was able to update the target scale to {plan.desired}"
        able = "SucceededRescale", text
    found = conditions.set_condition(autoscaler.status.conditions, ABLE, TRUE, *able, now)
    for kind, condition in ((ACTIVE, plan.active), (LIMITED, plan.limited)):
        if condition is not None:
            found = conditions.set_condition(found, kind, *condition, now)
    status = msgspec.structs.replace(
        autoscaler.status,
        observed_generation=autoscaler.metadata.generation,
        current_replicas=target.replicas,
        desired_replicas=plan.desired,
        current_metrics=plan.metrics,
        conditions=found,
    )
    if is_rescaled:
        status = msgspec.structs.replace(status, last_scale_time=now.replace(microsecond=0))
    return _decision(seen, actions, status, reasons)


def _remember(seen: Observation, memory: Memory | None) -> list[Action]:
    """Return what has to be done for a memory to be kept; nothing where it is."""
    if memory is None:
        return []
    metadata = seen.autoscaler.metadata
    text = pacing.text_of(memory)
    if metadata.annotations.get(MEMORY) == text:
        return []
    merge: Document = {"metadata": {"annotations": {MEMORY: text}}}
    only_if = Precondition(uid=metadata.uid)
    return [Patch(target=ref_of(seen.autoscaler), merge=merge, only_if=only_if)]


def _rescale(target: Target, replicas: int) -> Patch:
    only_if = Precondition(uid=target.uid, resource_version=target.resource_version)
    return Patch(target=target.ref, merge={"spec": {"replicas": replicas}}, only_if=only_if)


def _told(seen: Observation, sort: str, reason: str, note: str) -> Emit:
    key = f"{seen.autoscaler.metadata.uid}/{reason}/{note}"
    return Emit(about=ref_of(seen.autoscaler), type=sort, reason=reason, note=note, key=key)


def _no_answer(seen: Observation, target: Target, advice: Advice) -> Decision:
    """Return what is told where the metrics give no answer: nothing is scaled."""
    status = msgspec.structs.replace(
        seen.autoscaler.status,
        current_replicas=target.replicas,
        current_metrics=advice.shown,
        conditions=conditions.set_condition(
            seen.autoscaler.status.conditions,
            ABLE,
            TRUE,
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
            seen.now,
        ),
    )
    return _unable(seen, ACTIVE, advice.reason, advice.message, status)


def _unable(
    seen: Observation,
    kind: str,
    reason: str,
    message: str,
    status: HorizontalPodAutoscalerStatus | None = None,
) -> Decision:
    """Return what is told where something stands in the way; an event tells it once."""
    status = seen.autoscaler.status if status is None else status
    before = conditions.find(status.conditions, kind)
    found = conditions.set_condition(status.conditions, kind, FALSE, reason, message, seen.now)
    actions: list[Action] = []
    if _differs(before, reason):
        actions.append(_told(seen, "Warning", reason, message))
    status = msgspec.structs.replace(
        status,
        observed_generation=seen.autoscaler.metadata.generation,
        conditions=found,
    )
    return _decision(seen, actions, status, [message])


def _differs(before: Condition | None, reason: str) -> bool:
    return before is None or before.status != FALSE or before.reason != reason


def _decision(
    seen: Observation,
    actions: list[Action],
    status: HorizontalPodAutoscalerStatus,
    reasons: list[str],
) -> Decision:
    is_new = status != seen.autoscaler.status
    return Decision(
        actions=tuple(actions),
        status=reporting.document(status, COUNTERS) if is_new else None,
        wake_after=PERIOD,
        reasons=tuple(reasons),
    )
