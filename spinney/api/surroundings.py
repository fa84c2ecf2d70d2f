"""Surroundings: what admission may know beyond the object itself.

Rules that speak of other objects or of the installation (a topology's levels, the scheduler back
ends there are, what a child's root set is) read it from here, so that `admit` stays a function.
What is not known is not judged: offline, most of it is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.records import Record

SCHEDULERS = (
    "default-scheduler",
    "kai-scheduler",
    "volcano",
    "lpx-scheduler",
    "spinney-scheduler",
)
"""The scheduler back ends Spinney can hand gangs to; an empty `schedulerName` means the default."""


class Surroundings(Record):
    """What is known around an object when it is judged."""

    topologies: Mapping[str, tuple[str, ...]] | None = None
    """Level domains, broadest first, by ClusterTopologyBinding; None where they are not known."""

    topology_aware: bool = True
    """Whether placement honours topology constraints; without it they are refused."""

    schedulers: tuple[str, ...] = SCHEDULERS
    default_scheduler: str = "default-scheduler"
    topology_aware_schedulers: tuple[str, ...] = ("kai-scheduler", "spinney-scheduler")

    mnnvl: bool = True
    """Whether groups of NVIDIA's multi-node NVLink are served; without it they are refused."""

    subresource: str = ""
    """Through which subresource an update comes: `binding`, `status` …; "" for the object."""

    root_workload_type: str = ""
    """For a child of a PodCliqueSet: the set's workload type, where it is known."""


NOTHING_KNOWN = Surroundings()
