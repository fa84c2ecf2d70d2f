"""`spinney tree`: systems as trees, from the set to its pods, once or as they change."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta

from spinney.cli import connecting, failing, finding, gathering, pictures, printing, screen
from spinney.cli.connecting import Session
from spinney.cli.gathering import Gathering
from spinney.cli.live import Live
from spinney.cli.screen import Line
from spinney.cli.usage import Usage
from spinney.decisions.causes import trees
from spinney.decisions.causes.scenes import Scene
from spinney.decisions.causes.trees import Branch
from spinney.meta.documents import Document, Json
from spinney.meta.references import Ref
from spinney.meta.times import format_time

TICK = timedelta(seconds=1)
"""How often a live picture is drawn anew though nothing changed: its ages have."""

Grow = Callable[[Scene], list[Branch]]


def run(arguments: argparse.Namespace) -> int:
    """Draw; returns the exit code."""
    if arguments.objects and arguments.all_namespaces:
        raise Usage("-A is for all sets of all namespaces: name no object with it")
    if (arguments.watch or arguments.until_ready) and arguments.output == "json":
        raise Usage("-w draws for people: leave -o json out, or watch with spinney get -w -o json")
    if arguments.timeout is not None and not arguments.until_ready:
        raise Usage("--timeout goes with --until-ready")
    return connecting.talk(arguments, lambda session: _tree(session, arguments))


async def _tree(session: Session, arguments: argparse.Namespace) -> int:
    gathered, grow = await _meant(session, arguments)
    if arguments.until_ready:
        return await _until_ready(session, arguments, gathered, grow)
    if arguments.watch:
        async with gathered.watched():
            await follow(session, gathered, grow, is_folded=not arguments.all)
        return 0
    branches = grow(await gathered.read())
    if arguments.output == "json":
        items: list[Json] = [as_document(branch) for branch in branches]
        whole: Document = {"trees": items}
        session.screen.write(printing.json_text(items[0] if arguments.objects else whole))
        return 0
    if not branches:
        place = "" if arguments.all_namespaces else f" in namespace {session.namespace}"
        session.screen.note(f"There is no set{place} yet.")
        return 0
    for line in fitted(session, lines(session, branches, is_folded=not arguments.all)):
        session.screen.line(session.screen.parts(line))
    return 0


async def _until_ready(
    session: Session, arguments: argparse.Namespace, gathered: Gathering, grow: Grow
) -> int:
    """Draw until all is ready; returns 1 where it is not in time."""
    limit = arguments.timeout
    try:
        async with (
            asyncio.timeout(None if limit is None else limit / timedelta(seconds=1)),
            gathered.watched(),
        ):
            await follow(session, gathered, grow, is_folded=not arguments.all, until=_are_whole)
    except TimeoutError:
        session.screen.note("not everything was ready in time: spinney why tells what is missing")
        return failing.NO
    return 0


def _are_whole(branches: Sequence[Branch]) -> bool:
    return bool(branches) and all(_is_whole(branch) for branch in branches)


def _is_whole(branch: Branch) -> bool:
    return branch.is_whole and all(map(_is_whole, branch.below))


async def _meant(session: Session, arguments: argparse.Namespace) -> tuple[Gathering, Grow]:
    """Return what is gathered, and how trees grow from it."""
    if arguments.objects:
        found = await finding.meant(session, arguments.objects)
        return await gathering.around(session, found), of_one(found.ref)
    namespace = "" if arguments.all_namespaces else session.namespace
    return await gathering.everywhere(session, namespace), _of_all


def of_one(ref: Ref) -> Grow:
    """Return what grows the tree of one object."""
    return lambda scene: [trees.tree(scene, ref)]


def _of_all(scene: Scene) -> list[Branch]:
    return [trees.tree(scene, ref) for ref in trees.roots(scene)]


def lines(session: Session, branches: Sequence[Branch], *, is_folded: bool) -> list[Line]:
    """Return trees as they are now."""
    return pictures.tree(branches, session.clock.now(), is_folded=is_folded)


def fitted(session: Session, drawn: Sequence[Line]) -> Sequence[Line]:
    """Return lines that fit a terminal, where it is one."""
    if not session.screen.is_live:
        return drawn
    columns = shutil.get_terminal_size().columns
    return [screen.cut(line, columns) for line in drawn]


async def follow(
    session: Session,
    gathered: Gathering,
    grow: Grow,
    *,
    is_folded: bool = True,
    until: Callable[[Sequence[Branch]], bool] = lambda _branches: False,
) -> None:
    """Draw trees as they change, until something holds of them, or the command is interrupted.

    On a terminal they are drawn in place; elsewhere anew after each change.
    """
    if session.screen.is_live:
        with Live(session.screen, session.screen.out) as live:
            while True:
                branches = grow(gathered.scene())
                live.draw(lines(session, branches, is_folded=is_folded))
                if until(branches):
                    return
                await gathered.wait_for_news(TICK)
    before: list[Document] = []
    while True:
        branches = grow(gathered.scene())
        now = [as_document(branch) for branch in branches]
        if now != before:
            if before:
                session.screen.line()
            for line in lines(session, branches, is_folded=is_folded):
                session.screen.line(session.screen.parts(line))
        before = now
        if until(branches):
            return
        await gathered.wait_for_news()


def as_document(branch: Branch) -> Document:
    """Return a tree as programs read it."""
    document: Document = {"sort": branch.sort, "name": branch.name}
    if branch.about is not None and branch.about.namespace:
        document["namespace"] = branch.about.namespace
    document["state"] = branch.state
    if branch.wanted is not None:
        document |= {"ready": branch.ready or 0, "wanted": branch.wanted}
    document |= {
        key: value
        for key, value in (
            ("node", branch.node),
            ("restarts", branch.restarts),
            ("gang", branch.gang),
            ("created", format_time(branch.since) if branch.since else ""),
            ("why", branch.why),
        )
        if value
    }
    if branch.below:
        below: list[Json] = [as_document(each) for each in branch.below]
        document["below"] = below
    return document
