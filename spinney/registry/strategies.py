"""What each kind does beyond the rules of all: on creation, on update, on deletion.

Most kinds do nothing of their own. A strategy is a function of documents; what must be looked up
or given out (an address, a node) is the registry's to pass in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spinney.api.kinds import Kind
from spinney.meta.documents import (
    Document,
    is_integer,
    object_at,
    string_at,
    value_at,
    with_value,
    without,
)
from spinney.meta.references import GroupKind

POD = GroupKind(group="", kind="Pod")
NODE = GroupKind(group="", kind="Node")
NAMESPACE = GroupKind(group="", kind="Namespace")
SERVICE = GroupKind(group="", kind="Service")
EVENT = GroupKind(group="", kind="Event")
CRD = GroupKind(group="apiextensions.k8s.io", kind="CustomResourceDefinition")

Prepare = Callable[[Document], Document]


def _new_pod(document: Document) -> Document:
    return with_value(document, ["status"], {"phase": "Pending", "qosClass": _quality(document)})


def _quality(document: Document) -> str:
    """Return a pod's quality of service, by what its containers request and are limited to."""
    containers = [
        object_at(container, ["resources"])
        for field in ("containers", "initContainers")
        for container in _list(value_at(document, ["spec", field]))
    ]
    asked = [
        {name: object_at(resources, [kind]).get(name) for name in ("cpu", "memory")}
        for resources in containers
        for kind in ("requests", "limits")
    ]
    if not any(value is not None for pair in asked for value in pair.values()):
        return "BestEffort"
    limits = [object_at(resources, ["limits"]) for resources in containers]
    requests = [object_at(resources, ["requests"]) for resources in containers]
    guaranteed = all(
        limit.get(name) is not None and request.get(name, limit[name]) == limit[name]
        for limit, request in zip(limits, requests, strict=True)
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _list(value: object) -> list[Document]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _new_namespace(document: Document) -> Document:
    named = with_value(document, ["status"], {"phase": "Active"})
    name = string_at(document, ["metadata", "name"])
    path = ["metadata", "labels", "kubernetes.io/metadata.name"]
    return with_value(with_value(named, path, name), ["spec", "finalizers"], ["kubernetes"])


def _as_it_is(document: Document) -> Document:
    return document


_CREATE: Mapping[GroupKind, Prepare] = {
    POD: _new_pod,
    NAMESPACE: _new_namespace,
    NODE: _as_it_is,
}


def prepare_create(kind: Kind, document: Document) -> Document:
    """Return a new object as it begins: without a status of its writer's, but for nodes."""
    known = _CREATE.get(kind.names.group_kind)
    if known is not None:
        return known(document)
    return without(document, ["status"]) if kind.has_status else document


def grace_seconds(kind: Kind, document: Document, wanted: int | None) -> int:
    """Return how long an object's deletion waits for whoever runs it. Only pods that run wait."""
    if kind.names.group_kind != POD:
        return 0
    if not string_at(document, ["spec", "nodeName"]):
        return 0
    if string_at(document, ["status", "phase"]) in ("Succeeded", "Failed"):
        return 0
    if wanted is not None:
        return max(wanted, 0)
    given = value_at(document, ["spec", "terminationGracePeriodSeconds"])
    return given if is_integer(given) and given >= 0 else 30
