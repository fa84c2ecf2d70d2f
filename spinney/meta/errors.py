"""Every error Spinney raises on purpose, in one tree.

SpinneyError
├── ApiError                 an answer of the API: code, reason, message, details
│   ├── NotFound             404  the caller: it is gone, or was never there
│   ├── AlreadyExists        409  the caller: read it and decide
│   ├── Conflict             409  the caller: the object moved; read it again and retry
│   │   └── ApplyConflict    409  another field manager holds the field: force, or leave it
│   ├── Invalid              422  the user: every fault of the document, by field
│   │   └── PatchFailed      422  the caller: the patch does not fit the object (meta/patches)
│   ├── BadRequest           400  the caller: not understood
│   ├── Unauthorized         401  the caller: no or wrong credentials
│   ├── Forbidden            403  the user: not allowed, and by whom
│   ├── Expired              410  the caller: list again, that version is compacted
│   ├── MethodNotAllowed     405  the caller
│   ├── UnsupportedMediaType 415  the caller
│   ├── TooLarge             413  the user: make the object smaller
│   ├── TooManyRequests      429  nobody: retry after the time it says
│   ├── Internal             500  us: report it
│   ├── Unavailable          503  nobody: retry
│   └── StorageFull          507  the operator of the machine: free space; reads go on
├── DecodeError              the user: text that is not a document, with path and line
├── NoSuchField              the user: a path to a field there is not (api/fields)
├── Usage, NoServer          the user: a call that cannot be, or has no server to ask (cli)
├── BadKubeconfig            the user: a kubeconfig that cannot be used, with its field (kube)
├── NoSuchResource           the user: a word the server serves nothing under (kube)
├── Unreachable              the network: no answer; whether a write was done is not known (kube)
├── Held, BadDataFolder      the user: a data folder in use, or that cannot be used (app)
├── PortTaken, BadAddress    the user: an address that cannot be listened on (app)
├── Terminal                 the user must act; retrying cannot help. Becomes a condition and event
├── InvariantViolation       us: a bug of ours, with the object's story; never caught
├── CorruptJournal           the operator of the machine: the database is damaged, and where
├── JournalFull              the disk is full; becomes StorageFull
└── JournalFailed            the disk failed; becomes Unavailable
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from spinney.meta.documents import Document, Json

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
DUPLICATE = "FieldValueDuplicate"
NOT_FOUND = "FieldValueNotFound"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
TYPE_INVALID = "FieldValueTypeInvalid"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
UNKNOWN_FIELD = "UnknownField"
DUPLICATE_FIELD = "DuplicateField"

_HEADINGS = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    DUPLICATE: "Duplicate value",
    NOT_FOUND: "Not found",
    NOT_SUPPORTED: "Unsupported value",
    FORBIDDEN: "Forbidden",
    TYPE_INVALID: "Invalid value",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    UNKNOWN_FIELD: "Unknown field",
    DUPLICATE_FIELD: "Duplicate field",
}

_WITHOUT_VALUE = {REQUIRED, FORBIDDEN, TOO_LONG, TOO_MANY, UNKNOWN_FIELD, DUPLICATE_FIELD}

FOUND_LENGTH_MAX = 120
"""How many characters of a faulty value an error repeats."""


class FieldError(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One fault of a document: where, of which sort, what must hold, what was found.

    Becomes a cause of a `Status`. Worded as kubectl users know it, lower case, no full stop.
    """

    path: str
    reason: str
    message: str
    found: Json = None

    @property
    def text(self) -> str:
        """The fault without its path: `Invalid value: -1: must be at least 0`."""
        parts = [_HEADINGS.get(self.reason, self.reason)]
        if self.reason not in _WITHOUT_VALUE:
            parts.append(shown(self.found))
        if self.message:
            parts.append(self.message)
        return ": ".join(parts)

    def __str__(self) -> str:
        """The whole fault, as kubectl prints it."""
        return f"{self.path}: {self.text}"


def shown(value: Json) -> str:
    """Return a value as errors repeat it: strings in quotes, long ones cut."""
    if isinstance(value, str) and len(value) > FOUND_LENGTH_MAX:
        return f"{shown(value[:FOUND_LENGTH_MAX])[:FOUND_LENGTH_MAX]}… ({len(value)} characters)"
    try:
        text = msgspec.json.encode(value).decode()
    except (OverflowError, ValueError, RecursionError):
        text = _shown_anyhow(value)
    if len(text) <= FOUND_LENGTH_MAX:
        return text
    return f"{text[:FOUND_LENGTH_MAX]}… ({len(text)} characters)"


