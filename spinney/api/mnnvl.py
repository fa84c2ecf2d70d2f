"""NVIDIA's multi-node NVLink: the annotation that enrols a set, a group or a clique."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels
from spinney.api.surroundings import Surroundings
from spinney.meta import metadata
from spinney.meta.cursors import Cursor
from spinney.meta.errors import FieldError

OPTED_OUT = "none"


def _places(owner: Cursor, template: Cursor) -> Iterator[tuple[str, Cursor]]:
    """Yield the annotation's places with what identifies each across an update."""
    yield "", owner["annotations"].entry(labels.MNNVL_GROUP)
    for field in ("cliques", "podCliqueScalingGroups"):
        for item in template[field]:
            identity = f"{field}/{item['name'].string()}"
            yield identity, item["annotations"].entry(labels.MNNVL_GROUP)


def create_rules(
    owner: Cursor, template: Cursor, surroundings: Surroundings
) -> Iterator[FieldError]:
    """Yield what is wrong with the annotation on a new object; `owner` is its metadata."""
    for _, place in _places(owner, template):
        group = place.string()
        if group is None or group == OPTED_OUT:
            continue
        message = metadata.dns_label_fault(group)
        if message:
            yield place.invalid(f'must be "{OPTED_OUT}" or the name of a group: {message}')
        if not surroundings.mnnvl:
            yield place.invalid(
                f'multi-node NVLink is disabled here: enable it, or write "{OPTED_OUT}"'
            )


def update_rules(
    old_owner: Cursor, old_template: Cursor, new_owner: Cursor, new_template: Cursor
) -> Iterator[FieldError]:
    """Yield where the annotation was added, taken away or changed."""
    before = dict(_places(old_owner, old_template))
    for identity, place in _places(new_owner, new_template):
        was = before.get(identity)
        if was is None or was.string() == place.string():
            continue
        if was.string() is None:
            yield place.forbidden("cannot be added once the object exists")
        elif place.string() is None:
            yield place.forbidden("cannot be taken away once the object exists")
        else:
            yield place.invalid("field is immutable")
