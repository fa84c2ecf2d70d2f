"""`spinney diff`: what apply would change, as the server works it out."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from spinney.cli import applying, connecting, failing, printing, targets
from spinney.cli.connecting import Session
from spinney.cli.screen import BOLD, CYAN, GREEN, RED, Screen
from spinney.cli.targets import Item
from spinney.cli.usage import Usage
from spinney.kube.client import Write
from spinney.meta.documents import Document, string_at, without
from spinney.meta.errors import NotFound, SpinneyError

_COLOURS = {"+": GREEN, "-": RED, "@": CYAN}
_NOT_COMPARED = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
"""What servers write by themselves, and what differs with every write."""


def run(arguments: argparse.Namespace) -> int:
    """Show differences; returns 1 where there are any, and more where something failed."""
    applying.refuse_kustomize(arguments)
    if not arguments.files:
        raise Usage("say which manifests: -f FILE, -f DIR, or -f - for standard input")
    items = targets.items(arguments.files)
    return connecting.talk(arguments, lambda session: _diff(session, arguments, items))


async def _diff(session: Session, arguments: argparse.Namespace, items: Sequence[Item]) -> int:
    write = Write(manager=arguments.field_manager, dry_run=True, force=arguments.force_conflicts)
    code = 0
    for item in items:
        try:
            lines = await _difference(session, item, write)
        except SpinneyError as error:
            session.screen.note(applying.located(error, item))
            code = max(code, failing.exit_code(error))
            continue
        if lines:
            code = max(code, 1)
            _print(lines, session.screen)
    return code


async def _difference(session: Session, item: Item, write: Write) -> list[str]:
    target = await targets.of_item(session, item)
    resource, namespace = target.resource, target.namespace
    try:
        before = _compared(await session.client.get(resource, namespace, item.name))
    except NotFound:
        before = {}
    document = applying.prepared(item.document, namespace)
    answer = await session.client.apply(resource, namespace, document, write)
    after = _compared(answer.document)
    title = resource.title(string_at(answer.document, ["metadata", "name"]))
    return list(
        difflib.unified_diff(
            printing.yaml_text(before).splitlines() if before else [],
            printing.yaml_text(after).splitlines(),
            f"{title} (now)" if before else "/dev/null",
            f"{title} (after {item.place})",
            lineterm="",
        )
    )


def _compared(document: Document) -> Document:
    for field in _NOT_COMPARED:
        document = without(document, ["metadata", field])
    return document


def _print(lines: Sequence[str], output: Screen) -> None:
    for line in lines:
        is_heading = line.startswith(("--- ", "+++ "))
        colour = BOLD if is_heading else _COLOURS.get(line[:1], "")
        output.line(output.painted(line, colour) if colour else line)
