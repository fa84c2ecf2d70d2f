"""PriorityClass: a name for how important pods are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from spinney.api.core.builtin import Finer, built_in, immutable
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import same_content
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Field, Record

VALUE_MAX = 1_000_000_000
"""The most a class of a user may be worth."""

SYSTEM: Mapping[str, int] = {
    "system-cluster-critical": 2 * VALUE_MAX,
    "system-node-critical": 2 * VALUE_MAX + 1000,
}


class PriorityClass(Record):
    """A name for how important pods are."""

    metadata: ObjectMeta
    value: Annotated[int, Field("How important: pods of a higher one go first.")] = 0
    global_default: Annotated[bool, Field("Whether pods that name no class have this one.")] = False
    preemption_policy: Annotated[str, Field("`Never`: waits, and evicts nobody.")] = (
        "PreemptLowerPriority"
    )


def _rules(new: Cursor) -> Iterator[FieldError]:
    name, value = new.at("metadata", "name"), new["value"]
    text, worth = name.string() or "", value.integer()
    if text.startswith("system-"):
        if SYSTEM.get(text) != worth or new["globalDefault"].boolean():
            yield name.forbidden(
                "priority class names with 'system-' prefix are reserved for system use only"
            )
    elif worth is not None and worth > VALUE_MAX:
        yield value.forbidden(f"maximum allowed value of a user defined priority is {VALUE_MAX}")


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    if new["value"] and not same_content(old["value"].value, new["value"].value):
        yield new["value"].forbidden("may not be changed in an update.")
    yield from immutable(old["preemptionPolicy"], new["preemptionPolicy"])


KIND = built_in(
    Names(
        group="scheduling.k8s.io",
        version="v1",
        kind="PriorityClass",
        plural="priorityclasses",
        singular="priorityclass",
        short=("pc",),
    ),
    PriorityClass,
    finer={
        "preemptionPolicy": Finer(
            default="PreemptLowerPriority", enum=("Never", "PreemptLowerPriority")
        )
    },
    namespaced=False,
    rules=_rules,
    changes=_changes,
)
