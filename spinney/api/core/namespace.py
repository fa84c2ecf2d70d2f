"""Namespace: where names of other objects are unique."""

from __future__ import annotations

from typing import Annotated

from spinney.api.core.builtin import Finer, built_in
from spinney.api.kinds import Names
from spinney.meta.documents import Document, string_at, value_at, with_value
from spinney.meta.metadata import ObjectMeta, dns_label_fault
from spinney.meta.records import Field, Record

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label each namespace carries its own name in, so that selectors can say it."""

FINALIZER = "kubernetes"


class NamespaceSpec(Record):
    """What holds a namespace."""

    finalizers: Annotated[
        tuple[str, ...], Field("Who must act before it is gone; `kubernetes` empties it.")
    ] = ()


class NamespaceStatus(Record):
    """What is observed of a namespace."""

    phase: Annotated[str, Field("`Active` or `Terminating`.")] = "Active"


class Namespace(Record):
    """Where names of other objects are unique."""

    metadata: ObjectMeta
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


def _default(document: Document) -> Document:
    name = string_at(document, ["metadata", "name"])
    if name and string_at(document, ["metadata", "labels", NAME_LABEL]) != name:
        document = with_value(document, ["metadata", "labels", NAME_LABEL], name)
    is_going = value_at(document, ["metadata", "deletionTimestamp"]) is not None
    spec = document.get("spec", {})
    if isinstance(spec, dict) and "finalizers" not in spec and not is_going:
        document = with_value(document, ["spec", "finalizers"], [FINALIZER])
    return document


KIND = built_in(
    Names(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        singular="namespace",
        short=("ns",),
    ),
    Namespace,
    finer={
        "status": Finer(default={"phase": "Active"}),
        "status.phase": Finer(default="Active", enum=("Active", "Terminating")),
    },
    namespaced=False,
    has_status=True,
    default=_default,
    name_fault=dns_label_fault,
    selectable=("status.phase",),
)
