"""A bad line to the server: lists and watches come late, are cut, expire, and tell things again.

Controllers that are right over a bad line are right on a cluster. Give an informer one::

    informer = Informer(BadLine(StoreSource(store), clock, entropy), kinds, …)
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from spinney.meta.errors import Expired, Unavailable
from spinney.meta.records import Record
from spinney.meta.references import GroupKind
from spinney.ports import Clock, Page, Source, WatchEvent
from spinney.testing.entropy import SeededEntropy


class LineFaults(Record):
    """How bad a line is. Chances are in a thousand."""

    late_most: timedelta = timedelta(milliseconds=50)
    """How late each page and each event comes at most."""

    stalled_per_mille: int = 20
    stalled_most: timedelta = timedelta(seconds=5)
    """How late, where the line stalls."""

    list_expired_per_mille: int = 100
    list_failed_per_mille: int = 100
    watch_expired_per_mille: int = 100
    watch_failed_per_mille: int = 100
    cut_per_mille: int = 100
    """After each event: the watch ends."""

    compacted_per_mille: int = 50
    """After each event: the watch has expired."""

    replayed_per_mille: int = 300
    replayed_versions_most: int = 5
    """A watch begins so many versions too early, and tells again what it told."""

    page_items: int = 3
    """How many objects a page holds at most, so that lists have several."""


PERFECT = LineFaults(
    late_most=timedelta(),
    stalled_per_mille=0,
    list_expired_per_mille=0,
    list_failed_per_mille=0,
    watch_expired_per_mille=0,
    watch_failed_per_mille=0,
    cut_per_mille=0,
    compacted_per_mille=0,
    replayed_per_mille=0,
)
"""A line nothing is wrong with."""


class BadLine:
    """A Source over another. Each kind lags on its own, so kinds are seen out of order."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        entropy: SeededEntropy,
        faults: LineFaults | None = None,
    ) -> None:
        """Do harm by chance, until `heal`."""
        self._source = source
        self._clock = clock
        self._entropy = entropy
        self.faults = faults or LineFaults()

    def heal(self) -> None:
        """Do no harm from now on."""
        self.faults = PERFECT

    async def _lag(self) -> None:
        faults = self.faults
        is_stalled = self._entropy.happens(faults.stalled_per_mille)
        late = self._entropy.jitter(faults.stalled_most if is_stalled else faults.late_most)
        if late:
            await self._clock.sleep(late)

    async def list(self, kind: GroupKind, *, limit: int, token: str = "") -> Page:
        """Return a page, late, or fail."""
        await self._lag()
        if self._entropy.happens(self.faults.list_expired_per_mille):
            raise Expired("planted: the list is too old")
        if self._entropy.happens(self.faults.list_failed_per_mille):
            raise Unavailable("planted: the server is not there")
        page = await self._source.list(kind, limit=min(limit, self.faults.page_items), token=token)
        await self._lag()
        return page

    async def watch(self, kind: GroupKind, since: str) -> AsyncIterator[WatchEvent]:
        """Yield changes, late, some of them again, until the line is cut."""
        if self._entropy.happens(self.faults.watch_expired_per_mille):
            raise Expired("planted: compacted")
        if self._entropy.happens(self.faults.watch_failed_per_mille):
            raise ConnectionResetError("planted: connection reset")
        back = 0
        if self._entropy.happens(self.faults.replayed_per_mille):
            back = self._entropy.between(0, self.faults.replayed_versions_most)
        events = self._source.watch(kind, str(max(int(since) - back, 0)))
        try:
            async for event in events:
                await self._lag()
                yield event
                if self._entropy.happens(self.faults.cut_per_mille):
                    return
                if self._entropy.happens(self.faults.compacted_per_mille):
                    raise Expired("planted: compacted")
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()
