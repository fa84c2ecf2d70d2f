"""Probes: when a container is looked at, and what so many findings in a row mean. Pure.

A process is often ready in a fraction of its probe's period. So in the first period startup and
readiness are looked at sooner, after 100 ms, 200 ms, 400 ms …, until they are found well once; what
is found otherwise in that time counts for nothing. From then on the period is as declared.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from spinney.meta.documents import Document, is_integer, object_at
from spinney.meta.records import Record

SPREAD_PARTS: Final = 10
"""The second look comes later by up to this part of the period, so that pods that began together
are not looked at together for ever."""

EAGER: Final = timedelta(milliseconds=100)
"""How soon the second look of the first period comes."""


class ProbeKind(enum.Enum):
    """What a probe is for, by its field in a container."""

    STARTUP = "startupProbe"
    READINESS = "readinessProbe"
    LIVENESS = "livenessProbe"

    @property
    def word(self) -> str:
        """How people call it: `Liveness`."""
        return self.value.removesuffix("Probe").capitalize()


class ProbeSpec(Record):
    """A probe as its container declares it."""

    kind: ProbeKind
    handler: Document
    """The whole probe, with its `httpGet`, `tcpSocket` or `exec`."""

    initial_delay: timedelta
    period: timedelta
    timeout: timedelta
    success_threshold: int
    failure_threshold: int
    grace_seconds: int | None
    """How long the container has to end when this probe fails it; None: as the pod says."""


def probe_specs(container: Document) -> Mapping[ProbeKind, ProbeSpec]:
    """Return the probes a container declares."""
    return {
        kind: _spec(kind, object_at(container, [kind.value]))
        for kind in ProbeKind
        if object_at(container, [kind.value])
    }


def _spec(kind: ProbeKind, probe: Document) -> ProbeSpec:
    grace = probe.get("terminationGracePeriodSeconds")
    return ProbeSpec(
        kind=kind,
        handler=probe,
        initial_delay=timedelta(seconds=_number(probe, "initialDelaySeconds", 0)),
        period=timedelta(seconds=max(1, _number(probe, "periodSeconds", 10))),
        timeout=timedelta(seconds=max(1, _number(probe, "timeoutSeconds", 1))),
        success_threshold=max(1, _number(probe, "successThreshold", 1)),
        failure_threshold=max(1, _number(probe, "failureThreshold", 3)),
        grace_seconds=grace if is_integer(grace) else None,
    )


def _number(probe: Document, field: str, default: int) -> int:
    found = probe.get(field)
    return found if is_integer(found) else default


class Probing:
    """One probe of one attempt of a container."""

    __slots__ = (
        "_eager_until",
        "_eager_wait",
        "_failures",
        "_is_first",
        "_spread",
        "_successes",
        "due",
        "passes",
        "spec",
    )

    def __init__(self, spec: ProbeSpec, first_due: timedelta, spread: timedelta) -> None:
        """Look for the first time at `first_due`."""
        self.spec = spec
        self.due: timedelta | None = first_due
        """When to look next; None while a look is under way."""
        self.passes: bool | None = None
        """What the last findings mean; None as long as they mean nothing yet."""
        self._successes = self._failures = 0
        self._is_first = True
        self._spread = spread % (spec.period / SPREAD_PARTS)
        is_eager = spec.kind is not ProbeKind.LIVENESS
        self._eager_until = first_due + (spec.period if is_eager else timedelta())
        self._eager_wait = EAGER

    def begin(self) -> None:
        """Note that a look is under way."""
        self.due = None

    def take(self, now: timedelta, *, is_success: bool) -> bool:
        """Take what a look found; returns whether it counts."""
        if not is_success and self._is_first and now < self._eager_until:
            self.due = min(now + self._eager_wait, self._eager_until)
            self._eager_wait *= 2
            return False
        if is_success:
            self._successes, self._failures = self._successes + 1, 0
            if self._successes >= self.spec.success_threshold:
                self.passes = True
        else:
            self._successes, self._failures = 0, self._failures + 1
            if self._failures >= self.spec.failure_threshold:
                self.passes = False
        self.due = now + self.spec.period + (self._spread if self._is_first else timedelta())
        self._is_first = False
        return True
