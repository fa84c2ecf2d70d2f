"""What goes into the life of a pod, and what comes out of it.

Events say what happened; instructions say what is to be done. Each instruction about a container
names the attempt it is meant for, and each event the attempt it tells of, so an answer that comes
late is known as such.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import TypeAlias

from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.meta.records import Record
from spinney.nodes.agent.probes import ProbeKind
from spinney.ports import ContainerState


class Moment(Record):
    """One point in time, on both clocks."""

    wall: datetime
    """For what is told: it may jump."""

    elapsed: timedelta
    """For what is waited for: it only grows."""


class Hook(enum.Enum):
    """When something is run in a container beside its command."""

    POST_START = "postStart"
    PRE_STOP = "preStop"


# Events


class Seen(Record):
    """The pod as it is stored now, and what holds its main containers back, if anything does."""

    pod: Pod
    held: ContainerStateWaiting | None = None


class Gone(Record):
    """The pod is stored no more."""


class Prepared(Record):
    """The place of the pod is made."""

    ip: str


class PrepareFailed(Record):
    """The place of the pod could not be made.

    `is_blocked` where trying again does not help until something is made or changed.
    """

    reason: str
    message: str
    is_blocked: bool = False


class Blocked(Record):
    """A container was not started, and cannot be until something is made or changed."""

    container: str
    attempt: int
    reason: str
    message: str


class StartFailed(Record):
    """A container could not be started, though everything it needs was there."""

    container: str
    attempt: int
    reason: str
    message: str


class Unblocked(Record):
    """Something that a blocked start may have waited for was made or changed."""


class Became(Record):
    """What the runtime tells of a container."""

    state: ContainerState


class HookDone(Record):
    """A hook came to its end."""

    container: str
    attempt: int
    hook: Hook
    fault: str = ""


class Probed(Record):
    """What a probe found."""

    container: str
    attempt: int
    kind: ProbeKind
    is_success: bool
    message: str = ""


class Removed(Record):
    """Nothing of the pod is left on the node."""


class Leave(Record):
    """The node goes down: end what runs, and start nothing again."""

    grace_seconds: int


class Tick(Record):
    """Time went on."""


Event: TypeAlias = (
    "Seen | Gone | Prepared | PrepareFailed | Blocked | StartFailed | Unblocked | Became | HookDone"
    " | Probed | Removed | Leave | Tick"
)


# Instructions


class Prepare(Record):
    """Make the place of the pod; answered by Prepared or PrepareFailed."""


class Start(Record):
    """Start an attempt of a container; answered by Became, Blocked or StartFailed."""

    container: str
    attempt: int


class Stop(Record):
    """End a container; answered by Became."""

    container: str
    attempt: int
    grace_seconds: int


class RunHook(Record):
    """Run a hook; answered by HookDone."""

    container: str
    attempt: int
    hook: Hook


class Probe(Record):
    """Look at a container; answered by Probed."""

    container: str
    attempt: int
    kind: ProbeKind


class Remove(Record):
    """Take everything of the pod off the node; answered by Removed."""


class DeleteObject(Record):
    """Tell the last status, then take the pod's object away."""


class Tell(Record):
    """Tell people."""

    reason: str
    note: str
    key: str = ""
    is_warning: bool = False


Instruction: TypeAlias = "Prepare | Start | Stop | RunHook | Probe | Remove | DeleteObject | Tell"
