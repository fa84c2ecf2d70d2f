"""How the kinds built into Kubernetes are printed: the columns and cells of `kubectl get`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spinney.api.kinds import Column
from spinney.meta.documents import Document, Json
from spinney.meta.records import Record
from spinney.meta.references import GroupKind
from spinney.server import cells, pod_rows
from spinney.server.cells import Cells

NAME = Column(name="Name", path="", type="string", doc="Name, unique in its namespace.")
AGE = Column(name="Age", path="", type="string", doc="How long ago it was created.")
CREATED_AT = Column(name="Created At", path="", type="date", doc="When it was created.")


def _columns(*names: str) -> tuple[Column, ...]:
    """Return columns by name: `Data:integer` for another type, `IP+` for `-o wide` alone."""
    made = []
    for name in names:
        bare, _, kind = name.rstrip("+").partition(":")
        if bare == "Name":
            made.append(NAME)
        elif bare == "Age":
            made.append(AGE)
        else:
            made.append(
                Column(name=bare, path="", type=kind or "string", priority=name.endswith("+") * 1)
            )
    return tuple(made)


def _no_conditions(_document: Document) -> list[Json]:
    return []


class BuiltIn(Record):
    """How one kind is printed."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[Document], list[Json]] = _no_conditions


_BINDING = _columns("Name", "Role", "Age", "Users+", "Groups+", "ServiceAccounts+")
_CREATED = (NAME, CREATED_AT)
_EVENT = _columns(
    *("Last Seen", "Type", "Reason", "Object", "Subobject+", "Source+", "Message"),
    *("First Seen+", "Count+", "Name+"),
)
_RBAC = "rbac.authorization.k8s.io"

_ROWS: tuple[tuple[str, str, tuple[Column, ...], Cells], ...] = (
    (
        "",
        "Node",
        _columns(
            *("Name", "Status", "Roles", "Age", "Version", "Internal-IP+", "External-IP+"),
            *("OS-Image+", "Kernel-Version+", "Container-Runtime+"),
        ),
        cells.node,
    ),
    (
        "",
        "Service",
        _columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector+"),
        cells.service,
    ),
    ("", "Endpoints", _columns("Name", "Endpoints", "Age"), cells.endpoints),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        _columns("Name", "AddressType", "Ports", "Endpoints", "Age"),
        cells.endpoint_slice,
    ),
    ("", "Namespace", _columns("Name", "Status", "Age"), cells.named(("status", "phase"))),
    ("", "ConfigMap", _columns("Name", "Data", "Age"), cells.config_map),
    ("", "Secret", _columns("Name", "Type", "Data", "Age"), cells.secret),
    ("", "ServiceAccount", _columns("Name", "Secrets", "Age"), cells.service_account),
    ("", "Event", _EVENT, cells.event),
    ("events.k8s.io", "Event", _EVENT, cells.newer_event),
    (
        "coordination.k8s.io",
        "Lease",
        _columns("Name", "Holder", "Age"),
        cells.named(("spec", "holderIdentity")),
    ),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        _columns(
            *("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"),
        ),
        cells.priority_class,
    ),
    (_RBAC, "Role", _CREATED, cells.created),
    (_RBAC, "ClusterRole", _CREATED, cells.created),
    (_RBAC, "RoleBinding", _BINDING, cells.binding),
    (_RBAC, "ClusterRoleBinding", _BINDING, cells.binding),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        _columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
        cells.autoscaler,
    ),
    (
        "policy",
        "PodDisruptionBudget",
        _columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
        cells.budget,
    ),
    (
        "apps",
        "ControllerRevision",
        _columns("Name", "Controller", "Revision:integer", "Age"),
        cells.revision,
    ),
    ("resource.k8s.io", "ResourceClaim", _columns("Name", "State", "Age"), cells.claim),
    ("resource.k8s.io", "ResourceClaimTemplate", _columns("Name", "Age"), cells.named()),
    ("apiextensions.k8s.io", "CustomResourceDefinition", _CREATED, cells.created),
)

PRINTERS: Mapping[GroupKind, BuiltIn] = {
    GroupKind(group="", kind="Pod"): BuiltIn(
        columns=_columns(
            *("Name", "Ready", "Status", "Restarts", "Age", "IP+", "Node+", "Nominated Node+"),
            "Readiness Gates+",
        ),
        cells=pod_rows.cells,
        conditions=pod_rows.conditions,
    ),
    **{
        GroupKind(group=group, kind=kind): BuiltIn(columns=columns, cells=cells)
        for group, kind, columns, cells in _ROWS
    },
}
