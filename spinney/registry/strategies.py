"""Strategies: what single kinds do beyond the rules of all, when made and when changed.

A strategy runs after a document was admitted and its fields were claimed for their writer: what it
adds is the server's, and nobody's to keep when he applies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, object_at, string_at, without
from spinney.meta.errors import MethodNotAllowed
from spinney.meta.references import GroupKind, Ref
from spinney.registry import addresses, marking, pods, priorities, requests
from spinney.store.store import Store

POD = marking.POD
NODE = GroupKind(group="", kind="Node")
NAMESPACE = marking.NAMESPACE
EVENT = GroupKind(group="", kind="Event")

IMMORTAL = ("default", "kube-system", "kube-public")
"""Namespaces nobody can delete."""

_COUNTED = frozenset(
    {
        POD,
        GroupKind(group="discovery.k8s.io", kind="EndpointSlice"),
        priorities.CLASS,
        GroupKind(group="policy", kind="PodDisruptionBudget"),
        marking.DEFINITION,
    }
)
"""Kinds built into Kubernetes whose generation it counts; of all others it does."""

_ALWAYS_WITH_VERSION = frozenset(
    {
        GroupKind(group="coordination.k8s.io", kind="Lease"),
        GroupKind(group="policy", kind="PodDisruptionBudget"),
        marking.DEFINITION,
    }
)
"""Kinds built into Kubernetes that are replaced only where the version is said, as others are."""

_MADE_BY_UPDATE = frozenset(
    {
        GroupKind(group="coordination.k8s.io", kind="Lease"),
        GroupKind(group="", kind="Endpoints"),
        addresses.SERVICE,
        EVENT,
    }
)


def counts_generations(kind: Kind) -> bool:
    """Whether objects of a kind carry a generation."""
    return not kind.is_builtin or kind.names.group_kind in _COUNTED


def needs_version(kind: Kind) -> bool:
    """Whether an object of a kind is replaced only by who says which version he read."""
    return not kind.is_builtin or kind.names.group_kind in _ALWAYS_WITH_VERSION


def is_made_by_update(kind: Kind) -> bool:
    """Whether replacing an object that is not there makes it."""
    return kind.stored_kind in _MADE_BY_UPDATE


def brings_status(kind: Kind) -> bool:
    """Whether who makes an object may give it a status: nodes tell of themselves."""
    return not kind.has_status or kind.names.group_kind == NODE


_Begin = Callable[[Store, Kind, Document], Document]


def _new_pod(store: Store, kind: Kind, pod: Document) -> Document:
    spec = object_at(pod, ("spec",))
    account = string_at(spec, ("serviceAccountName",)) or string_at(spec, ("serviceAccount",))
    account = account or "default"
    named: Document = {**spec, "serviceAccountName": account, "serviceAccount": account}
    return priorities.resolved(store, kind, pods.gated({**pod, "spec": named}))


def _new_class(store: Store, kind: Kind, document: Document) -> Document:
    priorities.refuse_second_default(store, kind, document)
    return document


_BEGIN: Mapping[GroupKind, _Begin] = {
    POD: _new_pod,
    addresses.SERVICE: addresses.addressed,
    priorities.CLASS: _new_class,
}


def begun(store: Store, kind: Kind, document: Document) -> Document:
    """Return a new object with what the server gives objects of its kind."""
    begin = _BEGIN.get(kind.names.group_kind)
    return document if begin is None else begin(store, kind, document)


def carried_over(kind: Kind, before: Document, after: Document) -> Document:
    """Return a changed object with what the server gave it, where its writer left that out."""
    group_kind = kind.names.group_kind
    if group_kind == addresses.SERVICE:
        return addresses.carried_over(before, after)
    if group_kind == POD:
        was, spec = object_at(before, ("spec",)), object_at(after, ("spec",))
        kept: Document = {
            key: was[key]
            for key in ("priority", "preemptionPolicy")
            if key in was and spec.get(key) is None
        }
        return {**after, "spec": {**spec, **kept}} if kept else after
    return after


def settled(store: Store, kind: Kind, after: Document) -> Document:
    """Return a changed and admitted object with what the server must give it anew."""
    if kind.names.group_kind == addresses.SERVICE:
        return addresses.addressed(store, kind, after)
    if kind.names.group_kind == priorities.CLASS:
        priorities.refuse_second_default(store, kind, after)
    return pods.gated(after) if kind.names.group_kind == POD else after


def check_place(store: Store, kind: Kind, namespace_kind: Kind, document: Document) -> None:
    """Raise NotFound or Forbidden where nothing can be made in a namespace."""
    if not kind.namespaced:
        return
    namespace = string_at(document, ("metadata", "namespace")) or "default"
    stored = store.head(Ref(kind=NAMESPACE, namespace="", name=namespace))
    if stored is None:
        raise requests.not_found(namespace_kind, namespace)
    if not marking.is_marked(stored.document()):
        return
    cause: Document = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    raise requests.forbidden(
        kind,
        string_at(document, ("metadata", "name")),
        f"unable to create new content in namespace {namespace} because it is being terminated",
        causes=(cause,),
    )


def check_deletable(kind: Kind, name: str) -> None:
    """Raise Forbidden for what must always be there."""
    if kind.names.group_kind == NAMESPACE and name in IMMORTAL:
        raise requests.forbidden(kind, name, "this namespace may not be deleted")


def closing() -> MethodNotAllowed:
    """Return that a user's kind is going, and takes no new objects."""
    return MethodNotAllowed("create not allowed while custom resource definition is terminating")


def without_status(kind: Kind, document: Document) -> Document:
    """Return a document without a status its writer may not give."""
    if "status" not in document or brings_status(kind):
        return document
    return without(document, ("status",))
