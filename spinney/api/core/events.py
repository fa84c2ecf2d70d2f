"""Event: what happened to an object, told to people. Two groups serve the one stored kind.

What is stored is the Event of the core group. `events.k8s.io` calls some fields by other names;
`event_from_core` and `core_from_event` are the two ways between them, and lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from spinney.api.core.builtin import built_in, immutable
from spinney.api.core.services import ObjectReference
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, qualified_name_fault
from spinney.meta.records import Field, Record
from spinney.meta.references import GroupKind

NOTE_LENGTH_MAX = 1024
TYPES = ("Normal", "Warning")

_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""What `events.k8s.io` calls the fields of the core group."""

_CORE_NAMES = {new: old for old, new in _NAMES.items()}


class EventSource(Record):
    """Who told it, in events of old."""

    component: str = ""
    host: str = ""


class EventSeries(Record):
    """How often it happened, in events that count."""

    count: int = 0
    last_observed_time: datetime | None = None


class Event(Record):
    """What happened to an object; the stored form."""

    metadata: ObjectMeta
    involved_object: Annotated[ObjectReference, Field("What it happened to.")] = ObjectReference()
    reason: Annotated[str, Field("What happened, in one word for programs.")] = ""
    message: Annotated[str, Field("What happened, in a sentence for people.")] = ""
    type: Annotated[str, Field("`Normal` or `Warning`.")] = ""
    action: Annotated[str, Field("What was done or tried.")] = ""
    count: Annotated[int, Field("How often it happened.")] = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""


def event_from_core(document: Document) -> Document:
    """Return a stored event as `events.k8s.io` spells it."""
    made = _renamed(document, _NAMES)
    return {**made, "apiVersion": "events.k8s.io/v1", "eventTime": document.get("eventTime")}


def core_from_event(document: Document) -> Document:
    """Return an event of `events.k8s.io` as it is stored."""
    return {"involvedObject": {}, **_renamed(document, _CORE_NAMES), "apiVersion": "v1"}


def _renamed(document: Document, names: Mapping[str, str]) -> Document:
    return {names.get(key, key): value for key, value in document.items()}


def _core_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _namespace_rules(new, new["involvedObject"])
    if new["eventTime"]:
        yield from _new_style_rules(new, "reportingComponent", "message")


def _rules(new: Cursor) -> Iterator[FieldError]:
    yield from _namespace_rules(new, new["regarding"])
    yield from _new_style_rules(new, "reportingController", "note")


def _namespace_rules(new: Cursor, about: Cursor) -> Iterator[FieldError]:
    """An event lies beside its object; one of cluster scope, in a namespace of the system."""
    own, other = new.at("metadata", "namespace").string(), about["namespace"].string() or ""
    if own is None or about.object() is None:
        return
    if own != other and not (other == "" and own in ("default", "kube-system")):
        yield Cursor(other, about["namespace"].path).invalid("does not match event.namespace")


def _new_style_rules(new: Cursor, controller: str, note: str) -> Iterator[FieldError]:
    for field in (controller, "reportingInstance", "action", "reason"):
        if new[field].value in (None, ""):
            yield new[field].required()
    if (text := new[controller].string()) and (fault := qualified_name_fault(text)):
        yield new[controller].invalid(fault)
    if len(new[note].string() or "") > NOTE_LENGTH_MAX:
        yield new[note].invalid(f"can have at most {NOTE_LENGTH_MAX} characters")
    if (kind := new["type"].string()) is not None and kind not in TYPES:
        yield new["type"].invalid("has invalid value: " + kind)


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    for field in (
        "regarding",
        "reason",
        "action",
        "note",
        "type",
        "eventTime",
        "reportingController",
        "reportingInstance",
    ):
        yield from immutable(old[field], new[field])


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
CORE_EVENT = built_in(
    Names(group="", version="v1", kind="Event", plural="events", singular="event", short=("ev",)),
    Event,
    rules=_core_rules,
    selectable=(
        *(f"involvedObject.{field}" for field in _REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
)
EVENT = built_in(
    Names(
        group="events.k8s.io",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        short=("ev",),
    ),
    Event,
    definition="events.k8s.io/Event",
    rules=_rules,
    changes=_changes,
    selectable=(
        *(f"regarding.{field}" for field in _REFERENCE),
        "reason",
        "reportingController",
        "type",
    ),
    stored_as=GroupKind(group="", kind="Event"),
    from_stored=event_from_core,
    to_stored=core_from_event,
)
