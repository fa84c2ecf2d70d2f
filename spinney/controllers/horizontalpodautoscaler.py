"""The HorizontalPodAutoscaler controller: looks at one autoscaler, its target and its pods.

It serves worlds without a cluster; on Kubernetes the cluster's own does this work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from spinney.api import groupkinds, labels
from spinney.api.core.horizontalpodautoscaler import HorizontalPodAutoscaler
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import TRAINING
from spinney.controllers import lookups
from spinney.decisions.autoscaling import Observation, Target
from spinney.decisions.demand import Shape
from spinney.decisions.making import cliques as clique_documents
from spinney.decisions.usage import PodUsage, Sample
from spinney.meta import selectors
from spinney.meta.metadata import ObjectMeta
from spinney.meta.references import GroupKind, Ref
from spinney.ports import PodMetrics, Reader

FIXED_SIZE = "a Training workload has a fixed size"


class Unmeasured:
    """Fills `PodMetrics` where nobody measures: nothing is known of any pod."""

    def usage(self, _pod_uid: str) -> PodUsage | None:
        """Return None."""
        return None


def observe(reader: Reader, key: Ref, now: datetime, metrics: PodMetrics) -> Observation | None:
    """Return what is to be seen of one autoscaler; None where it is gone."""
    autoscaler = reader.get(HorizontalPodAutoscaler, key.namespace, key.name)
    if autoscaler is None:
        return None
    aim = autoscaler.spec.scale_target_ref
    kind = GroupKind(group=aim.api_version.rpartition("/")[0], kind=aim.kind)
    find = _FINDERS.get(kind)
    if find is None:
        why = f'nothing of kind "{kind}" can be scaled by an autoscaler here; known are '
        why += ", ".join(sorted(each.kind for each in _FINDERS))
        return Observation(now=now, autoscaler=autoscaler, why_no_target=why)
    target = find(reader, Ref(kind=kind, namespace=key.namespace, name=aim.name))
    if target is None:
        plural = f"{kind.kind.lower()}s.{kind.group}"
        why = f'{plural} "{aim.name}" not found'
        return Observation(now=now, autoscaler=autoscaler, why_no_target=why)
    return Observation(
        now=now,
        autoscaler=autoscaler,
        target=target,
        samples=tuple(_samples(reader, target, metrics)),
        rival=_rival(reader, autoscaler, key),
    )


def _samples(reader: Reader, target: Target, metrics: PodMetrics) -> Iterable[Sample]:
    """Yield the pods that a target's scale selects."""
    if not target.selector:
        return
    wanted = selectors.parse_selector(target.selector)
    index = (f"label:{_INDEXED[target.ref.kind]}", target.ref.name)
    for pod in reader.list(Pod, namespace=target.ref.namespace, by=index):
        if wanted.matches(pod.metadata.labels):
            yield Sample(pod=pod, usage=metrics.usage(pod.metadata.uid))


_INDEXED = {
    groupkinds.CLIQUE: labels.PODCLIQUE,
    groupkinds.SCALING_GROUP: labels.SCALING_GROUP,
    groupkinds.SET: labels.PART_OF,
}


def _rival(reader: Reader, autoscaler: HorizontalPodAutoscaler, key: Ref) -> str:
    """Return the autoscaler that a set made for the same target, where this is another."""
    aim = autoscaler.spec.scale_target_ref
    if key.name == aim.name:
        return ""
    other = reader.get(HorizontalPodAutoscaler, key.namespace, aim.name)
    if other is None or other.spec.scale_target_ref != aim:
        return ""
    return other.metadata.name


# What is scaled


def _clique(reader: Reader, ref: Ref) -> Target | None:
    clique = reader.get(PodClique, ref.namespace, ref.name)
    if clique is None:
        return None
    return Target(
        ref=ref,
        uid=clique.metadata.uid,
        resource_version=clique.metadata.resource_version,
        replicas=clique.spec.replicas,
        least=clique_documents.min_available(clique),
        is_new=clique.status.observed_generation is None,
        selector=clique.status.hpa_pod_selector,
        refusal=_refusal(reader, clique.metadata),
    )


def _group(reader: Reader, ref: Ref) -> Target | None:
    group = reader.get(PodCliqueScalingGroup, ref.namespace, ref.name)
    if group is None:
        return None
    own = reader.list(PodClique, namespace=ref.namespace, by=("owner", group.metadata.uid))
    return Target(
        ref=ref,
        uid=group.metadata.uid,
        resource_version=group.metadata.resource_version,
        replicas=group.spec.replicas,
        least=group.spec.min_available,
        is_new=group.status.observed_generation is None,
        selector=group.status.selector,
        shape=_shape(own, labels.GROUP_REPLICA_INDEX),
        refusal=_refusal(reader, group.metadata),
    )


def _set(reader: Reader, ref: Ref) -> Target | None:
    set_ = reader.get(PodCliqueSet, ref.namespace, ref.name)
    if set_ is None:
        return None
    index = (f"label:{labels.PART_OF}", ref.name)
    own = reader.list(PodClique, namespace=ref.namespace, by=index)
    return Target(
        ref=ref,
        uid=set_.metadata.uid,
        resource_version=set_.metadata.resource_version,
        replicas=set_.spec.replicas,
        is_new=set_.status.observed_generation is None,
        selector=set_.status.hpa_pod_selector,
        shape=_shape(own, labels.SET_REPLICA_INDEX),
        refusal=FIXED_SIZE if set_.spec.workload_type == TRAINING else "",
    )


def _refusal(reader: Reader, metadata: ObjectMeta) -> str:
    root = lookups.root_set(reader, metadata)
    return FIXED_SIZE if root is not None and root.spec.workload_type == TRAINING else ""


def _shape(own: Iterable[PodClique], index: str) -> Shape:
    """Return how many pods so many replicas have: those whose PodCliques are there to stay."""
    staying = [clique for clique in own if clique.metadata.deletion_timestamp is None]
    replicas = {clique.metadata.labels.get(index) for clique in staying}
    return Shape(replicas=len(replicas), pods=sum(clique.spec.replicas for clique in staying))


_FINDERS: dict[GroupKind, Callable[[Reader, Ref], Target | None]] = {
    groupkinds.CLIQUE: _clique,
    groupkinds.SCALING_GROUP: _group,
    groupkinds.SET: _set,
}
