"""OpenAPI v3: the shape of every kind, for `kubectl explain`, for `apply`, and for generators.

A group's document holds the schemas of its kinds and the paths they are served under. Types of
Kubernetes stand as components of their own, so that they may hold themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from spinney.api import crds
from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json
from spinney.meta.schemas import Schema
from spinney.server import bodies, discovery

PREFIX = "io.spinney.types."
_REFERENCE = "#/components/schemas/"
_SAID = ("apiVersion", "kind")
_GVK = "x-kubernetes-group-version-kind"


def path_of(group: str, version: str) -> str:
    """Return the path of a group's document, as the index names it."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def document(kinds: Iterable[Kind], group: str, version: str, title_version: str) -> Document:
    """Return the document of one group and version."""
    found = [kind for kind in kinds if (kind.names.group, kind.names.version) == (group, version)]
    components = _Components()
    paths: Document = {}
    for kind in found:
        components.put_kind(kind)
        paths |= _paths(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Spinney", "version": title_version},
        "paths": paths,
        "components": {"schemas": components.finished()},
    }


def kind_name(kind: Kind) -> str:
    """Return the name of a kind's component."""
    names = kind.names
    group = ".".join(reversed(names.group.split("."))) if names.group else "io.k8s.api.core"
    return f"{group}.{names.version}.{names.kind}"


