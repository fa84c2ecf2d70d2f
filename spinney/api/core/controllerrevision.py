"""ControllerRevision: a state something once had, kept so that it can be had again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from spinney.api.core.builtin import built_in, immutable
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Field, Record


class ControllerRevision(Record):
    """A state something once had."""

    metadata: ObjectMeta
    revision: Annotated[int, Field("Which in the row of states; the newest is the highest.")] = 0
    data: Annotated[Document | None, Field("The state itself, as its controller wrote it.")] = None


def _rules(new: Cursor) -> Iterator[FieldError]:
    if not new["data"]:
        yield new["data"].required("data is mandatory")
    revision = new["revision"]
    if (number := revision.integer()) is not None and number < 0:
        yield revision.invalid("must be greater than or equal to 0")


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    yield from immutable(old["data"], new["data"])


KIND = built_in(
    Names(
        group="apps",
        version="v1",
        kind="ControllerRevision",
        plural="controllerrevisions",
        singular="controllerrevision",
    ),
    ControllerRevision,
    rules=_rules,
    changes=_changes,
)
