"""Demanding: what gangs ask for, made of what is seen; what pods ask is worked out once each."""

from __future__ import annotations

from datetime import datetime

from spinney.api import groupkinds, labels
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.pod import Pod
from spinney.api.core.priorityclass import PriorityClass
from spinney.api.podgang import PodGang
from spinney.decisions import standing
from spinney.decisions.placement import demands
from spinney.decisions.placement.demands import (
    BoundPod,
    GangDemand,
    GroupDemand,
    PackConfig,
    PodDemand,
)
from spinney.decisions.standing import Standing
from spinney.meta.references import Ref
from spinney.ports import Reader


class Demanding:
    """What gangs and pods ask for."""

    def __init__(self, reader: Reader) -> None:
        """Look up in a reader what pods and gangs name."""
        self._reader = reader
        self._of_pods: dict[str, tuple[int, PodDemand]] = {}
        self._gangs: dict[Ref, tuple[str, datetime | None]] = {}

    def forget_pod(self, uid: str) -> None:
        """Forget what a pod asked that is gone."""
        self._of_pods.pop(uid, None)

    def forget_gang(self, ref: Ref) -> None:
        """Forget what is known of a gang: it changed, or is gone."""
        self._gangs.pop(ref, None)

    def of_pod(self, pod: Pod) -> PodDemand:
        """Return what a pod asks."""
        uid, generation = pod.metadata.uid, pod.metadata.generation
        known = self._of_pods.get(uid)
        if known is not None and known[0] == generation:
            return known[1]
        found = demands.pod_demand(pod)
        self._of_pods[uid] = (generation, found)
        return found

    def created(self, whole: Ref, pod: Pod) -> datetime | None:
        """Return when the gang of a pod was made."""
        return self._known(whole)[1] or pod.metadata.creation_timestamp

    def priority(self, whole: Ref, *known: Pod) -> int:
        """Return how important a gang is, going by the pods of it that are known."""
        return standing.priority(self._find_class(self._known(whole)[0]), known)

    def class_may_preempt(self, whole: Ref) -> bool:
        """Whether the class of a gang lets others be taken away for it; a gang may have none."""
        found = self._find_class(self._known(whole)[0])
        return found is None or found.preemption_policy != demands.NEVER

    def _known(self, whole: Ref) -> tuple[str, datetime | None]:
        """Return a gang's priority class and when it was made; "" and None for a pod in none."""
        found = self._gangs.get(whole)
        if found is None:
            gang = self._gang(whole)
            found = "", None
            if gang is not None:
                found = gang.spec.priority_class_name, gang.metadata.creation_timestamp
                self._gangs[whole] = found
        return found

    def _find_class(self, name: str) -> PriorityClass | None:
        return self._reader.get(PriorityClass, "", name) if name else None

    def _gang(self, whole: Ref) -> PodGang | None:
        if whole.kind != groupkinds.GANG:
            return None
        return self._reader.get(PodGang, whole.namespace, whole.name)

    def of_gang(self, gang: PodGang, found: Standing, nodes: dict[str, str]) -> GangDemand:
        """Return what a gang asks that stands so; `nodes` are those of its pods, by uid."""
        spec = gang.spec
        named = {group.name: group for group in spec.pod_groups}
        groups = tuple(
            GroupDemand(
                name=group.name,
                min_replicas=max(0, group.needed_count - group.succeeded_count),
                waiting=tuple(map(self.of_pod, group.waiting)),
                bound=tuple(
                    BoundPod(
                        ref=self.of_pod(pod).ref,
                        uid=pod.metadata.uid,
                        node=nodes[pod.metadata.uid],
                    )
                    for pod in group.placed
                ),
                pack=demands.pack(named[group.name].topology_constraint),
            )
            for group in found.groups
        )
        configs = tuple(
            PackConfig(
                name=config.name,
                group_names=config.pod_group_names,
                pack=demands.pack(config.topology_constraint),
            )
            for config in spec.topology_constraint_group_configs
        )
        members = (pod for group in found.groups for pod in (*group.waiting, *group.placed))
        return GangDemand(
            ref=Ref(
                kind=groupkinds.GANG, namespace=gang.metadata.namespace, name=gang.metadata.name
            ),
            uid=gang.metadata.uid,
            groups=groups,
            pack=demands.pack(spec.topology_constraint),
            configs=configs,
            priority=standing.priority(self._find_class(spec.priority_class_name), members),
            created=gang.metadata.creation_timestamp,
        )

    def of_one(self, pod: Pod) -> GangDemand:
        """Return what a pod outside any gang asks."""
        return demands.gang_of_one(self.of_pod(pod), pod.metadata.creation_timestamp)

    def levels(self, gang: PodGang | None) -> tuple[str, ...]:
        """Return the node labels of the network a gang is placed by, broadest first.

        That of the topology it names, else of the only one there is.
        """
        name = "" if gang is None else gang.metadata.annotations.get(labels.TOPOLOGY_NAME, "")
        if name:
            return demands.levels(self._reader.get(ClusterTopologyBinding, "", name))
        there = self._reader.list(ClusterTopologyBinding)
        return demands.levels(there[0]) if len(there) == 1 else ()
