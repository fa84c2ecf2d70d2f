"""What must hold of a container of a pod; worded as Kubernetes does.

Pods are what is written most often, so these rules read the document as it stands, and make paths
and cursors only for what is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Set

from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, is_integer
from spinney.meta.errors import FORBIDDEN, INVALID, NOT_FOUND, REQUIRED, FieldError
from spinney.meta.metadata import dns_label_fault, qualified_name_fault
from spinney.meta.quantities import NANO, canonical, parse_quantity
from spinney.meta.records import Record

PORT_RULE = "must be between 1 and 65535, inclusive"
PORT_NAME_LENGTH_MAX = 15
HANDLERS = ("exec", "grpc", "httpGet", "sleep", "tcpSocket")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
ENV_NAME_RULE = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_SUBSCRIPTED = ("metadata.labels['", "metadata.annotations['")
_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_STANDARD = ("cpu", "memory", "ephemeral-storage")


class Around(Record):
    """What of its pod a container's rules ask for."""

    volumes: Set[str] = frozenset()
    claims: Set[str] = frozenset()
    host_network: bool = False


def listed(holder: Document, field: str) -> list[Json]:
    """Return a list of an object, an empty one where there is none."""
    found = holder.get(field)
    return found if isinstance(found, list) else []


def named(holder: Document, field: str) -> Document:
    """Return an object in an object, an empty one where there is none."""
    found = holder.get(field)
    return found if isinstance(found, dict) else {}


def required(path: str, message: str = "") -> FieldError:
    """Tell that a value must be given."""
    return FieldError(path=path, reason=REQUIRED, message=message)


def invalid(path: str, found: Json, message: str) -> FieldError:
    """Tell what must hold of a value."""
    return FieldError(path=path, reason=INVALID, message=message, found=found)


