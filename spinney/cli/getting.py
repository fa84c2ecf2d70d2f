"""`spinney get`: objects as tables, or as they are; and what changes of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import aclosing

import msgspec

from spinney.cli import connecting, failing, printing, targets, templates
from spinney.cli.connecting import Session
from spinney.cli.tables import Table
from spinney.cli.targets import Target
from spinney.cli.templates import Part
from spinney.cli.usage import Usage
from spinney.kube import client, transport, watching
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    string_at,
    strings,
    value_at,
    without,
)
from spinney.meta.errors import ApiError, Expired, NotFound
from spinney.meta.records import Record

FORMS = ("table", "wide", "yaml", "json", "name")
NONE = "<none>"


class View(Record):
    """How objects are shown."""

    form: str
    template: tuple[Part, ...] = ()
    has_headings: bool = True
    has_namespace: bool = False
    has_labels: bool = False
    label_columns: tuple[str, ...] = ()
    has_managed_fields: bool = False

    @property
    def is_table(self) -> bool:
        """Whether the server is asked for a table."""
        return self.form in ("table", "wide")


def run(arguments: argparse.Namespace) -> int:
    """Show objects; returns the exit code."""
    view = _view(arguments)
    if bool(arguments.objects) == bool(arguments.files):
        raise Usage("say which objects: either KIND [NAME...], or -f FILE")
    return connecting.talk(arguments, lambda session: _get(session, arguments, view))


def _view(arguments: argparse.Namespace) -> View:
    form, _, rest = arguments.output.partition("=")
    if form == "jsonpath" and rest:
        template = templates.parse(rest)
    elif form in FORMS and not rest:
        template = ()
    else:
        raise Usage(f'-o "{arguments.output}": must be {", ".join(FORMS)} or jsonpath=TEMPLATE')
    labels = [label for given in arguments.label_columns for label in given.split(",")]
    return View(
        form=form,
        template=template,
        has_headings=not arguments.no_headers,
        has_namespace=arguments.all_namespaces,
        has_labels=arguments.show_labels,
        label_columns=tuple(labels),
        has_managed_fields=arguments.show_managed_fields,
    )


async def _get(session: Session, arguments: argparse.Namespace, view: View) -> int:
    if arguments.files:
        items = targets.items(arguments.files)
        wanted = [await targets.of_item(session, item) for item in items]
    else:
        wanted = await targets.named(session, arguments.objects)
    if arguments.watch or arguments.watch_only:
        return await _watch(session, arguments, view, wanted)
    getter = _Getter(session, arguments, view)
    if view.is_table:
        await getter.print_tables(wanted)
    else:
        await getter.print_documents(wanted)
    return getter.code


class _Getter:
    """Reads what is wanted; what cannot be read is told, and the rest is shown all the same."""

    def __init__(self, session: Session, arguments: argparse.Namespace, view: View) -> None:
        self._session = session
        self._arguments = arguments
        self._view = view
        self.code = 0

    async def _pages(self, target: Target, form: str) -> list[Document]:
        """Return objects, or tables, or pages of lists."""
        session = self._session
        if not target.names:
            wanted = targets.selection(session, self._arguments, target.resource)
            pages = session.client.pages(target.resource, wanted, form=form)
            return [page async for page in pages]
        found = []
        for name in target.names:
            try:
                found.append(
                    await session.client.get(target.resource, target.namespace, name, form=form)
                )
            except ApiError as error:
                self._failed(error)
        return found

    def _failed(self, error: ApiError) -> None:
        if isinstance(error, NotFound) and self._arguments.ignore_not_found:
            return
        self._session.screen.note(failing.text(error))
        self.code = max(self.code, failing.exit_code(error))

    async def print_tables(self, wanted: Sequence[Target]) -> None:
        screen = self._session.screen
        is_mixed = len({target.resource for target in wanted}) > 1
        begun = 0
        printers: dict[Resource, _Rows] = {}
        for target in wanted:
            try:
                tables = await self._pages(target, client.TABLE)
            except ApiError as error:
                self._failed(error)
                continue
            printer = printers.get(target.resource)
            for table in tables:
                rows = list_at(table, ["rows"]) or list_at(table, ["items"])
                if not rows and string_at(table, ["kind"]) in ("Table", "", "List"):
                    continue
                if printer is None:
                    if begun:
                        screen.line()
                    printer = printers[target.resource] = _Rows(
                        self._session, self._view, target.resource, is_mixed=is_mixed
                    )
                    begun += 1
                printer.print(table)
        if not begun and not self.code and not any(target.names for target in wanted):
            screen.note(_nothing(self._session, self._arguments, wanted))

    async def print_documents(self, wanted: Sequence[Target]) -> None:
        screen = self._session.screen
        documents = []
        for target in wanted:
            try:
                pages = await self._pages(target, transport.JSON)
            except ApiError as error:
                self._failed(error)
                continue
            for page in pages:
                documents += _objects(page, target) if not target.names else [page]
        if not self._view.has_managed_fields:
            documents = [without(each, ["metadata", "managedFields"]) for each in documents]
        is_single = len(wanted) == 1 and len(wanted[0].names) == 1
        if self._view.form == "name":
            for document in documents:
                screen.line(_title(wanted, document))
            return
        if is_single and not documents:
            return
        whole = documents[0] if is_single else _list(documents)
        if self._view.form == "jsonpath":
            screen.write(templates.fill(self._view.template, whole))
        else:
            form = printing.yaml_text if self._view.form == "yaml" else printing.json_text
            screen.write(form(whole))


def _objects(page: Document, target: Target) -> list[Document]:
    resource = target.resource
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, **object_at(item, [])}
        for item in list_at(page, ["items"])
    ]


def _list(documents: Sequence[Document]) -> Document:
    items: list[Json] = [*documents]
    return {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": items,
    }


def _title(wanted: Sequence[Target], document: Document) -> str:
    kind = string_at(document, ["kind"])
    name = string_at(document, ["metadata", "name"])
    for target in wanted:
        if target.resource.kind == kind:
            return target.resource.title(name)
    return f"{kind.lower()}/{name}"


def _nothing(session: Session, arguments: argparse.Namespace, wanted: Sequence[Target]) -> str:
    if arguments.all_namespaces or not any(target.resource.namespaced for target in wanted):
        return "No resources found"
    return f"No resources found in {session.namespace} namespace."


class _Rows:
    """Prints the tables a server sends for one resource, as one table."""

    def __init__(self, session: Session, view: View, resource: Resource, *, is_mixed: bool) -> None:
        self._session = session
        self._view = view
        self._resource = resource
        self._is_mixed = is_mixed
        self._table: Table | None = None
        self._columns: list[int] = []

    def print(self, table: Document) -> None:
        """Print the rows of a table, or of a list of a server that knows no tables."""
        if string_at(table, ["kind"]) != "Table":
            table = _plain_table(table, self._session)
        if self._table is None:
            self._begin(list_at(table, ["columnDefinitions"]))
        assert self._table is not None
        self._table.print([self._row(row) for row in list_at(table, ["rows"])])

    def _begin(self, definitions: Sequence[Json]) -> None:
        most = 1 if self._view.form == "wide" else 0
        self._columns = [
            index
            for index, definition in enumerate(definitions)
            if (value_at(definition, ["priority"]) or 0) in range(most + 1)
        ]
        headings = [string_at(definitions[index], ["name"]) for index in self._columns]
        if self._view.has_namespace and self._resource.namespaced:
            headings.insert(0, "Namespace")
        headings += [label.rpartition("/")[2] for label in self._view.label_columns]
        headings += ["Labels"] if self._view.has_labels else []
        self._table = Table(headings, self._session.screen, is_headed=self._view.has_headings)

    def _row(self, row: Json) -> list[str]:
        cells = list_at(row, ["cells"])
        metadata = object_at(row, ["object", "metadata"])
        found = [_cell(cells[index]) if index < len(cells) else "" for index in self._columns]
        if self._is_mixed and found:
            found[0] = self._resource.title(found[0])
        if self._view.has_namespace and self._resource.namespaced:
            found.insert(0, string_at(metadata, ["namespace"]))
        labels = strings(metadata.get("labels"))
        found += [labels.get(label, "") for label in self._view.label_columns]
        if self._view.has_labels:
            found.append(",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE)
        return found


def _cell(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _plain_table(document: Document, session: Session) -> Document:
    """Return names and ages as a table, of an object or of a list."""
    from spinney.server import ages

    items = list_at(document, ["items"]) if "items" in document else [document]
    now = session.clock.now()
    rows: list[Json] = [
        {
            "cells": [
                string_at(item, ["metadata", "name"]),
                ages.age(value_at(item, ["metadata", "creationTimestamp"]), now),
            ],
            "object": {"metadata": object_at(item, ["metadata"])},
        }
        for item in items
    ]
    return {
        "kind": "Table",
        "columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
        "rows": rows,
    }


async def _watch(
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
        rows = _Rows(session, view, target.resource, is_mixed=False)

        def show_rows(table: Document) -> None:
            if table.get("rows") or table.get("items") or "metadata" not in table:
                rows.print(table)

        return show_rows

    is_first = True

    def show(document: Document) -> None:
        nonlocal is_first
        found = _objects(document, target) if "items" in document else [document]
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
