"""Marking: how an object says that it is to be deleted, and when it may be gone.

Deletion is never one step where somebody must act before. The object is marked, with the time by
which it is to be gone and who must act; whoever acts takes his mark off; with the last it goes.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from spinney.api.kinds import Kind
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    list_at,
    object_at,
    string_at,
    value_at,
    with_value,
)
from spinney.meta.references import GroupKind
from spinney.meta.times import format_time, parse_time
from spinney.registry.requests import DeleteOptions

FOREGROUND = "foregroundDeletion"
"""Holds an owner until those that block its deletion are gone."""

ORPHAN = "orphan"
"""Holds an owner until its dependents are without it."""

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Holds the definition of a kind until the kind's objects are gone."""

DEFAULT_GRACE_SECONDS = 30

POD = GroupKind(group="", kind="Pod")
NAMESPACE = GroupKind(group="", kind="Namespace")
DEFINITION = GroupKind(group="apiextensions.k8s.io", kind="CustomResourceDefinition")

_GRACE = "deletionGracePeriodSeconds"
_TIME = "deletionTimestamp"


def is_marked(document: Document) -> bool:
    """Whether an object is to be deleted."""
    return bool(string_at(document, ("metadata", _TIME)))


def is_done_with(document: Document) -> bool:
    """Whether an object is to be deleted and nothing holds it any more."""
    metadata = object_at(document, ("metadata",))
    if not metadata.get(_TIME) or metadata.get("finalizers") or metadata.get(_GRACE):
        return False
    return document.get("kind") != "Namespace" or not list_at(document, ("spec", "finalizers"))


def marked(kind: Kind, document: Document, options: DeleteOptions, now: datetime) -> Document:
    """Return an object marked as to be deleted; the same where nothing is left to mark."""
    metadata = object_at(document, ("metadata",))
    if kind.names.group_kind == POD and is_marked(document) and _GRACE in metadata:
        return _hastened(document, metadata, options)
    changed: Document = {**metadata}
    finalizers = _finalizers(kind, document, options)
    if finalizers:
        changed["finalizers"] = finalizers
    else:
        changed.pop("finalizers", None)
    if not is_marked(document):
        grace = _grace_seconds(kind, document, options.grace_seconds)
        changed[_TIME] = format_time(now + timedelta(seconds=grace))
        changed[_GRACE] = grace
        generation = metadata.get("generation")
        if is_integer(generation):
            changed["generation"] = generation + 1
    result = {**document, "metadata": changed}
    if kind.names.group_kind == NAMESPACE:
        result = with_value(result, ("status", "phase"), "Terminating")
    return result


def _finalizers(kind: Kind, document: Document, options: DeleteOptions) -> list[Json]:
    """Return who must act: those there are, and what the wanted propagation asks for."""
    found = list_at(document, ("metadata", "finalizers"))
    if kind.names.group_kind == DEFINITION and not is_marked(document) and CLEANUP not in found:
        found = [*found, CLEANUP]
    if not options.propagation:
        return found
    kept = [item for item in found if item not in (FOREGROUND, ORPHAN)]
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(options.propagation)
    return kept if wanted is None else [*kept, wanted]


def _grace_seconds(kind: Kind, document: Document, wanted: int | None) -> int:
    """Return how long a deletion waits for whoever runs the object: only pods that run wait."""
    if kind.names.group_kind != POD or not string_at(document, ("spec", "nodeName")):
        return 0
    if string_at(document, ("status", "phase")) in ("Succeeded", "Failed"):
        return 0
    given = value_at(document, ("spec", "terminationGracePeriodSeconds"))
    if wanted is None:
        wanted = given if is_integer(given) else DEFAULT_GRACE_SECONDS
    return wanted if wanted >= 0 else 1


def _hastened(document: Document, metadata: Document, options: DeleteOptions) -> Document:
    """Return a marked pod with a shorter grace, where one is asked for."""
    left, wanted = metadata[_GRACE], options.grace_seconds
    if wanted is None or not is_integer(left):
        return document
    wanted = wanted if wanted >= 0 else 1
    if wanted >= left:
        return document
    end = parse_time(string_at(metadata, (_TIME,))) - timedelta(seconds=left - wanted)
    sooner: Document = {**metadata, _TIME: format_time(end), _GRACE: wanted}
    return {**document, "metadata": sooner}
