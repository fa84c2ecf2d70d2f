"""Schedulability: what the scheduler says of gangs and pods, and in which words.

The condition `Schedulable` of a PodGang is the scheduler's alone. It is there from when the gang
was first refused: False says why nothing of it is placed, True that it is. A gang that is placed
when it is first looked at never has it, so it costs no write. The PodGang controller keeps it, but
for a gang that begins anew.

A pod outside any gang carries the sentence itself, in its condition `PodScheduled`. A pod of a
gang names its gang there: the sentence changes with every node, and a gang may have thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from spinney.api.core.pod import Pod
from spinney.decisions.placement.outcomes import Placement, Refusal
from spinney.meta import conditions
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.records import Record
from spinney.meta.references import Ref

SCHEDULABLE = "Schedulable"
POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
WAITS_FOR_ROOM = "WaitsForRoom"
SURPLUS_UNSCHEDULABLE = "SurplusUnschedulable"
PLACED = "Placed"
NAMES_TOLD = 3


class Opinion(Record):
    """What the scheduler has come to about a gang, or about a pod outside any."""

    status: str
    """Whether as many pods as are needed have nodes, or are being given them."""

    reason: str
    message: str

    @property
    def is_refusal(self) -> bool:
        """Whether something of it waits for a place."""
        return self.reason != PLACED


ALL_PLACED = Opinion(status=TRUE, reason=PLACED, message="its pods have nodes")


def refused(refusal: Refusal) -> Opinion:
    """Return what is said of a gang that has no place."""
    return Opinion(status=FALSE, reason=UNSCHEDULABLE, message=refusal.summary)


def placed(placement: Placement) -> Opinion:
    """Return what is said of a gang that has a place, be it not for all that is wanted of it."""
    if not placement.left:
        return ALL_PLACED
    why = placement.shortfall.summary if placement.shortfall is not None else ""
    message = f"it has as many pods as it needs; {len(placement.left)} more wait: {why}"
    return Opinion(status=TRUE, reason=SURPLUS_UNSCHEDULABLE, message=message)


def waits_for(victims: Sequence[Ref], refusal: Refusal) -> Opinion:
    """Return what is said of a gang that others make room for."""
    if victims:
        told = f"{named(victims)} {'leaves' if len(victims) == 1 else 'leave'} to make room for it"
    else:
        told = "pods that are being deleted make room for it"
    return Opinion(status=FALSE, reason=WAITS_FOR_ROOM, message=f"{told}; now {refusal.summary}")


def named(refs: Sequence[Ref]) -> str:
    """Return objects for a sentence: the first few, and how many more."""
    shown = ", ".join(map(str, refs[:NAMES_TOLD]))
    more = len(refs) - NAMES_TOLD
    return f"{shown} and {more} more" if more > 0 else shown


def gang_conditions(
    before: tuple[Condition, ...], opinion: Opinion | None, now: datetime
) -> tuple[Condition, ...]:
    """Return a gang's conditions with what the scheduler says of it; the same ones if it is said.

    Without an opinion nothing of it waits: then only what was said before is set right.
    """
    found = conditions.find(before, SCHEDULABLE)
    told = opinion or ALL_PLACED
    if not told.is_refusal and (found is None or found.reason == PLACED):
        return before
    return conditions.set_condition(
        before, SCHEDULABLE, told.status, told.reason, told.message, now
    )


def pod_conditions(
    pod: Pod, gang: Ref | None, opinion: Opinion, now: datetime
) -> tuple[Condition, ...]:
    """Return a waiting pod's conditions with why it waits; the same ones if it is said."""
    message = opinion.message
    if gang is not None:
        message = f"{gang} has no place for it; the gang's condition {SCHEDULABLE} says why"
    return conditions.set_condition(
        pod.status.conditions, POD_SCHEDULED, FALSE, UNSCHEDULABLE, message, now
    )