def listed(words: Sequence[str], most: int = 10) -> str:
    """Return words as errors list them: so many, each cut where it is long."""
    told = ", ".join(cut(word) for word in words[:most])
    return told if len(words) <= most else f"{told} … ({len(words)} in all)"


def cut(text: str) -> str:
    """Return a text as errors repeat it within a sentence: cut where it is long."""
    return text if len(text) <= FOUND_LENGTH_MAX else f"{text[:FOUND_LENGTH_MAX]}…"


def _shown_anyhow(value: Json) -> str:
    """Show what no JSON text can hold: half surrogate pairs, integers beyond 64 bits."""
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, int):
        return (
            str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"
        )
    return "an object" if isinstance(value, dict) else "a list"


class SpinneyError(Exception):
    """The root: whatever is raised on purpose is one of these."""


class ApiError(SpinneyError):
    """An answer of the API that is not success; the same class on both sides of HTTP."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Document | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        """Say what happened; `details` are those of a `Status`."""
        super().__init__(message)
        self.message = message
        self.details: Document = details or {}
        self.retry_after_seconds = retry_after_seconds

    def to_status(self) -> Document:
        """Return the exact `Status` document kubectl expects."""
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if details:
            status["details"] = details
        status["code"] = self.code
        return status

    @staticmethod
    def from_status(status: Document) -> ApiError:
        """Return the error a `Status` document tells of; an unknown reason goes by its code."""
        code, reason = status.get("code"), status.get("reason")
        details = status.get("details")
        details = dict(details) if isinstance(details, dict) else {}
        retry_after = details.pop("retryAfterSeconds", None)
        message = status.get("message")
        error_class = _class_for(reason, code, details)
        error = error_class.__new__(error_class)
        ApiError.__init__(
            error,
            message if isinstance(message, str) else "",
            details=details,
            retry_after_seconds=retry_after if isinstance(retry_after, int) else None,
        )
        return error


def object_details(group: str, kind: str, name: str, uid: str = "") -> Document:
    """Return the details that say which object a `Status` is about."""
    details: Document = {"name": name, "group": group, "kind": kind, "uid": uid}
    return {key: value for key, value in details.items() if value}


class NotFound(ApiError):
    """The object is not there. The caller decides whether that is good or bad."""

    code, reason = 404, "NotFound"


class AlreadyExists(ApiError):
    """An object of that name is there already."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """The object changed since it was read: read it again, decide again."""

    code, reason = 409, "Conflict"


class Holder(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """Who holds a field, as far as an ApplyConflict tells it: an applier by its name alone."""

    manager: str
    subresource: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        """Spell it as kubectl shows it: `"hpa" with subresource "scale" using apps/v1`."""
        text = json_string(self.manager)
        if self.subresource:
            text += f" with subresource {json_string(self.subresource)}"
        return f"{text} using {self.api_version}" if self.api_version else text


class ApplyConflict(Conflict):
    """Server-side apply would take fields that other managers hold."""

    def __init__(self, conflicts: Iterable[tuple[Holder, str]], *, details: Document | None = None):
        """Name each held field, by its path, with its holder."""
        pairs = tuple(conflicts)
        if len(pairs) == 1:
            told = f"1 conflict: conflict with {pairs[0][0]}: {pairs[0][1]}"
        else:
            told = f"{len(pairs)} conflicts: {_by_holder(pairs)}"
        causes: list[Json] = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {holder}",
                "field": path,
            }
            for holder, path in pairs
        ]
        super().__init__(f"Apply failed with {told}", details={**(details or {}), "causes": causes})

    @property
    def managers(self) -> tuple[str, ...]:
        """Who holds the fields, each once, sorted."""
        causes = self.details.get("causes")
        messages = [
            str(cause.get("message", ""))
            for cause in (causes if isinstance(causes, list) else [])
            if isinstance(cause, dict)
        ]
        found = map(_QUOTED.search, messages)
        return tuple(sorted({msgspec.json.decode(name[0], type=str) for name in found if name}))


_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def _by_holder(pairs: tuple[tuple[Holder, str], ...]) -> str:
    lines: list[str] = []
    for holder in sorted({holder for holder, _ in pairs}):
        lines.append(f"conflicts with {holder}:")
        lines += [f"- {path}" for other, path in pairs if other == holder]
    return "\n".join(lines)


def json_string(text: str) -> str:
    """Return a text in JSON quotes."""
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()


class Invalid(ApiError):
    """The document breaks rules of its kind; all of them, by field."""

    code, reason = 422, "Invalid"

    def __init__(self, errors: Iterable[FieldError], *, group: str, kind: str, name: str) -> None:
        """Gather the faults into the message and the causes kubectl prints."""
        faults = tuple(errors)
        causes: list[Json] = [
            {"reason": fault.reason, "message": fault.text, "field": fault.path} for fault in faults
        ]
        whole = f"{kind}.{group}" if group else kind
        told = [str(fault) for fault in faults]
        body = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        super().__init__(
            f"{whole} {json_string(name)} is invalid: {body}",
            details={**object_details(group, kind, name), "causes": causes},
        )


class BadRequest(ApiError):
    """The request was not understood."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """No credentials, or wrong ones."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """Known, but not allowed; the message says by which rule."""

    code, reason = 403, "Forbidden"


class Expired(ApiError):
    """The version asked for is compacted away: list again."""

    code, reason = 410, "Expired"


class MethodNotAllowed(ApiError):
    """This resource does not take that verb."""

    code, reason = 405, "MethodNotAllowed"


class UnsupportedMediaType(ApiError):
    """The body's content type is none of those taken."""

    code, reason = 415, "UnsupportedMediaType"


