"""Taking: which units an update replaces next, be they pods of a clique or copies of a group.

What is outdated and not ready goes at once. What is ready goes in turn, oldest first: chosen, the
choice stored, then deleted, and waited for until what took its place is ready. So a choice that was
stored is all that has to be remembered, whoever looks next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from spinney.decisions import disruption
from spinney.meta.records import Record


class Unit(Record):
    """A pod of a clique, or a copy of a group."""

    name: str
    born: datetime
    index: int
    is_outdated: bool
    """Whether it is of another template than the one aimed at."""

    is_ready: bool
    is_going: bool = False
    """Whether it is being deleted: then it counts for nothing, but holds its name."""


class Chosen(Record):
    """Which ready units were taken."""

    in_flight: tuple[str, ...] = ()
    """Those that are being replaced, in the order in which they were chosen."""

    completed: tuple[str, ...] = ()
    """Those that were replaced."""


class Step(Record):
    """What an update does next."""

    chosen: Chosen
    """The choice as it has to be stored before anything of it is deleted."""

    forced: tuple[str, ...] = ()
    """What goes at once: outdated, and not ready."""

    taken: tuple[str, ...] = ()
    """What was chosen, and is still there as it was."""

    waits_for: str = ""
    """Why nothing more is taken now; "" where nothing is left to be taken."""


def step(
    units: Sequence[Unit],
    chosen: Chosen,
    *,
    wanted: Collection[str],
    least: int,
    most: int,
    due: int | None = None,
    hold: str = "",
) -> Step:
    """Return the next step of an update.

    `wanted` are the names there should be: nothing comes back under another. `due` is how many of
    them should have been taken by now, where all that changes moves in lock-step: then that counts,
    and not `most`. `hold` says why nothing ready may be taken at all, whatever the counts say.
    """
    there = {unit.name: unit for unit in units}
    in_flight = [name for name in chosen.in_flight if not _is_back(name, there, wanted)]
    completed = [name for name in chosen.in_flight if name not in in_flight]
    ready = sum(
        unit.is_ready and not unit.is_going and unit.name not in in_flight for unit in units
    )
    left = sorted(
        (
            unit
            for unit in units
            if unit.is_outdated
            and unit.is_ready
            and not unit.is_going
            and unit.name not in in_flight
        ),
        key=lambda unit: (unit.born, unit.index),
    )
    picked: list[str] = []
    waits_for = ""
    for unit in left:
        count = len(in_flight) + len(picked)
        if due is not None:
            waits_for = hold or _why_not_yet(
                older=len(left) - len(picked), wanted=len(wanted), due=due
            )
            if not waits_for and not count and ready < least:
                waits_for = _why_not(ready, least, (), most)
        elif hold or not disruption.may_take(ready=ready, least=least, taken=count, most=most):
            waits_for = hold or _why_not(ready, least, [*in_flight, *picked], most)
        if waits_for:
            break
        picked.append(unit.name)
        ready -= 1
    return Step(
        chosen=Chosen(in_flight=(*in_flight, *picked), completed=(*chosen.completed, *completed)),
        forced=tuple(
            unit.name
            for unit in units
            if unit.is_outdated and not unit.is_ready and not unit.is_going
        ),
        taken=tuple(
            _still_taken(there, in_flight, ready + len(picked), least, most)
            if due is None
            else _as_they_were(there, in_flight)
        ),
        waits_for=waits_for or _awaited(in_flight),
    )


def _still_taken(
    there: dict[str, Unit], in_flight: Sequence[str], ready: int, least: int, most: int
) -> Iterator[str]:
    """Yield those chosen before that are there as they were, and may go as things stand now.

    Between the choice and this look another one may have failed: then the chosen one serves on.
    `ready` are those that were not chosen.
    """
    kept = _as_they_were(there, in_flight)
    gone = len(in_flight) - len(kept)
    left = ready + len(kept)
    for name in kept:
        if disruption.may_take(ready=left, least=least, taken=gone, most=most):
            yield name
            left, gone = left - 1, gone + 1


def _as_they_were(there: dict[str, Unit], in_flight: Sequence[str]) -> list[str]:
    """Return those chosen before that are there as they were."""
    return [
        name
        for name in in_flight
        if name in there
        and there[name].is_outdated
        and there[name].is_ready
        and not there[name].is_going
    ]


def _why_not_yet(*, older: int, wanted: int, due: int) -> str:
    """Return why no more is taken in this step of lock-step; "" where more is due."""
    if older > wanted - due:
        return ""
    return "what is due in this step is taken: the others are waited for"


def _is_back(name: str, there: dict[str, Unit], wanted: Collection[str]) -> bool:
    """Whether what took a chosen unit's place is ready, or nothing will take it.

    Nothing will where fewer are wanted meanwhile, be it that others than this one make them up.
    """
    unit = there.get(name)
    if unit is None:
        return name not in wanted or len(there) >= len(wanted)
    return not unit.is_outdated and unit.is_ready and not unit.is_going


def _awaited(in_flight: Sequence[str]) -> str:
    return f"{', '.join(in_flight)} is being replaced and not ready yet" if in_flight else ""


def _why_not(ready: int, least: int, in_flight: Sequence[str], most: int) -> str:
    if len(in_flight) >= most or (in_flight and ready <= least):
        return _awaited(in_flight)
    return f"{ready} are ready and {least} are needed: no ready one is taken"
