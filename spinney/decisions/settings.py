"""Settings: what decisions must know of the installation."""

from __future__ import annotations

from spinney.meta.records import Record


class Settings(Record):
    """What is so for all workloads of one installation."""

    default_scheduler: str = "default-scheduler"
    """Who places pods whose template names nobody."""

    topology_aware: bool = True
    """Whether placement honours topology constraints."""

    wait_image: str = ""
    """The image with `spinney wait-for`, which holds a pod back until those it starts after are
    ready. Without one, the node agent does it."""

    toleration_seconds: int = 300
    """How long a pod that says nothing puts up with a node that does not answer."""


DEFAULTS = Settings()
