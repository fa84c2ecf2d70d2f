"""Looking: what is told of one object, and of those it waits for, as a tree of links.

Each kind of object has a function that tells of it. They ask each other through a `Look`, which
knows whom it is telling of, so that objects that wait for each other end in a sentence, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from spinney.decisions.causes import scenes
from spinney.decisions.causes.scenes import Scene
from spinney.meta.documents import Document, Json, list_at, string_at
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref

WELL = "Ready"
IDLE = "Idle"
ABSENT = "NotThere"
LAGS = "StatusLags"
NOT_LOOKED_AT = "NotLookedAt"
UNKNOWN = "NothingKnown"


class Link(Record):
    """One object, what keeps it from being ready, and what that comes from."""

    about: Ref
    reason: str
    """In one word, for programs."""

    sentence: str
    """For people; it speaks of no other object that is told of below."""

    since: datetime | None = None
    remedy: str = ""
    """What would unblock it; every last link of a chain has one."""

    container: str = ""
    """The container of the pod that it is about, where it is about one."""

    brief: str = ""
    """The sentence in a few words, where it is long."""

    below: tuple[Link, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether nothing keeps the object: it is ready, or wants nothing."""
        return self.reason in (WELL, IDLE)


Explain: TypeAlias = "Callable[[Look, Document], Link]"


class Look:
    """A scene, and what has been told of it so far."""

    def __init__(
        self, scene: Scene, explainers: Mapping[GroupKind, Explain], otherwise: Explain
    ) -> None:
        """Tell of objects by their kinds."""
        self.scene = scene
        self._explainers = explainers
        self._otherwise = otherwise
        self._open: list[Ref] = []
        self._told: dict[Ref, Link] = {}

    def at(self, ref: Ref) -> Link:
        """Return what is told of an object, there or not."""
        if ref in self._told:
            return self._told[ref]
        if ref in self._open:
            return Link(
                about=ref,
                reason="Circle",
                sentence="waits for itself, by way of what is told above",
                remedy=f"break the circle: {describe(ref)} shows what it waits for",
            )
        document = self.scene.get(ref)
        if document is None:
            return absent(self.scene, ref)
        self._open.append(ref)
        explain = self._explainers.get(ref.kind, self._otherwise)
        found = explain(self, document)
        self._open.pop()
        self._told[ref] = found
        return found

    def of(self, document: Document) -> Link:
        """Return what is told of an object of the scene."""
        return self.at(scenes.ref_of(document))

    def unwell(self, documents: Iterable[Document]) -> tuple[Link, ...]:
        """Return what is told of those objects that are not ready."""
        links = (self.of(document) for document in documents)
        return tuple(link for link in links if not link.is_well)


def absent(scene: Scene, ref: Ref) -> Link:
    """Return what is told of an object that is not there, or may not be read."""
    if not scene.knows(ref.kind):
        return Link(
            about=ref,
            reason=UNKNOWN,
            sentence="could not be looked at: the server did not let it be read",
            remedy="ask somebody who may read it",
        )
    return Link(
        about=ref,
        reason=ABSENT,
        sentence="is not there",
        remedy="see what should make it, and whether controllers run: spinney status",
    )


def well(document: Document, sentence: str, *, reason: str = WELL, remedy: str = "") -> Link:
    """Return that nothing keeps an object."""
    return Link(about=scenes.ref_of(document), reason=reason, sentence=sentence, remedy=remedy)


def describe(ref: Ref) -> str:
    """Return the command that tells all about an object."""
    return command("describe", ref)


def command(verb: str, ref: Ref, rest: str = "") -> str:
    """Return a command about an object."""
    place = f" -n {ref.namespace}" if ref.namespace and ref.namespace != "default" else ""
    kind = SHORT.get(ref.kind.kind, ref.kind.kind.lower())
    return f"spinney {verb} {kind}/{ref.name}{place}{rest}"


SHORT = {
    "PodCliqueSet": "pcs",
    "PodCliqueScalingGroup": "pcsg",
    "PodClique": "pclq",
    "PodGang": "podgang",
}
"""What kinds with long names are called in commands."""


def lags(document: Document, sentence: str) -> Link:
    """Return that an object's status does not fit what is seen of its parts."""
    ref = scenes.ref_of(document)
    return Link(
        about=ref,
        reason=LAGS,
        sentence=sentence,
        remedy=f"wait a moment; if it stays so, see whether its controller runs: {describe(ref)}",
    )


def not_looked_at(document: Document) -> Link | None:
    """Return that no controller has looked at an object since it was changed; None if one has."""
    generation = scenes.number_at(document, "metadata", "generation")
    observed = scenes.number_at(document, "status", "observedGeneration")
    if observed >= generation:
        return None
    seen = f"the last it saw is {observed}" if observed else "it has seen none"
    return Link(
        about=scenes.ref_of(document),
        reason=NOT_LOOKED_AT,
        sentence=f"no controller has looked at its generation {generation} yet: {seen}",
        remedy="see whether controllers run: spinney status; on a cluster, the operator's log",
    )


def complaints(document: Document) -> tuple[Link, ...]:
    """Return what an object's conditions and last errors say stands in its way."""
    ref = scenes.ref_of(document)
    found = [
        Link(
            about=ref,
            reason=string_at(condition, ["reason"]) or condition_type,
            sentence=sentence.format(scenes.message_of(condition)),
            since=scenes.transition(condition),
            remedy=remedy,
        )
        for condition_type, (sentence, remedy) in _COMPLAINTS.items()
        if (condition := scenes.condition(document, condition_type)).get("status") == "True"
    ]
    found += [
        Link(
            about=ref,
            reason=string_at(error, ["code"]) or "LastError",
            sentence=f"something could not be made: {_described(error)}",
            since=scenes.instant_at(error, "observedAt"),
            remedy="do away with what it names; it is tried again by itself",
        )
        for error in list_at(document, ["status", "lastErrors"])
    ]
    return tuple(found)


def _described(error: Json) -> str:
    return scenes.one_line(string_at(error, ["description"])) or "no reason is given"


_COMPLAINTS = {
    "NameConflict": (
        "{}",
        "delete or rename the objects that hold the names, or rename this one",
    ),
    "Stalled": (
        "what is to be done is refused: {}",
        "do away with what refuses it; it is tried again by itself",
    ),
}
"""Conditions that somebody must do something about: the sentence, and what."""


def ending(document: Document, below: tuple[Link, ...] = ()) -> Link:
    """Return what keeps an object that is being deleted."""
    ref = scenes.ref_of(document)
    held = [name for name in scenes.finalizers_of(document) if name not in _SORTED]
    since = scenes.instant_at(document, "metadata", "deletionTimestamp")
    if below:
        sentence, remedy = "is being deleted, and its parts go first", ""
    elif held and not all(name.startswith(_OURS) for name in held):
        sentence = f"is being deleted, and held by finalizers: {', '.join(held)}"
        remedy = (
            "whoever put a finalizer there takes it away once it is done; if that is gone for "
            f"good, take it away with {command('edit', ref)}"
        )
    elif held:
        sentence = f"is being deleted, and waits for Spinney's controllers: {', '.join(held)}"
        remedy = "wait a moment; if it stays so, see whether controllers run: spinney status"
    else:
        sentence = "is being deleted"
        remedy = f"wait; if it stays so, see {describe(ref)}"
    return Link(
        about=ref, reason="Deleting", sentence=sentence, since=since, remedy=remedy, below=below
    )


_OURS = ("grove.io/", "spinney.dev/")
_SORTED = ("foregroundDeletion", "orphan")
"""Finalizers the server takes away by itself."""
