"""Makes `spinney/api/core/schemas.json` from the published Kubernetes definitions.

The definitions are Kubernetes' own OpenAPI (Apache-2.0), carried by PyPI's `kubernetes-validate`.
Kept are types, formats, required fields, and what merging needs; the prose is left out. A node
that only names another definition becomes `{"core": "PodSpec"}`, and `api/core/definitions.py`
follows it when somebody asks.

Names are short. Where two definitions share a short name, the one that is a kind has it, else the
one of the core group; the other is spelled with its group: `events.k8s.io/Event`,
`core/ResourceClaim`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from spinney.meta.documents import (
    Document,
    Json,
    is_list,
    list_at,
    object_at,
    string_at,
    strings,
    with_value,
)

KUBERNETES_VERSION = "1.37.0"
PATH = "spinney/api/core/schemas.json"

ROOTS: Mapping[str, tuple[str, ...]] = {
    "v1": (
        "Binding",
        "ConfigMap",
        "DeleteOptions",
        "Endpoints",
        "Event",
        "Namespace",
        "Node",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "Secret",
        "Service",
        "ServiceAccount",
        "Status",
    ),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "apps/v1": ("ControllerRevision", "Deployment"),
    "authentication.k8s.io/v1": ("SelfSubjectReview", "TokenRequest"),
    "authorization.k8s.io/v1": ("SelfSubjectAccessReview", "SelfSubjectRulesReview"),
    "autoscaling/v1": ("Scale",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "coordination.k8s.io/v1": ("Lease",),
    "discovery.k8s.io/v1": ("EndpointSlice",),
    "events.k8s.io/v1": ("Event",),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
    "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "resource.k8s.io/v1": ("ResourceClaim", "ResourceClaimTemplate"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
}
"""The kinds whose definitions are kept, with all they refer to."""

ROOT_TYPES = ("io.k8s.apimachinery.pkg.apis.meta.v1.Condition",)
"""Definitions kept though no kind above refers to them."""

DEFAULTS: Mapping[tuple[str, str], Json] = {
    ("ContainerPort", "protocol"): "TCP",
    ("LocalObjectReference", "name"): "",
    ("ServicePort", "protocol"): "TCP",
}
"""The published definitions carry no defaults. These are needed: they are keys of lists, and both
server-side apply and a CRD take such a key only if it is required or has a default."""

WHOLE: Mapping[str, Document] = {
    "CustomResourceSubresourceStatus": {"type": "object", "open": True},
    "FieldsV1": {"type": "object", "open": True},
    "IntOrString": {"format": "int-or-string"},
    "JSON": {"open": True},
    "JSONSchemaPropsOrArray": {"open": True},
    "JSONSchemaPropsOrBool": {"open": True},
    "JSONSchemaPropsOrStringArray": {"open": True},
    "Quantity": {"format": "quantity"},
    "RawExtension": {"type": "object", "open": True},
}
"""Definitions that OpenAPI cannot say, or says less of than is known."""


def files() -> dict[str, bytes]:
    """Return the generated file; one definition a line, sorted, so that a diff reads well."""
    made = definitions(published())
    lines = (
        f'"{name}":{msgspec.json.encode(made[name], order="sorted").decode()}'
        for name in sorted(made)
    )
    return {PATH: ("{\n" + ",\n".join(lines) + "\n}\n").encode()}


def published() -> dict[str, Document]:
    """Return the definitions as Kubernetes publishes them, by their full names."""
    package = importlib.util.find_spec("kubernetes_validate")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = Path(package.submodule_search_locations[0]) / "kubernetes-json-schema"
    body = (folder / f"v{KUBERNETES_VERSION}-local" / "_definitions.json").read_bytes()
    return msgspec.json.decode(body, type=_Published).definitions


class _Published(msgspec.Struct):
    """The file of the published definitions."""

    definitions: dict[str, Document] = msgspec.field(name="$defs")


def definitions(full: Mapping[str, Document]) -> dict[str, Document]:
    """Return the compact definitions by their short names."""
    names = short_names(closure(full, [*_roots(full), *ROOT_TYPES]), full)
    made: dict[str, Document] = {}
    for long, name in names.items():
        made[name] = WHOLE.get(name) or _compact(full[long], names)
    for (name, field), default in DEFAULTS.items():
        assert object_at(made[name], ["properties", field]), f"{name} has no field {field}"
        made[name] = with_value(made[name], ["properties", field, "default"], default)
    return made


def closure(full: Mapping[str, Document], roots: Iterable[str]) -> set[str]:
    """Return the full names of definitions, and of all they refer to at any depth."""
    found: set[str] = set()
    ahead = list(roots)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            if _last(name) not in WHOLE:
                ahead.extend(_references(full[name]))
    return found


def short_names(chosen: Iterable[str], full: Mapping[str, Document]) -> dict[str, str]:
    """Return the short name of each definition, by its full one."""
    groups = _groups(full)

    def rank(name: str) -> tuple[bool, bool, str]:
        is_kind = "x-kubernetes-group-version-kind" in full[name]
        return (not is_kind, not name.startswith("io.k8s.api.core."), name)

    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(chosen, key=rank):
        short = _last(name)
        if short in taken:
            short = f"{groups.get(name.rpartition('.')[0]) or 'core'}/{short}"
        assert short not in taken
        taken.add(short)
        names[name] = short
    return names


def _roots(full: Mapping[str, Document]) -> Iterator[str]:
    by_kind = {
        (api_version, kind): name
        for name, definition in full.items()
        for api_version, kind in _served_as(definition)
    }
    for api_version, kinds in ROOTS.items():
        for kind in kinds:
            yield by_kind[api_version, kind]


def _served_as(definition: Document) -> Iterator[tuple[str, str]]:
    for entry in list_at(definition, ["x-kubernetes-group-version-kind"]):
        said = strings(entry)
        yield f"{said['group']}/{said['version']}".lstrip("/"), said["kind"]


def _groups(full: Mapping[str, Document]) -> dict[str, str]:
    """Return the API group of each package; a package that serves several groups has none."""
    groups: dict[str, str] = {}
    for name, definition in full.items():
        served = {api_version.rpartition("/")[0] for api_version, _ in _served_as(definition)}
        if len(served) == 1:
            groups[name.rpartition(".")[0]] = served.pop()
    return groups


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield _last(reference, "/")
        for below in node.values():
            yield from _references(below)
    elif is_list(node):
        for below in node:
            yield from _references(below)


def _last(name: str, separator: str = ".") -> str:
    return name.rpartition(separator)[2]


def _compact(node: Document, names: Mapping[str, str]) -> Document:
    """Return one published node as `meta.schemas.Schema` spells it."""
    made: Document = {}
    if reference := string_at(node, ["$ref"]):
        made["core"] = names[_last(reference, "/")]
    elif sort := _type(node):
        made["type"] = sort
        _describe(node, sort, names, made)
    if strategy := string_at(node, ["x-kubernetes-patch-strategy"]):
        made["patchStrategy"] = list(strategy.split(","))
    return made


def _describe(node: Document, sort: str, names: Mapping[str, str], made: Document) -> None:
    if form := string_at(node, ["format"]):
        made["format"] = form
    if sort == "object":
        if properties := object_at(node, ["properties"]):
            made["properties"] = {
                name: _compact(object_at(properties, [name]), names) for name in sorted(properties)
            }
        if values := object_at(node, ["additionalProperties"]):
            made["values"] = _compact(values, names)
        if required := list_at(node, ["required"]):
            made["required"] = required
        if string_at(node, ["x-kubernetes-map-type"]) == "atomic":
            made["atomicMap"] = True
    if sort == "array":
        made["items"] = _compact(object_at(node, ["items"]), names)
        if (list_type := string_at(node, ["x-kubernetes-list-type"])) in ("map", "set"):
            made["listType"] = list_type
        if keys := list_at(node, ["x-kubernetes-list-map-keys"]):
            made["listKeys"] = keys
        if key := string_at(node, ["x-kubernetes-patch-merge-key"]):
            made["mergeKey"] = key


def _type(node: Document) -> str:
    """Return the type of a node; the published ones say `["string", "null"]` where optional."""
    said = node.get("type")
    if is_list(said):
        return next(str(part) for part in said if part != "null")
    return said if isinstance(said, str) else ""
