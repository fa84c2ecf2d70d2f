"""CRDs: a kind as a CustomResourceDefinition, for clusters that are to serve it.

Every node of the schema is structural: it has a type, or takes anything, or takes an integer or a
string. Kubernetes' own types come without prose, which keeps a CRD small enough for
`kubectl apply`.
"""

from __future__ import annotations

import msgspec

from spinney.api.kinds import Column, Kind, ScalePaths
from spinney.meta.documents import Document, with_value
from spinney.meta.durations import LENGTH_MAX
from spinney.meta.records import Rule
from spinney.meta.schemas import Schema

DURATION_PATTERN = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""What `parse_duration` takes. A cluster's own format `duration` takes other texts too."""

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""As controller-gen writes it for every quantity."""

_SHARED = ("apiVersion", "kind", "metadata")


def crd(kind: Kind) -> Document:
    """Return the CustomResourceDefinition of a kind: one version, served and stored."""
    names = kind.names
    called: Document = {
        "kind": names.kind,
        "listKind": f"{names.kind}List",
        "plural": names.plural,
        "singular": names.singular,
    }
    if names.short:
        called["shortNames"] = list(names.short)
    if names.categories:
        called["categories"] = list(names.categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.plural}.{names.group}"},
        "spec": {
            "group": names.group,
            "names": called,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def structural(schema: Schema) -> Document:
    """Return a schema as a CRD spells it."""
    node: Document = {"description": schema.doc} if schema.doc else {}
    if schema.format in ("quantity", "int-or-string"):
        node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        node["x-kubernetes-int-or-string"] = True
        if schema.format == "quantity":
            node["pattern"] = QUANTITY_PATTERN
    elif schema.type:
        node["type"] = schema.type
    if schema.open or not (schema.type or schema.format):
        node["x-kubernetes-preserve-unknown-fields"] = True
    if not isinstance(schema.default, msgspec.UnsetType):
        node["default"] = schema.default
    _say_bounds(schema, node)
    _say_merging(schema, node)
    if schema.rules:
        node["x-kubernetes-validations"] = [_rule(rule) for rule in schema.rules]
    _say_below(schema, node)
    return node


def _version(kind: Kind) -> Document:
    version: Document = {"name": kind.names.version, "served": True, "storage": True}
    subresources: Document = {"status": {}} if kind.has_status else {}
    if kind.scale is not None:
        subresources["scale"] = _scale(kind.scale)
    if subresources:
        version["subresources"] = subresources
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    version["schema"] = {"openAPIV3Schema": _root(kind.schema)}
    return version


def _root(schema: Schema) -> Document:
    """Return the schema of a whole object; what all objects share is the API server's to judge."""
    required = tuple(name for name in schema.required if name not in _SHARED)
    node = structural(msgspec.structs.replace(schema, required=required))
    return with_value(node, ["properties", "metadata"], {"type": "object"})


def _scale(paths: ScalePaths) -> Document:
    scale: Document = {
        "specReplicasPath": paths.spec_replicas,
        "statusReplicasPath": paths.status_replicas,
    }
    if paths.selector:
        scale["labelSelectorPath"] = paths.selector
    return scale


def _column(column: Column) -> Document:
    made: Document = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.doc:
        made["description"] = column.doc
    if column.priority:
        made["priority"] = column.priority
    return made


def _rule(rule: Rule) -> Document:
    made: Document = {"rule": rule.rule, "message": rule.message, "reason": rule.reason}
    if rule.field_path:
        made["fieldPath"] = rule.field_path
    if rule.optional_old_self:
        made["optionalOldSelf"] = True
    return made


def _say_bounds(schema: Schema, node: Document) -> None:
    if schema.format == "duration":
        node["pattern"] = DURATION_PATTERN
        node["maxLength"] = LENGTH_MAX
    elif schema.format not in ("", "quantity", "int-or-string"):
        node["format"] = schema.format
    if schema.enum:
        node["enum"] = list(schema.enum)
    if schema.pattern:
        node["pattern"] = schema.pattern
    bounds = {
        "minimum": schema.minimum,
        "maximum": schema.maximum,
        "minLength": schema.min_length,
        "maxLength": schema.max_length,
        "minItems": schema.min_items,
    }
    for name, bound in bounds.items():
        if bound is not None:
            node[name] = bound


def _say_merging(schema: Schema, node: Document) -> None:
    """Say how server-side apply merges; `atomic` is what a cluster takes a list for unasked."""
    if schema.type == "array" and schema.list_type != "atomic":
        node["x-kubernetes-list-type"] = schema.list_type
        if schema.list_keys:
            node["x-kubernetes-list-map-keys"] = list(schema.list_keys)
    if schema.type == "object" and schema.atomic_map:
        node["x-kubernetes-map-type"] = "atomic"


def _say_below(schema: Schema, node: Document) -> None:
    if schema.required:
        node["required"] = list(schema.required)
    if schema.items is not None:
        node["items"] = structural(schema.items)
    if schema.values is not None:
        node["additionalProperties"] = structural(schema.values)
    if schema.properties:
        node["properties"] = {name: structural(below) for name, below in schema.properties.items()}
