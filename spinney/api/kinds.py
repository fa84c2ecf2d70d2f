"""Kinds: what Spinney knows of each sort of object, and the one door by which objects come in.

`admit` is that door: `spinney validate`, the embedded write path and the webhooks call it and
nothing else, so a manifest that passes offline passes everywhere.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from spinney.api import core
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta import errors, shapes
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, string_at, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import METADATA
from spinney.meta.records import Record
from spinney.meta.references import GroupKind
from spinney.meta.schemas import ANY, Schema, schema_of
from spinney.meta.shapes import Shape
from spinney.meta.sieves import Sieve

Default: TypeAlias = Callable[[Document], Document]
ValidateCreate: TypeAlias = Callable[[Cursor, Surroundings], Iterator[FieldError]]
ValidateUpdate: TypeAlias = Callable[[Cursor, Cursor, Surroundings], Iterator[FieldError]]
Advise: TypeAlias = Callable[[Cursor, Cursor | None, Surroundings], Iterator[str]]
Convert: TypeAlias = Callable[[Document], Document]


class Names(Record):
    """How a kind is called, in documents, in paths and on a command line."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    """The kind of a list of them; by default the kind with `List` behind it."""

    def __post_init__(self) -> None:
        """Name the lists, where nobody did."""
        if not self.list_kind:
            msgspec.structs.force_setattr(self, "list_kind", f"{self.kind}List")

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its documents: `grove.io/v1alpha1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The kind without its version."""
        return _group_kind(self.group, self.kind)


@functools.lru_cache(maxsize=1024)
def _group_kind(group: str, kind: str) -> GroupKind:
    return GroupKind(group=group, kind=kind)


class Column(Record):
    """One column of `kubectl get`. Priority 1 is shown by `-o wide` alone."""

    name: str
    path: str
    """Where the value stands, as JSONPath: `.status.readyReplicas`."""

    type: str = "integer"
    priority: int = 0
    doc: str = ""


class ScalePaths(Record):
    """Where the scale subresource finds its three values."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ".status.hpaPodSelector"


def _unchanged(document: Document) -> Document:
    return document


def _no_rules(_new: Cursor, _surroundings: Surroundings) -> Iterator[FieldError]:
    return iter(())


def _no_update_rules(
    _old: Cursor, _new: Cursor, _surroundings: Surroundings
) -> Iterator[FieldError]:
    return iter(())


def _no_advice(_new: Cursor, _old: Cursor | None, _surroundings: Surroundings) -> Iterator[str]:
    return iter(())


_ANY_SHAPE = Shape(ANY)
_ANY_SIEVE = Sieve(ANY)


class Kind(Record):
    """All that Spinney knows of one sort of object; made from one declaration in its module."""

    names: Names
    record: type[Record]
    """The defaulted view: fields that always have a value are not optional in it."""

    schema: Schema
    namespaced: bool = True
    default: Default = _unchanged
    """What the schema's own defaults cannot say. Idempotent; never looks at other objects."""

    default_status: Default = _unchanged
    """The same of the status; `default` leaves the status alone."""

    validate_create: ValidateCreate = _no_rules
    """The rules of a new object. Shape errors come from `schema`."""

    validate_update: ValidateUpdate = _no_update_rules
    """The rules of a changed one, old and new: those that always hold, and what may not change."""

    advise: Advise = _no_advice
    """Warnings: what is taken, but is likely not what was meant."""

    columns: tuple[Column, ...] = ()
    scale: ScalePaths | None = None
    has_status: bool = True
    selectable: tuple[str, ...] = ()
    """What a field selector may name beside `metadata.name` and `metadata.namespace`."""

    has_status_rules: bool = False
    """Whether a rule of the object finds faults in its status; else its schema says all of it."""

    is_builtin: bool = False
    """Whether Kubernetes itself has the kind; only then is a strategic merge patch taken."""

    prunes: bool = False
    """Whether fields the schema does not know are told of and dropped, not told of and kept."""

    stored_as: GroupKind | None = None
    """For a second way to see one thing (`events.k8s.io`, another version): whose form is kept."""

    from_stored: Convert = _unchanged
    """Turns a stored document into one of this kind and version."""

    to_stored: Convert = _unchanged
    """Turns an admitted document of this kind and version into the stored one."""

    shape: Shape = _ANY_SHAPE
    """The schema made ready for walking documents; made here, not given."""

    sieve: Sieve = _ANY_SIEVE
    """The quick way for documents that are well-formed; made here, not given."""

    status_sieve: Sieve = _ANY_SIEVE
    """The quick way for a status that is well-formed; made here, not given."""

    def __post_init__(self) -> None:
        """Make the shape and the sieves, once a kind."""
        msgspec.structs.force_setattr(self, "shape", Shape(self.schema))
        msgspec.structs.force_setattr(self, "sieve", Sieve(self.schema))
        status = self.schema.properties.get("status", ANY)
        msgspec.structs.force_setattr(self, "status_sieve", Sieve(status))

    @property
    def stored_kind(self) -> GroupKind:
        """The kind under which its objects are stored: its own, if no other is named."""
        return self.stored_as or self.names.group_kind


