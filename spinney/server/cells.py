"""Cells: what each kind built into Kubernetes shows of an object, but for pods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    value_at,
)
from spinney.server.ages import age

NONE = "<none>"
UNSET = "<unset>"

Cells = Callable[[Document, datetime], list[Json]]


def name_of(document: Document) -> str:
    """Return an object's name."""
    return string_at(document, ["metadata", "name"])


def age_of(document: Document, now: datetime) -> str:
    """Return how long ago an object was created."""
    return age(value_at(document, ["metadata", "creationTimestamp"]), now)


def labels_text(labels: Json) -> str:
    """Return labels as kubectl spells them."""
    if not isinstance(labels, dict) or not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def objects_at(document: Json, *path: str) -> list[Document]:
    """Return the objects of a list; what is none is left out."""
    return [item for item in list_at(document, path) if isinstance(item, dict)]


def _text_or(document: Document, otherwise: str, *path: str) -> str:
    return string_at(document, path) or otherwise


def node(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a node."""
    ready = [
        condition
        for condition in objects_at(document, "status", "conditions")
        if condition.get("type") == "Ready"
    ]
    words = [
        "Ready" if condition.get("status") == "True" else "NotReady" for condition in ready
    ] or ["Unknown"]
    if value_at(document, ["spec", "unschedulable"]) is True:
        words.append("SchedulingDisabled")
    info = object_at(document, ["status", "nodeInfo"])
    return [
        name_of(document),
        ",".join(words),
        _roles(document),
        age_of(document, now),
        string_at(info, ["kubeletVersion"]),
        _address(document, "InternalIP"),
        _address(document, "ExternalIP"),
        _text_or(info, "<unknown>", "osImage"),
        _text_or(info, "<unknown>", "kernelVersion"),
        _text_or(info, "<unknown>", "containerRuntimeVersion"),
    ]


_ROLE = "node-role.kubernetes.io/"


def _roles(document: Document) -> str:
    roles = set()
    for key, value in object_at(document, ["metadata", "labels"]).items():
        if key.startswith(_ROLE) and len(key) > len(_ROLE):
            roles.add(key.removeprefix(_ROLE))
        elif key == "kubernetes.io/role" and isinstance(value, str) and value:
            roles.add(value)
    return ",".join(sorted(roles)) or NONE


def _address(document: Document, kind: str) -> str:
    for address in objects_at(document, "status", "addresses"):
        if address.get("type") == kind:
            return string_at(address, ["address"])
    return NONE


def service(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a service."""
    spec = object_at(document, ["spec"])
    kind = _text_or(spec, "ClusterIP", "type")
    ports = [_service_port(port) for port in objects_at(spec, "ports")]
    return [
        name_of(document),
        kind,
        _text_or(spec, NONE, "clusterIP"),
        _external_ip(document, kind),
        ",".join(ports) or NONE,
        age_of(document, now),
        labels_text(spec.get("selector")),
    ]


def _service_port(port: Document) -> str:
    number, node_port = port.get("port"), port.get("nodePort")
    outer = f":{node_port}" if is_integer(node_port) and node_port > 0 else ""
    return f"{number}{outer}/{_text_or(port, 'TCP', 'protocol')}"


def _external_ip(document: Document, kind: str) -> str:
    spec = object_at(document, ["spec"])
    if kind == "ExternalName":
        return _text_or(spec, NONE, "externalName")
    given = [str(address) for address in list_at(spec, ["externalIPs"])]
    if kind == "LoadBalancer":
        ingress = objects_at(document, "status", "loadBalancer", "ingress")
        found = [string_at(item, ["ip"]) or string_at(item, ["hostname"]) for item in ingress]
        return ",".join([*dict.fromkeys(filter(None, found)), *given]) or "<pending>"
    return ",".join(given) or NONE


SHOWN_MAX = 3


def endpoints(document: Document, now: datetime) -> list[Json]:
    """Return the cells of endpoints."""
    found = []
    for subset in objects_at(document, "subsets"):
        addresses = objects_at(subset, "addresses")
        ports = objects_at(subset, "ports")
        if not ports:
            found += [string_at(address, ["ip"]) for address in addresses]
        found += [
            f"{_bracketed(string_at(address, ['ip']))}:{port.get('port')}"
            for port in ports
            for address in addresses
        ]
    return [name_of(document), _some(found), age_of(document, now)]


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _some(found: list[str]) -> str:
    if len(found) > SHOWN_MAX:
        return f"{','.join(found[:SHOWN_MAX])} + {len(found) - SHOWN_MAX} more..."
    return ",".join(found) or NONE


def endpoint_slice(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a slice of endpoints."""
    ports = []
    for port in objects_at(document, "ports"):
        number = port.get("port")
        if number is not None:
            ports.append(str(number))
        else:
            ports.append(_text_or(port, "*", "name"))
    addresses = [
        str(address)
        for endpoint in objects_at(document, "endpoints")
        for address in list_at(endpoint, ["addresses"])
    ]
    told = _some(ports) if ports else UNSET
    shown = _some(addresses) if addresses else UNSET
    kind = string_at(document, ["addressType"])
    return [name_of(document), kind, told, shown, age_of(document, now)]


def event(document: Document, now: datetime) -> list[Json]:
    """Return the cells of an event of the core group."""
    event_time = document.get("eventTime")
    first_seen = age(document.get("firstTimestamp") or event_time, now)
    last_seen = first_seen
    if document.get("lastTimestamp"):
        last_seen = age(document.get("lastTimestamp"), now)
    count: Json = document.get("count") or 1
    series = object_at(document, ["series"])
    if series:
        last_seen, count = age(series.get("lastObservedTime"), now), series.get("count")
    about = object_at(document, ["involvedObject"])
    target = string_at(about, ["kind"]).lower()
    if string_at(about, ["name"]):
        target += f"/{string_at(about, ['name'])}"
    component = string_at(document, ["source", "component"]) or string_at(
        document, ["reportingComponent"]
    )
    host = string_at(document, ["source", "host"]) or string_at(document, ["reportingInstance"])
    return [
        last_seen,
        string_at(document, ["type"]),
        string_at(document, ["reason"]),
        target,
        string_at(about, ["fieldPath"]),
        f"{component}, {host}" if host else component,
        string_at(document, ["message"]).strip(),
        first_seen,
        count,
        name_of(document),
    ]


def newer_event(document: Document, now: datetime) -> list[Json]:
    """Print an event of `events.k8s.io`, which spells some fields otherwise."""
    return event({older: document.get(newer) for older, newer in _OLDER.items()}, now)


_OLDER = {
    "metadata": "metadata",
    "eventTime": "eventTime",
    "series": "series",
    "type": "type",
    "reason": "reason",
    "reportingInstance": "reportingInstance",
    "reportingComponent": "reportingController",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "source": "deprecatedSource",
    "involvedObject": "regarding",
    "message": "note",
}


def named(*paths: tuple[str, ...]) -> Cells:
    """Return cells of a name, some texts, and the age."""

    def cells(document: Document, now: datetime) -> list[Json]:
        texts = [string_at(document, path) for path in paths]
        return [name_of(document), *texts, age_of(document, now)]

    return cells


def config_map(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a config map."""
    count = sum(len(object_at(document, [field])) for field in ("data", "binaryData"))
    return [name_of(document), count, age_of(document, now)]


def secret(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a secret."""
    kind = string_at(document, ["type"])
    return [name_of(document), kind, len(object_at(document, ["data"])), age_of(document, now)]


def service_account(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a service account."""
    return [name_of(document), len(list_at(document, ["secrets"])), age_of(document, now)]


def priority_class(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a priority class."""
    return [
        name_of(document),
        document.get("value", 0),
        document.get("globalDefault") is True,
        age_of(document, now),
        _text_or(document, "PreemptLowerPriority", "preemptionPolicy"),
    ]


def created(document: Document, _now: datetime) -> list[Json]:
    """Return the cells of what shows its name and when it was created."""
    return [name_of(document), string_at(document, ["metadata", "creationTimestamp"])]


def binding(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a binding of a role."""
    reference = object_at(document, ["roleRef"])
    subjects = objects_at(document, "subjects")
    by_kind = {
        kind: [string_at(item, ["name"]) for item in subjects if item.get("kind") == kind]
        for kind in ("User", "Group")
    }
    accounts = [
        f"{string_at(item, ['namespace'])}/{string_at(item, ['name'])}"
        for item in subjects
        if item.get("kind") == "ServiceAccount"
    ]
    return [
        name_of(document),
        f"{string_at(reference, ['kind'])}/{string_at(reference, ['name'])}",
        age_of(document, now),
        ", ".join(by_kind["User"]),
        ", ".join(by_kind["Group"]),
        ", ".join(accounts),
    ]


def autoscaler(document: Document, now: datetime) -> list[Json]:
    """Return the cells of an autoscaler."""
    spec, status = object_at(document, ["spec"]), object_at(document, ["status"])
    reference = object_at(spec, ["scaleTargetRef"])
    least = spec.get("minReplicas")
    return [
        name_of(document),
        f"{string_at(reference, ['kind'])}/{string_at(reference, ['name'])}",
        _targets(spec, status),
        UNSET if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_of(document, now),
    ]


TARGETS_MAX = 2


def _targets(spec: Document, status: Document) -> str:
    metrics, current = objects_at(spec, "metrics"), list_at(status, ["currentMetrics"])
    if not metrics:
        return NONE
    told = []
    for index, metric in enumerate(metrics[:TARGETS_MAX]):
        now = current[index] if index < len(current) else None
        told.append(_target(metric, now))
    more = len(metrics) - TARGETS_MAX
    text = ", ".join(told)
    return f"{text} + {more} more..." if more > 0 else text


_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _target(metric: Document, current: Json) -> str:
    source = _SOURCES.get(string_at(metric, ["type"]))
    if source is None:
        return "<unknown type>"
    wanted = object_at(metric, [source, "target"])
    found = object_at(current, [source, "current"])
    name = string_at(metric, [source, "name"])
    prefix = f"{name}: " if name else ""
    if wanted.get("averageValue") is not None:
        suffix = " (avg)" if source in ("object", "external") else ""
        have = found.get("averageValue", "<unknown>")
        return f"{prefix}{have}/{wanted['averageValue']}{suffix}"
    if wanted.get("averageUtilization") is not None:
        share = found.get("averageUtilization")
        have = "<unknown>" if share is None else f"{share}%"
        return f"{prefix}{have}/{wanted['averageUtilization']}%"
    if wanted.get("value") is not None:
        return f"{prefix}{found.get('value', '<unknown>')}/{wanted['value']}"
    return f"{prefix}<unknown>/<auto>"


def budget(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a disruption budget."""
    spec = object_at(document, ["spec"])
    limits: list[Json] = [
        "N/A" if spec.get(field) is None else str(spec[field])
        for field in ("minAvailable", "maxUnavailable")
    ]
    allowed = value_at(document, ["status", "disruptionsAllowed"]) or 0
    return [name_of(document), *limits, allowed, age_of(document, now)]


def revision(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a revision."""
    controller = NONE
    for owner in objects_at(document, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            group = string_at(owner, ["apiVersion"]).rpartition("/")[0]
            kind = string_at(owner, ["kind"]).lower()
            whole = f"{kind}.{group}" if group else kind
            controller = f"{whole}/{string_at(owner, ['name'])}"
    return [name_of(document), controller, document.get("revision", 0), age_of(document, now)]


def claim(document: Document, now: datetime) -> list[Json]:
    """Return the cells of a claim of devices."""
    states = []
    if string_at(document, ["metadata", "deletionTimestamp"]):
        states.append("deleted")
    status = object_at(document, ["status"])
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    else:
        states.append("pending")
    return [name_of(document), ",".join(states), age_of(document, now)]
