"""Outlines: what is worth telling of an object of a kind, before its conditions and events.

A kind without an outline of its own is told by its fields. Values of secrets are never told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from spinney.api import labels
from spinney.kube.resources import Resource
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    string_at,
    strings,
    value_at,
)
from spinney.meta.records import Record
from spinney.meta.references import GroupKind

NONE = "<none>"


class Line(Record):
    """One fact."""

    name: str
    value: str


class Rows(Record):
    """Several facts of one sort."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Parts(Record):
    """Objects that belong to the object: those of a resource with a label."""

    title: str
    group_kind: GroupKind
    selector: str


Told = Line | Rows | Parts
Outline = Callable[[Document], Iterator[Told]]


def outline_of(resource: Resource) -> Outline | None:
    """Return how objects of a resource are told, None where there is no outline."""
    return _OUTLINES.get(resource.group_kind)


def text_of(value: Json) -> str:
    """Return a value in a few words."""
    if value is None or value in ("", [], {}):
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={text_of(below)}" for key, below in value.items())
    return str(value)


def _lines(document: Document, places: Mapping[str, str]) -> Iterator[Line]:
    """Yield facts by where they stand; what is not there is left out."""
    for name, path in places.items():
        found = value_at(document, path.split("."))
        if found not in (None, "", [], {}):
            yield Line(name=name, value=text_of(found))


def _counts(document: Document, *names: str) -> str:
    """Return how many replicas there are of each sort: `2 wanted, 1 available`."""
    wanted = value_at(document, ["spec", "replicas"])
    parts = [f"{wanted} wanted"] if wanted is not None else []
    for name in names:
        word = name.removesuffix("Replicas").removesuffix("replicas")
        found = value_at(document, ["status", name]) or 0
        parts.append(f"{found} {word or 'present'}")
    return ", ".join(parts)


def _images(pod_spec: Json) -> str:
    containers = [*list_at(pod_spec, ["initContainers"]), *list_at(pod_spec, ["containers"])]
    return ", ".join(dict.fromkeys(string_at(each, ["image"]) for each in containers)) or NONE


def _cliques(document: Document, path: Sequence[str]) -> Iterator[Rows]:
    cliques = list_at(document, [*path, "cliques"])
    yield Rows(
        title="Cliques",
        headings=("Name", "Role", "Replicas", "Min", "Starts after", "Images"),
        rows=tuple(
            (
                string_at(clique, ["name"]),
                text_of(value_at(clique, ["spec", "roleName"])),
                text_of(value_at(clique, ["spec", "replicas"])),
                text_of(value_at(clique, ["spec", "minAvailable"])),
                text_of(value_at(clique, ["spec", "startsAfter"])),
                _images(value_at(clique, ["spec", "podSpec"])),
            )
            for clique in cliques
        ),
    )
    groups = list_at(document, [*path, "podCliqueScalingGroups"])
    if groups:
        yield Rows(
            title="Scaling groups",
            headings=("Name", "Cliques", "Replicas", "Min"),
            rows=tuple(
                (
                    string_at(group, ["name"]),
                    text_of(value_at(group, ["cliqueNames"])),
                    text_of(value_at(group, ["replicas"])),
                    text_of(value_at(group, ["minAvailable"])),
                )
                for group in groups
            ),
        )


