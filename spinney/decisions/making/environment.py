"""The environment variables by which a pod knows its place, put before those of its containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from spinney.api import labels, names
from spinney.meta.documents import Document, Json, is_list, string_at

Change: TypeAlias = "Callable[[Json], Json]"


def _value(name: str, value: str) -> Document:
    return {"name": name, "value": value}


def _label(name: str, key: str) -> Document:
    path = f"metadata.labels['{key}']"
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def of_pod(set_name: str, set_replica_index: int, clique: str, namespace: str) -> list[Document]:
    """Return what every pod is told; `clique` is its PodClique's full name."""
    address = names.headless_address(set_name, set_replica_index, namespace)
    return [
        _value("GROVE_PCS_NAME", set_name),
        _value("GROVE_PCS_INDEX", str(set_replica_index)),
        _value("GROVE_PCLQ_NAME", clique),
        _value("GROVE_HEADLESS_SERVICE", address),
        _label("GROVE_PCLQ_POD_INDEX", labels.POD_INDEX),
    ]


def of_group(pod_count: int) -> list[Document]:
    """Return what pods of a scaling group are told beyond that; `pod_count` is of one copy."""
    return [
        _label("GROVE_PCSG_NAME", labels.SCALING_GROUP),
        _value("GROVE_PCSG_TEMPLATE_NUM_PODS", str(pod_count)),
        _label("GROVE_PCSG_INDEX", labels.GROUP_REPLICA_INDEX),
    ]


def injected(pod_spec: Document, variables: Sequence[Document]) -> Document:
    """Return a pod spec whose every container begins with some variables.

    A variable of the same name that was there gives way.
    """
    taken = {string_at(variable, ["name"]) for variable in variables}

    def with_variables(container: Json) -> Json:
        if not isinstance(container, dict):
            return container
        given = container.get("env")
        kept = [
            item
            for item in (given if is_list(given) else [])
            if string_at(item, ["name"]) not in taken
        ]
        return {**container, "env": [*variables, *kept]}

    return with_containers(pod_spec, with_variables)


def with_containers(pod_spec: Document, change: Change) -> Document:
    """Return a pod spec with every container and init container changed by a function."""
    changed: Document = {**pod_spec}
    for field in ("initContainers", "containers"):
        containers = pod_spec.get(field)
        if is_list(containers):
            changed[field] = [change(container) for container in containers]
    return changed
