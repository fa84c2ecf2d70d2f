"""Film strips: an autoscaler with a target whose pods are as busy as a test says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from spinney.api import groupkinds
from spinney.api.core.horizontalpodautoscaler import HorizontalPodAutoscaler
from spinney.api.core.pod import Pod
from spinney.decisions import autoscaling
from spinney.decisions.actions import Decision, Emit, Patch
from spinney.decisions.autoscaling import Observation, Target
from spinney.decisions.demand import Shape
from spinney.decisions.usage import PodUsage, Sample
from spinney.meta import conditions, records
from spinney.meta.documents import Document, Json, with_value
from spinney.meta.patches import merge_patch
from spinney.meta.quantities import NANO
from spinney.meta.references import Ref
from spinney.meta.times import format_time

START = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = START - timedelta(hours=1)
REQUEST_MILLI = 1000


def pod(
    name: str,
    *,
    ready: bool = True,
    phase: str = "Running",
    began: datetime = LONG_AGO,
    since: datetime | None = None,
    going: bool = False,
    requests: Json = "1",
) -> Pod:
    """Return a pod of one container that asks for one processor."""
    resources: Document = {} if requests is None else {"requests": {"cpu": requests}}
    metadata: Document = {"name": name, "uid": f"uid-{name}", "labels": {"app": "it"}}
    if going:
        metadata["deletionTimestamp"] = format_time(START)
    told: Document = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": format_time(since or began),
    }
    return records.decode(
        Pod,
        {
            "metadata": metadata,
            "spec": {"containers": [{"name": "main", "resources": resources}]},
            "status": {"phase": phase, "conditions": [told], "startTime": format_time(began)},
        },
    )


def busy(found: Pod, percent: int | None, at: datetime) -> Sample:
    """Return a pod that uses so much of one processor; None where that is not known."""
    if percent is None:
        return Sample(pod=found)
    used = percent * NANO // 100
    values = {"calls": percent * NANO}
    return Sample(
        pod=found, usage=PodUsage(measured_at=at, containers={"main": {"cpu": used}}, values=values)
    )


def cpu(percent: int = 50) -> Document:
    """Return the metric that aims at a share of processor time."""
    target: Document = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


Load = Callable[["Strip"], tuple[Sample, ...]]


class Strip:
    """An autoscaler, its target, and the time. What is decided is carried out at once."""

    def __init__(
        self,
        replicas: int,
        *,
        least: int = 1,
        most: int = 100,
        metrics: list[Json] | None = None,
        behavior: Document | None = None,
        floor: int = 0,
        pods_per_replica: int = 1,
        refusal: str = "",
    ) -> None:
        self.now = START
        self.replicas = replicas
        self.floor, self.refusal = floor, refusal
        self.pods_per_replica = pods_per_replica
        self.version = 1
        self.events: list[Emit] = []
        self.write_count = 0
        spec: Document = {
            "scaleTargetRef": {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodClique",
                "name": "it",
            },
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": metrics if metrics is not None else [cpu()],
        }
        if behavior is not None:
            spec["behavior"] = behavior
        self.document: Document = {"metadata": {"name": "it", "uid": "uid-it"}, "spec": spec}

    @property
    def autoscaler(self) -> HorizontalPodAutoscaler:
        return records.decode(HorizontalPodAutoscaler, self.document)

    def equally_busy(self, percent: int | None) -> tuple[Sample, ...]:
        """Return all pods, ready and equally busy."""
        count = self.replicas * self.pods_per_replica
        return tuple(busy(pod(f"it-{index}"), percent, self.now) for index in range(count))

    def seen(self, samples: tuple[Sample, ...]) -> Observation:
        return Observation(
            now=self.now,
            autoscaler=self.autoscaler,
            target=Target(
                ref=Ref(kind=groupkinds.CLIQUE, namespace="", name="it"),
                uid="uid-target",
                resource_version=str(self.version),
                replicas=self.replicas,
                least=self.floor,
                selector="app=it",
                shape=Shape(replicas=1, pods=self.pods_per_replica),
                refusal=self.refusal,
            ),
            samples=samples,
        )

    def decide(self, samples: tuple[Sample, ...]) -> Decision:
        decision = autoscaling.decide(self.seen(samples))
        decision.check()
        return decision

    def carry_out(self, decision: Decision, writes: int | None = None) -> None:
        """Carry out a decision, up to so many writes."""
        for action in decision.actions:
            if writes is not None and writes <= 0:
                return
            writes = None if writes is None else writes - 1
            if isinstance(action, Emit):
                self.events.append(action)
                continue
            assert isinstance(action, Patch)
            self.write_count += 1
            if action.target.kind == groupkinds.AUTOSCALER:
                self.document = merge_patch.apply(self.document, action.merge)
                continue
            assert action.only_if.resource_version == str(self.version)
            spec = action.merge["spec"]
            assert isinstance(spec, dict)
            assert isinstance(spec["replicas"], int)
            self.replicas = spec["replicas"]
            self.version += 1
        if decision.status is not None and (writes is None or writes > 0):
            self.write_count += 1
            self.document = with_value(self.document, ["status"], decision.status)

    def look(self, samples: tuple[Sample, ...]) -> Decision:
        decision = self.decide(samples)
        self.carry_out(decision)
        return decision

    def go(self, percent: int | None, seconds: int = 15) -> int:
        """Let time pass, look at equally busy pods; returns the replicas there are then."""
        self.now += timedelta(seconds=seconds)
        self.look(self.equally_busy(percent))
        return self.replicas

    def run(self, percent: int | None, looks: int) -> list[int]:
        """Look so many times, every 15 seconds; returns the replicas after each."""
        return [self.go(percent) for _ in range(looks)]

    def told(self, kind: str) -> tuple[str, str, str]:
        """Return a condition's status, reason and message."""
        found = conditions.find(self.autoscaler.status.conditions, kind)
        assert found is not None
        return found.status, found.reason, found.message

    def reason(self, kind: str) -> tuple[str, str]:
        return self.told(kind)[:2]

    def restarted(self) -> Strip:
        """Return the same seen by another process: only what is in the objects is left."""
        other = Strip(self.replicas)
        other.__dict__.update(self.__dict__)
        other.document = msgspec.json.decode(msgspec.json.encode(self.document))
        return other
