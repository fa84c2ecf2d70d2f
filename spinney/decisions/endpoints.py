"""Endpoints: where the pods of a service are reached, as EndpointSlices and as Endpoints.

Written only where they change. A pod stays in the slice it is in, so that one pod that comes or
goes changes one slice. Before anything is published of a service, those of its pods that were just
placed are waited for a moment: a gang that starts together is then written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from spinney.api import groupkinds
from spinney.api.core.pod import Pod
from spinney.api.core.services import HEADLESS, Endpoints, EndpointSlice, Service, ServicePort
from spinney.decisions import pods
from spinney.decisions.actions import Action, Create, Decision, Delete, Patch
from spinney.decisions.making import owning
from spinney.meta import records
from spinney.meta.documents import Document, Json, is_integer, list_at, same, string_at
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref

SLICE_MAX: Final = 100
"""How many endpoints a slice holds, as in Kubernetes."""

ADDRESSES_MAX: Final = 1000
"""How many addresses an Endpoints holds, as in Kubernetes."""

GATHERING: Final = timedelta(seconds=2)
"""How long the first pod of a service waits for others that start with it."""

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "spinney.dev"
_HEADLESS_LABEL: Final = "service.kubernetes.io/headless"

_Ports: TypeAlias = tuple[tuple[str, int, str], ...]
"""Name, number and protocol of each port, as one pod has them."""


class Observation(Record):
    """One service, its pods, and what is published of it."""

    now: datetime
    service: Service
    pods: tuple[Pod, ...] = ()
    slices: tuple[EndpointSlice, ...] = ()
    """Those we made for it."""

    endpoints: Endpoints | None = None


def is_kept(service: Service) -> bool:
    """Whether endpoints of a service are ours to keep; without a selector they are its owner's."""
    spec = service.spec
    return (
        bool(spec.selector)
        and spec.type != "ExternalName"
        and service.metadata.deletion_timestamp is None
    )


def decide(observation: Observation) -> Decision:
    """Return what makes published endpoints right."""
    if not is_kept(observation.service):
        return Decision()
    found = [pod for pod in observation.pods if pod.status.pod_ip and not pods.is_ended(pod)]
    if not observation.slices:
        if not found:
            return Decision()
        wait = _gathering(observation, found)
        if wait is not None:
            return Decision(wake_after=wait)
    return Decision(actions=(*_slices(observation, found), *_endpoints(observation, found)))


def _gathering(observation: Observation, found: Sequence[Pod]) -> timedelta | None:
    """Return how long pods that were just placed are waited for, None where none are."""
    starting = any(
        pods.is_active(pod) and pods.is_scheduled(pod) and not pod.status.pod_ip
        for pod in observation.pods
    )
    began = min((pod.status.start_time or observation.now for pod in found), default=None)
    if not starting or began is None or began + GATHERING <= observation.now:
        return None
    return began + GATHERING - observation.now


# Slices


def _slices(observation: Observation, found: Sequence[Pod]) -> Iterator[Action]:
    service = observation.service
    wanted = {pod.metadata.uid: pod for pod in found}
    held: list[tuple[EndpointSlice, _Ports, list[Pod]]] = []
    for each in observation.slices:
        ports = tuple((port.name, port.port or 0, port.protocol) for port in each.ports)
        kept = []
        for endpoint in each.endpoints:
            uid = "" if endpoint.target_ref is None else endpoint.target_ref.uid
            pod = wanted.get(uid)
            if pod is not None and _ports(service, pod) == ports:
                kept.append(wanted.pop(uid))
        held.append((each, ports, kept))
    fresh: dict[_Ports, list[Pod]] = {}
    for pod in wanted.values():
        fresh.setdefault(_ports(service, pod), []).append(pod)
    for _, ports, kept in held:
        coming = fresh.get(ports, [])
        room = SLICE_MAX - len(kept)
        kept.extend(coming[:room])
        del coming[:room]
    for position, (each, ports, kept) in enumerate(held):
        if not kept and (position > 0 or any(other for _, _, other in held[1:])):
            yield _deletion(groupkinds.ENDPOINT_SLICE, each.metadata)
        else:
            yield from _slice_changed(service, each, ports, kept)
    yield from _new_slices(service, {each.metadata.name for each, _, _ in held}, fresh)


def _slice_changed(
    service: Service, before: EndpointSlice, ports: _Ports, kept: Sequence[Pod]
) -> Iterator[Action]:
    listed: list[Json] = [_endpoint(service, pod) for pod in sorted(kept, key=_name)]
    if same([records.encode(endpoint) for endpoint in before.endpoints], listed):
        return
    yield Patch(
        target=_ref(groupkinds.ENDPOINT_SLICE, before.metadata),
        merge={"endpoints": listed, "ports": _port_documents(ports)},
        only_if=_unchanged(before.metadata),
    )


