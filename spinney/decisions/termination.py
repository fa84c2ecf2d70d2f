"""Gang termination: what is torn down because it lost members and cannot serve (section 4).

A PodClique says in its condition since when too few of its pods are ready. Where that has lasted as
long as its owner allows, one level acts: the group, for single copies, while enough of its copies
are whole; else the set, for the whole replica. What is torn down is named by what was observed,
name and uid; what is built anew has never been available, and so cannot be torn down again for the
same outage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from spinney.api import groupkinds
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import TRAINING, PodCliqueScalingGroupConfig
from spinney.decisions import copies, deadlines
from spinney.decisions.actions import Action, Delete, Emit
from spinney.decisions.clique_status import BREACHED
from spinney.decisions.copies import Copy
from spinney.decisions.places import GroupPlace, Layout
from spinney.meta import conditions, durations
from spinney.meta.conditions import FALSE, TRUE, Condition
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import Precondition, Ref

TERMINATED = "GangTerminated"
RECOVERED = "MinAvailableRecovered"
NOTE_BYTES_MAX = 1_000


class Outage(Record):
    """Something that has had too little ready for a while."""

    what: str
    """What it is, for people: `PodClique chat-0-decode`."""

    since: datetime
    delay: timedelta
    evidence: str
    """What it said of itself: how many are ready, and what became of the others."""

    def left(self, now: datetime) -> timedelta:
        """Return how long it still has to recover."""
        return deadlines.left(self.since, self.delay, now)


class Fall(Record):
    """Something that is to be torn down, and why."""

    what: str
    index: int
    """The copy of a group, or the replica of a set."""

    outage: Outage
    cliques: tuple[PodClique, ...]
    """All that goes, as it was observed."""


class Fate(Record):
    """What falls now, and when the next one would."""

    falls: tuple[Fall, ...] = ()
    wake_after: timedelta | None = None
    reasons: tuple[str, ...] = ()


def delay_of(
    set_: PodCliqueSet, config: PodCliqueScalingGroupConfig | None = None
) -> timedelta | None:
    """Return how long an outage may last; None where it may last for ever (rule 4.1).

    Training has a budget of restarts instead (rule 5.3).
    """
    whole = set_.spec.template.termination_delay
    if set_.spec.workload_type == TRAINING or whole is None:
        return None
    own = config.termination_delay if config is not None else None
    return whole if own is None else own


def breach_of(found: Iterable[Condition]) -> Condition | None:
    """Return the condition that too few are ready, if it is so."""
    said = conditions.find(found, BREACHED)
    return said if said is not None and said.status == TRUE else None


def outage_of_clique(clique: PodClique, delay: timedelta) -> Outage | None:
    """Return the outage a PodClique is in, if it is there to stay."""
    said = breach_of(clique.status.conditions)
    if said is None or said.last_transition_time is None or copies.is_going(clique):
        return None
    return Outage(
        what=f"PodClique {clique.metadata.name}",
        since=said.last_transition_time,
        delay=delay,
        evidence=said.message,
    )


# One level


def fate_of_copies(
    set_: PodCliqueSet, place: GroupPlace, found: Sequence[Copy], least: int, now: datetime
) -> Fate:
    """Return which copies of a group fall, while at least `least` others are whole.

    Where that is not so the set decides; where it is not known yet, whoever reports next wakes it.
    """
    delay = delay_of(set_, place.config)
    if delay is None or copies.tally(found, least).is_breached != FALSE:
        return Fate()
    troubled: list[Fall] = []
    for copy in found:
        outages = [outage_of_clique(clique, delay) for clique in copy.cliques]
        worst = _first_due(outages)
        if worst is not None:
            going = tuple(clique for clique in copy.cliques if not copies.is_going(clique))
            what = f"copy {copy.index} of {place.name}"
            troubled.append(Fall(what=what, index=copy.index, outage=worst, cliques=going))
    return _fate(troubled, now)


def fate_of_replicas(
    set_: PodCliqueSet,
    layout: Layout,
    groups: Mapping[str, PodCliqueScalingGroup],
    cliques: Mapping[str, PodClique],
    now: datetime,
) -> Fate:
    """Return which replicas of a set fall as a whole.

    Of a group's outage its condition gives the beginning, and no more: whether it lasts is seen
    from its PodCliques (rule 4.4). A PodClique that is missing exempts nobody.
    """
    whole = delay_of(set_)
    if whole is None:
        return Fate()
    troubled: list[Fall] = []
    for index in range(set_.spec.replicas):
        outages = [
            outage_of_clique(cliques[place.name], whole)
            for place in layout.standalone_places(index)
            if place.name in cliques
        ]
        for place in layout.group_places(index):
            group = groups.get(place.name)
            if group is not None:
                outages.append(_outage_of_group(set_, place, group, cliques))
        worst = _first_due(outages)
        if worst is not None:
            going = tuple(_of_replica(layout, index, groups, cliques))
            what = f"replica {index} of {set_.metadata.name}"
            troubled.append(Fall(what=what, index=index, outage=worst, cliques=going))
    return _fate(troubled, now)


def replicas_in_trouble(
    set_: PodCliqueSet,
    layout: Layout,
    groups: Mapping[str, PodCliqueScalingGroup],
    cliques: Mapping[str, PodClique],
) -> tuple[int, ...]:
    """Return the replicas of a set that say of themselves that too little is ready.

    `cliques` are those outside groups; those of groups are looked at where something is wrong only.
    """
    if delay_of(set_) is None:
        return ()
    said: list[int] = []
    for index in range(set_.spec.replicas):
        there = [
            *(cliques.get(place.name) for place in layout.standalone_places(index)),
            *(groups.get(place.name) for place in layout.group_places(index)),
        ]
        if any(each is not None and breach_of(each.status.conditions) for each in there):
            said.append(index)
    return tuple(said)


def _outage_of_group(
    set_: PodCliqueSet,
    place: GroupPlace,
    group: PodCliqueScalingGroup,
    cliques: Mapping[str, PodClique],
) -> Outage | None:
    delay = delay_of(set_, place.config)
    said = breach_of(group.status.conditions)
    if delay is None or said is None or said.last_transition_time is None:
        return None
    if group.metadata.deletion_timestamp is not None:
        return None
    found = copies.copies_of(place, group.spec.replicas, cliques.values())
    if copies.tally(found, group.spec.min_available).is_breached != TRUE:
        return None
    broken = (breach_of(clique.status.conditions) for copy in found for clique in copy.cliques)
    evidence = "; ".join([said.message, *(each.message for each in broken if each is not None)])
    return Outage(
        what=f"scaling group {place.name}",
        since=said.last_transition_time,
        delay=delay,
        evidence=evidence,
    )


def _of_replica(
    layout: Layout,
    index: int,
    groups: Mapping[str, PodCliqueScalingGroup],
    cliques: Mapping[str, PodClique],
) -> Iterator[PodClique]:
    """Yield every PodClique of a set replica that is there to stay."""
    wanted = [place.name for place in layout.standalone_places(index)]
    for place in layout.group_places(index):
        group = groups.get(place.name)
        if group is not None:
            for copy in copies.copies_of(place, group.spec.replicas, ()):
                wanted.extend(inside.name for inside in copy.places)
    for name in wanted:
        if name in cliques and not copies.is_going(cliques[name]):
            yield cliques[name]


def _first_due(outages: Iterable[Outage | None]) -> Outage | None:
    """Return the outage whose time is up first."""
    found = [outage for outage in outages if outage is not None]
    return min(
        found,
        key=lambda outage: deadlines.due_at(outage.since, outage.delay),
        default=None,
    )


def _fate(troubled: Sequence[Fall], now: datetime) -> Fate:
    falls = tuple(fall for fall in troubled if not fall.outage.left(now))
    waits = [fall for fall in troubled if fall.outage.left(now)]
    return Fate(
        falls=falls,
        wake_after=deadlines.earliest(*(fall.outage.left(now) for fall in waits)),
        reasons=(
            *(f"{fall.what} is torn down: {_why(fall.outage)}" for fall in falls),
            *(
                f"{fall.what} is torn down in {durations.format_duration(fall.outage.left(now))} "
                f"unless it recovers: {fall.outage.evidence}"
                for fall in waits
            ),
        ),
    )


def _why(outage: Outage) -> str:
    lasted = durations.format_duration(outage.delay)
    return f"{outage.what} did not recover within {lasted}: {outage.evidence}"


# What is done


def actions_of(about: Ref, owner: ObjectMeta, fate: Fate) -> list[Action]:
    """Return what tears down: the event that tells what was lost, and then the PodCliques."""
    told: list[Action] = []
    for fall in fate.falls:
        note = f"{fall.what} is torn down and built anew: {_why(fall.outage)}"
        key = f"{owner.uid}/{TERMINATED}/{fall.index}/{fall.outage.since.isoformat()}"
        told.append(
            Emit(about=about, type="Warning", reason=TERMINATED, note=shortened(note), key=key)
        )
    gone: list[Action] = [
        Delete(
            target=Ref(
                kind=groupkinds.CLIQUE,
                namespace=clique.metadata.namespace,
                name=clique.metadata.name,
            ),
            only_if=Precondition(uid=clique.metadata.uid),
        )
        for fall in fate.falls
        for clique in fall.cliques
    ]
    return [*told, *gone]


def turns(
    about: Ref,
    owner: ObjectMeta,
    before: Iterable[Condition],
    after: Iterable[Condition],
    delay: timedelta | None,
    now: datetime,
) -> Iterator[Action]:
    """Yield the event that something has too little ready, or that it recovered, as that turns."""
    was, is_ = breach_of(before), conditions.find(after, BREACHED)
    if is_ is None or is_.last_transition_time is None:
        return
    if was is None and is_.status == TRUE:
        limit = "gang termination is off: no terminationDelay is given"
        if delay is not None:
            lasts = durations.format_duration(delay)
            limit = f"it is torn down and built anew in {lasts} unless it recovers"
        key = f"{owner.uid}/{BREACHED}/{is_.last_transition_time.isoformat()}"
        note = shortened(f"{is_.message}; {limit}")
        yield Emit(about=about, type="Warning", reason=BREACHED, note=note, key=key)
    elif was is not None and was.last_transition_time is not None and is_.status == FALSE:
        lasted = (now - was.last_transition_time).total_seconds()
        key = f"{owner.uid}/{RECOVERED}/{was.last_transition_time.isoformat()}"
        span = durations.format_duration(timedelta(seconds=max(0, int(lasted))))
        note = f"{is_.message}, after {span} with too few; nothing is torn down"
        yield Emit(about=about, type="Normal", reason=RECOVERED, note=shortened(note), key=key)


def shortened(text: str) -> str:
    """Return a text that fits into an event."""
    encoded = text.encode()
    if len(encoded) <= NOTE_BYTES_MAX:
        return text
    return encoded[: NOTE_BYTES_MAX - 4].decode(errors="ignore") + " …"
