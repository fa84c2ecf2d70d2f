"""Service, Endpoints and EndpointSlice: names for pods, and where they are found."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from spinney.api.core.builtin import Finer, built_in, immutable, port_faults
from spinney.api.core.container_rules import port_name_fault
from spinney.api.core.pod_defaults import PROTOCOLS
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, object_at, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, dns_label_fault, dns_subdomain_fault, label_faults
from spinney.meta.records import Field, Record

HEADLESS = "None"
"""The cluster IP of a service that has none: its name stands for its pods themselves."""

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
NAME_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


class ServicePort(Record):
    """One port of a service."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    target_port: Annotated[int | str, Field("The port of the pods, by number or by name.")] = 0
    node_port: int = 0


class ServiceSpec(Record):
    """What a service should be."""

    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    selector: Annotated[Mapping[str, str], Field("The labels of its pods.")] = {}
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: Annotated[
        bool, Field("Whether pods that are not ready are found by its name.")
    ] = False


class Service(Record):
    """A name for the pods that a selector finds."""

    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ObjectReference(Record):
    """Another object, by name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: Annotated[str, Field("Which part of it: `spec.containers{main}`.")] = ""
    resource_version: str = ""


class Endpoints(Record):
    """Where the pods of a service are reached, in the form of old."""

    metadata: ObjectMeta
    subsets: tuple[Document, ...] = ()


class EndpointConditions(Record):
    """How an endpoint is; what is not said counts as true."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Record):
    """Where one pod of a service is reached."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    target_ref: ObjectReference | None = None


class EndpointPort(Record):
    """One port of all endpoints of a slice."""

    name: str = ""
    port: int | None = None
    protocol: str = "TCP"


class EndpointSlice(Record):
    """Some of the endpoints of a service."""

    metadata: ObjectMeta
    address_type: str = "IPv4"
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


def name_fault(text: str) -> str:
    """Return what must hold of a service's name; "" if it does."""
    return "" if _NAME.fullmatch(text) else NAME_RULE


_AFFINITY_SECONDS = 10_800
_EXTERNAL = ("NodePort", "LoadBalancer")


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    filled: Document = {**spec}
    _fill(filled, spec)
    ports = spec.get("ports")
    if isinstance(ports, list):
        filled["ports"] = [_with_target(port) for port in ports]
    return {**document, "spec": filled}


