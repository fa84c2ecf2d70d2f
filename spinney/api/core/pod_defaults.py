"""What a pod has where its writer said nothing, as Kubernetes fills it in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from spinney.api.core.builtin import Finer
from spinney.api.core.container_rules import PROBES, amount, listed, named
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    with_value,
)

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
FILE_MODE = 0o644
PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_PROBE = {
    "failureThreshold": Finer(default=3, minimum=0),
    "httpGet.path": Finer(default="/"),
    "httpGet.scheme": Finer(default="HTTP", enum=("HTTP", "HTTPS")),
    "periodSeconds": Finer(default=10, minimum=0),
    "successThreshold": Finer(default=1, minimum=0),
    "timeoutSeconds": Finer(default=1, minimum=0),
    "grpc.service": Finer(default=""),
    "initialDelaySeconds": Finer(minimum=0),
}
_HOOK = {
    "httpGet.path": Finer(default="/"),
    "httpGet.scheme": Finer(default="HTTP", enum=("HTTP", "HTTPS")),
}
_FIELD_REFERENCE = Finer(default="v1")
_DIVISOR = Finer(default="0")


def _within(prefix: str, finer: Mapping[str, Finer]) -> dict[str, Finer]:
    return {f"{prefix}.{path}": what for path, what in finer.items()}


_CONTAINER = {
    "imagePullPolicy": Finer(enum=PULL_POLICIES),
    "terminationMessagePath": Finer(default="/dev/termination-log"),
    "terminationMessagePolicy": Finer(default="File", enum=("FallbackToLogsOnError", "File")),
    "resources": Finer(default={}),
    "env.valueFrom.fieldRef.apiVersion": _FIELD_REFERENCE,
    "env.valueFrom.resourceFieldRef.divisor": _DIVISOR,
    "ports.protocol": Finer(enum=PROTOCOLS),
    **_within("livenessProbe", _PROBE),
    **_within("readinessProbe", _PROBE),
    **_within("startupProbe", _PROBE),
    **_within("lifecycle.postStart", _HOOK),
    **_within("lifecycle.preStop", _HOOK),
}
FINER: Mapping[str, Finer] = {
    "": Finer(required=("spec",)),
    **{
        f"spec.{containers}.{path}": what
        for containers in CONTAINER_LISTS
        for path, what in _CONTAINER.items()
    },
    "spec.dnsPolicy": Finer(
        default="ClusterFirst", enum=("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    ),
    "spec.enableServiceLinks": Finer(default=True),
    "spec.restartPolicy": Finer(default="Always", enum=("Always", "OnFailure", "Never")),
    "spec.schedulerName": Finer(default="default-scheduler"),
    "spec.securityContext": Finer(default={}),
    "spec.terminationGracePeriodSeconds": Finer(default=30),
    "spec.preemptionPolicy": Finer(enum=("Never", "PreemptLowerPriority")),
    "spec.tolerations.operator": Finer(enum=("Equal", "Exists")),
    "spec.tolerations.effect": Finer(enum=("NoSchedule", "PreferNoSchedule", "NoExecute")),
    "spec.volumes.configMap.defaultMode": Finer(default=FILE_MODE),
    "spec.volumes.downwardAPI.defaultMode": Finer(default=FILE_MODE),
    "spec.volumes.downwardAPI.items.fieldRef.apiVersion": _FIELD_REFERENCE,
    "spec.volumes.downwardAPI.items.resourceFieldRef.divisor": _DIVISOR,
    "spec.volumes.ephemeral.volumeClaimTemplate.spec.volumeMode": Finer(default="Filesystem"),
    "spec.volumes.hostPath.type": Finer(default=""),
    "spec.volumes.projected.defaultMode": Finer(default=FILE_MODE),
    "spec.volumes.projected.sources.downwardAPI.items.fieldRef.apiVersion": _FIELD_REFERENCE,
    "spec.volumes.projected.sources.downwardAPI.items.resourceFieldRef.divisor": _DIVISOR,
    "spec.volumes.projected.sources.serviceAccountToken.expirationSeconds": Finer(default=3600),
    "spec.volumes.secret.defaultMode": Finer(default=FILE_MODE),
    "status": Finer(default={"phase": "Pending"}),
    "status.phase": Finer(default="Pending"),
}
"""What of a pod's defaults, and of the words its fields take, depends on nothing else."""


