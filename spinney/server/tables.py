"""Tables: objects as `kubectl get` shows them, a row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from spinney.api.kinds import Column, Kind
from spinney.meta.documents import Document, Json, is_integer, string_at, value_at
from spinney.meta.records import Record
from spinney.server import ages, jsonpaths, printers, replies

INCLUDE_NONE = "None"
INCLUDE_METADATA = "Metadata"
INCLUDE_OBJECT = "Object"
INCLUDES = (INCLUDE_NONE, INCLUDE_METADATA, INCLUDE_OBJECT)

Cells = Callable[[Document, datetime], list[Json]]


class Printer(Record):
    """How objects of one kind become rows."""

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Callable[[Document], list[Json]]


def printer_for(kind: Kind) -> Printer:
    """Return how a kind is printed: built into Kubernetes, or by the columns it declares."""
    built_in = printers.PRINTERS.get(kind.names.group_kind)
    if built_in is not None:
        return Printer(
            columns=built_in.columns, cells=built_in.cells, conditions=built_in.conditions
        )
    declared = kind.columns or (_AGE,)

    def cells(document: Document, now: datetime) -> list[Json]:
        return [
            string_at(document, ["metadata", "name"]),
            *(_cell(column, document, now) for column in declared),
        ]

    return Printer(columns=(printers.NAME, *declared), cells=cells, conditions=_no_conditions)


_AGE = Column(name="Age", path=".metadata.creationTimestamp", type="date")


def _no_conditions(_document: Document) -> list[Json]:
    return []


def _cell(column: Column, document: Document, now: datetime) -> Json:
    try:
        found = jsonpaths.find(column.path, document)
    except jsonpaths.BadPath:
        return None
    if not found or found[0] is None:
        return None
    value = found[0]
    if column.type == "string":
        return value if isinstance(value, str) else replies.encoded(value).decode()
    if column.type == "date":
        told = ages.age(value, now)
        return "<invalid>" if told == ages.UNKNOWN else told
    if column.type == "integer":
        if isinstance(value, float):
            return int(value) if abs(value) < 2**63 else None
        return value if is_integer(value) else None
    if column.type == "number":
        return value if is_integer(value) or isinstance(value, float) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    return None


def definitions(printer: Printer) -> list[Json]:
    """Return what a table says of its columns."""
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column is printers.NAME else "",
            "description": column.doc,
            "priority": column.priority,
        }
        for column in printer.columns
    ]


def row(printer: Printer, document: Document, now: datetime, include: str, version: str) -> Json:
    """Return the row of an object."""
    made: Document = {"cells": printer.cells(document, now)}
    conditions = printer.conditions(document)
    if conditions:
        made["conditions"] = conditions
    if include == INCLUDE_METADATA:
        made["object"] = partial(document, version)
    elif include == INCLUDE_OBJECT:
        made["object"] = document
    else:
        made["object"] = None
    return made


def head(printer: Printer | None, metadata: Mapping[str, Json], version: str) -> dict[str, Json]:
    """Return a table without rows; without columns where the client knows them already."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata),
        "columnDefinitions": None if printer is None else definitions(printer),
        "rows": [],
    }


def of_one(printer: Printer, document: Document, now: datetime, include: str, version: str) -> Json:
    """Return the table of a single object."""
    metadata = {"resourceVersion": string_at(document, ["metadata", "resourceVersion"])}
    table = head(printer, metadata, version)
    table["rows"] = [row(printer, document, now, include, version)]
    return table


def partial(document: Document, version: str = "v1") -> Document:
    """Return an object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": value_at(document, ["metadata"]),
    }
