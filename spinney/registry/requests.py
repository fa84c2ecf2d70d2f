"""What is asked of the registry, what comes back, and the errors kubectl and client-go know."""

from __future__ import annotations

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json
from spinney.meta.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    json_string,
    object_details,
)
from spinney.meta.records import Record
from spinney.meta.references import Precondition
from spinney.ports import Identity
from spinney.registry import forms
from spinney.store.store import Stored

STRICT = "Strict"
WARN = "Warn"
IGNORE = "Ignore"

_encode = msgspec.json.Encoder().encode


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

    stored: Stored | None = None
    """The version that was stored, or stands as it was; None where nothing is stored."""

    made: Document | None = None
    """What is not stored as it is told: a dry run's object, a Scale, another form."""

    warnings: tuple[str, ...] = ()
    created: bool = False
    gone: bool = False
    """For a deletion: whether the object is gone already."""

    @property
    def document(self) -> Document:
        """The object; nobody changes it."""
        if self.made is not None:
            return self.made
        assert self.stored is not None
        return self.stored.document()

    @property
    def body(self) -> bytes:
        """The object in JSON, encoded already where it is stored as it is told."""
        if self.made is not None:
            return _encode(self.made)
        assert self.stored is not None
        return self.stored.body


def told(
    kind: Kind,
    stored: Stored,
    warnings: tuple[str, ...] = (),
    *,
    created: bool = False,
    gone: bool = False,
) -> Outcome:
    """Return the outcome of a write that was stored, told in the form of a kind."""
    made = None if kind.stored_as is None else forms.document_of(kind, stored)
    return Outcome(stored=stored, made=made, warnings=warnings, created=created, gone=gone)


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
    """Return that an object is not there."""
    text = f'{resource_name(kind)} "{name}" not found'
    return NotFound(text, details=_details(kind, name))


def already_exists(kind: Kind, name: str, *, is_going: bool = False) -> AlreadyExists:
    """Return that a name is taken, maybe by an object that is being deleted."""
    before = "object is being deleted: " if is_going else ""
    text = f'{before}{resource_name(kind)} "{name}" already exists'
    return AlreadyExists(text, details=_details(kind, name))


def no_free_name(kind: Kind, name: str) -> AlreadyExists:
    """Return that every name that was generated is taken."""
    text = (
        f'{resource_name(kind)} "{name}" already exists, the server was not able to generate a '
        "unique name for the object"
    )
    return AlreadyExists(text, details=_details(kind, name), retry_after_seconds=1)


def modified(kind: Kind, name: str) -> Conflict:
    """Return the error clients retry on."""
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def conflict(kind: Kind, name: str, why: str, *, subresource: str = "") -> Conflict:
    """Return a conflict with its reason."""
    what = f"{resource_name(kind)}/{subresource}" if subresource else resource_name(kind)
    text = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return Conflict(text, details=_details(kind, name))


def other_uid(kind: Kind, name: str, wanted: str, found: str) -> Conflict:
    """Return that a write was meant for another object of the same name."""
    return conflict(
        kind,
        name,
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
    )


def forbidden(kind: Kind, name: str, why: str, *, causes: tuple[Document, ...] = ()) -> Forbidden:
    """Return a refusal with its reason."""
    named = f'{resource_name(kind)} "{name}"' if name else resource_name(kind)
    details = _details(kind, name)
    if causes:
        listed: list[Json] = [*causes]
        details = {**details, "causes": listed}
    return Forbidden(f"{named} is forbidden: {why}", details=details)


def invalid(kind: Kind, name: str, *faults: FieldError) -> Invalid:
    """Return what is wrong with an object of a kind."""
    return Invalid(faults, group=kind.names.group, kind=kind.names.kind, name=name)


def needs_version(kind: Kind, name: str) -> Invalid:
    """Return that a kind is replaced only where its version is said."""
    fault = FieldError(
        path="metadata.resourceVersion",
        reason="FieldValueInvalid",
        message="must be specified for an update",
        found=0,
    )
    return Invalid([fault], group=kind.names.group, kind=kind.names.plural, name=name)


def not_strict(kind: Kind, api_version: str, faults: list[str]) -> BadRequest:
    """Return that a document has unknown or duplicate fields."""
    names = kind.names
    return BadRequest(
        f"{names.kind} in version {json_string(api_version.rpartition('/')[2])} cannot be handled "
        f"as a {names.kind}: strict decoding error: {', '.join(faults)}"
    )


def no_such_resource() -> NotFound:
    """Return that nothing is served under a path.

    Clients look for details here, some without asking whether there are any.
    """
    cause: Json = {"reason": "UnexpectedServerResponse", "message": "404 page not found"}
    message = "the server could not find the requested resource"
    return NotFound(message, details={"causes": [cause]})


def check_preconditions(kind: Kind, name: str, metadata: Document, only_if: Precondition) -> None:
    """Raise Conflict where an object is another one, or another version, than was meant."""
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if only_if.uid and only_if.uid != uid:
        raise other_uid(kind, name, only_if.uid, f"{uid}")
    if only_if.resource_version and only_if.resource_version != version:
        raise conflict(
            kind,
            name,
            f"Precondition failed: ResourceVersion in precondition: {only_if.resource_version}, "
            f"ResourceVersion in object meta: {version}",
        )