def _fill(filled: Document, spec: Document) -> None:
    kind = spec.get("type")
    if kind != "ExternalName":
        filled.setdefault("internalTrafficPolicy", "Cluster")
        filled.setdefault("ipFamilies", ["IPv4"])
        filled.setdefault("ipFamilyPolicy", "SingleStack")
        if isinstance(address := spec.get("clusterIP"), str) and address:
            filled.setdefault("clusterIPs", [address])
    if kind in _EXTERNAL:
        filled.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        filled.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("sessionAffinity") == "ClientIP" and "sessionAffinityConfig" not in spec:
        filled["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}


def _with_target(port: Json) -> Json:
    if not isinstance(port, dict) or port.get("targetPort") not in (None, 0, "", False):
        return port
    if isinstance(port.get("targetPort"), bool) or "port" not in port:
        return port
    return {**port, "targetPort": port["port"]}


def _rules(new: Cursor) -> Iterator[FieldError]:
    spec = new["spec"]
    kind, address = spec["type"].string(), spec["clusterIP"].string()
    ports = tuple(spec["ports"])
    if not ports and address != HEADLESS and kind != "ExternalName":
        yield spec["ports"].required()
    if address == HEADLESS and kind in _EXTERNAL:
        yield spec["clusterIP"].invalid(f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name_rules(spec)
    names: set[str] = set()
    for port in ports:
        name = port["name"].string() or ""
        if len(ports) > 1 and not name:
            yield port["name"].required()
        elif name and (fault := dns_label_fault(name)):
            yield port["name"].invalid(fault)
        elif name and name in names:
            yield port["name"].duplicate()
        names.add(name)
        yield from port_faults(port["port"])
        yield from _target_faults(port["targetPort"])
        if port["nodePort"].value != 0:
            yield from port_faults(port["nodePort"])
        if kind == "ClusterIP" and port["nodePort"].integer():
            yield port["nodePort"].forbidden("may not be used when `type` is 'ClusterIP'")
    yield from _address_rules(spec)
    yield from label_faults(spec["selector"])
    if spec["sessionAffinity"].string() == "None" and spec["sessionAffinityConfig"]:
        yield spec["sessionAffinityConfig"].forbidden(
            "must not be set when session affinity is None"
        )


def _target_faults(target: Cursor) -> Iterator[FieldError]:
    yield from port_faults(target)
    if (name := target.string()) and (fault := port_name_fault(name)):
        yield target.invalid(fault)


def _address_rules(spec: Cursor) -> Iterator[FieldError]:
    address, addresses = spec["clusterIP"], spec["clusterIPs"].strings()
    text = address.string()
    if text and text != HEADLESS and not is_address(text):
        yield address.invalid("must be empty, 'None', or a valid IP address")
    if text and addresses and addresses[0] != text:
        yield spec["clusterIPs"].invalid("first value must match `clusterIP`")


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _external_name_rules(spec: Cursor) -> Iterator[FieldError]:
    if spec["clusterIP"].string():
        yield spec["clusterIP"].forbidden("may not be set for ExternalName services")
    name = spec["externalName"]
    text = (name.string() or "").removesuffix(".")
    if not text and name.value in (None, ""):
        yield name.required()
    elif name.string() is not None and (fault := dns_subdomain_fault(text)):
        yield name.invalid(fault)


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    was, spec = old["spec"], new["spec"]
    stays = "ExternalName" not in (was["type"].string(), spec["type"].string())
    if stays and was["clusterIP"].string() and spec["clusterIP"].string():
        yield from immutable(was["clusterIP"], spec["clusterIP"])


def _endpoints_rules(new: Cursor) -> Iterator[FieldError]:
    for subset in new["subsets"]:
        if not subset["addresses"].value and not subset["notReadyAddresses"].value:
            yield subset.required("must specify `addresses` or `notReadyAddresses`")
        for field in ("addresses", "notReadyAddresses"):
            for address in subset[field]:
                text = address["ip"].string()
                if text is not None and not is_address(text):
                    yield address["ip"].invalid("must be a valid IP address, (e.g. 10.9.8.7)")
        for port in subset["ports"]:
            yield from port_faults(port["port"])


def _slice_rules(new: Cursor) -> Iterator[FieldError]:
    for endpoint in new["endpoints"]:
        if endpoint["addresses"].value == []:
            yield endpoint["addresses"].required("must contain at least 1 address")
        if new["addressType"].string() in ("IPv4", "IPv6"):
            for address in endpoint["addresses"]:
                if (text := address.string()) is not None and not is_address(text):
                    yield address.invalid("must be a valid IP address, (e.g. 10.9.8.7)")
    for port in new["ports"]:
        yield from port_faults(port["port"])


def _slice_changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    yield from immutable(old["addressType"], new["addressType"])


def _with_port_names(document: Document) -> Document:
    """Give each port of a slice a name, be it an empty one, as Kubernetes does."""
    ports = document.get("ports")
    if not isinstance(ports, list):
        return document
    named: list[Json] = [
        {"name": "", **port} if isinstance(port, dict) and port.get("name") is None else port
        for port in ports
    ]
    return with_value(document, ["ports"], named)


SERVICE = built_in(
    Names(
        group="",
        version="v1",
        kind="Service",
        plural="services",
        singular="service",
        short=("svc",),
        categories=("all",),
    ),
    Service,
    finer={
        "spec": Finer(default={}),
        "spec.type": Finer(
            default="ClusterIP", enum=("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
        ),
        "spec.sessionAffinity": Finer(default="None", enum=("ClientIP", "None")),
        "spec.ports.protocol": Finer(enum=PROTOCOLS),
        "status": Finer(default={"loadBalancer": {}}),
    },
    has_status=True,
    default=_default,
    rules=_rules,
    changes=_changes,
    name_fault=name_fault,
    selectable=("spec.clusterIP", "spec.type"),
)
ENDPOINTS = built_in(
    Names(
        group="",
        version="v1",
        kind="Endpoints",
        plural="endpoints",
        singular="endpoints",
        short=("ep",),
    ),
    Endpoints,
    finer={"subsets.ports.protocol": Finer(default="TCP", enum=PROTOCOLS)},
    rules=_endpoints_rules,
)
ENDPOINT_SLICE = built_in(
    Names(
        group="discovery.k8s.io",
        version="v1",
        kind="EndpointSlice",
        plural="endpointslices",
        singular="endpointslice",
    ),
    EndpointSlice,
    finer={
        "addressType": Finer(enum=("FQDN", "IPv4", "IPv6")),
        "ports.protocol": Finer(default="TCP", enum=PROTOCOLS),
    },
    default=_with_port_names,
    rules=_slice_rules,
    changes=_slice_changes,
)


def is_headless(service: Document) -> bool:
    """Whether a service has no address of its own."""
    return object_at(service, ["spec"]).get("clusterIP") == HEADLESS
