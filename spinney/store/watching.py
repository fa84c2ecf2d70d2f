"""Who is told of changes, and that none of them can keep the others from being told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from spinney.meta.references import GroupKind
from spinney.store.objects import Event


class Watcher(Protocol):
    """What wants to be told of changes. It must not wait: it takes note, and works later."""

    def deliver(self, events: Sequence[Event]) -> None:
        """Take committed events, in the order of versions, all of a commit at once."""

    def cut(self) -> None:
        """Learn that events were missed, and that no more will come: attach again."""


class _Attachment:
    """One watcher of one kind, and up to which version it was told."""

    __slots__ = ("position", "watcher")

    def __init__(self, watcher: Watcher, position: int) -> None:
        self.watcher = watcher
        self.position = position


class Watchers:
    """All that are attached, by kind, in the order they came; one is not like another."""

    def __init__(self, report: Callable[[str, Exception], None]) -> None:
        """Tell `report` of watchers that raised."""
        self._by_kind: dict[GroupKind | None, dict[int, _Attachment]] = {}
        self._report = report

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._by_kind.values()))

    def attach(self, kind: GroupKind | None, watcher: Watcher, position: int) -> None:
        """Tell a watcher of what comes after a version; None is every kind."""
        self._by_kind.setdefault(kind, {})[id(watcher)] = _Attachment(watcher, position)

    def detach(self, watcher: Watcher) -> None:
        """Tell a watcher no more, if it was told at all."""
        for kind, members in tuple(self._by_kind.items()):
            members.pop(id(watcher), None)
            if not members:
                del self._by_kind[kind]

    def deliver(self, events: Sequence[Event]) -> None:
        """Tell everyone of a batch: those of all kinds first, then kind by kind."""
        by_kind: dict[GroupKind | None, list[Event]] = {None: list(events)}
        for event in events:
            if event.stored.ref.kind in self._by_kind:
                by_kind.setdefault(event.stored.ref.kind, []).append(event)
        for kind, wanted in by_kind.items():
            batch = tuple(wanted)
            for attachment in tuple(self._by_kind.get(kind, {}).values()):
                if attachment is self._by_kind.get(kind, {}).get(id(attachment.watcher)):
                    self._tell(attachment, batch)

    def _tell(self, attachment: _Attachment, batch: tuple[Event, ...]) -> None:
        """Tell one of a batch, unless it was told when it attached meanwhile."""
        if attachment.position >= batch[-1].version:
            return
        attachment.position = batch[-1].version
        try:
            attachment.watcher.deliver(batch)
        except Exception as error:  # noqa: BLE001 - whatever it raises is its own trouble
            self._report("a watcher raised and was cut off", error)
            self.detach(attachment.watcher)
            self._cut(attachment.watcher)

    def _cut(self, watcher: Watcher) -> None:
        try:
            watcher.cut()
        except Exception as error:  # noqa: BLE001 - as above
            self._report("a watcher raised when it was cut off", error)
