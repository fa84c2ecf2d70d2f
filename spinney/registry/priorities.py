"""Priorities: what a pod's class makes of its priority, and that one class alone is the default."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api.core.priorityclass import SYSTEM
from spinney.api.kinds import Kind
from spinney.meta.documents import Document, is_integer, object_at, string_at
from spinney.meta.references import GroupKind, Ref
from spinney.registry import requests
from spinney.store.store import Store

CLASS = GroupKind(group="scheduling.k8s.io", kind="PriorityClass")

_LOWER = "PreemptLowerPriority"
_SYSTEM_TEXTS: Mapping[str, str] = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but "
    "can be moved to another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their "
    "current node.",
}


def system_classes() -> list[Document]:
    """Return the classes that are there from the start."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": _SYSTEM_TEXTS[name],
        }
        for name, value in SYSTEM.items()
    ]


def resolved(store: Store, kind: Kind, pod: Document) -> Document:
    """Return a new pod with the priority of its class; raises Forbidden where there is no such.

    A pod that names none is of the default class, or of priority 0 where there is none.
    """
    spec = object_at(pod, ("spec",))
    name = string_at(spec, ("priorityClassName",))
    pod_name = string_at(pod, ("metadata", "name"))
    found = _class_of(store, name) if name else _default_class(store)
    if name and found is None:
        raise requests.forbidden(kind, pod_name, f"no PriorityClass with name {name} was found")
    value = (found or {}).get("value")
    value = value if is_integer(value) else 0
    policy = string_at(found or {}, ("preemptionPolicy",)) or _LOWER
    said, said_policy = spec.get("priority"), spec.get("preemptionPolicy")
    if is_integer(said) and said != value:
        raise requests.forbidden(
            kind,
            pod_name,
            f"the integer value of priority ({said}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name",
        )
    if isinstance(said_policy, str) and said_policy != policy:
        raise requests.forbidden(
            kind,
            pod_name,
            f"the string value of PreemptionPolicy ({said_policy}) must not be provided in pod "
            f"spec; priority admission controller computed {policy} from the given PriorityClass "
            "name",
        )
    filled: Document = {**spec, "priority": value, "preemptionPolicy": policy}
    if found is not None:
        filled["priorityClassName"] = string_at(found, ("metadata", "name"))
    return {**pod, "spec": filled}


def refuse_second_default(store: Store, kind: Kind, document: Document) -> None:
    """Raise Forbidden where a class would be the default beside another one."""
    if document.get("globalDefault") is not True:
        return
    name = string_at(document, ("metadata", "name"))
    for stored in store.heads(CLASS, by=("default", "true")):
        if stored.ref.name != name:
            raise requests.forbidden(
                kind,
                name,
                f"PriorityClass {stored.ref.name} is already marked as default. Only one default "
                "can exist",
            )


def _class_of(store: Store, name: str) -> Document | None:
    stored = store.head(Ref(kind=CLASS, namespace="", name=name))
    return None if stored is None else stored.document()


def register(store: Store) -> None:
    """Have the store find the default class without a walk."""
    store.register(CLASS, "default", lambda stored: _is_default(stored.document()))


def _is_default(document: Document) -> tuple[str, ...]:
    return ("true",) if document.get("globalDefault") is True else ()


def _default_class(store: Store) -> Document | None:
    for stored in store.list(CLASS, by=("default", "true")):
        return stored.document()
    return None
