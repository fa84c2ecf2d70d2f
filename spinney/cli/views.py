"""How objects are shown: as rows of a table the server made, or as documents."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from spinney.cli.connecting import Session
from spinney.cli.tables import Table
from spinney.cli.targets import Target
from spinney.cli.templates import Part
from spinney.kube.resources import Resource
from spinney.meta.documents import (
    Document,
    Json,
    list_at,
    object_at,
    string_at,
    strings,
    value_at,
)
from spinney.meta.records import Record

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


def objects(page: Document, target: Target) -> list[Document]:
    """Return the objects of a page of a list, with the kind and version a list leaves out."""
    resource = target.resource
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, **object_at(item, [])}
        for item in list_at(page, ["items"])
    ]


class Rows:
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
