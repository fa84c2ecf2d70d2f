"""Lease: who leads, and until when; also by which a node says it lives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from spinney.api.core.builtin import built_in
from spinney.api.kinds import Names
from spinney.meta.cursors import Cursor
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Field, Record


class LeaseSpec(Record):
    """Who holds a lease; instants have microseconds."""

    holder_identity: Annotated[str, Field("Who holds it; empty when nobody does.")] = ""
    lease_duration_seconds: Annotated[
        int | None, Field("How long after it was renewed others must wait.")
    ] = None
    acquire_time: Annotated[datetime | None, Field("When its holder got it.")] = None
    renew_time: Annotated[datetime | None, Field("When its holder last renewed it.")] = None
    lease_transitions: Annotated[int, Field("How often it changed hands.")] = 0


class Lease(Record):
    """Who leads, and until when."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


def _rules(new: Cursor) -> Iterator[FieldError]:
    spec = new["spec"]
    seconds, transitions = spec["leaseDurationSeconds"], spec["leaseTransitions"]
    if (count := seconds.integer()) is not None and count <= 0:
        yield seconds.invalid("must be greater than 0")
    if (count := transitions.integer()) is not None and count < 0:
        yield transitions.invalid("must be greater than or equal to 0")
    if spec["preferredHolder"].string() and not spec["strategy"].string():
        yield spec["preferredHolder"].forbidden("may only be specified if `strategy` is defined")


KIND = built_in(
    Names(
        group="coordination.k8s.io",
        version="v1",
        kind="Lease",
        plural="leases",
        singular="lease",
    ),
    Lease,
    rules=_rules,
)
