"""Leadership: of several processes one acts, and it stops before another can begin.

A Lease object says who leads. `Election` is the machine: what was seen of the lease and what became
of writes goes in, the next step comes out. It never waits and never asks the time.

Why two never act at once: a write of the lease is a compare-and-swap. A leader may act until
`renew_deadline` after it *sent* its last successful write, by its own monotonic clock. Another
takes the lease only under the version it saw unchanged for `duration` since it *saw* it, which is
later than it was sent. `renew_deadline` being shorter, the leader has stopped by then, if no clock
runs faster than another by half. Wall clocks are written down for people and compared with nothing.
What a leader sent just before it stopped may still arrive; it meets the preconditions all writes
carry.

| role    | the lease as seen         | next step                                             |
|---------|---------------------------|-------------------------------------------------------|
| follows | none                      | create it                                             |
| follows | free, or held by itself   | take it                                               |
| follows | held, unchanged too long  | take it                                               |
| follows | held                      | wait until it changes, or has been unchanged too long |
| leads   | its own                   | renew it every `retry`; stand down at the deadline    |
| leads   | held by another           | stand down                                            |
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import Final

from spinney.api.core.lease import Lease
from spinney.api.kinds import KINDS
from spinney.meta.documents import Document
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.meta.times import format_micro_time

LEASE: Final = GroupKind(group="coordination.k8s.io", kind="Lease")


class LeaseSettings(Record):
    """Which lease, and how long things may take."""

    namespace: str
    name: str = "spinney-operator"
    duration: timedelta = timedelta(seconds=15)
    """How long others wait after they saw it renewed."""

    renew_deadline: timedelta = timedelta(seconds=10)
    """How long after its last renewal a leader acts."""

    retry: timedelta = timedelta(seconds=2)
    """How often a leader renews, and anybody tries again."""

    def __post_init__(self) -> None:
        """Raise ValueError where the times do not keep two leaders apart."""
        if not timedelta() < self.retry < self.renew_deadline < self.duration:
            raise ValueError(
                f"lease times must rise: retry {self.retry}, renew deadline "
                f"{self.renew_deadline}, duration {self.duration}"
            )
        if self.duration.microseconds:
            raise ValueError(f"the lease's duration must be whole seconds: {self.duration}")

    @property
    def ref(self) -> Ref:
        """The lease."""
        return Ref(kind=LEASE, namespace=self.namespace, name=self.name)


class Verb(enum.Enum):
    """What to do next."""

    WAIT = "wait"
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    STAND_DOWN = "stand down"


class Step(Record):
    """The next step."""

    verb: Verb
    until: timedelta | None = None
    """Wait: when to ask again though nothing happened."""

    version: str = ""
    """Take, renew: the version the lease must still have."""


class _Seen(Record):
    """The lease, as it was seen at a time."""

    version: int
    holder: str
    duration: timedelta
    transitions: int
    at: timedelta


class Election:
    """One candidate's view of who leads. Times are those of a clock's `elapsed`."""

    def __init__(self, identity: str, settings: LeaseSettings) -> None:
        """Follow, and have seen nothing."""
        self.identity = identity
        self._settings = settings
        self._seen: _Seen | None = None
        self._version = 0
        """The newest version of the lease that is known: seen, or written by us."""

        self._held_until: timedelta | None = None
        self._next_try = timedelta()

    # What happens

    def observe(self, lease: Lease | None, now: timedelta) -> None:
        """Note the lease as it is seen; what is older than what is known changes nothing."""
        if lease is None:
            self._seen = None
            return
        version = int(lease.metadata.resource_version)
        if version <= (self._seen.version if self._seen else 0):
            return
        spec = lease.spec
        self._seen = _Seen(
            version=version,
            holder=spec.holder_identity,
            duration=timedelta(seconds=spec.lease_duration_seconds or 0),
            transitions=spec.lease_transitions,
            at=now,
        )
        if version <= self._version:
            return
        self._version = version
        if spec.holder_identity != self.identity:
            self._held_until = None

    def succeeded(self, version: str, sent_at: timedelta, now: timedelta) -> None:
        """Note that a write of the lease sent at a time was taken: we hold it."""
        self._version = max(self._version, int(version))
        self._held_until = sent_at + self._settings.renew_deadline
        self._next_try = now + self._settings.retry

    def failed(self, now: timedelta, jitter: timedelta) -> None:
        """Note that a write of the lease was refused, or may have been."""
        self._next_try = now + self._settings.retry + jitter

    def stood_down(self) -> None:
        """Note that nothing acts any more."""
        self._held_until = None

    # What follows

    def may_act(self, now: timedelta) -> bool:
        """Whether whoever acts in the name of the leader may do so now."""
        return self._held_until is not None and now < self._held_until

    @property
    def held_until(self) -> timedelta | None:
        """Until when we lead if nothing more is heard; None where we follow."""
        return self._held_until

    @property
    def version(self) -> str:
        """The newest version of the lease that is known."""
        return str(self._version)

    def next_step(self, now: timedelta) -> Step:
        """Return what to do now."""
        if self._held_until is not None:
            return self._next_of_leader(now, self._held_until)
        if now < self._next_try:
            return Step(verb=Verb.WAIT, until=self._next_try)
        seen = self._seen
        if seen is None:
            return Step(verb=Verb.CREATE)
        if seen.holder and seen.holder != self.identity:
            free_at = seen.at + max(seen.duration, self._settings.duration)
            if now < free_at:
                return Step(verb=Verb.WAIT, until=free_at)
        return Step(verb=Verb.TAKE, version=str(max(self._version, seen.version)))

    def _next_of_leader(self, now: timedelta, held_until: timedelta) -> Step:
        if now >= held_until:
            return Step(verb=Verb.STAND_DOWN)
        if now < self._next_try:
            return Step(verb=Verb.WAIT, until=min(self._next_try, held_until))
        return Step(verb=Verb.RENEW, version=str(self._version))

    # What is written

    def new_lease(self, now: datetime) -> Document:
        """Return the lease as it is created."""
        kind = KINDS[LEASE].names
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": self._settings.name, "namespace": self._settings.namespace},
            "spec": {**self._own(now), "leaseTransitions": 0},
        }

    def taking(self, now: datetime) -> Document:
        """Return the change by which a lease that is there is taken."""
        transitions = 0 if self._seen is None else self._seen.transitions
        return {"spec": {**self._own(now), "leaseTransitions": transitions + 1}}

    def _own(self, now: datetime) -> Document:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._settings.duration // timedelta(seconds=1),
            "acquireTime": format_micro_time(now),
            "renewTime": format_micro_time(now),
        }

    def renewing(self, now: datetime) -> Document:
        """Return the change by which our lease is renewed."""
        return {"spec": {"renewTime": format_micro_time(now)}}

    def releasing(self, now: datetime) -> Document:
        """Return the change by which our lease becomes free at once."""
        return {"spec": {"holderIdentity": "", "renewTime": format_micro_time(now)}}

    def validate(self) -> None:
        """Check that what is known hangs together; raises InvariantViolation."""
        if self._seen is not None and self._seen.version > self._version:
            raise InvariantViolation(
                f"the lease was seen at {self._seen.version}, known is {self._version}"
            )
