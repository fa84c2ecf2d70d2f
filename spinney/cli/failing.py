"""How a command ends that could not do what it was asked: what it says, and its exit code.

1: the answer is no. 2: the call itself was wrong. 3: the server was not reached, or did not allow
it, or could not serve.
"""

from __future__ import annotations

from typing import TextIO

from spinney.meta.documents import list_at, string_at
from spinney.meta.errors import ApiError, ApplyConflict, Invalid, SpinneyError

NO = 1
WRONG_CALL = 2
NO_SERVER = 3

_NOT_SERVED = frozenset({401, 403, 429, 500, 502, 503, 504, 507})


def tell(error: SpinneyError, aside: TextIO) -> int:
    """Say what went wrong; returns the exit code."""
    aside.write(f"{text(error)}\n")
    return exit_code(error)


def text(error: SpinneyError) -> str:
    """Return what went wrong, in kubectl's words where it has some."""
    if not isinstance(error, ApiError):
        advice = _ADVICE.get(_name(type(error)), "")
        return f"spinney: {error}\n{advice}".rstrip()
    if isinstance(error, Invalid):
        return _told_faults(error)
    if isinstance(error, ApplyConflict):
        return (
            f"Error from server ({error.reason}): {error.message}\n"
            "Leave these fields out, or take them with --force-conflicts."
        )
    if error.code == 401:
        return (
            f"Error from server ({error.reason}): {error.message}\n"
            "The server does not know the credentials of this kubeconfig (see spinney -v)."
        )
    return f"Error from server ({error.reason}): {error.message}"


def _told_faults(error: Invalid) -> str:
    """Return the faults of a document, one a line."""
    details = error.details
    causes = list_at(details, ["causes"])
    if not causes:
        return f"Error from server ({error.reason}): {error.message}"
    subject = f'The {string_at(details, ["kind"])} "{string_at(details, ["name"])}" is invalid:'
    lines = [f"{string_at(cause, ['field'])}: {string_at(cause, ['message'])}" for cause in causes]
    if len(lines) == 1:
        return f"{subject} {lines[0]}"
    return "\n".join([subject, *(f"* {line}" for line in lines)])


def exit_code(error: SpinneyError) -> int:
    """Return what a command ends with."""
    if isinstance(error, ApiError):
        return NO_SERVER if error.code in _NOT_SERVED else NO
    return _CODES.get(_name(type(error)), NO)


def _name(kind: type[SpinneyError]) -> str:
    return f"{kind.__module__.removeprefix('spinney.')}.{kind.__name__}"


_CODES = {
    "cli.usage.Usage": WRONG_CALL,
    "kube.kubeconfig.BadKubeconfig": WRONG_CALL,
    "kube.resources.NoSuchResource": NO,
    "kube.transport.Unreachable": NO_SERVER,
    "cli.usage.NoServer": NO_SERVER,
}
"""By name, so that telling an error loads nothing."""

_ADVICE = {
    "meta.errors.CorruptJournal": (
        "The database is damaged; nothing was changed. Put a copy of the data folder in its place,"
        " or begin anew:\nmove store.db and the files beside it that begin with its name elsewhere."
    ),
    "meta.errors.JournalFailed": (
        "The database cannot be opened: see that the data folder is yours to write, on a disk that"
        " is neither\nfull nor read-only, or give another one with --data."
    ),
}
