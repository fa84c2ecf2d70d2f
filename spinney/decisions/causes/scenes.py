"""Scenes: objects as documents, found by reference and by how they belong together.

What is told of a scene must hold for any documents, also those of other controllers and of broken
ones; so nothing here is decoded, and what is ill-shaped reads as absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from spinney.api import groupkinds, kinds, labels
from spinney.meta import durations, times
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    strings,
    value_at,
)
from spinney.meta.references import GroupKind, Ref

KINDS = (
    groupkinds.SET,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.POD,
    groupkinds.NODE,
    groupkinds.EVENT,
)
"""What a scene needs to be told whole."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Scene:
    """Objects at one moment. It does not change."""

    def __init__(
        self, documents: Iterable[Document], now: datetime, *, unread: Collection[GroupKind] = ()
    ) -> None:
        """Hold documents; of the kinds that are `unread` nothing is known, not even absence."""
        self.now = now
        self._unread = frozenset(unread)
        self._found: dict[Ref, Document] = {}
        self._related: dict[tuple[GroupKind, str, str, str], list[Document]] = defaultdict(list)
        self._events: dict[tuple[str, str, str], list[Document]] = defaultdict(list)
        for document in documents:
            self._add(document)

    def _add(self, document: Document) -> None:
        ref = ref_of(document)
        if ref.kind.kind == "Event":
            about = object_at(document, ["involvedObject"])
            place = (string_at(about, ["namespace"]) or ref.namespace, string_at(about, ["kind"]))
            self._events[*place, string_at(about, ["name"])].append(document)
            return
        self._found[ref] = document
        for key in _RELATIONS.get(ref.kind, ()):
            value = label(document, key)
            if value:
                self._related[ref.kind, ref.namespace, key, value].append(document)

    def get(self, ref: Ref) -> Document | None:
        """Return an object, None where there is none."""
        return self._found.get(ref)

    def knows(self, kind: GroupKind) -> bool:
        """Whether what is not here of a kind is not there at all."""
        return kind not in self._unread

    def of_kind(self, kind: GroupKind, namespace: str | None = None) -> list[Document]:
        """Return all objects of a kind, by name."""
        return sorted(
            (
                document
                for ref, document in self._found.items()
                if ref.kind == kind and namespace in (None, ref.namespace)
            ),
            key=by_name,
        )

    def related(self, kind: GroupKind, document: Document, key: str) -> list[Document]:
        """Return the objects of a kind that name another one by a label, by name."""
        found = self._related.get((kind, namespace_of(document), key, name_of(document)), [])
        return sorted(found, key=by_name)

    def last_event(self, document: Document, *reasons: str) -> Document | None:
        """Return the latest warning about an object, of some reasons where any are given."""
        ref = ref_of(document)
        found = [
            event
            for event in self._events.get((ref.namespace, ref.kind.kind, ref.name), [])
            if string_at(event, ["type"]) == "Warning"
            and (not reasons or string_at(event, ["reason"]) in reasons)
            and _is_of(event, document)
        ]
        return max(found, key=event_time, default=None)


_RELATIONS: dict[GroupKind, tuple[str, ...]] = {
    groupkinds.SCALING_GROUP: (labels.PART_OF,),
    groupkinds.CLIQUE: (labels.PART_OF, labels.SCALING_GROUP, labels.PODGANG),
    groupkinds.GANG: (labels.PART_OF,),
    groupkinds.POD: (labels.PART_OF, labels.PODCLIQUE, labels.PODGANG),
}


def _is_of(event: Document, document: Document) -> bool:
    """Whether an event is about this very object, not about one that had its name before."""
    uid = string_at(event, ["involvedObject", "uid"])
    own = string_at(document, ["metadata", "uid"])
    return not uid or not own or uid == own


# Reading documents


def ref_of(document: Document) -> Ref:
    """Return how an object is referred to, as far as it says who it is."""
    return Ref(
        kind=kinds.group_kind_of(document), namespace=namespace_of(document), name=name_of(document)
    )


def name_of(document: Json) -> str:
    """Return an object's name."""
    return string_at(document, ["metadata", "name"])


def namespace_of(document: Json) -> str:
    """Return an object's namespace."""
    return string_at(document, ["metadata", "namespace"])


def by_name(document: Document) -> tuple[tuple[str, int], ...]:
    """Return what sorts objects by name, with numbers in names by size: `a-2` before `a-10`."""
    return tuple(
        ("", int(part)) if part.isascii() and part.isdecimal() and len(part) < 19 else (part, 0)
        for part in name_of(document).split("-")
    )


def label(document: Document, key: str) -> str:
    """Return the value of a label, "" where it has none."""
    return strings(object_at(document, ["metadata", "labels"])).get(key, "")


def number_at(document: Json, *path: str) -> int:
    """Return the number at a path; 0 where there is none, as counters at 0 are left out."""
    found = value_at(document, path)
    return found if is_integer(found) else 0


def instant_at(document: Json, *path: str) -> datetime | None:
    """Return the instant at a path, None where there is none."""
    try:
        return times.parse_time(string_at(document, path))
    except ValueError:
        return None


def duration_at(document: Json, *path: str) -> timedelta | None:
    """Return the duration at a path, in whole seconds; None where there is none."""
    try:
        found = durations.parse_duration(string_at(document, path))
        return timedelta(seconds=found // timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None


def conditions_of(document: Document) -> Iterator[Document]:
    """Yield the conditions of an object."""
    for condition in list_at(document, ["status", "conditions"]):
        if isinstance(condition, dict):
            yield condition


def condition(document: Document, condition_type: str) -> Document:
    """Return a condition of an object, an empty one where it has none of that type."""
    found = (each for each in conditions_of(document) if each.get("type") == condition_type)
    return next(found, {})


def holds(document: Document, condition_type: str, status: str = "True") -> bool:
    """Whether a condition of an object is there and has a status."""
    return condition(document, condition_type).get("status") == status


def transition(condition_: Document) -> datetime | None:
    """Return since when a condition is as it is."""
    return instant_at(condition_, "lastTransitionTime")


def message_of(condition_: Document) -> str:
    """Return what a condition says: its message, or its reason where it has none, on one line."""
    text = string_at(condition_, ["message"]) or string_at(condition_, ["reason"])
    return one_line(text)


def one_line(text: str) -> str:
    """Return a text as a part of a sentence: on one line, without the full stop at its end."""
    return " ".join(text.split()).rstrip(".")


def event_time(event: Document) -> datetime:
    """Return when an event was last seen."""
    for path in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",)):
        if (found := instant_at(event, *path)) is not None:
            return found
    return instant_at(event, "metadata", "creationTimestamp") or _LONG_AGO


def is_deleted(document: Document) -> bool:
    """Whether an object is being deleted."""
    return bool(string_at(document, ["metadata", "deletionTimestamp"]))


def finalizers_of(document: Document) -> list[str]:
    """Return what an object's deletion waits for."""
    found: Sequence[Json] = list_at(document, ["metadata", "finalizers"])
    return [text for text in found if isinstance(text, str)]


def is_cordoned(node: Document) -> bool:
    """Whether a node takes no new pods."""
    return value_at(node, ["spec", "unschedulable"]) is True


def objects_at(document: Json, *path: str) -> list[Document]:
    """Return the objects of the list at a path."""
    return [each for each in list_at(document, path) if isinstance(each, dict)]