def object_schema(record: type[Record]) -> Schema:
    """Return the schema of a whole object: what all objects have, and what its record declares."""
    return framed(schema_of(record, core.resolve))


def framed(schema: Schema) -> Schema:
    """Return the schema of a kind with what all objects have before what is its own."""
    text = Schema(type="string", type_name="string")
    said: dict[str, Schema] = {
        "apiVersion": msgspec.structs.replace(text, doc="The group and version of the kind."),
        "kind": msgspec.structs.replace(text, doc="The kind."),
        "metadata": msgspec.structs.replace(
            METADATA, doc="Name, labels and what else all objects have.", core="ObjectMeta"
        ),
    }
    own = {name: below for name, below in schema.properties.items() if name not in said}
    return msgspec.structs.replace(
        schema,
        properties={**said, **own},
        required=("apiVersion", "kind", *schema.required),
    )


def admit(
    kind: Kind,
    new: Document,
    old: Document | None = None,
    surroundings: Surroundings = NOTHING_KNOWN,
) -> tuple[Document, tuple[FieldError, ...]]:
    """Return a document with its defaults, and all its faults in field order. Never raises.

    `old` is the stored object where this is an update; then the update rules hold too.
    """
    placed = _placed(kind, new)
    if kind.sieve.is_worth_making() and kind.sieve.passes(placed):
        defaulted = _defaulted(kind, kind.sieve.fill_defaults(placed))
        faults = [] if kind.sieve.settles(defaulted) else kind.shape.faults(defaulted)
    else:
        defaulted = _defaulted(kind, kind.shape.fill_defaults(placed))
        faults = kind.shape.faults(defaulted)
    if kind.prunes and faults and (pruned := kind.shape.prune(defaulted)) is not defaulted:
        unknown = [fault for fault in faults if fault.reason == errors.UNKNOWN_FIELD]
        defaulted = pruned
        faults = [*unknown, *kind.shape.faults(defaulted)]
    cursor = Cursor(defaulted)
    if old is None:
        faults.extend(kind.validate_create(cursor, surroundings))
    else:
        faults.extend(kind.validate_update(Cursor(old), cursor, surroundings))
    return defaulted, shapes.in_field_order(kind.schema, faults) if faults else ()


def admitted_status(kind: Kind, document: Document) -> Document | None:
    """Return the status of a document as `admit` leaves it, where it is quickly seen to be fine.

    All but the status was admitted before, and is not looked at. None means that `admit` must be
    asked: something is wrong with the status, or may be.
    """
    status, sieve = document.get("status"), kind.status_sieve
    if kind.has_status_rules or not isinstance(status, dict) or not sieve.is_worth_making():
        return None
    if not sieve.passes(status):
        return None
    filled = kind.default_status({**document, "status": sieve.fill_defaults(status)})["status"]
    return filled if isinstance(filled, dict) and sieve.settles(filled) else None


def _defaulted(kind: Kind, document: Document) -> Document:
    return kind.default_status(kind.default(document))


def _placed(kind: Kind, document: Document) -> Document:
    metadata = document.get("metadata")
    if not kind.namespaced or not isinstance(metadata, dict):
        return document
    if metadata.get("namespace") in (None, ""):
        return with_value(document, ["metadata", "namespace"], "default")
    return document


def advice(
    kind: Kind,
    new: Document,
    old: Document | None = None,
    surroundings: Surroundings = NOTHING_KNOWN,
) -> tuple[str, ...]:
    """Return what to warn the writer of a defaulted document of. Never raises."""
    before = None if old is None else Cursor(old)
    return tuple(kind.advise(Cursor(new), before, surroundings))


