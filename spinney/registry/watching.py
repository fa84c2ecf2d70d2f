"""Watching: how somebody who watches a selection of objects sees a change of one of them."""

from __future__ import annotations

from spinney.api.kinds import Kind
from spinney.ports import Change
from spinney.registry.listing import Selection
from spinney.store.store import Event


def as_seen(kind: Kind, selection: Selection, event: Event) -> Change | None:
    """Return what an event is to a selection, None where it is nothing.

    An object that starts to match is added, one that stops is deleted, whatever happened to it.
    One that is deleted by no longer matching is told of as it was before, at the event's version.
    """
    ref = event.stored.ref
    if ref.kind != kind.stored_kind:
        return None
    if selection.namespace and ref.namespace != selection.namespace:
        return None
    was = event.before is not None and selection.matches(kind, event.before)
    if event.change is Change.DELETED:
        return Change.DELETED if was else None
    is_now = selection.matches(kind, event.stored)
    if is_now:
        return Change.MODIFIED if was else Change.ADDED
    return Change.DELETED if was else None
