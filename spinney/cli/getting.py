"""`spinney get`: objects as tables, or as they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from spinney.cli import connecting, failing, following, printing, targets, templates, views
from spinney.cli.connecting import Session
from spinney.cli.targets import Target
from spinney.cli.usage import Usage
from spinney.cli.views import Rows, View
from spinney.kube import client, transport
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, Json, list_at, string_at, without
from spinney.meta.errors import ApiError, NotFound

FORMS = ("table", "wide", "yaml", "json", "name")


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
        return await following.follow(session, arguments, view, wanted)
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
        printers: dict[Resource, Rows] = {}
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
                    printer = printers[target.resource] = Rows(
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
                documents += views.objects(page, target) if not target.names else [page]
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
