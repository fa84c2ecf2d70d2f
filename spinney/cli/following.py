"""`spinney get -w`: what is there, then every change, until the command is interrupted."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import aclosing

from spinney.cli import printing, targets, templates, views
from spinney.cli.connecting import Session
from spinney.cli.targets import Target
from spinney.cli.usage import Usage
from spinney.cli.views import View
from spinney.kube import client, transport, watching
from spinney.kube.client import Selection
from spinney.meta.documents import Document, string_at, without
from spinney.meta.errors import Expired


async def follow(
    session: Session, arguments: argparse.Namespace, view: View, wanted: Sequence[Target]
) -> int:
    """Show what is there, then every change, until the command is interrupted."""
    if len(wanted) != 1 or len(wanted[0].names) > 1:
        raise Usage("-w watches one kind: all its objects, or one by name")
    target = wanted[0]
    selection = targets.selection(session, arguments, target.resource)
    if target.names:
        selection = Selection(namespace=target.namespace, fields=f"metadata.name={target.names[0]}")
    form = client.TABLE if view.is_table else transport.JSON
    show = _shower(session, view, target)
    is_first = True
    while True:
        since = ""
        pages = session.client.pages(target.resource, selection, form=form)
        async for page in pages:
            since = since or string_at(page, ["metadata", "resourceVersion"])
            if is_first and not arguments.watch_only:
                if target.names and not (page.get("rows") or page.get("items")):
                    await session.client.get(target.resource, target.namespace, target.names[0])
                show(page)
        is_first = False
        watch = session.watch(target.resource, selection, form=form)
        try:
            async with aclosing(watch.events(since)) as events:
                async for event in events:
                    if event.type != watching.BOOKMARK:
                        show(event.object)
        except Expired:
            session.screen.note("some changes were missed; going on from now")


def _shower(session: Session, view: View, target: Target) -> Callable[[Document], None]:
    """Return what prints a page of a list, or the object of an event."""
    screen = session.screen
    if view.is_table:
        rows = views.Rows(session, view, target.resource, is_mixed=False)

        def show_rows(table: Document) -> None:
            if table.get("rows") or table.get("items") or "metadata" not in table:
                rows.print(table)

        return show_rows

    is_first = True

    def show(document: Document) -> None:
        nonlocal is_first
        found = views.objects(document, target) if "items" in document else [document]
        for item in found:
            if not view.has_managed_fields:
                item = without(item, ["metadata", "managedFields"])
            if view.form == "name":
                screen.line(target.resource.title(string_at(item, ["metadata", "name"])))
            elif view.form == "jsonpath":
                screen.line(templates.fill(view.template, item))
            elif view.form == "yaml":
                screen.write(("" if is_first else "---\n") + printing.yaml_text(item))
            else:
                screen.write(printing.json_text(item))
            screen.out.flush()
            is_first = False

    return show
