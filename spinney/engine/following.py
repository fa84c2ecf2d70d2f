"""How the view of one kind is kept: list once, watch from there, list again where the watch broke.

`Following` is the machine: what the source answers goes in, the next request to the source comes
out, and on the way the cache is changed and those changes are told. It waits for nothing.

| state    | what comes in          | next state | instruction                                     |
|----------|------------------------|------------|-------------------------------------------------|
| listing  | a page, more to come   | listing    | list the next                                   |
| listing  | the last page          | watching   | watch from the list's version                   |
| listing  | the list expired       | listing    | list from the start; after twice in a row, wait |
| listing  | a list older than seen | waiting    | wait, then list; accepted after five in a row   |
| listing  | an error               | waiting    | wait, then list                                 |
| watching | an event, a bookmark   | watching   |                                                 |
| watching | the end                | watching   | watch from what was seen; at once, if it lasted |
| watching | expired                | listing    | list from the start; after twice in a row, wait |
| watching | an error               | waiting    | wait, then watch from what was seen             |
| waiting  | the time is over       | as before  | list or watch                                   |

Versions of a kind come in order, so whatever is not newer than what was seen has been seen: events
that are replayed change nothing. What was deleted while nobody watched is missing in the next list,
and is told as deleted then. A list is put in place whole before the first of its changes is told.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias

from spinney.engine.backoff import RECONNECT
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import DecodeError, InvariantViolation
from spinney.meta.indexes import Objects
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.meta.versions import Stored, stored_from_document
from spinney.ports import Change, Entropy, Page, WatchEvent

LASTED: Final = timedelta(seconds=1)
"""A watch that ends sooner, and told nothing, is counted as a failure."""

STALE_LISTS_MAX: Final = 5
"""After so many lists in a row that are older than what was seen, the past is believed to be gone:
somebody restored the server from a backup."""


class State(enum.Enum):
    """What a kind is waiting for."""

    LISTING = "listing"
    WATCHING = "watching"
    WAITING = "waiting"


class List(Record):
    """Ask for a page."""

    token: str = ""


class Watch(Record):
    """Watch for what comes after a version."""

    since: str
    why: str = "start"


class Wait(Record):
    """Ask for nothing for a while."""

    duration: timedelta


Instruction: TypeAlias = "List | Watch | Wait"


class Following:
    """Keeps the view of one kind."""

    def __init__(
        self,
        kind: GroupKind,
        objects: Objects,
        entropy: Entropy,
        tell: Callable[[Ref, Change], None],
    ) -> None:
        """Keep objects of a kind in `objects`; `tell` is called after each change."""
        self.kind = kind
        self.state = State.LISTING
        self.seen = 0
        self.is_synced = False
        self._objects = objects
        self._entropy = entropy
        self._tell = tell
        self._listed: dict[Ref, Stored] = {}
        self._failures = self._stale_lists = 0
        self._began = timedelta()
        self._heard = False
        self._after_wait: List | Watch = List()

    def start(self) -> Instruction:
        """Begin."""
        return self._list()

    # Listing

    def _list(self) -> List:
        self.state = State.LISTING
        self._listed = {}
        return List()

    def page(self, page: Page, now: timedelta) -> Instruction:
        """Take a page of the list; raises DecodeError where it holds what is no object."""
        assert self.state is State.LISTING
        for document in page.items:
            stored = self._stored(document)
            self._listed[stored.ref] = stored
        if page.token:
            return List(token=page.token)
        version = _number(page.resource_version, f"the list of {self.kind}")
        if version < self.seen and self._stale_lists < STALE_LISTS_MAX:
            self._stale_lists += 1
            return self._wait(List())
        self._stale_lists = 0
        self._replace(version)
        return self._watch("start", now)

    def _replace(self, version: int) -> None:
        """Put a whole list in place, then tell what is different from before."""
        went_back = version < self.seen
        gone = [
            ref
            for ref in map(_ref, self._objects.list(self.kind, None, None))
            if ref not in self._listed
        ]
        changes = [(ref, Change.DELETED) for ref in gone]
        for ref in gone:
            self._objects.drop(ref)
        for stored in sorted(self._listed.values(), key=_version):
            before = self._objects.get(stored.ref)
            if before is not None and before.version == stored.version and not went_back:
                continue
            changes.append((stored.ref, Change.ADDED if before is None else Change.MODIFIED))
            self._put(stored, before)
        self._listed = {}
        self.seen, self.is_synced = version, True
        for ref, change in changes:
            self._tell(ref, change)
        self._tell_seen()

    # Watching

    def _watch(self, why: str, now: timedelta) -> Watch:
        self.state = State.WATCHING
        self._began, self._heard = now, False
        return Watch(since=str(self.seen), why=why)

    def event(self, event: WatchEvent) -> None:
        """Take what a watch tells; raises DecodeError where it is no object."""
        assert self.state is State.WATCHING
        version = _number(event.resource_version, f"an event of {self.kind}")
        self._heard, self._failures = True, 0
        if version <= self.seen:
            return
        if event.change is Change.BOOKMARK or event.document is None:
            self.seen = version
            self._tell_seen()
            return
        stored = self._stored(event.document, version)
        before = self._objects.get(stored.ref)
        self.seen = version
        if event.change is not Change.DELETED:
            self._put(stored, before)
            self._tell(stored.ref, Change.ADDED if before is None else Change.MODIFIED)
        elif before is not None:
            self._objects.drop(stored.ref)
            self._tell(stored.ref, Change.DELETED)
        else:
            self._tell_seen()

    def ended(self, now: timedelta) -> Instruction:
        """Note that the watch ended, as watches do."""
        assert self.state is State.WATCHING
        if self._heard or now - self._began >= LASTED:
            return self._watch("cut", now)
        return self._wait(Watch(since=str(self.seen), why="cut"))

    # What goes wrong

    def expired(self) -> Instruction:
        """Note that the version asked for is compacted away: everything is listed anew."""
        if self._failures == 0:
            self._failures = 1
            return self._list()
        return self._wait(List())

    def failed(self) -> Instruction:
        """Note that a list or a watch failed: ask again after a while."""
        if self.state is State.LISTING:
            return self._wait(List())
        return self._wait(Watch(since=str(self.seen), why="cut"))

    def _wait(self, then: List | Watch) -> Wait:
        self.state, self._after_wait, self._listed = State.WAITING, then, {}
        self._failures += 1
        return Wait(duration=RECONNECT.delay(self._failures, self._entropy))

    def rang(self, now: timedelta) -> Instruction:
        """Note that the wait is over."""
        assert self.state is State.WAITING
        if isinstance(self._after_wait, Watch):
            return self._watch(self._after_wait.why, now)
        return self._list()

    # The cache

    def _stored(self, document: Document, version: int | None = None) -> Stored:
        ref = Ref(
            kind=self.kind,
            namespace=string_at(document, ["metadata", "namespace"]),
            name=string_at(document, ["metadata", "name"]),
        )
        if version is None:
            version = _number(string_at(document, ["metadata", "resourceVersion"]), str(ref))
        return stored_from_document(ref, document, version)

    def _put(self, stored: Stored, before: Stored | None) -> None:
        self._objects.put(stored)
        if before is not None:
            before.forget()

    def _tell_seen(self) -> None:
        """Tell that the view is newer, though no object of it need have changed."""
        self._tell(Ref(kind=self.kind, namespace="", name=""), Change.BOOKMARK)

    def validate(self) -> None:
        """Check that nothing held is newer than what was seen; raises InvariantViolation."""
        if self.is_synced and self.state is not State.LISTING:
            for stored in self._objects.list(self.kind, None, None):
                if stored.version > self.seen:
                    raise InvariantViolation(
                        f"{stored.ref} is held at {stored.version}, seen is {self.seen}"
                    )
        if self._listed and self.state is not State.LISTING:
            raise InvariantViolation(f"half a list of {self.kind} is kept while {self.state.value}")


def _ref(stored: Stored) -> Ref:
    return stored.ref


def _version(stored: Stored) -> int:
    return stored.version


def _number(version: str, of: str) -> int:
    if not version.isdigit():
        raise DecodeError(f'{of} has resource version "{version}", which is not a number')
    return int(version)
