"""Node: a machine pods run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from spinney.api.core.builtin import Finer, built_in
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, same_content, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, label_value_fault, qualified_name_fault
from spinney.meta.records import Field, Record

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Taint(Record):
    """Something that keeps pods off a node, but for those that tolerate it."""

    key: str
    effect: Annotated[str, Field("`NoSchedule`, `PreferNoSchedule`, `NoExecute`.")] = ""
    value: str = ""
    time_added: Annotated[datetime | None, Field("Since when, for `NoExecute`.")] = None


class NodeSpec(Record):
    """What is wanted of a node."""

    unschedulable: Annotated[bool, Field("Whether it is cordoned: takes no new pods.")] = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")


class NodeAddress(Record):
    """Where a node is reached."""

    type: Annotated[str, Field("`InternalIP`, `Hostname` …")]
    address: str


class NodeStatus(Record):
    """What is observed of a node."""

    capacity: Annotated[Mapping[str, str | int], Field("All it has.")] = {}
    allocatable: Annotated[Mapping[str, str | int], Field("What of it pods may have.")] = {}
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(Record):
    """A machine pods run on."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def _default_status(document: Document) -> Document:
    status = document.get("status")
    if not isinstance(status, dict) or status.get("capacity") is None:
        return document
    if status.get("allocatable") is not None:
        return document
    return with_value(document, ["status", "allocatable"], status["capacity"])


def _rules(new: Cursor) -> Iterator[FieldError]:
    seen: set[tuple[str | None, str | None]] = set()
    for taint in new.at("spec", "taints"):
        key, value, effect = taint["key"], taint["value"].string(), taint["effect"].string()
        if (text := key.string()) is not None and (fault := qualified_name_fault(text)):
            yield key.invalid(fault)
        if value and (fault := label_value_fault(value)):
            yield taint["value"].invalid(fault)
        if (key.string(), effect) in seen:
            yield taint.duplicate("taints must be unique by key and effect pair")
        seen.add((key.string(), effect))


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    for field in ("podCIDR", "providerID"):
        before, after = old["spec"][field], new["spec"][field]
        if before.string() and not same_content(before.value, after.value):
            yield after.forbidden(f'node updates may not change {field} except from "" to valid')


KIND = built_in(
    Names(group="", version="v1", kind="Node", plural="nodes", singular="node", short=("no",)),
    Node,
    finer={"spec": Finer(default={}), "spec.taints.effect": Finer(enum=EFFECTS)},
    namespaced=False,
    has_status=True,
    default_status=_default_status,
    rules=_rules,
    changes=_changes,
    selectable=("spec.unschedulable",),
)
