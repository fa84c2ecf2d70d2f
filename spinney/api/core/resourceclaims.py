"""ResourceClaim and ResourceClaimTemplate: devices pods ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

from spinney.api.core.builtin import built_in, immutable
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, is_integer, value_at, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, dns_label_fault
from spinney.meta.records import Field, Record

GROUP = "resource.k8s.io"


class ResourceClaimConsumer(Record):
    """Who may use a claim now."""

    resource: str
    name: str
    uid: str


class ResourceClaimStatus(Record):
    """What a claim was given, and who uses it."""

    allocation: Annotated[Document | None, Field("The devices it was given.")] = None
    reserved_for: Annotated[tuple[ResourceClaimConsumer, ...], Field("Who may use it now.")] = ()


class ResourceClaim(Record):
    """Devices that some pods share."""

    metadata: ObjectMeta
    spec: Annotated[Mapping[str, Json], Field("The devices asked for.")] = {}
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplate(Record):
    """What the claims of many pods look like."""

    metadata: ObjectMeta
    spec: Annotated[Mapping[str, Json], Field("The claim, with the metadata it gets.")] = {}


def _with_counts(path: tuple[str, ...]) -> Callable[[Document], Document]:
    """Return what fills in how many devices each request of a claim is for: exactly one."""

    def default(document: Document) -> Document:
        requests = value_at(document, path)
        if not isinstance(requests, list):
            return document
        filled = [_with_count(request) for request in requests]
        same = all(new is old for new, old in zip(filled, requests, strict=True))
        return document if same else with_value(document, path, filled)

    return default


def _with_count(request: Json) -> Json:
    if not isinstance(request, dict):
        return request
    if isinstance(exact := request.get("exactly"), dict):
        counted = _counted(exact)
        return request if counted is exact else {**request, "exactly": counted}
    if isinstance(choices := request.get("firstAvailable"), list):
        filled = [_counted(each) if isinstance(each, dict) else each for each in choices]
        same = all(new is old for new, old in zip(filled, choices, strict=True))
        return request if same else {**request, "firstAvailable": filled}
    return request


def _counted(asked: Document) -> Document:
    count, mode = asked.get("count"), asked.get("allocationMode", "ExactCount")
    filled: Document = {**asked, "allocationMode": mode}
    is_said = count is not None and not (is_integer(count) and count == 0)
    if mode == "ExactCount" and not is_said:
        filled["count"] = 1
    return asked if filled == asked else filled


def _claim_rules(spec: Cursor) -> Iterator[FieldError]:
    for request in spec["devices"]["requests"]:
        said = request.object()
        if said is None:
            continue
        name = request["name"].string()
        if name == "":
            yield request["name"].required()
        elif name is not None and (fault := dns_label_fault(name)):
            yield request["name"].invalid(fault)
        given = [field for field in ("exactly", "firstAvailable") if request[field]]
        if len(given) != 1:
            yield request.required("exactly one of `exactly` or `firstAvailable` is required")
        exact = request["exactly"]
        if exact["deviceClassName"].string() == "":
            yield exact["deviceClassName"].required()
        count = exact["count"]
        if (number := count.integer()) is not None and number < 0:
            yield count.invalid("must be greater than or equal to 0")
        if exact["allocationMode"].string() == "All" and number:
            yield count.invalid("must not be specified when allocationMode is 'All'")


def _rules(new: Cursor) -> Iterator[FieldError]:
    yield from _claim_rules(new["spec"])


def _template_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _claim_rules(new["spec"]["spec"])


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    yield from immutable(old["spec"], new["spec"])


RESOURCE_CLAIM = built_in(
    Names(
        group=GROUP,
        version="v1",
        kind="ResourceClaim",
        plural="resourceclaims",
        singular="resourceclaim",
    ),
    ResourceClaim,
    has_status=True,
    default=_with_counts(("spec", "devices", "requests")),
    rules=_rules,
    changes=_changes,
)
RESOURCE_CLAIM_TEMPLATE = built_in(
    Names(
        group=GROUP,
        version="v1",
        kind="ResourceClaimTemplate",
        plural="resourceclaimtemplates",
        singular="resourceclaimtemplate",
    ),
    ResourceClaimTemplate,
    default=_with_counts(("spec", "spec", "devices", "requests")),
    rules=_template_rules,
    changes=_changes,
)