def default(document: Document) -> Document:
    """Return a pod with the defaults that depend on other fields."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    filled = _each(spec, "volumes", _with_source)
    for containers in CONTAINER_LISTS:
        filled = _each(filled, containers, _with_own_defaults)
    for containers in ("containers", "initContainers"):
        if spec.get("hostNetwork") is True:
            filled = _each(filled, containers, _with_host_ports)
    return document if filled is spec else {**document, "spec": filled}


def default_status(document: Document) -> Document:
    """Return a pod that has its other defaults with its class of service."""
    spec, status = document.get("spec"), document.get("status")
    if isinstance(spec, dict) and isinstance(status, dict) and "qosClass" not in status:
        return with_value(document, ["status", "qosClass"], qos_class(spec))
    return document


def _each(holder: Document, field: str, change: Callable[[Document], Document]) -> Document:
    """Return an object with each object of a list in it changed; itself if nothing changed."""
    items = holder.get(field)
    if not isinstance(items, list):
        return holder
    changed: list[Json] = [change(item) if isinstance(item, dict) else item for item in items]
    same = all(new is old for new, old in zip(changed, items, strict=True))
    return holder if same else {**holder, field: changed}


def _with_source(volume: Document) -> Document:
    if any(value is not None for name, value in volume.items() if name != "name"):
        return volume
    return {**volume, "emptyDir": {}}


_PROBE_NUMBERS = {
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}


def _with_own_defaults(container: Document) -> Document:
    for field in PROBES:
        probe = container.get(field)
        if isinstance(probe, dict) and 0 in probe.values():
            container = {**container, field: _with_numbers(probe)}
    return _with_requests(_with_pull_policy(container))


def _with_numbers(probe: Document) -> Document:
    """Return a probe in which a zero, which Kubernetes cannot tell from nothing, is the default."""
    zeros = {
        name: number
        for name, number in _PROBE_NUMBERS.items()
        if is_integer(probe.get(name)) and probe.get(name) == 0
    }
    return {**probe, **zeros} if zeros else probe


def _with_pull_policy(container: Document) -> Document:
    if container.get("imagePullPolicy") is not None:
        return container
    image = container.get("image")
    latest = has_latest_tag(image if isinstance(image, str) else "")
    return {**container, "imagePullPolicy": "Always" if latest else "IfNotPresent"}


@functools.lru_cache(maxsize=1024)
def has_latest_tag(image: str) -> bool:
    """Whether an image is the newest of its name: tagged so, or without tag and digest."""
    name, digest, _ = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag == "latest" if colon else not digest


def _with_requests(container: Document) -> Document:
    resources = named(container, "resources")
    limits, requests = named(resources, "limits"), resources.get("requests", {})
    if not limits or not isinstance(requests, dict):
        return container
    if limits.keys() <= requests.keys():
        return container
    missing = {name: limit for name, limit in limits.items() if name not in requests}
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def _with_host_ports(container: Document) -> Document:
    return _each(container, "ports", _with_host_port)


def _with_host_port(port: Document) -> Document:
    if port.get("hostPort") or "containerPort" not in port:
        return port
    return {**port, "hostPort": port["containerPort"]}


def qos_class(spec: Document) -> str:
    """Return in which order a node gives pods up: `Guaranteed`, `Burstable`, `BestEffort`."""
    holders = [named(spec, "resources")]
    if not holders[0]:
        holders = [
            named(container, "resources")
            for field in ("containers", "initContainers")
            for container in listed(spec, field)
            if isinstance(container, dict)
        ]
    says_any, is_guaranteed = False, True
    for holder in holders:
        limits = _computed(named(holder, "limits"))
        requests = _computed(named(holder, "requests"))
        says_any = says_any or bool(limits or requests)
        is_guaranteed = is_guaranteed and len(limits) == 2 and limits == requests
    if not says_any:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _computed(said: Document) -> dict[str, int]:
    """Return CPU and memory as numbers; nothing for what is zero or no quantity."""
    found: dict[str, int] = {}
    for name in ("cpu", "memory"):
        number = amount(said.get(name))
        if number is not None and number > 0:
            found[name] = number
    return found
