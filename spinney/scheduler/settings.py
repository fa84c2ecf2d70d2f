"""Settings of the scheduler, every bound with its unit."""

from __future__ import annotations

from datetime import timedelta

from spinney.meta.records import Record


class Settings(Record):
    """How a scheduler works."""

    scheduler_names: frozenset[str] | None = None
    """Whose pods are its own to place, by their `schedulerName`; None is everybody's."""

    in_flight_max: int = 64
    """How many writes are under way at the same time."""

    bindings_ahead_max: int = 2_000
    """How many pods may have been given a place whose writes are not answered; then it waits."""

    slice_max: timedelta = timedelta(milliseconds=5)
    """How long it may work before it lets others on the loop; one look at one gang is whole."""

    slice_looks_max: int = 64
    """How many gangs it looks at before it lets others on the loop, however short that was."""

    slice_changes_max: int = 256
    """How many changes of objects it takes in before it lets others on the loop."""

    told_every: timedelta = timedelta(seconds=5)
    """How often at most it is written down, of one gang, why it waits."""

    partial_max: timedelta = timedelta(seconds=10)
    """How long a gang may have nodes for some of its pods and none for the rest it needs."""

    preempts: bool = True
    """Whether less important gangs are taken away for more important ones."""


DEFAULTS = Settings()
