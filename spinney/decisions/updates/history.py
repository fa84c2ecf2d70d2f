"""The history of a set: what each kept revision says, how two differ, and how to go back to one.

A revision holds what rolls pods and nothing else. So going back to one restores exactly that:
counts, delays, autoscaling, order and topology stay as they are (rule 3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from spinney.api import labels
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.decisions import revisions
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.records import Record


class Edition(Record):
    """One revision that is kept."""

    number: int
    """Which in the row; the newest has the highest."""

    hash: str
    data: Document
    created: datetime | None = None
    cause: str = ""
    """Why the set was changed to it, as an annotation said."""

    runs: tuple[int, ...] = ()
    """The set replicas that run it."""


class Difference(Record):
    """One field in which two revisions differ; None where one of them has no such field."""

    path: str
    before: Json
    after: Json


def editions(kept: Iterable[ControllerRevision], running: Mapping[int, str]) -> tuple[Edition, ...]:
    """Return the revisions of a set, the oldest first; `running` is what its replicas run."""
    found = [
        Edition(
            number=each.revision,
            hash=revisions.hash_of(each),
            created=each.metadata.creation_timestamp,
            cause=revisions.cause(each.metadata),
            data=each.data or {},
            runs=tuple(
                sorted(
                    index for index, hash_ in running.items() if hash_ == revisions.hash_of(each)
                )
            ),
        )
        for each in kept
    ]
    return tuple(sorted(found, key=lambda edition: (edition.number, edition.hash)))


def before(found: Iterable[Edition], now: str) -> Edition | None:
    """Return the newest revision but the one of now; None where there is none."""
    others = [edition for edition in found if edition.hash != now]
    return others[-1] if others else None


def numbered(found: Iterable[Edition], number: int) -> Edition | None:
    """Return the revision of a number."""
    return next((edition for edition in found if edition.number == number), None)


# Differences


def differences(before: Document, after: Document) -> tuple[Difference, ...]:
    """Return the fields in which the templates of two revisions differ, in order of their paths."""
    was, is_ = dict(_leaves(before, "")), dict(_leaves(after, ""))
    paths = dict.fromkeys((*is_, *was))
    return tuple(
        Difference(path=path, before=was.get(path), after=is_.get(path))
        for path in paths
        if was.get(path) != is_.get(path)
    )


def _leaves(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the fields of a value with their paths; items that have names go by these."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            step = key if _is_plain(key) else f'["{key}"]'
            joint = "." if path and _is_plain(key) else ""
            yield from _leaves(below, f"{path}{joint}{step}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            name = string_at(item, ["name"]) if isinstance(item, dict) else ""
            yield from _leaves(item, f"{path}[{name or index}]")
    elif value not in (None, "", [], {}):
        yield path, value


def _is_plain(key: str) -> bool:
    return key.replace("_", "").replace("-", "").isalnum()


# Going back, and going on


def restored(template: Document, data: Document) -> Document:
    """Return what a merge patch of a set's template says to go back to a revision."""
    kept = {
        string_at(entry, ["name"]): object_at(entry, []) for entry in list_at(data, ["cliques"])
    }
    cliques: list[Json] = []
    for entry in list_at(template, ["cliques"]):
        clique = object_at(entry, [])
        old = kept.get(string_at(clique, ["name"]))
        if old is not None:
            pod_spec = object_at(old, ["spec", "podSpec"])
            clique = _with(clique, "labels", object_at(old, ["labels"]))
            clique = _with(clique, "annotations", object_at(old, ["annotations"]))
            clique["spec"] = {**object_at(clique, ["spec"]), "podSpec": pod_spec}
        cliques.append(clique)
    return {"priorityClassName": string_at(data, ["priorityClassName"]) or None, "cliques": cliques}


def _with(clique: Document, field: str, values: Document) -> Document:
    left = {key: value for key, value in clique.items() if key != field}
    return {**left, field: {**values}} if values else left


def restarted(template: Document, at: str) -> Document:
    """Return what a merge patch of a set's template says to replace every pod."""
    cliques: list[Json] = []
    for entry in list_at(template, ["cliques"]):
        clique = object_at(entry, [])
        annotations = {**object_at(clique, ["annotations"]), labels.RESTARTED_AT: at}
        cliques.append({**clique, "annotations": annotations})
    return {"cliques": cliques}