def label_faults(text: Json, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a name that must be a DNS label."""
    if text == "":
        yield required(path)
    elif isinstance(text, str) and (fault := dns_label_fault(text)):
        yield invalid(path, text, fault)


def faults(container: Document, path: str, around: Around) -> Iterator[FieldError]:
    """Yield what is wrong with a container of any sort."""
    name, image = container.get("name"), container.get("image")
    if not isinstance(name, str) or dns_label_fault(name):
        yield from label_faults(name, f"{path}.name")
    if image is None or image == "":
        yield required(f"{path}.image")
    elif isinstance(image, str) and image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    if ports := listed(container, "ports"):
        yield from _port_faults(ports, f"{path}.ports", host_network=around.host_network)
    for index, variable in enumerate(listed(container, "env")):
        if isinstance(variable, dict):
            text = variable.get("name")
            if "valueFrom" in variable or not isinstance(text, str) or not _is_variable_name(text):
                yield from _variable_faults(variable, f"{path}.env[{index}]")
    for index, source in enumerate(listed(container, "envFrom")):
        if isinstance(source, dict):
            yield from _one_of(source, ("configMapRef", "secretRef"), f"{path}.envFrom[{index}]")
    if mounts := listed(container, "volumeMounts"):
        yield from _mount_faults(mounts, f"{path}.volumeMounts", around.volumes)
    if resources := named(container, "resources"):
        yield from resource_faults(resources, f"{path}.resources", around.claims)
    for field in PROBES:
        if probe := named(container, field):
            yield from _probe_faults(probe, f"{path}.{field}", field)
        elif field in container and container[field] == {}:
            yield required(f"{path}.{field}", "must specify a handler type")
    lifecycle = named(container, "lifecycle")
    for field in ("postStart", "preStop"):
        if isinstance(hook := lifecycle.get(field), dict):
            yield from _handler_faults(hook, f"{path}.lifecycle.{field}")


def init_faults(container: Document, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with an init container, that an ordinary one may have."""
    if container.get("restartPolicy") == "Always":
        return
    for field in ("lifecycle", *PROBES):
        if container.get(field) is not None:
            yield FieldError(
                path=f"{path}.{field}",
                reason=FORBIDDEN,
                message="may not be set for init containers without restartPolicy=Always",
            )


@functools.lru_cache(maxsize=4096)
def _is_variable_name(text: str) -> bool:
    return bool(text) and "=" not in text and text.isascii() and text.isprintable()


def _variable_faults(variable: Document, path: str) -> Iterator[FieldError]:
    name = variable.get("name")
    if name == "":
        yield required(f"{path}.name")
    elif isinstance(name, str) and not _is_variable_name(name):
        yield invalid(f"{path}.name", name, ENV_NAME_RULE)
    source = variable.get("valueFrom")
    if not isinstance(source, dict):
        return
    where = f"{path}.valueFrom"
    if variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    given = [field for field in _SOURCES if field in source]
    if not given:
        yield invalid(
            where,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`",
        )
    elif len(given) > 1:
        yield invalid(where, "", "may not have more than one field specified at a time")
    field_path = named(source, "fieldRef").get("fieldPath")
    if isinstance(field_path, str) and field_path not in FIELD_PATHS:
        where = f"{where}.fieldRef.fieldPath"
        if field_path == "":
            yield required(where)
        elif not (field_path.startswith(_SUBSCRIPTED) and field_path.endswith("']")):
            yield Cursor(field_path, where).not_supported(FIELD_PATHS)


def _one_of(source: Document, fields: tuple[str, ...], path: str) -> Iterator[FieldError]:
    given = [field for field in fields if field in source]
    if not given:
        choices = " or ".join(f"`{field}`" for field in fields)
        yield invalid(path, "", f"must specify one of: {choices}")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _port_faults(ports: list[Json], path: str, *, host_network: bool) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        if not isinstance(port, dict):
            continue
        name, number, host = port.get("name"), port.get("containerPort"), port.get("hostPort")
        if isinstance(name, str) and name:
            if fault := port_name_fault(name):
                yield invalid(f"{path}[{index}].name", name, fault)
            elif name in names:
                yield Cursor(name, f"{path}[{index}].name").duplicate()
            names.add(name)
        if is_integer(number) and not 1 <= number <= 65535:
            yield invalid(f"{path}[{index}].containerPort", number, PORT_RULE)
        if is_integer(host) and host:
            if not 1 <= host <= 65535:
                yield invalid(f"{path}[{index}].hostPort", host, PORT_RULE)
            if host_network and host != number:
                yield invalid(
                    f"{path}[{index}].hostPort",
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                )


@functools.lru_cache(maxsize=1024)
def port_name_fault(name: str) -> str:
    """Return what must hold of the name of a port; "" if it does."""
    if len(name) > PORT_NAME_LENGTH_MAX:
        return f"must be no more than {PORT_NAME_LENGTH_MAX} characters"
    if "--" in name:
        return "must not contain consecutive hyphens"
    if not any(character.isalpha() for character in name):
        return "must contain at least one letter (a-z)"
    return dns_label_fault(name)


def _mount_faults(mounts: list[Json], path: str, volumes: Set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        if not isinstance(mount, dict):
            continue
        name, where, inside = mount.get("name"), mount.get("mountPath"), mount.get("subPath")
        if name == "":
            yield required(f"{path}[{index}].name")
        elif isinstance(name, str) and name not in volumes:
            yield FieldError(path=f"{path}[{index}].name", reason=NOT_FOUND, message="", found=name)
        if where == "":
            yield required(f"{path}[{index}].mountPath")
        elif isinstance(where, str):
            if where in seen:
                yield invalid(f"{path}[{index}].mountPath", where, "must be unique")
            seen.add(where)
        if isinstance(inside, str) and inside:
            if inside.startswith("/"):
                yield invalid(f"{path}[{index}].subPath", inside, "must be a relative path")
            if ".." in inside.split("/"):
                yield invalid(f"{path}[{index}].subPath", inside, "must not contain '..'")


@functools.lru_cache(maxsize=4096)
def _parsed(value: str | int) -> int | None:
    try:
        return parse_quantity(value)
    except ValueError:
        return None


def amount(value: Json) -> int | None:
    """Return a quantity in billionths, None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return _parsed(value)


def resource_faults(resources: Document, path: str, claims: Set[str]) -> Iterator[FieldError]:
    """Yield what is wrong with what a container, or a pod as a whole, asks for."""
    limits, requests = named(resources, "limits"), named(resources, "requests")
    for part, said in (("limits", limits), ("requests", requests)):
        for name, value in said.items():
            if fault := resource_name_fault(name):
                yield invalid(f"{path}.{part}[{name}]", name, fault)
            number = amount(value)
            if number is None:
                continue
            if number < 0:
                yield invalid(f"{path}.{part}[{name}]", value, "must be greater than or equal to 0")
            elif "/" in name and number % NANO:
                yield invalid(f"{path}.{part}[{name}]", value, "must be an integer")
    for name, value in requests.items():
        limit = limits.get(name)
        asked, most = amount(value), amount(limit)
        if limit is None and not is_overcommitable(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        if asked is None or most is None or not isinstance(limit, (str, int)):
            continue
        if asked > most:
            yield invalid(
                f"{path}.requests",
                value,
                f"must be less than or equal to {name} limit of {canonical(limit)}",
            )
        elif asked != most and not is_overcommitable(name):
            yield invalid(
                f"{path}.requests", value, f"must be equal to {name} limit of {canonical(limit)}"
            )
    for index, claim in enumerate(listed(resources, "claims")):
        wanted = claim.get("name") if isinstance(claim, dict) else None
        if isinstance(wanted, str) and wanted not in claims:
            where = f"{path}.claims[{index}].name"
            yield FieldError(path=where, reason=NOT_FOUND, message="", found=wanted)


def is_overcommitable(name: str) -> bool:
    """Whether pods may ask for less of a resource than they are limited to."""
    if name.startswith("hugepages-"):
        return False
    return "/" not in name or name.partition("/")[0].endswith("kubernetes.io")


@functools.lru_cache(maxsize=1024)
def resource_name_fault(name: str) -> str:
    """Return what must hold of the name of a resource; "" if it does."""
    if fault := qualified_name_fault(name):
        return fault
    if "/" in name or name in _STANDARD or name.startswith("hugepages-"):
        return ""
    return "must be a standard resource for containers"


def _probe_faults(probe: Document, path: str, field: str) -> Iterator[FieldError]:
    yield from _handler_faults(probe, path)
    threshold, grace = probe.get("successThreshold"), probe.get("terminationGracePeriodSeconds")
    if field != "readinessProbe" and is_integer(threshold) and threshold not in (0, 1):
        yield invalid(f"{path}.successThreshold", threshold, "must be 1")
    if grace is not None and field == "readinessProbe":
        yield invalid(
            f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"
        )
    elif is_integer(grace) and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _handler_faults(handler: Document, path: str) -> Iterator[FieldError]:
    given = [name for name in HANDLERS if isinstance(handler.get(name), dict)]
    if not given:
        yield required(path, "must specify a handler type")
    for name in given[1:]:
        yield FieldError(
            path=f"{path}.{name}",
            reason=FORBIDDEN,
            message="may not specify more than 1 handler type",
        )
    for name in given:
        what = named(handler, name)
        if name == "exec" and not what.get("command"):
            yield required(f"{path}.exec.command")
        port = what.get("port")
        if is_integer(port) and not 1 <= port <= 65535:
            yield invalid(f"{path}.{name}.port", port, PORT_RULE)
        elif isinstance(port, str) and (fault := port_name_fault(port)):
            yield invalid(f"{path}.{name}.port", port, fault)
