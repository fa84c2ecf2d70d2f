"""Wakes: which keys a change concerns.

A controller says, kind by kind, which keys an object concerns. The last answer for each object is
remembered: so a pod that changes its owner wakes both, and a pod that is gone wakes the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from spinney.engine import logs
from spinney.engine.subjects import metadata_of
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Reader

R = TypeVar("R", bound=Record)

_log = logs.logger("engine")


class Wake(Record, Generic[R]):
    """Which keys an object of a kind concerns."""

    kind: GroupKind
    record: type[R]
    keys: Callable[[R], Iterable[Ref]]
    gone: Callable[[Ref], Iterable[Ref]] | None = None
    """Which keys it concerns that an object is gone, beside those it concerned last."""


class Memory(Generic[R]):
    """Whom each object of one kind concerned when it was last seen."""

    def __init__(self, wake: Wake[R], reader: Reader) -> None:
        """Remember nothing yet."""
        self._wake = wake
        self._reader = reader
        self._last: dict[Ref, tuple[Ref, ...]] = {}

    def fill(self) -> None:
        """Look at every object there is, and remember whom it concerns."""
        self._last.clear()
        for view in self._reader.list(self._wake.record):
            metadata = metadata_of(view)
            assert metadata is not None
            ref = Ref(kind=self._wake.kind, namespace=metadata.namespace, name=metadata.name)
            self._note(ref, self._concerned(ref, view))

    def changed(self, ref: Ref, change: Change) -> Iterable[Ref]:
        """Return the keys that a change concerns: those it concerned, and those it does now."""
        last = self._last.get(ref, ())
        if change is Change.BOOKMARK:
            return ()
        view = self._reader.get(self._wake.record, ref.namespace, ref.name)
        now = () if view is None else self._concerned(ref, view)
        self._note(ref, now)
        if view is None and self._wake.gone is not None:
            now = tuple(self._wake.gone(ref))
        return last if now == last else dict.fromkeys((*last, *now))

    def _concerned(self, ref: Ref, view: R) -> tuple[Ref, ...]:
        try:
            return tuple(self._wake.keys(view))
        except Exception:  # noqa: BLE001 - what cannot be read must not keep the rest from waking
            _log.exception("whom an object concerns is not known", extra=logs.fields(object=ref))
            return self._last.get(ref, ())

    def _note(self, ref: Ref, keys: tuple[Ref, ...]) -> None:
        if keys:
            self._last[ref] = keys
        else:
            self._last.pop(ref, None)

    def __len__(self) -> int:
        """How many objects are remembered."""
        return len(self._last)
