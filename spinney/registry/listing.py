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
from spinney.meta.references import Ref
from spinney.meta.selectors import EVERYTHING, FieldSelector, LabelSelector
from spinney.registry import selecting
from spinney.store.store import Store, Stored

PINNED_MAX = 256
"""How many lists that are not read to their end are kept; the oldest goes first."""


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
        return self.fields.matches(selecting.values(kind, stored.document()))


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


class Lister:
    """Lists objects of a store."""

    def __init__(self, store: Store) -> None:
        """List what is committed."""
        self._store = store
        self._pinned: OrderedDict[int, tuple[int, tuple[Stored, ...]]] = OrderedDict()
        self._next = 0

    def select(self, kind: Kind, selection: Selection) -> tuple[Stored, ...]:
        """Return all objects meant, sorted by reference."""
        if selection.fields is not None:
            selecting.check(kind, selection.fields)
        found = self._candidates(kind, selection)
        return tuple(stored for stored in found if selection.matches(kind, stored))

    def _candidates(self, kind: Kind, selection: Selection) -> Sequence[Stored]:
        """Return a few more objects than meant, by an index where there is one."""
        group_kind = kind.names.group_kind
        namespace = selection.namespace or None
        terms = {} if selection.fields is None else dict(selection.fields.equalities)
        name, node = terms.get("metadata.name"), terms.get("spec.nodeName")
        by: tuple[str, str] | None = None
        if name is not None and (namespace or not kind.namespaced):
            stored = self._store.get(_ref(kind, namespace or "", name))
            return () if stored is None else (stored,)
        if node and kind.names.kind == "Pod" and not kind.names.group:
            by = ("node", node)
        elif selection.labels.equalities:
            key, value = next(iter(selection.labels.equalities))
            by = (f"label:{key}", value)
        return self._store.list(group_kind, namespace=namespace, by=by)

    def page(self, kind: Kind, selection: Selection, limit: int, token: str) -> ListPage:
        """Return a page; all pages of a list are of the version of the first.

        Raises Expired where the list a token is of is kept no more, and BadRequest for a token
        that never was one.
        """
        if token:
            place = _decoded(token)
            held = self._pinned.get(place.list)
            if held is None or held[0] != place.version or not 0 <= place.start <= len(held[1]):
                raise Expired(
                    "The provided continue parameter is too old to display a consistent list "
                    "result. You must start a new list without the continue parameter."
                )
            version, items = held
            start, number = place.start, place.list
        else:
            version, items = self._store.version, self.select(kind, selection)
            start, number = 0, self._next
        end = len(items) if limit <= 0 else start + limit
        if end >= len(items):
            self._pinned.pop(number, None)
            return ListPage(items=items[start:], version=version)
        if number == self._next:
            self._pin(number, version, items)
        return ListPage(
            items=items[start:end],
            version=version,
            token=_encoded(_Token(list=number, version=version, start=end)),
            remaining=len(items) - end,
        )

    def _pin(self, number: int, version: int, items: tuple[Stored, ...]) -> None:
        self._pinned[number] = (version, items)
        self._next += 1
        if len(self._pinned) > PINNED_MAX:
            self._pinned.popitem(last=False)


def _ref(kind: Kind, namespace: str, name: str) -> Ref:
    return Ref(kind=kind.names.group_kind, namespace=namespace, name=name)


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decoded(token: str) -> _Token:
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest("continue key is not valid: start a new list without it") from error
