"""Runs: which actions of a decision may be under way at the same time.

Actions are carried out in order. Neighbours that do the same to different objects of one kind are a
*run*: they are started in order, several at a time, and all have ended before what comes after
the run begins. So whoever decides says by order what must stand before what: a PodGang before its
PodCliques, a Patch before a Delete; a hundred pods one after the other cost a few round trips.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spinney.api.kinds import group_kind_of
from spinney.decisions.actions import Action, Apply, Bind, Create, Delete, Emit, Evict, Patch
from spinney.meta.documents import string_at
from spinney.meta.references import Ref

Run: TypeAlias = "tuple[tuple[Action, Ref], ...]"


def target_of(action: Action) -> Ref:
    """Return the object an action is about."""
    match action:
        case Create(document=document) | Apply(document=document):
            return Ref(
                kind=group_kind_of(document),
                namespace=string_at(document, ["metadata", "namespace"]),
                name=string_at(document, ["metadata", "name"]),
            )
        case Patch(target=target) | Delete(target=target) | Evict(target=target):
            return target
        case Bind(pod=pod):
            return pod
        case Emit(about=about):
            return about


def runs_of(actions: Sequence[Action]) -> Iterator[Run]:
    """Yield the runs of actions, in order."""
    run: list[tuple[Action, Ref]] = []
    targets: set[Ref] = set()
    for action in actions:
        target = target_of(action)
        if run and (
            type(action) is not type(run[-1][0])
            or target.kind != run[-1][1].kind
            or target in targets
        ):
            yield tuple(run)
            run, targets = [], set()
        run.append((action, target))
        targets.add(target)
    if run:
        yield tuple(run)
