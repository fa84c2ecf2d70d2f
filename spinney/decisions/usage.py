"""Usage: what was measured of a pod, by whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from spinney.api.core.pod import Pod
from spinney.meta.records import Record


class PodUsage(Record):
    """What the containers of one pod used. All amounts are in billionths of a unit."""

    measured_at: datetime
    """The end of the window it is measured over."""

    window: timedelta = timedelta(seconds=15)
    containers: Mapping[str, Mapping[str, int]] = {}
    """By container: how much of each resource, `cpu` and `memory` among them."""

    values: Mapping[str, int] = {}
    """What the pod says of itself, by the name of the metric: requests a second, waiting calls …"""


class NodeUsage(Record):
    """What one node used, its pods and all else on it. All amounts are in billionths of a unit."""

    measured_at: datetime
    window: timedelta = timedelta(seconds=15)
    values: Mapping[str, int] = {}
    """How much of each resource, `cpu` and `memory` among them."""


class Sample(Record):
    """One pod of a target, with what was measured of it."""

    pod: Pod
    usage: PodUsage | None = None
    """None where nothing is known."""
