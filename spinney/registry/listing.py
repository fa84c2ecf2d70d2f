"""Lists: selected, in pages that are all of one version."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.errors import BadRequest, Expired
from spinney.meta.records import Record
from spinney.meta.selectors import EVERYTHING, FieldSelector, LabelSelector
from spinney.registry import forms, selecting
from spinney.registry.marking import POD
from spinney.store.store import Store, Stored

PINNED_MAX = 256
PINNED_ITEMS_MAX = 1_000_000
"""How many lists that are not read to their end are kept, and how many objects all of them hold;
the oldest goes first."""


class Selection(Record):
    """Which objects of a kind are meant."""

    namespace: str = ""
    """All namespaces where it is empty."""

    labels: LabelSelector = EVERYTHING
    fields: FieldSelector | None = None

    def matches(self, kind: Kind, stored: Stored) -> bool:
        """Whether an object is among those meant, its namespace apart."""
        if not self.labels.matches(stored.labels):
            return False
        if self.fields is None or not self.fields.terms:
            return True
        return self.fields.matches(selecting.values(kind, forms.document_of(kind, stored)))

    def __str__(self) -> str:
        """The canonical text; one selection, one text."""
        return f"{self.namespace}|{self.labels}|{self.fields or ''}"


class ListPage(Record):
    """Part of a list."""

    items: tuple[Stored, ...]
    version: int
    """The version the whole list is of."""

    token: str = ""
    """What the next page is asked for with; "" where this is the last."""

    remaining: int = 0


class _Token(msgspec.Struct, frozen=True):
    list: int
    version: int
    start: int


class _Pinned(msgspec.Struct, frozen=True):
    """A list that somebody reads in pages."""

    version: int
    what: str
    """The kind and the selection it is of."""

    items: tuple[Stored, ...]


class Lister:
    """Lists objects of a store."""

    def __init__(self, store: Store) -> None:
        """List what is committed."""
        self._store = store
        self._pinned: OrderedDict[int, _Pinned] = OrderedDict()
        self._pinned_items = 0
        self._next = 0

    def select(self, kind: Kind, selection: Selection) -> tuple[Stored, ...]:
        """Return all objects meant, sorted by reference; raises BadRequest for unknown fields."""
        if selection.fields is not None:
            selecting.check(kind, selection.fields)
        found = self._candidates(kind, selection)
        return tuple(stored for stored in found if selection.matches(kind, stored))

    def _candidates(self, kind: Kind, selection: Selection) -> Sequence[Stored]:
        """Return a few more objects than meant, by an index where there is one."""
        namespace = selection.namespace or None
        terms = {} if selection.fields is None else dict(selection.fields.equalities)
        name, node = terms.get("metadata.name"), terms.get("spec.nodeName")
        if name is not None and (namespace or not kind.namespaced):
            stored = self._store.get(forms.ref_of(kind, namespace or "", name))
            return () if stored is None else (stored,)
        by: tuple[str, str] | None = None
        if node and kind.stored_kind == POD:
            by = ("node", node)
        elif selection.labels.equalities:
            key, value = selection.labels.equalities[0]
            by = (f"label:{key}", value)
        return self._store.list(kind.stored_kind, namespace=namespace, by=by)

    def page(self, kind: Kind, selection: Selection, limit: int, token: str) -> ListPage:
        """Return a page; all pages of a list are of the version of the first.

        Raises Expired where the list a token is of is kept no more, and BadRequest for a token
        that never was one, or was one of another list.
        """
        if token:
            return self._next_page(kind, selection, limit, _decoded(token))
        version, items = self._store.version, self.select(kind, selection)
        if limit <= 0 or limit >= len(items):
            return ListPage(items=items, version=version)
        number, self._next = self._next, self._next + 1
        what = f"{kind.names.api_version} {kind.names.kind} {selection}"
        self._pin(number, _Pinned(version=version, what=what, items=items))
        return _page(number, self._pinned[number], 0, limit)

    def _next_page(self, kind: Kind, selection: Selection, limit: int, place: _Token) -> ListPage:
        held = self._pinned.get(place.list)
        if held is None or held.version != place.version:
            raise Expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        what = f"{kind.names.api_version} {kind.names.kind} {selection}"
        if what != held.what or not 0 < place.start < len(held.items):
            raise BadRequest("continue key is not valid: it is of another list")
        if limit <= 0:
            limit = len(held.items)
        page = _page(place.list, held, place.start, limit)
        if not page.token:
            self._unpin(place.list)
        return page

    def _pin(self, number: int, pinned: _Pinned) -> None:
        self._pinned[number] = pinned
        self._pinned_items += len(pinned.items)
        while len(self._pinned) > 1 and (
            len(self._pinned) > PINNED_MAX or self._pinned_items > PINNED_ITEMS_MAX
        ):
            self._unpin(next(iter(self._pinned)))

    def _unpin(self, number: int) -> None:
        self._pinned_items -= len(self._pinned.pop(number).items)


def _page(number: int, pinned: _Pinned, start: int, limit: int) -> ListPage:
    end = start + limit
    items = pinned.items
    if end >= len(items):
        return ListPage(items=items[start:], version=pinned.version)
    return ListPage(
        items=items[start:end],
        version=pinned.version,
        token=_encoded(_Token(list=number, version=pinned.version, start=end)),
        remaining=len(items) - end,
    )


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decoded(token: str) -> _Token:
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest("continue key is not valid: start a new list without it") from error