class TooLarge(ApiError):
    """The body is larger than what is taken."""

    code, reason = 413, "RequestEntityTooLarge"


class TooManyRequests(ApiError):
    """Later: after `retry_after_seconds`."""

    code, reason = 429, "TooManyRequests"


class Internal(ApiError):
    """A bug of ours, told to the caller."""

    code, reason = 500, "InternalError"


class Unavailable(ApiError):
    """Not now; retry."""

    code, reason = 503, "ServiceUnavailable"


class StorageFull(ApiError):
    """The disk under the store is full: writes are refused until there is space, reads go on."""

    code, reason = 507, "InsufficientStorage"


_API_ERRORS: tuple[type[ApiError], ...] = (
    NotFound,
    AlreadyExists,
    Conflict,
    Invalid,
    BadRequest,
    Unauthorized,
    Forbidden,
    Expired,
    MethodNotAllowed,
    UnsupportedMediaType,
    TooLarge,
    TooManyRequests,
    Internal,
    Unavailable,
    StorageFull,
)


def _class_for(reason: Json, code: Json, details: Document) -> type[ApiError]:
    causes = details.get("causes")
    for cause in causes if isinstance(causes, list) else []:
        if isinstance(cause, dict) and cause.get("reason") == "FieldManagerConflict":
            return ApplyConflict
    for candidate in _API_ERRORS:
        if candidate.reason == reason:
            return candidate
    for candidate in _API_ERRORS:
        if candidate.code == code:
            return candidate
    return Internal


class DecodeError(SpinneyError):
    """Text that is no document, or a document that is not of its kind's shape.

    The user's to mend; `path` and `line` (from 1; 0 where unknown) say where.
    """

    def __init__(self, message: str, *, path: str = "", line: int = 0) -> None:
        """Say what is wrong, and where."""
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line

    def __str__(self) -> str:
        """The message, with the place in front where it is known."""
        place = f"line {self.line}: " if self.line else ""
        where = f"{self.path}: " if self.path else ""
        return f"{place}{where}{self.message}"


class Terminal(SpinneyError):
    """Retrying cannot help, the user must act. Becomes a condition and an event."""

    def __init__(self, reason: str, message: str) -> None:
        """Give the condition's reason and sentence."""
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class InvariantViolation(SpinneyError):
    """A bug of ours, with the story of the object. Never caught: the worker ends."""

    def __init__(self, story: str) -> None:
        """Tell what was believed, and what was seen."""
        super().__init__(story)
        self.story = story


class CorruptJournal(SpinneyError):
    """The stored data are damaged; the message names the row. Never served silently."""


class JournalFull(SpinneyError):
    """No space for the batch; nothing of it was kept."""


class JournalFailed(SpinneyError):
    """The batch could not be made durable; nothing of it was kept."""