class _Components:
    """The components of a document; those referred to are made when the rest is."""

    def __init__(self) -> None:
        self._made: dict[str, Json] = {}
        self._waiting: dict[str, Schema] = {}

    def put_kind(self, kind: Kind) -> None:
        names = kind.names
        said: list[Json] = [_said(kind)]
        name = kind_name(kind)
        required = tuple(name for name in kind.schema.required if name not in _SAID)
        node = self._whole(msgspec.structs.replace(kind.schema, required=required))
        self._made[name] = {**node, _GVK: said}
        self._made[f"{name}List"] = {
            "description": f"A list of {names.kind}.",
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "items": {"type": "array", "items": {"$ref": f"{_REFERENCE}{name}"}},
            },
            _GVK: [{**_said(kind), "kind": f"{names.kind}List"}],
        }

    def finished(self) -> Document:
        while self._waiting:
            name, schema = self._waiting.popitem()
            if name not in self._made:
                self._made[name] = None
                self._made[name] = self._whole(schema)
        return dict(sorted(self._made.items()))

    def _node(self, schema: Schema) -> Document:
        """Return what stands in the place of a schema: a reference for a Kubernetes type."""
        name = _type_name(schema)
        if not name:
            return self._whole(schema)
        self._waiting.setdefault(name, msgspec.structs.replace(schema, doc=""))
        reference: Document = {"$ref": f"{_REFERENCE}{name}"}
        beside = _beside(schema)
        return {**beside, "allOf": [reference]} if beside else reference

    def _whole(self, schema: Schema) -> Document:
        if schema.format == "int-or-string":
            return {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
        if schema.format == "quantity":
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        bare = msgspec.structs.replace(schema, items=None, values=None, properties={})
        node = crds.structural(bare)
        node.update(_patching(schema))
        if schema.items is not None:
            node["items"] = self._node(schema.items)
        if schema.values is not None:
            node["additionalProperties"] = self._node(schema.values)
        if schema.properties:
            node["properties"] = {
                name: self._node(below) for name, below in schema.properties.items()
            }
        return node


def _type_name(schema: Schema) -> str:
    """Return the name of the component a schema stands as, "" where it stands in place."""
    if schema.format == "int-or-string":
        return f"{PREFIX}IntOrString"
    if schema.format == "quantity":
        return f"{PREFIX}Quantity"
    if schema.core and schema.type in ("object", "") and schema.values is None:
        return f"{PREFIX}{schema.core.replace('/', '.')}"
    return ""


def _beside(schema: Schema) -> Document:
    """Return what is said of a field beside its type."""
    node: Document = {"description": schema.doc} if schema.doc else {}
    if not isinstance(schema.default, msgspec.UnsetType):
        node["default"] = schema.default
    return {**node, **_patching(schema)}


def _patching(schema: Schema) -> Document:
    node: Document = {}
    if schema.merge_key:
        node["x-kubernetes-patch-merge-key"] = schema.merge_key
    if schema.patch_strategy:
        node["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategy)
    return node


def _said(kind: Kind) -> Document:
    names = kind.names
    return {"group": names.group, "kind": names.kind, "version": names.version}


# Paths


def _paths(kind: Kind) -> Document:
    names = kind.names
    root = f"/{path_of(names.group, names.version)}"
    base = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    reference: Json = {"$ref": f"{_REFERENCE}{kind_name(kind)}"}
    listed: Json = {"$ref": f"{_REFERENCE}{kind_name(kind)}List"}
    collection: Document = {
        "get": _operation(kind, "list", listed, parameters=_LIST_PARAMETERS),
        "post": _operation(kind, "post", reference, body=bodies.OBJECT_TYPES),
        "delete": _operation(kind, "deletecollection", parameters=_LIST_PARAMETERS),
        "parameters": _places(kind)[:-1],
    }
    paths: Document = {f"{base}/{names.plural}": collection}
    if kind.namespaced:
        everywhere = _operation(kind, "list", listed, parameters=_LIST_PARAMETERS)
        paths[f"{root}/{names.plural}"] = {"get": everywhere}
    whole = f"{base}/{names.plural}/{{name}}"
    paths[whole] = {
        **_item(kind, reference),
        "delete": _operation(kind, "delete", parameters=_DELETE_PARAMETERS),
        "parameters": _places(kind),
    }
    for part in discovery.parts_of(kind):
        if part.name == "status":
            operations = _item(kind, reference)
            paths[f"{whole}/status"] = {**operations, "parameters": _places(kind)}
    return paths


def _item(kind: Kind, reference: Json) -> Document:
    return {
        "get": _operation(kind, "get", reference),
        "put": _operation(kind, "put", reference, body=bodies.OBJECT_TYPES),
        "patch": _operation(
            kind,
            "patch",
            reference,
            body=patch_types(kind),
            parameters=(*_WRITE_PARAMETERS, _parameter("force", "boolean")),
        ),
    }


def patch_types(kind: Kind) -> tuple[str, ...]:
    """Return the sorts of patches a kind takes."""
    strategic = (bodies.STRATEGIC_PATCH,) if kind.is_builtin else ()
    return (bodies.JSON_PATCH, bodies.MERGE_PATCH, *strategic, bodies.APPLY_PATCH)


def _operation(
    kind: Kind,
    action: str,
    reply: Json = None,
    *,
    body: tuple[str, ...] = (),
    parameters: tuple[Json, ...] = (),
) -> Document:
    schema: Json = reply or {"type": "object"}
    operation: Document = {
        "x-kubernetes-action": action,
        _GVK: _said(kind),
        "responses": {
            "200": {"description": "OK", "content": {bodies.JSON: {"schema": schema}}},
        },
    }
    if body:
        content: Document = {sort: {"schema": {"type": "object"}} for sort in body}
        for sort in (bodies.JSON, bodies.YAML):
            if sort in content and reply is not None:
                content[sort] = {"schema": reply}
        operation["requestBody"] = {"content": content, "required": True}
        parameters = parameters or _WRITE_PARAMETERS
    if parameters:
        operation["parameters"] = list(parameters)
    return operation


def _parameter(name: str, kind: str) -> Json:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


def _places(kind: Kind) -> list[Json]:
    names = ("namespace", "name") if kind.namespaced else ("name",)
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


_WRITE_PARAMETERS = tuple(
    _parameter(name, "string") for name in ("dryRun", "fieldManager", "fieldValidation")
)
_LIST_PARAMETERS = (
    *(
        _parameter(name, "string")
        for name in (
            "continue",
            "fieldSelector",
            "labelSelector",
            "resourceVersion",
            "resourceVersionMatch",
        )
    ),
    *(_parameter(name, "integer") for name in ("limit", "timeoutSeconds")),
    *(
        _parameter(name, "boolean")
        for name in ("allowWatchBookmarks", "sendInitialEvents", "watch")
    ),
)
_DELETE_PARAMETERS = (
    _parameter("dryRun", "string"),
    _parameter("gracePeriodSeconds", "integer"),
    _parameter("orphanDependents", "boolean"),
    _parameter("propagationPolicy", "string"),
)
