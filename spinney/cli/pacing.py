"""`spinney rollout status`: how an update stands, once or as it goes on."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from spinney.api import groupkinds, labels
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.cli import connecting, failing, finding, gathering, printing, screen
from spinney.cli.connecting import Session
from spinney.cli.finding import Found
from spinney.cli.gathering import Gathering
from spinney.cli.live import Live
from spinney.cli.screen import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Line
from spinney.cli.usage import Usage
from spinney.decisions import sets
from spinney.decisions.causes import scenes
from spinney.decisions.causes.scenes import Scene
from spinney.decisions.updates import picture
from spinney.decisions.updates.picture import Picture, Verdict
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.meta.errors import NotFound
from spinney.meta.references import Ref
from spinney.meta.times import format_time
from spinney.server import ages

TICK = timedelta(seconds=1)
WAITS_SHOWN = 8
_COLOURS = {Verdict.DONE: GREEN, Verdict.STUCK: RED, Verdict.PAUSED: YELLOW}


async def the_set(session: Session, words: Sequence[str]) -> Found:
    """Return the set a call means; raises Usage where it is something else, NotFound."""
    found = await finding.meant(session, words)
    if found.ref.kind != groupkinds.SET:
        raise Usage(
            f"{found.resource.title(found.ref.name)} is no PodCliqueSet: updates are of whole sets"
        )
    return found


def run(arguments: argparse.Namespace) -> int:
    """Tell; returns 0 where the update is complete, 1 where it is not, or not in time."""
    return connecting.talk(arguments, lambda session: _status(session, arguments))


async def _status(session: Session, arguments: argparse.Namespace) -> int:
    found = await the_set(session, arguments.objects)
    gathered = await gathering.around(session, found)
    if arguments.watch:
        return await _watch(session, arguments, gathered, found.ref)
    told = drawn(await gathered.read(), found.ref)
    if arguments.output == "json":
        session.screen.write(printing.json_text(as_document(found.ref, told)))
    else:
        for line in lines(found.ref.name, told, session.clock.now()):
            session.screen.line(session.screen.parts(line))
    return 0 if told.verdict is Verdict.DONE else failing.NO


async def _watch(
    session: Session, arguments: argparse.Namespace, gathered: Gathering, ref: Ref
) -> int:
    limit = arguments.timeout
    seconds = None if limit is None else limit / timedelta(seconds=1)
    try:
        async with asyncio.timeout(seconds), gathered.watched():
            told = await _follow(session, gathered, ref)
    except TimeoutError:
        session.screen.note(f"the update of {ref.name} was not complete in time")
        return failing.NO
    return 0 if told.verdict is Verdict.DONE else failing.NO


async def _follow(session: Session, gathered: Gathering, ref: Ref) -> Picture:
    """Show how it goes on until it is complete or stuck; returns how it stands then."""
    ends = (Verdict.DONE, Verdict.STUCK)
    if session.screen.is_live:
        with Live(session.screen, session.screen.out) as live:
            while True:
                told = drawn(gathered.scene(), ref)
                live.draw(lines(ref.name, told, session.clock.now()))
                if told.verdict in ends:
                    return told
                await gathered.wait_for_news(TICK)
    said: set[str] = set()
    while True:
        told = drawn(gathered.scene(), ref)
        news = list(plain_lines(ref.name, told))
        for text in news:
            if text not in said:
                session.screen.line(screen.plain(text))
        said = set(news)
        if told.verdict in ends:
            return told
        await gathered.wait_for_news()


def drawn(scene: Scene, ref: Ref) -> Picture:
    """Return how the update of a set stands; raises NotFound where it is gone."""
    document = scene.get(ref)
    if document is None:
        raise NotFound(f'{ref.kind.kind} "{ref.name}" was deleted meanwhile')
    seen = observation(scene, document)
    grouped = tuple(
        clique for clique in _cliques(scene, document) if labels.SCALING_GROUP in _labels(clique)
    )
    members = tuple(
        records.decode(Pod, each)
        for each in scene.of_kind(groupkinds.POD, ref.namespace)
        if _part_of(each) == ref.name
    )
    return picture.picture(sets.scene_of(seen), grouped, members, scene.now)


def observation(
    scene: Scene, document: Document, kept: Sequence[Document] = ()
) -> sets.Observation:
    """Return a set as its decisions see it; `kept` are its revisions."""
    name, namespace = _name(document), _namespace(document)
    groups = [
        records.decode(PodCliqueScalingGroup, each)
        for each in scene.of_kind(groupkinds.SCALING_GROUP, namespace)
        if _part_of(each) == name
    ]
    gangs = [
        records.decode(PodGang, each)
        for each in scene.of_kind(groupkinds.GANG, namespace)
        if _part_of(each) == name
    ]
    return sets.Observation(
        now=scene.now,
        set_=records.decode(PodCliqueSet, document),
        revisions=tuple(records.decode(ControllerRevision, each) for each in kept),
        groups=tuple(groups),
        cliques=tuple(
            clique
            for clique in _cliques(scene, document)
            if labels.SCALING_GROUP not in _labels(clique)
        ),
        gangs=tuple(gangs),
    )


def _cliques(scene: Scene, document: Document) -> list[PodClique]:
    return [
        records.decode(PodClique, each)
        for each in scene.of_kind(groupkinds.CLIQUE, _namespace(document))
        if _part_of(each) == _name(document)
    ]


def _labels(clique: PodClique) -> Sequence[str]:
    return list(clique.metadata.labels)


def _name(document: Document) -> str:
    return scenes.name_of(document)


def _namespace(document: Document) -> str:
    return scenes.namespace_of(document)


def _part_of(document: Document) -> str:
    return scenes.label(document, labels.PART_OF)


# What is shown


def lines(name: str, told: Picture, now: datetime) -> list[Line]:
    """Return the picture of an update."""
    colour = _COLOURS.get(told.verdict, CYAN)
    found: list[Line] = [[(f"{name}: ", BOLD), (screen.plain(told.sentence), colour)]]
    if told.updated:
        found.append([("  done     ", DIM), (f"{_replicas(told.updated)}", GREEN)])
    if told.current is not None:
        since = f" for {_age(told.since, now)}" if told.since is not None else ""
        found.append([("  now      ", DIM), (f"replica {told.current}{since}", BOLD)])
    for part in told.parts:
        state = "updated" if part.is_updated else f"{part.done} of {part.total}"
        unit = "" if part.is_updated else (" copies" if part.sort == "group" else " pods")
        found.append(
            [
                (f"             {part.name}  ", ""),
                (f"{state}{unit}", GREEN if part.is_updated else CYAN),
            ]
        )
    for wait in told.waits[:WAITS_SHOWN]:
        age = f" [{_age(wait.since, now)}]" if wait.since is not None else ""
        text = screen.plain(f"{wait.subject} {wait.text}")
        found.append([("  waits for", DIM), (f" {text}", YELLOW), (age, DIM)])
    if len(told.waits) > WAITS_SHOWN:
        found.append([(f"            and {len(told.waits) - WAITS_SHOWN} more", DIM)])
    if told.left:
        found.append([("  to come  ", DIM), (_replicas(told.left), "")])
    if told.pods_left or told.remaining is not None:
        found.append([("  pace     ", DIM), (_pace(told), "")])
    return found


def _age(since: datetime | None, now: datetime) -> str:
    return ages.duration((now - since) // timedelta(seconds=1)) if since is not None else ""


def _pace(told: Picture) -> str:
    count = f"{told.pods_done} of {told.pods_done + told.pods_left} pods replaced"
    if told.remaining is None:
        return count
    return f"{count}, about {ages.duration(told.remaining // timedelta(seconds=1))} left"


def _replicas(indexes: Sequence[int]) -> str:
    word = "replica" if len(indexes) == 1 else "replicas"
    return f"{word} {', '.join(ranges(indexes))}"


def ranges(indexes: Sequence[int]) -> Iterator[str]:
    """Yield numbers that follow each other as ranges: 0-3, 5."""
    begun = before = None
    for index in (*sorted(indexes), None):
        if begun is not None and before is not None and index != before + 1:
            yield f"{begun}" if begun == before else f"{begun}-{before}"
            begun = None
        begun = index if begun is None else begun
        before = index


def plain_lines(name: str, told: Picture) -> Iterator[str]:
    """Yield the picture as lines of a log: without ages, so that each is said once."""
    yield f"{name}: {told.sentence}"
    if told.current is not None:
        yield f"{name}: replica {told.current} is in update"
    for part in told.parts:
        if part.is_updated:
            yield f"{name}: {part.sort} {part.name} is updated"
    for wait in told.waits:
        yield f"{name}: waits for {wait.subject}: {wait.text}"


def as_document(ref: Ref, told: Picture) -> Document:
    """Return the picture as programs read it."""
    waits: list[Json] = [
        {
            "subject": wait.subject,
            "text": wait.text,
            **({"since": format_time(wait.since)} if wait.since is not None else {}),
        }
        for wait in told.waits
    ]
    parts: list[Json] = [
        {
            "name": part.name,
            "sort": part.sort,
            "done": part.done,
            "total": part.total,
            "updated": part.is_updated,
        }
        for part in told.parts
    ]
    document: Document = {
        "name": ref.name,
        "namespace": ref.namespace,
        "state": told.verdict.value,
        "message": told.sentence,
        "updatedReplicas": [*told.updated],
        "replicasToCome": [*told.left],
        "parts": parts,
        "waits": waits,
        "podsDone": told.pods_done,
        "podsLeft": told.pods_left,
    }
    if told.current is not None:
        document["currentReplica"] = told.current
    if told.remaining is not None:
        document["secondsLeft"] = told.remaining // timedelta(seconds=1)
    return document