def _modules(*rows: tuple[str, str, str]) -> Mapping[GroupKind, str]:
    return {GroupKind(group=group, kind=kind): module for group, kind, module in rows}


_OURS = _modules(
    ("grove.io", "PodCliqueSet", "podcliqueset"),
    ("grove.io", "PodCliqueScalingGroup", "podcliquescalinggroup"),
    ("grove.io", "PodClique", "podclique"),
    ("grove.io", "ClusterTopologyBinding", "clustertopologybinding"),
    ("scheduler.grove.io", "PodGang", "podgang"),
    ("spinney.dev", "ModelDeployment", "modeldeployment"),
    ("spinney.dev", "ModelRoute", "modelroute"),
)
_BUILT_IN = _modules(
    ("", "Pod", "core.pod"),
    ("", "Node", "core.node"),
    ("", "Service", "core.services:SERVICE"),
    ("", "Endpoints", "core.services:ENDPOINTS"),
    ("discovery.k8s.io", "EndpointSlice", "core.services:ENDPOINT_SLICE"),
    ("", "Namespace", "core.namespace"),
    ("", "ConfigMap", "core.configuration:CONFIG_MAP"),
    ("", "Secret", "core.configuration:SECRET"),
    ("", "ServiceAccount", "core.configuration:SERVICE_ACCOUNT"),
    ("", "Event", "core.events:CORE_EVENT"),
    ("events.k8s.io", "Event", "core.events:EVENT"),
    ("coordination.k8s.io", "Lease", "core.lease"),
    ("scheduling.k8s.io", "PriorityClass", "core.priorityclass"),
    ("rbac.authorization.k8s.io", "Role", "core.roles:ROLE"),
    ("rbac.authorization.k8s.io", "RoleBinding", "core.roles:ROLE_BINDING"),
    ("rbac.authorization.k8s.io", "ClusterRole", "core.roles:CLUSTER_ROLE"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "core.roles:CLUSTER_ROLE_BINDING"),
    ("autoscaling", "HorizontalPodAutoscaler", "core.horizontalpodautoscaler"),
    ("apps", "ControllerRevision", "core.controllerrevision"),
    ("policy", "PodDisruptionBudget", "core.poddisruptionbudget"),
    ("resource.k8s.io", "ResourceClaim", "core.resourceclaims:RESOURCE_CLAIM"),
    ("resource.k8s.io", "ResourceClaimTemplate", "core.resourceclaims:RESOURCE_CLAIM_TEMPLATE"),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "core.customresourcedefinition"),
)
_MODULES: Mapping[GroupKind, str] = {**_OURS, **_BUILT_IN}
"""Where each kind is declared: a module and, where it holds several kinds, the name in it."""


class _Kinds(Mapping[GroupKind, Kind]):
    """Kinds by group and kind; a kind's module is imported when it is first asked for."""

    def __init__(self, modules: Mapping[GroupKind, str]) -> None:
        self._modules = modules

    def __getitem__(self, key: GroupKind) -> Kind:
        return _loaded(self._modules[key])

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


@functools.cache
def _loaded(place: str) -> Kind:
    module, _, name = place.partition(":")
    kind = getattr(importlib.import_module(f"spinney.api.{module}"), name or "KIND")
    assert isinstance(kind, Kind)
    return kind


OUR_KINDS: Mapping[GroupKind, Kind] = _Kinds(_OURS)
"""The kinds Spinney brings: those that have a CRD, a reference page and controllers."""

KINDS: Mapping[GroupKind, Kind] = _Kinds(_MODULES)
"""All kinds, ours before those built into Kubernetes."""


def group_kind_of(document: Document) -> GroupKind:
    """Return the kind a document says it is of; parts it does not say are empty."""
    group, _, _ = string_at(document, ["apiVersion"]).rpartition("/")
    return GroupKind(group=group, kind=string_at(document, ["kind"]))


def named(word: str, among: Mapping[GroupKind, Kind] = KINDS) -> Kind | None:
    """Return the kind a person means: by kind, plural, singular or short name, in any case.

    A group may follow after a dot: `podcliquesets.grove.io`. Of equal words, ours wins.
    """
    name, _, group = word.casefold().partition(".")
    for kind in among.values():
        names = kind.names
        if group and group != names.group:
            continue
        if name in (names.kind.casefold(), names.plural, names.singular, *names.short):
            return kind
    return None
