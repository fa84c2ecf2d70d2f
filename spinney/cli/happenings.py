"""`spinney events`: what happened, the latest last."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime

from spinney.cli import connecting, printing
from spinney.cli.connecting import Session
from spinney.cli.tables import Table
from spinney.cli.usage import Usage
from spinney.kube import watching
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, Json, is_integer, string_at, value_at
from spinney.meta.errors import Expired
from spinney.server import ages

EVENTS = Resource(group="", version="v1", plural="events", kind="Event", singular="event")
HEADINGS = ("Last seen", "Type", "Reason", "Object", "Message")


def run(arguments: argparse.Namespace) -> int:
    """Show events; returns the exit code."""
    return connecting.talk(arguments, lambda session: _events(session, arguments))


async def _events(session: Session, arguments: argparse.Namespace) -> int:
    fields = []
    namespace = "" if arguments.all_namespaces else session.namespace
    if arguments.about:
        resource, name = await _about(session, arguments.about)
        fields = [f"involvedObject.kind={resource.kind}", f"involvedObject.name={name}"]
        namespace = namespace if resource.namespaced else ""
    types = {word.casefold() for word in (arguments.types or "").split(",") if word}
    selection = Selection(namespace=namespace, fields=",".join(fields))
    if arguments.watch:
        return await _watch(session, arguments, selection, types)
    events = [
        event
        for event in ordered(await session.client.objects(EVENTS, selection))
        if _is_of(event, types)
    ]
    if arguments.output != "table":
        items: list[Json] = [*events]
        form = printing.yaml_text if arguments.output == "yaml" else printing.json_text
        session.screen.write(form({"apiVersion": "v1", "kind": "List", "items": items}))
    elif events:
        table = _table(session, arguments)
        table.print([_row(session, arguments, event) for event in events])
    else:
        place = f" in {namespace} namespace" if namespace else ""
        session.screen.note(f"No events found{place}.")
    return 0


async def _about(session: Session, text: str) -> tuple[Resource, str]:
    kind, slash, name = text.partition("/")
    if not (kind and slash and name):
        raise Usage(f'--for "{text}": must be KIND/NAME')
    return (await session.client.resources()).named(kind), name


async def _watch(
    session: Session, arguments: argparse.Namespace, selection: Selection, types: set[str]
) -> int:
    table = _table(session, arguments)
    is_first = True
    while True:
        page = await session.client.page(EVENTS, selection)
        if is_first:
            found = ordered([item for item in _items(page) if _is_of(item, types)])
            table.print([_row(session, arguments, event) for event in found])
            is_first = False
        since = string_at(page, ["metadata", "resourceVersion"])
        try:
            async with aclosing(session.watch(EVENTS, selection).events(since)) as changes:
                async for change in changes:
                    is_news = change.type in (watching.ADDED, watching.MODIFIED)
                    if is_news and _is_of(change.object, types):
                        table.print([_row(session, arguments, change.object)])
        except Expired:
            session.screen.note("some events were missed; going on from now")


def _items(page: Document) -> list[Document]:
    items = page.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_of(event: Document, types: set[str]) -> bool:
    return not types or string_at(event, ["type"]).casefold() in types


def ordered(events: Sequence[Document]) -> list[Document]:
    """Return events by when they were last seen."""
    return sorted(events, key=last_seen)


def last_seen(event: Document) -> str:
    """Return when an event was last seen, as it is written."""
    found = (
        string_at(event, ["series", "lastObservedTime"]),
        string_at(event, ["lastTimestamp"]),
        string_at(event, ["eventTime"]),
        string_at(event, ["firstTimestamp"]),
        string_at(event, ["metadata", "creationTimestamp"]),
    )
    return next((text for text in found if text), "")


def age(event: Document, now: datetime) -> str:
    """Return how long ago an event was seen, with how often since when: `5s (x3 over 2m)`."""
    text = ages.age(last_seen(event), now)
    count = value_at(event, ["series", "count"]) or value_at(event, ["count"])
    if not is_integer(count) or count < 2:
        return text
    first = string_at(event, ["firstTimestamp"]) or string_at(event, ["eventTime"])
    return f"{text} (x{count} over {ages.age(first, now)})"


def _table(session: Session, arguments: argparse.Namespace) -> Table:
    headings = ("Namespace", *HEADINGS) if arguments.all_namespaces else HEADINGS
    return Table(headings, session.screen, is_headed=not arguments.no_headers)


def _row(session: Session, arguments: argparse.Namespace, event: Document) -> list[str]:
    involved = ["involvedObject"]
    kind, name = string_at(event, [*involved, "kind"]), string_at(event, [*involved, "name"])
    row = [
        age(event, session.clock.now()),
        string_at(event, ["type"]),
        string_at(event, ["reason"]),
        f"{kind}/{name}",
        string_at(event, ["message"]).strip(),
    ]
    return [string_at(event, ["metadata", "namespace"]), *row] if arguments.all_namespaces else row
