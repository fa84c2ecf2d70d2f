"""What each scheduler back end asks of a set that is placed by it."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api import labels, topology
from spinney.api.surroundings import Surroundings
from spinney.meta import metadata
from spinney.meta.cursors import Cursor
from spinney.meta.errors import FieldError, cut


def rules(owner: Cursor, template: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    """Yield what the back end chosen by the template's cliques refuses; `owner` is the metadata."""
    chosen = next(
        (clique.at("spec", "podSpec", "schedulerName").string() for clique in template["cliques"]),
        None,
    )
    scheduler = chosen or surroundings.default_scheduler
    if scheduler == "kai-scheduler":
        yield from _kai_rules(owner, template)
    elif scheduler == "volcano":
        yield from _volcano_rules(owner, template)
    if scheduler in ("volcano", "lpx-scheduler"):
        for level in topology.levels(template):
            yield level.cursor.invalid(f"{scheduler} does not honour topology constraints")


def _kai_rules(owner: Cursor, template: Cursor) -> Iterator[FieldError]:
    whole = _kai_queue(owner)
    named = [queue for queue in map(_kai_queue, template["cliques"]) if queue.string()]
    expected = whole if whole.string() else (named[0] if named else whole)
    if not expected.string():
        yield (
            owner["labels"]
            .entry(labels.KAI_QUEUE)
            .required("kai-scheduler needs a queue: label the set with it")
        )
    for queue in named:
        if queue.string() != expected.string():
            yield queue.invalid(
                f"all queues of a set must be the same, {expected.path} is "
                f'"{cut(expected.string() or "")}"'
            )


def _kai_queue(place: Cursor) -> Cursor:
    label = place["labels"].entry(labels.KAI_QUEUE)
    return label if label.string() else place["annotations"].entry(labels.KAI_QUEUE)


def _volcano_rules(owner: Cursor, template: Cursor) -> Iterator[FieldError]:
    whole = owner["annotations"].entry(labels.VOLCANO_QUEUE)
    named = [clique["annotations"].entry(labels.VOLCANO_QUEUE) for clique in template["cliques"]]
    for queue in (whole, *named):
        text = (queue.string() or "").strip()
        message = metadata.dns_subdomain_fault(text)
        if queue.string() is not None and message:
            yield queue.invalid(f"must be the name of a queue: {message}")
    fallback = (whole.string() or "").strip() or "default"
    resolved = [(queue, (queue.string() or "").strip() or fallback) for queue in named]
    expected = fallback if whole.string() else (resolved[0][1] if resolved else fallback)
    for queue, name in resolved:
        if name != expected:
            yield queue.invalid(
                f'all cliques must have the same queue, here "{cut(name)}", '
                f'elsewhere "{cut(expected)}"; '
                'a clique that names none has the set\'s, or "default"'
            )
