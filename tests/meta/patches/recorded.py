"""What was recorded from the Go libraries, and the schemas of the kinds in it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from spinney.meta.documents import Document
from spinney.meta.schemas import ANY, Schema

FOLDER = Path(__file__).parent / "vectors"


def cases(name: str) -> list[Document]:
    """Return the recorded cases of one sort."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["cases"]


def by_name(name: str) -> dict[str, Document]:
    """Return the recorded cases of one sort by their names, which are all different."""
    found = cases(name)
    named = {case["name"]: case for case in found}
    assert len(named) == len(found)
    return named


@cache
def schema_of(kind: str) -> Schema:
    """Return the schema of a kind the vectors are about; `Any` has none."""
    if kind == "Any":
        return ANY
    return _definition(_published()["kinds"][kind])


@cache
def _published() -> Document:
    return json.loads((FOLDER / "schemas.json").read_text("utf-8"))


@cache
def _definition(name: str) -> Schema:
    return _schema(_published()["definitions"][name])


def _schema(told: Document) -> Schema:
    parts = dict(told)
    if name := parts.pop("ref", None):
        named = _published()["definitions"][name]
        return _schema({**named, **parts})
    for key in ("items", "values"):
        if key in parts:
            parts[key] = _schema(parts[key])
    if "properties" in parts:
        parts["properties"] = {key: _schema(below) for key, below in parts["properties"].items()}
    for key in ("list_keys", "patch_strategy"):
        if key in parts:
            parts[key] = tuple(parts[key])
    return Schema(**parts)
