"""`spinney why`: what keeps an object from being ready, down to its roots, and what would help."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import Sequence

from spinney.api import groupkinds
from spinney.cli import connecting, finding, gathering, pictures, printing
from spinney.cli.connecting import Session
from spinney.decisions.causes import chains, trees
from spinney.decisions.causes.chains import Cause
from spinney.decisions.causes.scenes import Scene
from spinney.kube import client
from spinney.kube.transport import Unreachable
from spinney.meta.documents import Document, Json
from spinney.meta.errors import SpinneyError
from spinney.meta.references import Ref
from spinney.meta.times import format_time

LINES_SAID = 3
CONTAINERS_ASKED_MOST = 5
BYTES_ASKED_MOST = 16384
PATIENCE_SECONDS = 2


def run(arguments: argparse.Namespace) -> int:
    """Tell; returns the exit code: 0 also where something is wrong, as the answer was given."""
    return connecting.talk(arguments, lambda session: _why(session, arguments))


async def _why(session: Session, arguments: argparse.Namespace) -> int:
    if arguments.objects:
        found = await finding.meant(session, arguments.objects)
        scene = await (await gathering.around(session, found)).read()
        wanted = [found.ref]
    else:
        scene = await (await gathering.everywhere(session, session.namespace)).read()
        wanted = trees.roots(scene)
    told = [chains.chain(scene, ref) for ref in wanted]
    if not arguments.objects:
        told = [causes for causes in told if not causes[0].is_well]
    if arguments.output == "json":
        await _print_json(session, told, is_one=bool(arguments.objects))
        return 0
    if not told:
        session.screen.line(_all_is_well(session, scene))
    columns = shutil.get_terminal_size().columns if session.screen.is_live else None
    for causes in told:
        said = await last_lines(session, causes)
        now = session.clock.now()
        for line in pictures.chain(causes, now, columns=columns, said=said):
            session.screen.line(session.screen.parts(line))
    return 0


def _all_is_well(session: Session, scene: Scene) -> str:
    sets = scene.of_kind(groupkinds.SET)
    if not sets:
        return f"There is no set in namespace {session.namespace}."
    if len(sets) == 1:
        return f"The only set of namespace {session.namespace} is as it should be."
    return f"All {len(sets)} sets of namespace {session.namespace} are as they should be."


async def _print_json(session: Session, told: Sequence[Sequence[Cause]], *, is_one: bool) -> None:
    documents: list[Json] = []
    for causes in told:
        said = await last_lines(session, causes)
        documents.append(_document(causes, said))
    whole: Json = documents[0] if is_one else {"objects": documents}
    session.screen.write(printing.json_text(whole))


def _document(causes: Sequence[Cause], said: Sequence[Sequence[str]]) -> Document:
    items: list[Json] = []
    for cause, lines in zip(causes, said, strict=True):
        item: Document = {
            "object": _reference(cause.about),
            "reason": cause.reason,
            "sentence": cause.sentence,
            "depth": cause.depth,
            "root": cause.is_root,
        }
        alike: list[Json] = [*cause.alike]
        last: list[Json] = [*lines]
        more: Document = {
            "since": format_time(cause.since) if cause.since else "",
            "remedy": cause.remedy,
            "container": cause.container,
            "alike": alike,
            "leftOut": cause.left_out,
            "repeated": cause.is_repeated,
            "lastLines": last,
        }
        item |= {key: value for key, value in more.items() if value}
        items.append(item)
    return {
        "object": _reference(causes[0].about),
        "ready": causes[0].is_well,
        "causes": items,
    }


def _reference(about: Ref) -> Document:
    place: Document = {"namespace": about.namespace} if about.namespace else {}
    return {"kind": about.kind.kind, "group": about.kind.group, **place, "name": about.name}


async def last_lines(session: Session, causes: Sequence[Cause]) -> list[list[str]]:
    """Return the last lines of the container each cause is about; none where there is none.

    They are a help, not the answer: what cannot be had soon is left out.
    """
    asked = [cause for cause in causes if cause.container and cause.about.kind == groupkinds.POD]
    pods = await finding.resource_of(session, groupkinds.POD)
    wanted = {id(cause) for cause in asked[:CONTAINERS_ASKED_MOST]} if pods is not None else set()
    return [await _said(session, cause) if id(cause) in wanted else [] for cause in causes]


async def _said(session: Session, cause: Cause) -> list[str]:
    pods = await finding.resource_of(session, groupkinds.POD)
    assert pods is not None
    path = client.place(pods, cause.about.namespace, cause.about.name, "log")
    query = [("container", cause.container), ("tailLines", str(LINES_SAID))]
    query.append(("limitBytes", str(BYTES_ASKED_MOST)))
    if cause.reason == "CrashLoopBackOff":
        query.append(("previous", "true"))
    data = b""
    try:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            session.client.transport.stream(path, query=query) as parts,
        ):
            async for part in parts:
                data += part
    except (SpinneyError, Unreachable, TimeoutError):
        return []
    return data.decode("utf-8", "replace").splitlines()[-LINES_SAID:]