def _new_slices(
    service: Service, taken: set[str], fresh: dict[_Ports, list[Pod]]
) -> Iterator[Action]:
    index = 0
    for ports, coming in sorted(fresh.items()):
        for first in range(0, len(coming), SLICE_MAX):
            while (name := f"{service.metadata.name}-{index}") in taken:
                index += 1
            taken.add(name)
            part = sorted(coming[first : first + SLICE_MAX], key=_name)
            yield Create(
                document={
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "name": name,
                        "namespace": service.metadata.namespace,
                        "labels": {
                            **_labels(service),
                            SERVICE_NAME: service.metadata.name,
                            MANAGED_BY: MANAGER,
                        },
                        "ownerReferences": [
                            owning.owner_reference(groupkinds.SERVICE, service.metadata)
                        ],
                    },
                    "addressType": "IPv6" if ":" in part[0].status.pod_ip else "IPv4",
                    "endpoints": [_endpoint(service, pod) for pod in part],
                    "ports": _port_documents(ports),
                }
            )


def _endpoint(service: Service, pod: Pod) -> Document:
    is_terminating = pods.is_terminating(pod)
    serves = pods.says_ready(pod)
    ready = service.spec.publish_not_ready_addresses or (serves and not is_terminating)
    return {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": serves, "terminating": is_terminating},
        **_told(service, pod),
    }


def _told(service: Service, pod: Pod) -> Document:
    """Return what slices and Endpoints tell alike of a pod."""
    told: Document = {"nodeName": pod.spec.node_name, "targetRef": _target(pod)}
    if pod.spec.hostname and pod.spec.subdomain == service.metadata.name:
        told["hostname"] = pod.spec.hostname
    return told


def _target(pod: Pod) -> Document:
    metadata = pod.metadata
    return {
        "kind": "Pod",
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
    }


# Endpoints


def _endpoints(observation: Observation, found: Sequence[Pod]) -> Iterator[Action]:
    service, before = observation.service, observation.endpoints
    wanted = _subsets(service, found)
    if before is None:
        if wanted:
            yield Create(
                document={
                    "apiVersion": "v1",
                    "kind": "Endpoints",
                    "metadata": {
                        "name": service.metadata.name,
                        "namespace": service.metadata.namespace,
                        "labels": _labels(service),
                        "ownerReferences": [
                            owning.owner_reference(groupkinds.SERVICE, service.metadata)
                        ],
                    },
                    "subsets": wanted,
                }
            )
    elif not same([*before.subsets], wanted):
        yield Patch(
            target=_ref(groupkinds.ENDPOINTS, before.metadata),
            merge={"subsets": wanted or None},
            only_if=_unchanged(before.metadata),
        )


def _subsets(service: Service, found: Sequence[Pod]) -> list[Json]:
    publishes_all = service.spec.publish_not_ready_addresses
    by_ports: dict[_Ports, tuple[list[Json], list[Json]]] = {}
    listed = [pod for pod in found if publishes_all or not pods.is_terminating(pod)]
    for pod in sorted(listed, key=_name)[:ADDRESSES_MAX]:
        ready, unready = by_ports.setdefault(_ports(service, pod), ([], []))
        is_ready = publishes_all or pods.is_ready(pod)
        (ready if is_ready else unready).append({"ip": pod.status.pod_ip, **_told(service, pod)})
    subsets: list[Json] = []
    for ports, (ready, unready) in sorted(by_ports.items(), key=lambda item: item[0]):
        subset: Document = {}
        if ready:
            subset["addresses"] = ready
        if unready:
            subset["notReadyAddresses"] = unready
        if ports:
            subset["ports"] = _port_documents(ports)
        subsets.append(subset)
    return subsets


# Ports


def _ports(service: Service, pod: Pod) -> _Ports:
    """Return the ports of a service as a pod has them; one it has no port for is left out."""
    found = ((port, _number(port, pod)) for port in service.spec.ports)
    return tuple((port.name, number, port.protocol) for port, number in found if number)


def _number(port: ServicePort, pod: Pod) -> int:
    target = port.target_port or port.port
    if is_integer(target):
        return target
    for container in pod.spec.containers:
        for declared in list_at(container, ["ports"]):
            is_it = string_at(declared, ["name"]) == target
            if is_it and (string_at(declared, ["protocol"]) or "TCP") == port.protocol:
                number = declared.get("containerPort") if isinstance(declared, dict) else None
                return number if is_integer(number) else 0
    return 0


def _port_documents(ports: _Ports) -> list[Json]:
    listed: list[Json] = []
    for name, number, protocol in ports:
        port: Document = {"port": number, "protocol": protocol}
        listed.append({"name": name, **port} if name else port)
    return listed


# Names


def _labels(service: Service) -> Document:
    labels: Document = {**service.metadata.labels}
    if service.spec.cluster_ip == HEADLESS:
        labels[_HEADLESS_LABEL] = ""
    return labels


def _name(pod: Pod) -> str:
    return pod.metadata.name


def _ref(kind: GroupKind, metadata: ObjectMeta) -> Ref:
    return Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)


def _unchanged(metadata: ObjectMeta) -> Precondition:
    return Precondition(uid=metadata.uid, resource_version=metadata.resource_version)


def _deletion(kind: GroupKind, metadata: ObjectMeta) -> Delete:
    return Delete(target=_ref(kind, metadata), only_if=Precondition(uid=metadata.uid))
