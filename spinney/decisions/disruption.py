"""Disruption: may something healthy be taken away now (rule 2.8).

An update takes pods and copies one by one (`may_take`). A level has one writer, which stores its
choice before anything is deleted; so what was chosen counts as gone from then on, here and in the
next look.

Preemption takes whole gangs, and marks them before they go:

    marked     `DisruptionTarget` is True: the intent. Nothing of the gang is placed any more, and
               every pod of it that has a node is deleted, with its grace
    over       no pod of it has a node: `DisruptionTarget` becomes False, and the gang, whose pods
               were made anew meanwhile, waits for a place like any other

The mark is written by compare-and-swap and read back before a pod is deleted; so whoever takes over
in the middle goes on where the last one stopped, and no gang is left with some of its pods. What is
marked counts as gone for everybody who asks what may still be taken.

The scheduler is the one writer of that condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions import pods
from spinney.meta import conditions, quantities
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.quantities import IntOrString

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTED = "PreemptionByScheduler"
"""Why a gang is taken away: another, more important one, needs its place."""

PARTIAL = "PartialGang"
"""Why a gang is taken away: it was placed in part, and the rest finds no place."""


def may_take(*, ready: int, least: int, taken: int, most: int) -> bool:
    """Whether one more that is ready may be taken.

    `ready` are those not chosen yet, `least` how many are needed, `taken` those chosen that are not
    back yet, `most` how many may be down at once. The first may cost one below `least`, further
    ones nothing (rule 3.3).
    """
    if taken == 0:
        return ready >= least
    return taken < most and ready > least


def most_at_once(max_unavailable: IntOrString | None, replicas: int) -> int:
    """Return how many may be down at once: a count, or a share rounded down; at least one."""
    if max_unavailable is None:
        return 1
    return max(1, quantities.resolve(max_unavailable, replicas, round_up=False))


def is_marked(gang: PodGang) -> bool:
    """Whether a gang is about to be taken away."""
    return conditions.is_true(gang.status.conditions, DISRUPTION_TARGET)


def may_be_taken(gang: PodGang) -> bool:
    """Whether a gang may be chosen to make room: not if it goes already."""
    return gang.metadata.deletion_timestamp is None and not is_marked(gang)


def marked(gang: PodGang, reason: str, why: str, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a gang that is to be taken away."""
    return conditions.set_condition(
        gang.status.conditions, DISRUPTION_TARGET, TRUE, reason, why, now
    )


def to_delete(members: Iterable[Pod]) -> Sequence[Pod]:
    """Return the pods of a marked gang that are still to be deleted.

    Pods without a node hold no place, and are left to wait.
    """
    return [pod for pod in members if holds_place(pod) and not pods.is_terminating(pod)]


def holds_place(pod: Pod) -> bool:
    """Whether a pod takes up room on a node: it has one, and did not end."""
    return bool(pod.spec.node_name) and not pods.is_ended(pod)


def may_be_undone(gang: PodGang, members: Iterable[Pod]) -> bool:
    """Whether a gang that was placed in part, and finds no place for the rest, may be taken back.

    It must never have been whole: a gang that was and lost a pod is for gang termination to judge.
    Where nobody says whether it was, none of its pods may have started.
    """
    if not may_be_taken(gang):
        return False
    scheduled = conditions.find(gang.status.conditions, "Scheduled")
    if scheduled is not None:
        return scheduled.status != TRUE
    return not any(has_started(pod) for pod in members)


def has_started(pod: Pod) -> bool:
    """Whether something of a pod runs or ran."""
    return pod.status.phase not in ("", "Pending") or pod.status.start_time is not None


def is_over(members: Iterable[Pod]) -> bool:
    """Whether nothing of a marked gang holds a place any more."""
    return not any(map(holds_place, members))


def cleared(gang: PodGang, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a gang that was taken away and may come back."""
    found = conditions.find(gang.status.conditions, DISRUPTION_TARGET)
    assert found is not None, "a gang that is not marked was not taken away"
    return conditions.set_condition(
        gang.status.conditions,
        DISRUPTION_TARGET,
        FALSE,
        found.reason,
        "all its pods are gone; it waits for a place like any other",
        now,
    )
