"""ResourceClaim and ResourceClaimTemplate: devices pods ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from spinney.api.core.builtin import built_in, immutable
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
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
    spec: Annotated[Document, Field("The devices asked for.")] = msgspec.field(default_factory=dict)
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplate(Record):
    """What the claims of many pods look like."""

    metadata: ObjectMeta
    spec: Annotated[Document, Field("The claim, with the metadata it gets.")] = msgspec.field(
        default_factory=dict
    )


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
    changes=_changes,
)