def _set(document: Document) -> Iterator[Told]:
    yield from _lines(document, {"Phase": "status.phase", "Workload": "spec.workloadType"})
    counts = _counts(document, "replicas", "availableReplicas", "updatedReplicas")
    yield Line(name="Replicas", value=counts)
    yield from _lines(
        document,
        {
            "Start-up": "spec.template.cliqueStartupType",
            "Termination delay": "spec.template.terminationDelay",
            "Update strategy": "spec.updateStrategy.type",
            "Update paused": "spec.updateStrategy.paused",
            "Priority class": "spec.template.priorityClassName",
            "Topology": "spec.template.topologyConstraint",
            "Max runtime": "spec.trainingSpec.maxRuntime",
            "Max restarts": "spec.trainingSpec.maxRestarts",
            "Restarts": "status.restartCount",
            "Started": "status.startTime",
            "Gangs": "status.podGangCounts",
        },
    )
    yield from _cliques(document, ["spec", "template"])
    progress = object_at(document, ["status", "rollingUpdateProgress"])
    if progress:
        current = value_at(progress, ["currentlyUpdating", "replicaIndex"])
        ended = string_at(progress, ["updateEndedAt"])
        where = f"replica {current} is being updated" if current is not None else "between replicas"
        yield Line(name="Update", value=f"ended {ended}" if ended else where)
    name = string_at(document, ["metadata", "name"])
    selector = f"{labels.PART_OF}={name},{labels.MANAGED_BY}={labels.MANAGER}"
    yield Parts(title="Gangs", group_kind=_GANG, selector=selector)
    yield Parts(title="Groups", group_kind=_GROUP, selector=selector)
    yield Parts(title="PodCliques", group_kind=_CLIQUE, selector=selector)


def _group(document: Document) -> Iterator[Told]:
    counts = _counts(document, "replicas", "scheduledReplicas", "availableReplicas")
    yield Line(name="Replicas", value=counts)
    yield from _lines(
        document, {"Min available": "spec.minAvailable", "Cliques": "spec.cliqueNames"}
    )
    name = string_at(document, ["metadata", "name"])
    yield Parts(title="PodCliques", group_kind=_CLIQUE, selector=f"{labels.SCALING_GROUP}={name}")


def _clique(document: Document) -> Iterator[Told]:
    yield from _lines(document, {"Role": "spec.roleName"})
    counts = _counts(document, "replicas", "scheduledReplicas", "readyReplicas", "updatedReplicas")
    yield Line(name="Replicas", value=counts)
    yield from _lines(
        document,
        {
            "Min available": "spec.minAvailable",
            "Starts after": "spec.startsAfter",
            "Gated": "status.scheduleGatedReplicas",
            "Succeeded": "status.succeededIndexes",
        },
    )
    yield Line(name="Images", value=_images(value_at(document, ["spec", "podSpec"])))
    failed = list_at(document, ["status", "failedPods"])
    if failed:
        yield Rows(
            title="Failed pods",
            headings=("Index", "Exit code", "Reason"),
            rows=tuple(
                tuple(text_of(value_at(pod, [field])) for field in ("index", "exitCode", "reason"))
                for pod in failed
            ),
        )
    name = string_at(document, ["metadata", "name"])
    yield Parts(title="Pods", group_kind=_POD, selector=f"{labels.PODCLIQUE}={name}")


def _gang(document: Document) -> Iterator[Told]:
    yield from _lines(
        document,
        {
            "Phase": "status.phase",
            "Incarnation": "status.incarnation",
            "Placement score": "status.placementScore",
            "Priority class": "spec.priorityClassName",
            "Topology": "spec.topologyConstraint.packConstraint",
        },
    )
    yield Rows(
        title="Pod groups",
        headings=("Name", "Min", "Pods"),
        rows=tuple(
            (
                string_at(group, ["name"]),
                text_of(value_at(group, ["minReplicas"])),
                str(len(list_at(group, ["podReferences"]))),
            )
            for group in list_at(document, ["spec", "podgroups"])
        ),
    )
    name = string_at(document, ["metadata", "name"])
    yield Parts(title="Pods", group_kind=_POD, selector=f"{labels.PODGANG}={name}")


def _deployment(document: Document) -> Iterator[Told]:
    yield from _lines(document, {"Phase": "status.phase", "Step": "status.subStep"})
    counts = _counts(document, "replicas", "readyReplicas", "updatedReplicas")
    yield Line(name="Routes", value=counts)
    yield from _lines(
        document,
        {
            "Revision": "status.currentRevision",
            "Deploying": "status.deployingRevision",
            "Serving": "status.servingRevision",
            "Strategy": "spec.strategy",
            "Paused": "spec.paused",
            "Endpoint": "spec.endpoint",
            "Rollout": "status.rollout.reason",
        },
    )
    yield from _cliques(document, ["spec", "template", "spec"])
    history = list_at(document, ["status", "history"])
    if history:
        fields = ("rollout", "fromRevision", "toRevision", "result", "reason", "startedAt")
        yield Rows(
            title="History",
            headings=("Rollout", "From", "To", "Result", "Reason", "Started"),
            rows=tuple(
                tuple(text_of(value_at(row, [field])) for field in fields) for row in history
            ),
        )


