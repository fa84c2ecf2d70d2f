"""Outcomes: where a gang goes, or why it goes nowhere."""

from __future__ import annotations

from typing import Final

from spinney.meta.records import Record
from spinney.meta.references import Ref

FULL_SCORE: Final = 1000
"""The score, in thousandths, of a gang that is as close together as was preferred."""

SUMMARY_BYTES_MAX: Final = 1000
"""How long a summary may be."""


class Binding(Record, order=True):
    """A pod and the node it goes to."""

    pod: Ref
    uid: str
    node: str


class Home(Record, order=True):
    """The domain that a gang, or a part of it, was kept within."""

    scope: str
    """The pod group or group config; empty for the gang."""

    key: str
    """The node label."""

    value: str


class Removal(Record):
    """A constraint that makes nodes unfit, and how many; each node counts once."""

    reason: str
    """`NotReady`, `Cordoned`, `NodeSelector`, `Affinity`, `Taint`, `HostPort`, `NoDomain` or
    `Insufficient`."""

    nodes: int
    text: str
    """What people read: `8 have too little nvidia.com/gpu (want 8, most free 4)`."""


class Refusal(Record):
    """Why a gang, or its surplus, has no place. The same for the same cluster and gang, always."""

    gang: Ref
    summary: str
    """One sentence or three, at most `SUMMARY_BYTES_MAX` long."""

    group: str = ""
    """The pod group that hinders most."""

    pods_wanted: int = 0
    """How many more of its pods must be placed."""

    pods_possible: int = 0
    """How many could be, where it comes closest."""

    nodes: int = 0
    """How many nodes there are."""

    removals: tuple[Removal, ...] = ()
    key: str = ""
    """The label of the domain it must be within, where there is one."""

    domain: str = ""
    """Which domain came closest."""

    advice: str = ""
    """What would make it fit."""

    is_proven: bool = True
    """Whether it certainly does not fit; False where the search was given up at its limit."""


class Placement(Record):
    """Where the pods of a gang go. Those that are needed all go, or there is no placement."""

    gang: Ref
    bindings: tuple[Binding, ...] = ()
    """By pod, in order."""

    left: tuple[Ref, ...] = ()
    """Pods beyond what is needed that found no place."""

    shortfall: Refusal | None = None
    """Why they did not."""

    score: int = FULL_SCORE
    """Which share of what was preferred is met, in thousandths."""

    homes: tuple[Home, ...] = ()
