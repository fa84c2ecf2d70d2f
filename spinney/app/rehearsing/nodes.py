"""Nodes of a rehearsal: they place gangs as the scheduler does, and pods are ready at once.

Nothing is preempted: what would need that is told to have no place. Where no node is known, there
is room for everything, and it is said that nobody looked.
"""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import groupkinds, labels
from spinney.api.core.node import Node
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.app.rehearsing.objects import Objects
from spinney.decisions import disruption, pods, standing
from spinney.decisions.placement import machines, placing
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.outcomes import Refusal
from spinney.meta.documents import Document, Json, with_value
from spinney.meta.references import Ref
from spinney.scheduler.demanding import Demanding

ANYWHERE = "anywhere"


class Nodes:
    """The nodes there are, and what runs on them."""

    def __init__(self, objects: Objects) -> None:
        """Take in nodes, and the pods they have."""
        self._objects = objects
        self._demanding = Demanding(objects)
        self._cluster = Cluster()
        self.refusals: dict[Ref, Refusal] = {}
        """What has no place now, and why."""

        for node in objects.list(Node):
            self._cluster.put_machine(machines.machine(node))
        for pod in objects.list(Pod):
            if disruption.holds_place(pod):
                self._settle(pod, pod.spec.node_name)

    @property
    def are_known(self) -> bool:
        """Whether any node is known."""
        return self._cluster.machine_count > 0

    def _settle(self, pod: Pod, node: str) -> None:
        name = pod.metadata.labels.get(labels.PODGANG, "")
        gang = Ref(kind=groupkinds.GANG, namespace=pod.metadata.namespace, name=name)
        demand = self._demanding.of_pod(pod)
        resident = machines.resident(demand, gang=gang if name else None)
        self._cluster.put_resident(node, resident)

    def end(self) -> bool:
        """Take away the pods that are being deleted; returns whether there were any."""
        going = [pod for pod in self._objects.list(Pod) if pods.is_terminating(pod)]
        for pod in going:
            self._cluster.remove_resident(pod.metadata.uid)
            self._demanding.forget_pod(pod.metadata.uid)
            self._objects.end(_ref(pod))
        return bool(going)

    def place(self) -> bool:
        """Place what waits and make it ready; returns whether anything was placed."""
        self.refusals.clear()
        placed = False
        for gang, members in self._waiting():
            nodes = {
                pod.metadata.uid: pod.spec.node_name
                for pod in members.values()
                if pod.spec.node_name
            }
            found = standing.of_gang(gang, members, _is_own, _is_placed)
            if found.held_back or not found.waiting:
                continue
            if not self.are_known:
                for pod in found.waiting:
                    self._run(pod, ANYWHERE)
                placed = True
                continue
            self._demanding.forget_gang(_gang_ref(gang))
            demand = self._demanding.of_gang(gang, found, nodes)
            outcome = placing.place(self._cluster, demand, self._demanding.levels(gang))
            if isinstance(outcome, Refusal):
                self._refuse(gang, outcome, members)
                continue
            if outcome.shortfall is not None:
                self._refuse(gang, outcome.shortfall, members)
            for binding in outcome.bindings:
                pod = members[binding.pod.name]
                self._settle(pod, binding.node)
                self._run(pod, binding.node)
                placed = True
        return placed

    def _waiting(self) -> Iterator[tuple[PodGang, dict[str, Pod]]]:
        """Yield the gangs that have pods that wait, oldest first, with all their pods."""
        waiting = {
            (pod.metadata.namespace, pod.metadata.labels.get(labels.PODGANG, ""))
            for pod in self._objects.list(Pod)
            if pods.is_active(pod) and standing.may_be_placed(pod)
        }
        for namespace, name in sorted(waiting):
            gang = self._objects.get(PodGang, namespace, name)
            if gang is None:
                continue
            by = (f"label:{labels.PODGANG}", name)
            found = self._objects.list(Pod, namespace=namespace, by=by)
            yield gang, {pod.metadata.name: pod for pod in found}

    def _refuse(self, gang: PodGang, why: Refusal, members: dict[str, Pod]) -> None:
        self.refusals[_gang_ref(gang)] = why
        for pod in members.values():
            if pods.is_active(pod) and standing.may_be_placed(pod):
                said: Document = {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": why.summary,
                }
                status: Document = {"phase": "Pending", "conditions": [said]}
                self._objects.put_status(_ref(pod), status)

    def _run(self, pod: Pod, node: str) -> None:
        """Have a pod run, and be ready at once."""
        document = self._objects.document(_ref(pod))
        assert document is not None, "what is placed is there"
        told: list[Json] = [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True"},
        ]
        status: Document = {"phase": "Running", "conditions": told}
        placed = with_value(document, ["spec", "nodeName"], node)
        self._objects.put({**placed, "status": status})


def _is_own(_pod: Pod) -> bool:
    return True


def _is_placed(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def _ref(pod: Pod) -> Ref:
    metadata = pod.metadata
    return Ref(kind=groupkinds.POD, namespace=metadata.namespace, name=metadata.name)


def _gang_ref(gang: PodGang) -> Ref:
    metadata = gang.metadata
    return Ref(kind=groupkinds.GANG, namespace=metadata.namespace, name=metadata.name)