def _pod(document: Document) -> Iterator[Told]:
    yield from _lines(
        document,
        {
            "Phase": "status.phase",
            "Reason": "status.reason",
            "Message": "status.message",
            "Node": "spec.nodeName",
            "Pod IP": "status.podIP",
            "Service account": "spec.serviceAccountName",
            "Priority class": "spec.priorityClassName",
            "Node selector": "spec.nodeSelector",
            "Started": "status.startTime",
        },
    )
    gates = [string_at(gate, ["name"]) for gate in list_at(document, ["spec", "schedulingGates"])]
    if gates:
        yield Line(name="Waits for", value=f"scheduling gates: {', '.join(gates)}")
    for title, spec, status in (
        ("Init containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
    ):
        states = {
            string_at(state, ["name"]): state for state in list_at(document, ["status", status])
        }
        found = list_at(document, ["spec", spec])
        if found:
            yield Rows(
                title=title,
                headings=("Name", "Image", "State", "Ready", "Restarts", "Last end"),
                rows=tuple(
                    _container(each, states.get(string_at(each, ["name"]))) for each in found
                ),
            )


def _container(container: Json, state: Json) -> tuple[str, ...]:
    return (
        string_at(container, ["name"]),
        text_of(value_at(container, ["image"])),
        _state(object_at(state, ["state"])),
        text_of(value_at(state, ["ready"])),
        str(value_at(state, ["restartCount"]) or 0),
        _state(object_at(state, ["lastState"])),
    )


def _state(state: Document) -> str:
    for word, below in state.items():
        reason = string_at(below, ["reason"])
        code = value_at(below, ["exitCode"])
        details = [reason] if reason else []
        details += [f"exit code {code}"] if code is not None else []
        return f"{word} ({', '.join(details)})" if details else word
    return NONE


def _node(document: Document) -> Iterator[Told]:
    yield from _lines(
        document,
        {
            "Unschedulable": "spec.unschedulable",
            "Taints": "spec.taints",
            "System": "status.nodeInfo.osImage",
            "Agent": "status.nodeInfo.kubeletVersion",
        },
    )
    capacity = object_at(document, ["status", "capacity"])
    allocatable = object_at(document, ["status", "allocatable"])
    yield Rows(
        title="Resources",
        headings=("Name", "Capacity", "Allocatable"),
        rows=tuple(
            (name, text_of(capacity[name]), text_of(allocatable.get(name)))
            for name in sorted(capacity)
        ),
    )


def _secret(document: Document) -> Iterator[Told]:
    yield from _lines(document, {"Type": "type"})
    data = strings(document.get("data"))
    yield Rows(
        title="Data",
        headings=("Key", "Size"),
        rows=tuple((key, f"{_decoded_size(data[key])} bytes") for key in sorted(data)),
    )


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text[-2:].count("=")


_POD = GroupKind(group="", kind="Pod")
_CLIQUE = GroupKind(group="grove.io", kind="PodClique")
_GROUP = GroupKind(group="grove.io", kind="PodCliqueScalingGroup")
_GANG = GroupKind(group="scheduler.grove.io", kind="PodGang")
_OUTLINES: Mapping[GroupKind, Outline] = {
    GroupKind(group="grove.io", kind="PodCliqueSet"): _set,
    _GROUP: _group,
    _CLIQUE: _clique,
    _GANG: _gang,
    GroupKind(group="spinney.dev", kind="ModelDeployment"): _deployment,
    _POD: _pod,
    GroupKind(group="", kind="Node"): _node,
    GroupKind(group="", kind="Secret"): _secret,
}
