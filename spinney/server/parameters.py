"""Parameters: what a query says, as options; what is wrong with it, as kubectl knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl

from spinney.meta import errors, selectors
from spinney.meta.documents import Document, Json, is_integer, value_at
from spinney.meta.errors import BadRequest, FieldError, Invalid
from spinney.meta.records import Record
from spinney.meta.references import Precondition
from spinney.meta.selectors import EVERYTHING, FieldSelector, LabelSelector
from spinney.registry import requests
from spinney.registry.requests import DeleteOptions

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"

MANAGER_LENGTH_MAX = 128
PARAMETERS_MAX = 1000
"""More are not looked at; each word of a command that is run in a container is one."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
PROPAGATIONS = ("Foreground", "Background", "Orphan")

Query = Mapping[str, str]


def parse(query: str) -> Query:
    """Return the parameters of a query; of those given twice, the first counts."""
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise BadRequest(f"the query cannot be read: {error}") from error
    found: dict[str, str] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def every(query: str, name: str) -> tuple[str, ...]:
    """Return all values of one parameter that may be given many times, as `command` may."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
    return tuple(value for key, value in pairs if key == name)


def flag(query: Query, name: str) -> bool:
    """Whether a switch is on: present, and neither `false` nor `0`."""
    value = query.get(name)
    return value is not None and value.casefold() not in ("false", "0")


def integer(query: Query, name: str) -> int | None:
    """Return a whole number, None where there is none; raises BadRequest for anything else."""
    value = query.get(name, "")
    if not value:
        return None
    if not _INTEGER.fullmatch(value):
        quoted = errors.json_string(value[:100])
        raise BadRequest(f"strconv.ParseInt: parsing {quoted}: invalid syntax")
    return int(value)


class ListOptions(Record):
    """Which objects are wanted, of which version, in which portions."""

    labels: LabelSelector = EVERYTHING
    fields: FieldSelector | None = None
    limit: int = 0
    token: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_seconds: int | None = None

    @property
    def version(self) -> int:
        """The version as a number; 0 where it is unset."""
        return int(self.resource_version or "0")


def list_options(query: Query, *, watched: bool = False) -> ListOptions:
    """Return the options of a list or watch; raises BadRequest or Invalid."""
    version = query.get("resourceVersion", "")
    if version and not _DIGITS.fullmatch(version):
        quoted = errors.json_string(version[:100])
        raise BadRequest(
            f"invalid resource version: strconv.ParseUint: parsing {quoted}: invalid syntax"
        )
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    options = ListOptions(
        labels=_labels(query.get("labelSelector", "")),
        fields=_fields(query.get("fieldSelector", "")),
        limit=integer(query, "limit") or 0,
        token=query.get("continue", ""),
        resource_version=version,
        match=query.get("resourceVersionMatch", ""),
        watch=watched or flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=initial,
        timeout_seconds=integer(query, "timeoutSeconds"),
    )
    _refuse("ListOptions", _list_faults(options))
    if options.token and version not in ("", "0") and not options.watch:
        raise BadRequest("specifying resource version is not allowed when using continue")
    return options


def _labels(text: str) -> LabelSelector:
    try:
        return selectors.parse_selector(text)
    except ValueError as error:
        raise BadRequest(f"unable to parse requirement: {error}") from error


def _fields(text: str) -> FieldSelector | None:
    if not text:
        return None
    try:
        return selectors.parse_field_selector(text)
    except ValueError as error:
        raise BadRequest(f"invalid field selector: {error}") from error


def _list_faults(options: ListOptions) -> Iterator[FieldError]:
    match = options.match
    if options.watch:
        if options.initial_events is not None:
            if match != NOT_OLDER_THAN:
                yield _forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                )
        elif match:
            yield _forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return
    if options.initial_events is not None:
        yield _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if match:
        if not options.resource_version:
            yield _forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            )
        if options.token:
            yield _forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            )
        if match not in (EXACT, NOT_OLDER_THAN):
            yield _unsupported("resourceVersionMatch", match, (EXACT, NOT_OLDER_THAN, ""))
        if match == EXACT and options.resource_version == "0":
            yield _forbidden(
                "resourceVersionMatch",
                'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            )


class WriteOptions(Record):
    """How a write is to be done."""

    dry_run: bool = False
    manager: str = ""
    field_validation: str = requests.WARN
    force: bool | None = None


def write_options(query: Query, kind: str, *, applies: bool = False) -> WriteOptions:
    """Return the options of a write; `kind` is what errors call them: `PatchOptions`."""
    faults = list(_write_faults(query))
    manager = query.get("fieldManager", "")
    force = flag(query, "force") if "force" in query else None
    if applies and not manager:
        faults.append(
            FieldError(
                path="fieldManager",
                reason=errors.REQUIRED,
                message="is required for apply patch",
            )
        )
    if force is not None and not applies and kind == "PatchOptions":
        faults.append(_forbidden("force", "may not be specified for non-apply patch"))
    _refuse(kind, faults)
    return WriteOptions(
        dry_run=bool(query.get("dryRun")),
        manager=manager,
        field_validation=query.get("fieldValidation") or requests.WARN,
        force=force,
    )


def _write_faults(query: Query) -> Iterator[FieldError]:
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        yield _unsupported("dryRun", dry_run, ("All",))
    manager = query.get("fieldManager", "")
    if len(manager) > MANAGER_LENGTH_MAX:
        yield FieldError(
            path="fieldManager",
            reason=errors.TOO_LONG,
            message=f"may not be more than {MANAGER_LENGTH_MAX} bytes",
        )
    if not manager.isprintable():
        yield FieldError(
            path="fieldManager",
            reason=errors.INVALID,
            message="should only contain printable characters",
            found=manager,
        )
    validation = query.get("fieldValidation", "")
    choices = (requests.IGNORE, requests.WARN, requests.STRICT)
    if validation and validation not in choices:
        yield _unsupported("fieldValidation", validation, ("", *choices))


def manager_of(options: WriteOptions, user_agent: str) -> str:
    """Return the field manager of a write: the one given, or the program that asks."""
    if options.manager:
        return options.manager
    program = user_agent.partition("/")[0][:MANAGER_LENGTH_MAX]
    return "".join(letter for letter in program if letter.isprintable()) or "unknown"


def delete_options(query: Query, body: Document) -> tuple[DeleteOptions, bool]:
    """Return how to delete, and whether only to try; a body counts before the query."""
    if body:
        grace, propagation = body.get("gracePeriodSeconds"), body.get("propagationPolicy")
        orphans, dry_run = body.get("orphanDependents"), body.get("dryRun") or []
    else:
        grace, propagation = integer(query, "gracePeriodSeconds"), query.get("propagationPolicy")
        orphans = flag(query, "orphanDependents") if "orphanDependents" in query else None
        dry_run = [query["dryRun"]] if query.get("dryRun") else []
    _refuse("DeleteOptions", _delete_faults(grace, propagation, orphans, dry_run))
    if propagation is None and orphans is not None:
        propagation = "Orphan" if orphans else "Background"
    uid = value_at(body, ["preconditions", "uid"])
    version = value_at(body, ["preconditions", "resourceVersion"])
    options = DeleteOptions(
        only_if=Precondition(
            uid=uid if isinstance(uid, str) else None,
            resource_version=version if isinstance(version, str) else None,
        ),
        grace_seconds=grace if is_integer(grace) else None,
        propagation=propagation if isinstance(propagation, str) else "",
    )
    return options, bool(dry_run)


def _delete_faults(
    grace: Json, propagation: Json, orphans: Json, dry_run: Json
) -> Iterator[FieldError]:
    if grace is not None and not is_integer(grace):
        yield _ill_typed("gracePeriodSeconds", grace, "must be an integer")
    elif is_integer(grace) and not -(2**63) <= grace < 2**63:
        yield _ill_typed("gracePeriodSeconds", None, "must fit in 64 bits")
    if orphans is not None and propagation is not None:
        yield FieldError(
            path="propagationPolicy",
            reason=errors.INVALID,
            message="orphanDependents and deletionPropagation cannot be both set",
            found=propagation,
        )
    if propagation is not None and propagation not in PROPAGATIONS:
        yield _unsupported("propagationPolicy", propagation, (*PROPAGATIONS, "nil"))
    if orphans is not None and not isinstance(orphans, bool):
        yield _ill_typed("orphanDependents", orphans, "must be true or false")
    if not isinstance(dry_run, list) or any(word != "All" for word in dry_run):
        yield _unsupported("dryRun", dry_run, ("All",))


def _refuse(kind: str, faults: Iterator[FieldError] | list[FieldError]) -> None:
    found = tuple(faults)
    if found:
        raise Invalid(found, group="meta.k8s.io", kind=kind, name="")


def _forbidden(path: str, message: str) -> FieldError:
    return FieldError(path=path, reason=errors.FORBIDDEN, message=message)


def _ill_typed(path: str, found: Json, message: str) -> FieldError:
    return FieldError(path=path, reason=errors.TYPE_INVALID, message=message, found=found)


def _unsupported(path: str, found: Json, choices: tuple[str, ...]) -> FieldError:
    told = ", ".join(errors.json_string(choice) for choice in choices)
    return FieldError(
        path=path, reason=errors.NOT_SUPPORTED, message=f"supported values: {told}", found=found
    )
