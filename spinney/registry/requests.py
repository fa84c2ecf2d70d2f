"""What is asked of the registry, and what comes back."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.meta.documents import Document
from spinney.meta.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    object_details,
)
from spinney.meta.records import Record
from spinney.meta.references import Precondition
from spinney.ports import Identity

STRICT = "Strict"
WARN = "Warn"
IGNORE = "Ignore"


class Request(Record):
    """Who asks, and how the write is to be done."""

    who: Identity
    dry_run: bool = False
    """Do everything but store."""

    field_validation: str = STRICT
    """What to do of unknown and duplicate fields: refuse, warn of or ignore them."""

    @property
    def manager(self) -> str:
        """The field manager the write is recorded under."""
        return self.who.manager or "unknown"


class Outcome(Record):
    """The object as it is after the write, and what to warn the writer of."""

    document: Document
    warnings: tuple[str, ...] = ()
    created: bool = False
    gone: bool = False
    """For a deletion: whether the object is gone already."""


class DeleteOptions(Record):
    """How an object is to be deleted."""

    only_if: Precondition = Precondition()
    grace_seconds: int | None = None
    propagation: str = ""
    """`Background`, `Foreground`, `Orphan`; "" is Background unless a finalizer says otherwise."""


def resource_name(kind: Kind) -> str:
    """Return a kind as errors call it: `pods`, `podcliquesets.grove.io`."""
    names = kind.names
    return f"{names.plural}.{names.group}" if names.group else names.plural


def _details(kind: Kind, name: str) -> Document:
    return object_details(kind.names.group, kind.names.plural, name)


def not_found(kind: Kind, name: str) -> NotFound:
    """Return the error kubectl knows."""
    text = f'{resource_name(kind)} "{name}" not found'
    return NotFound(text, details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    """Return the error kubectl knows."""
    text = f'{resource_name(kind)} "{name}" already exists'
    return AlreadyExists(text, details=_details(kind, name))


def modified(kind: Kind, name: str) -> Conflict:
    """Return the error kubectl retries on."""
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    """Return a conflict with its reason."""
    text = f'Operation cannot be fulfilled on {resource_name(kind)} "{name}": {why}'
    return Conflict(text, details=_details(kind, name))


def forbidden(kind: Kind, name: str, why: str) -> Forbidden:
    """Return a refusal with its reason."""
    text = f'{resource_name(kind)} "{name}" is forbidden: {why}'
    return Forbidden(text, details=_details(kind, name))


def bad_request(text: str) -> BadRequest:
    """Return that a request was not understood."""
    return BadRequest(text)
