"""`spinney describe`: all about objects, for people."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from spinney.cli import connecting, failing, happenings, outlines, printing, targets
from spinney.cli.connecting import Session
from spinney.cli.outlines import NONE, Line, Parts, Rows
from spinney.cli.screen import BOLD, plain
from spinney.cli.tables import Table
from spinney.cli.usage import Usage
from spinney.kube import client
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
from spinney.meta.errors import ApiError, SpinneyError
from spinney.server import ages

INDENT = "  "
EVENTS_MAX = 20
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def run(arguments: argparse.Namespace) -> int:
    """Describe objects; returns the exit code."""
    if bool(arguments.objects) == bool(arguments.files):
        raise Usage("say which objects: either KIND [NAME...], or -f FILE")
    return connecting.talk(arguments, lambda session: _describe(session, arguments))


async def _describe(session: Session, arguments: argparse.Namespace) -> int:
    code, count = 0, 0
    for target in await targets.chosen(session, arguments):
        async for namespace, name in targets.names_of(session, arguments, target):
            try:
                document = await session.client.get(target.resource, namespace, name)
            except SpinneyError as error:
                session.screen.note(failing.text(error))
                code = max(code, failing.exit_code(error))
                continue
            if count:
                session.screen.line("\n")
            count += 1
            await _Description(session, target.resource, document).print()
    if not count and not code:
        session.screen.note("No resources found")
    return code


class _Description:
    """Prints one object."""

    def __init__(self, session: Session, resource: Resource, document: Document) -> None:
        self._session = session
        self._screen = session.screen
        self._resource = resource
        self._document = document

    async def print(self) -> None:
        self._print_lines(self._head())
        outline = outlines.outline_of(self._resource)
        if outline is None:
            self._print_fields()
        else:
            told = list(outline(self._document))
            self._print_lines([each for each in told if isinstance(each, Line)])
            for each in told:
                if isinstance(each, Rows):
                    self._print_rows(each.title, each.headings, each.rows)
                elif isinstance(each, Parts):
                    await self._print_parts(each)
        self._print_conditions()
        await self._print_events()

    def _head(self) -> list[Line]:
        metadata = object_at(self._document, ["metadata"])
        kept = {
            key: text
            for key, text in strings(metadata.get("annotations")).items()
            if key != LAST_APPLIED
        }
        now = self._session.clock.now()
        created = string_at(metadata, ["creationTimestamp"])
        lines = [
            Line(name="Name", value=string_at(metadata, ["name"])),
            Line(name="Namespace", value=string_at(metadata, ["namespace"])),
            Line(name="Kind", value=f"{self._resource.kind} ({self._resource.api_version})"),
            Line(name="Labels", value=_pairs(strings(metadata.get("labels")))),
            Line(name="Annotations", value=_pairs(kept)),
            Line(name="Created", value=f"{created} ({ages.age(created, now)} ago)"),
        ]
        owners = [
            f"{string_at(owner, ['kind'])}/{string_at(owner, ['name'])}"
            for owner in list_at(metadata, ["ownerReferences"])
        ]
        lines.append(Line(name="Owned by", value=", ".join(owners)))
        deleted = string_at(metadata, ["deletionTimestamp"])
        if deleted:
            waits = outlines.text_of(metadata.get("finalizers"))
            lines.append(Line(name="Deleted", value=f"{deleted}, waits for {waits}"))
        return [line for line in lines if line.value]

    def _print_lines(self, lines: Sequence[Line]) -> None:
        width = 20
        for line in lines:
            first, *rest = line.value.splitlines() or [""]
            label = f"{line.name}:".ljust(width)
            self._screen.line(f"{self._screen.painted(label, BOLD)}{plain(first)}".rstrip())
            for below in rest:
                self._screen.line(f"{' ' * width}{plain(below)}")

    def _print_title(self, title: str) -> None:
        self._screen.line(self._screen.painted(f"{title}:", BOLD))

    def _print_fields(self) -> None:
        """Print everything but what has been told, as YAML."""
        document = without(self._document, ["status", "conditions"])
        for field, value in document.items():
            if field in ("apiVersion", "kind", "metadata") or value in ({}, [], "", None):
                continue
            self._print_title(field[:1].upper() + field[1:])
            body: Json = value if isinstance(value, (dict, list)) else {field: value}
            for line in printing.yaml_text(body).splitlines():
                self._screen.line(f"{INDENT}{plain(line)}")

    def _print_rows(
        self, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> None:
        if not rows:
            self._print_lines([Line(name=title, value=NONE)])
            return
        self._print_title(title)
        Table(headings, self._screen, indent=INDENT).print(rows)

    async def _print_parts(self, parts: Parts) -> None:
        """Print objects that belong to the object, as the server shows them."""
        resources = await self._session.client.resources()
        for resource in resources:
            if resource.group_kind == parts.group_kind:
                break
        else:
            return
        namespace = string_at(self._document, ["metadata", "namespace"])
        selection = Selection(namespace=namespace, labels=parts.selector)
        try:
            page = await self._session.client.page(resource, selection, form=client.TABLE)
        except ApiError as error:
            self._print_lines([Line(name=parts.title, value=f"not shown: {error.message}")])
            return
        definitions = list_at(page, ["columnDefinitions"])
        shown = [
            index for index, column in enumerate(definitions) if not value_at(column, ["priority"])
        ]
        headings = [string_at(definitions[index], ["name"]) for index in shown]
        rows = [
            [_text(list_at(row, ["cells"])[index]) for index in shown]
            for row in list_at(page, ["rows"])
        ]
        if rows:
            self._print_rows(parts.title, headings, rows)

    def _print_conditions(self) -> None:
        conditions = list_at(self._document, ["status", "conditions"])
        now = self._session.clock.now()
        rows = [
            (
                string_at(condition, ["type"]),
                string_at(condition, ["status"]),
                ages.age(value_at(condition, ["lastTransitionTime"]), now),
                string_at(condition, ["reason"]),
                string_at(condition, ["message"]),
            )
            for condition in conditions
        ]
        if rows:
            headings = ("Type", "Status", "Since", "Reason", "Message")
            self._print_rows("Conditions", headings, rows)

    async def _print_events(self) -> None:
        metadata = object_at(self._document, ["metadata"])
        namespace = string_at(metadata, ["namespace"])
        terms = {
            "involvedObject.name": string_at(metadata, ["name"]),
            "involvedObject.kind": self._resource.kind,
            "involvedObject.uid": string_at(metadata, ["uid"]),
        }
        fields = ",".join(f"{key}={value}" for key, value in terms.items() if value)
        selection = Selection(namespace=namespace, fields=fields)
        try:
            found = await self._session.client.objects(happenings.EVENTS, selection)
        except ApiError as error:
            self._print_lines([Line(name="Events", value=f"not shown: {error.message}")])
            return
        now = self._session.clock.now()
        rows = [
            (
                string_at(event, ["type"]),
                string_at(event, ["reason"]),
                happenings.age(event, now),
                string_at(event, ["message"]).strip(),
            )
            for event in happenings.ordered(found)[-EVENTS_MAX:]
        ]
        self._print_rows("Events", ("Type", "Reason", "Age", "Message"), rows)


def _pairs(found: dict[str, str]) -> str:
    return "\n".join(f"{key}={found[key]}" for key in sorted(found)) or NONE


def _text(value: Json) -> str:
    return NONE if value is None else str(value)
