"""Actions and decisions: what a look at the world can lead to.

A decision is data. `engine/executor` alone carries it out: actions in order, each under the
precondition it was decided under, then the status. A precondition that no longer holds means the
world moved: nothing is wrong, the key is looked at again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from spinney.meta.documents import Document
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

ACTIONS_MAX = 500
"""How many actions one decision may hold; the rest comes with the next look."""


class Create(Record):
    """Make an object that is not there; that it is there already is no error."""

    document: Document
    needs: tuple[Ref, ...] = ()
    """What must stand before it: it is not made where one of these was refused in the same look."""


class Apply(Record):
    """Say how an object should be that others may write too, by server-side apply."""

    document: Document
    force: bool = True


class Patch(Record):
    """Change labels, gates, finalizers or replicas of an object, by merge patch."""

    target: Ref
    merge: Document
    only_if: Precondition
    subresource: str = ""
    """`status` where it is that of an object which somebody else keeps."""


class Delete(Record):
    """Delete an object; that it is gone already is no error."""

    target: Ref
    only_if: Precondition
    grace_seconds: int | None = None
    propagation: str = "Background"


class Evict(Record):
    """Delete a pod if disruption budgets allow it."""

    target: Ref
    only_if: Precondition


class Bind(Record):
    """Give a pod its node."""

    pod: Ref
    node: str
    only_if: Precondition


class Emit(Record):
    """Tell people something. Emits with one key are one Event object that counts."""

    about: Ref
    type: str
    reason: str
    note: str
    key: str = ""


Action: TypeAlias = "Create | Apply | Patch | Delete | Evict | Bind | Emit"


class Decision(Record):
    """What one look at one key led to."""

    actions: tuple[Action, ...] = ()
    status: Document | None = None
    """The whole status of the key's own object, stored after the actions; None leaves it."""

    intent: Document | None = None
    """The whole status, stored before anything else is done. The actions come from the next look,
    which sees it stored; so with an intent there are neither actions nor a status."""

    wake_after: timedelta | None = None
    """When to look again though nothing happened."""

    reasons: tuple[str, ...] = ()
    """Why, in sentences a user could read."""

    def check(self) -> None:
        """Raise InvariantViolation where the decision breaks its own rules."""
        if self.intent is not None and (self.actions or self.status is not None):
            raise InvariantViolation(
                f"a decision with an intent must hold nothing else, found {len(self.actions)} "
                f"actions and {'a' if self.status is not None else 'no'} status"
            )
        if len(self.actions) > ACTIONS_MAX:
            raise InvariantViolation(
                f"a decision holds at most {ACTIONS_MAX} actions, found {len(self.actions)}"
            )
        if self.wake_after is not None and self.wake_after < timedelta():
            raise InvariantViolation(f"wake_after must not be negative: {self.wake_after}")
