"""`spinney rollout history`, `undo`, `restart`, `pause`, `resume`: the revisions of a set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta

from spinney.api import groupkinds, labels
from spinney.api.podcliqueset import PodCliqueSet
from spinney.cli import connecting, failing, finding, gathering, pacing, printing, screen
from spinney.cli.connecting import Session
from spinney.cli.finding import Found
from spinney.cli.tables import Table
from spinney.decisions import revisions, sets
from spinney.decisions.making import owning
from spinney.decisions.updates import history
from spinney.decisions.updates.history import Difference, Edition
from spinney.kube.client import Selection, Write
from spinney.meta import records
from spinney.meta.documents import Document, Json, object_at, string_at, value_at
from spinney.meta.errors import Conflict, NotFound
from spinney.meta.times import format_time
from spinney.server import ages

CHANGES_TOLD = 3
VALUE_LENGTH_MAX = 60
ATTEMPTS = 10
"""How often a change is tried anew while nothing but the status of a set changes."""


def run(arguments: argparse.Namespace) -> int:
    """Do one of these; returns the exit code."""
    deed = _DEEDS[arguments.deed]
    return connecting.talk(arguments, lambda session: deed(session, arguments))


async def _editions(session: Session, found: Found) -> tuple[tuple[Edition, ...], str]:
    """Return the revisions of a set, the oldest first, and which one its template says now."""
    gathered = await gathering.around(session, found)
    scene = await gathered.read()
    resource = await finding.resource_of(session, groupkinds.REVISION)
    kept: list[Document] = []
    if resource is not None:
        selection = Selection(
            namespace=found.ref.namespace, labels=f"{labels.PART_OF}={found.ref.name}"
        )
        kept = await session.client.objects(resource, selection)
    seen = pacing.observation(scene, found.document, kept)
    own = [
        each for each in seen.revisions if owning.is_owned_by(each.metadata, seen.set_.metadata.uid)
    ]
    running = sets.running_revisions(seen)
    return history.editions(own, running), _now(seen.set_)


def _now(set_: PodCliqueSet) -> str:
    stored = set_.status.current_generation_hash
    template = set_.spec.template
    if stored and revisions.is_generation_hash(stored, template):
        return stored
    return revisions.generation_hash(template)


# What was


async def _history(session: Session, arguments: argparse.Namespace) -> int:
    found = await pacing.the_set(session, arguments.objects)
    editions, now = await _editions(session, found)
    if arguments.revision is not None:
        edition = _numbered(editions, arguments.revision, found)
        form = "json" if arguments.output == "json" else "yaml"
        shown = _document(edition, now)
        session.screen.write(
            printing.json_text(shown) if form == "json" else printing.yaml_text(shown)
        )
        return 0
    if arguments.diff is not None:
        first, second = (_numbered(editions, number, found) for number in arguments.diff)
        for difference in history.differences(first.data, second.data):
            session.screen.line(told(difference))
        return 0
    if arguments.output == "json":
        items: list[Json] = [_document(edition, now) for edition in editions]
        session.screen.write(printing.json_text({"revisions": items}))
        return 0
    if not editions:
        session.screen.note(f"{found.resource.title(found.ref.name)} has no revisions yet")
        return failing.NO
    table = Table(("revision", "age", "runs in", "change-cause", "what changed"), session.screen)
    rows = []
    before: Edition | None = None
    for edition in editions:
        changed = () if before is None else history.differences(before.data, edition.data)
        mark = " (now)" if edition.hash == now else ""
        rows.append(
            (
                f"{edition.number}{mark}",
                _age(session, edition),
                ", ".join(pacing.ranges(edition.runs)) or "-",
                edition.cause or "<none>",
                "; ".join(_summary(changed)) if before is not None else "-",
            )
        )
        before = edition
    table.print(rows)
    return 0


def _age(session: Session, edition: Edition) -> str:
    if edition.created is None:
        return ages.UNKNOWN
    passed = (session.clock.now() - edition.created) // timedelta(seconds=1)
    return ages.duration(passed)


def _document(edition: Edition, now: str) -> Document:
    runs: list[Json] = [*edition.runs]
    document: Document = {
        "revision": edition.number,
        "hash": edition.hash,
        "isNow": edition.hash == now,
    }
    if edition.created is not None:
        document["created"] = format_time(edition.created)
    if edition.cause:
        document["changeCause"] = edition.cause
    return {**document, "runsInReplicas": runs, "template": edition.data}


def _numbered(editions: Sequence[Edition], number: int, found: Found) -> Edition:
    edition = history.numbered(editions, number)
    if edition is None:
        known = ", ".join(str(each.number) for each in editions) or "none"
        title = found.resource.title(found.ref.name)
        raise NotFound(f"{title} has no revision {number}; kept are: {known}")
    return edition


def _summary(changed: Sequence[Difference]) -> list[str]:
    shown = [told(difference) for difference in changed[:CHANGES_TOLD]]
    if len(changed) > CHANGES_TOLD:
        shown.append(f"{len(changed) - CHANGES_TOLD} more")
    return shown or ["nothing"]


def told(difference: Difference) -> str:
    """Return one difference as people read it."""
    was, is_ = _value(difference.before), _value(difference.after)
    return screen.plain(f"{difference.path}: {was} -> {is_}")


def _value(value: Json) -> str:
    text = "<none>" if value is None else value if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}…"


# What is done


async def _undo(session: Session, arguments: argparse.Namespace) -> int:
    found = await pacing.the_set(session, arguments.objects)
    title = found.resource.title(found.ref.name)
    editions, now = await _editions(session, found)
    if arguments.to_revision is not None:
        target: Edition | None = _numbered(editions, arguments.to_revision, found)
    else:
        target = history.before(editions, now)
    if target is None:
        session.screen.note(f"{title} has no other revision to go back to")
        return failing.NO
    if target.hash == now:
        session.screen.line(f"{title} is at revision {target.number} already: nothing is changed")
        return 0
    template = object_at(found.document, ["spec", "template"])
    said: Document = {"template": history.restored(template, target.data)}
    written = {CAUSE: target.cause or None} if target.cause or _has_cause(found) else {}
    set_ = records.decode(PodCliqueSet, found.document)
    is_now = revisions.data_of(set_.spec.template)
    await _patch(session, found, said, {**written}, is_dry=arguments.dry_run)
    session.screen.line(f"{title} rolled back to revision {target.number}{_dry(arguments)}")
    for difference in history.differences(is_now, target.data):
        session.screen.line(f"  {told(difference)}")
    _note_pause(session, found)
    return 0


CAUSE = labels.CHANGE_CAUSE


def _has_cause(found: Found) -> bool:
    return CAUSE in object_at(found.document, ["metadata", "annotations"])


async def _restart(session: Session, arguments: argparse.Namespace) -> int:
    found = await pacing.the_set(session, arguments.objects)
    template = object_at(found.document, ["spec", "template"])
    at = format_time(session.clock.now())
    said: Document = {"template": history.restarted(template, at)}
    await _patch(session, found, said, {}, is_dry=arguments.dry_run)
    title = found.resource.title(found.ref.name)
    session.screen.line(f"{title} restarted: every pod is replaced in turn{_dry(arguments)}")
    _note_pause(session, found)
    return 0


async def _hold(session: Session, arguments: argparse.Namespace) -> int:
    """Pause or resume."""
    found = await pacing.the_set(session, arguments.objects)
    wanted = arguments.deed == "pause"
    title = found.resource.title(found.ref.name)
    if _is_paused(found) == wanted:
        session.screen.line(f"{title} is {'paused' if wanted else 'not paused'} already")
        return 0
    await _patch(session, found, {"updateStrategy": {"paused": wanted}}, {})
    session.screen.line(f"{title} {'paused' if wanted else 'resumed'}")
    return 0


def _is_paused(found: Found) -> bool:
    strategy = object_at(found.document, ["spec", "updateStrategy"])
    return strategy.get("paused") is True


def _note_pause(session: Session, found: Found) -> None:
    name = found.ref.name
    if _is_paused(found):
        session.screen.note(f"Its updates are paused: spinney rollout resume {name} lets them on.")
    elif string_at(found.document, ["spec", "updateStrategy", "type"]) == "OnDelete":
        session.screen.note("Its update type is OnDelete: pods follow when they are deleted.")


def _dry(arguments: argparse.Namespace) -> str:
    return " (dry run)" if arguments.dry_run else ""


async def _patch(
    session: Session,
    found: Found,
    spec: Document,
    annotations: Document,
    *,
    is_dry: bool = False,
) -> None:
    """Change a set whose spec is as it was seen; raises Conflict where that changed meanwhile.

    Its status may change all the time, in an update above all: that is no conflict.
    """
    generation = value_at(found.document, ["metadata", "generation"])
    document = found.document
    for attempt in range(ATTEMPTS):
        version = string_at(document, ["metadata", "resourceVersion"])
        metadata: Document = {"resourceVersion": version}
        if annotations:
            metadata["annotations"] = annotations
        body: Document = {"metadata": metadata, "spec": spec}
        where = found.resource, found.ref.namespace, found.ref.name
        try:
            await session.client.patch(*where, body, Write(dry_run=is_dry))
        except Conflict:
            document = await session.client.get(*where)
            is_same = value_at(document, ["metadata", "generation"]) == generation
            if not is_same or attempt == ATTEMPTS - 1:
                raise
        else:
            return


_DEEDS = {
    "history": _history,
    "undo": _undo,
    "restart": _restart,
    "pause": _hold,
    "resume": _hold,
}
