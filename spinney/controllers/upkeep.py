"""Upkeep: the controllers that Kubernetes brings itself, for a world that has none.

Each is switched on in the embedded world alone; on Kubernetes somebody else does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from spinney.api import groupkinds
from spinney.api.core.node import Node
from spinney.api.core.pod import Pod
from spinney.api.core.poddisruptionbudget import PodDisruptionBudget
from spinney.api.core.services import Endpoints, EndpointSlice, Service
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import PodCliqueSet
from spinney.controllers import lookups, waking
from spinney.controllers.selecting import Selecting
from spinney.decisions import budgets, endpoints, node_loss, node_taints
from spinney.decisions.making import owning
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.engine.controller import Controller
from spinney.engine.wakes import Wake
from spinney.meta import indexes, selectors
from spinney.meta.references import Ref
from spinney.ports import Reader


def controllers(reader: Reader, settings: Settings = DEFAULTS) -> tuple[Controller[Any], ...]:
    """Return every controller of upkeep, to be run over a reader."""
    return (_nodes(), _lost_pods(reader, settings), _endpoints(reader), _budgets(reader))


def _nodes() -> Controller[node_taints.Observation]:
    return Controller(
        name="node",
        kind=groupkinds.NODE,
        observe=observe_node,
        decide=node_taints.decide,
    )


def observe_node(reader: Reader, key: Ref, now: datetime) -> node_taints.Observation | None:
    """Return what is to be seen of one node; None where it is gone."""
    node = reader.get(Node, "", key.name)
    return None if node is None else node_taints.Observation(now=now, node=node)


def _lost_pods(reader: Reader, settings: Settings) -> Controller[node_loss.Observation]:
    """Look at pods whose node is gone, does not answer, or drives them away; at no others."""
    return Controller(
        name="node-loss",
        kind=groupkinds.POD,
        observe=partial(observe_pod, settings=settings),
        decide=node_loss.decide,
        is_of_concern=is_of_concern,
        wakes=(
            Wake(
                kind=groupkinds.NODE,
                record=Node,
                keys=_pods_in_trouble(reader),
                gone=lambda ref: _pods_on(reader, ref.name),
            ),
            Wake(kind=groupkinds.SET, record=PodCliqueSet, keys=waking.nobody),
        ),
    )


def observe_pod(
    reader: Reader, key: Ref, now: datetime, settings: Settings = DEFAULTS
) -> node_loss.Observation | None:
    """Return what is to be seen of one pod and where it is; None where it is gone."""
    pod = reader.get(Pod, key.namespace, key.name)
    if pod is None:
        return None
    root = lookups.root_set(reader, pod.metadata)
    return node_loss.Observation(
        now=now,
        pod=pod,
        node=reader.get(Node, "", pod.spec.node_name) if pod.spec.node_name else None,
        workload_type="" if root is None else root.spec.workload_type,
        toleration_seconds=settings.toleration_seconds,
    )


def is_of_concern(reader: Reader, ref: Ref) -> bool:
    """Whether a pod is on a node that is gone, does not answer, or drives pods away."""
    pod = reader.get(Pod, ref.namespace, ref.name)
    if pod is None or not pod.spec.node_name:
        return False
    return node_loss.is_of_concern(pod, reader.get(Node, "", pod.spec.node_name))


def _pods_in_trouble(reader: Reader) -> Callable[[Node], Iterable[Ref]]:
    def keys(node: Node) -> Iterable[Ref]:
        return _pods_on(reader, node.metadata.name) if node_loss.is_troubled(node) else ()

    return keys


def _pods_on(reader: Reader, node: str) -> Iterator[Ref]:
    for pod in reader.list(Pod, by=("node", node)):
        metadata = pod.metadata
        yield Ref(kind=groupkinds.POD, namespace=metadata.namespace, name=metadata.name)


def _endpoints(reader: Reader) -> Controller[endpoints.Observation]:
    return Controller(
        name="endpoints",
        kind=groupkinds.SERVICE,
        observe=observe_service,
        decide=endpoints.decide,
        wakes=(
            Wake(kind=groupkinds.POD, record=Pod, keys=Selecting(reader).services_of),
            Wake(
                kind=groupkinds.ENDPOINT_SLICE,
                record=EndpointSlice,
                keys=_service_of,
            ),
            Wake(
                kind=groupkinds.ENDPOINTS,
                record=Endpoints,
                keys=_service_of,
            ),
        ),
    )


def _service_of(published: Endpoints | EndpointSlice) -> Iterator[Ref]:
    owner = owning.controller_of(published.metadata)
    if owner is not None and owner.kind == groupkinds.SERVICE:
        yield owner


def observe_service(reader: Reader, key: Ref, now: datetime) -> endpoints.Observation | None:
    """Return what is to be seen of one service; None where it is gone."""
    service = reader.get(Service, key.namespace, key.name)
    if service is None:
        return None
    if not endpoints.is_kept(service):
        return endpoints.Observation(now=now, service=service)
    by = indexes.by_labels(service.spec.selector)
    slices = reader.list(EndpointSlice, namespace=key.namespace, by=("owner", service.metadata.uid))
    return endpoints.Observation(
        now=now,
        service=service,
        pods=tuple(reader.list(Pod, namespace=key.namespace, by=by)),
        slices=tuple(slices),
        endpoints=reader.get(Endpoints, key.namespace, key.name),
    )


def _budgets(reader: Reader) -> Controller[budgets.Observation]:
    return Controller(
        name="poddisruptionbudget",
        kind=groupkinds.DISRUPTION_BUDGET,
        observe=observe_budget,
        decide=budgets.decide,
        wakes=(
            Wake(kind=groupkinds.POD, record=Pod, keys=_budgets_of(reader)),
            Wake(kind=groupkinds.CLIQUE, record=PodClique, keys=_budgets_of_clique(reader)),
        ),
    )


def observe_budget(reader: Reader, key: Ref, now: datetime) -> budgets.Observation | None:
    """Return what is to be seen of one disruption budget; None where it is gone."""
    budget = reader.get(PodDisruptionBudget, key.namespace, key.name)
    if budget is None:
        return None
    selector = selectors.from_document(budget.spec.selector)
    by = indexes.by_labels(dict(selector.equalities)) if selector.equalities else None
    found = [
        pod
        for pod in reader.list(Pod, namespace=key.namespace, by=by)
        if selector.matches(pod.metadata.labels)
    ]
    return budgets.Observation(
        now=now, budget=budget, pods=tuple(found), replicas=_replicas(reader, found)
    )


def _replicas(reader: Reader, found: Iterable[Pod]) -> dict[str, int]:
    """Return how many pods each PodClique is to have that made some, by its uid."""
    counts: dict[str, int] = {}
    for pod in found:
        owner = owning.controller_of(pod.metadata)
        if owner is None or owner.kind != groupkinds.CLIQUE:
            continue
        clique = reader.get(PodClique, owner.namespace, owner.name)
        if clique is not None:
            counts[clique.metadata.uid] = clique.spec.replicas
    return counts


def _budgets_of(reader: Reader) -> Callable[[Pod], Iterable[Ref]]:
    """Wake the budgets that guard a pod; there are few in a namespace."""

    def keys(pod: Pod) -> Iterator[Ref]:
        metadata = pod.metadata
        for budget in reader.list(PodDisruptionBudget, namespace=metadata.namespace):
            if selectors.from_document(budget.spec.selector).matches(metadata.labels):
                yield _budget_ref(budget)

    return keys


def _budgets_of_clique(reader: Reader) -> Callable[[PodClique], Iterable[Ref]]:
    """Wake the budgets that may count how many pods a PodClique is to have."""

    def keys(clique: PodClique) -> Iterator[Ref]:
        for budget in reader.list(PodDisruptionBudget, namespace=clique.metadata.namespace):
            if not isinstance(budget.spec.min_available, int):
                yield _budget_ref(budget)

    return keys


def _budget_ref(budget: PodDisruptionBudget) -> Ref:
    metadata = budget.metadata
    kind = groupkinds.DISRUPTION_BUDGET
    return Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)
