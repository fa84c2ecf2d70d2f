"""Back-off: how long to wait after the nth failure in a row."""

from __future__ import annotations

from datetime import timedelta

from spinney.meta.records import Record
from spinney.ports import Entropy

_DOUBLINGS_MAX = 40


class Backoff(Record):
    """Waits that double from the first to the longest; up to half of each is drawn by lot."""

    first: timedelta
    longest: timedelta

    def delay(self, failure_count: int, entropy: Entropy) -> timedelta:
        """Return the wait after so many failures in a row: never more than the longest."""
        assert failure_count > 0
        whole: timedelta = min(
            self.longest, self.first * 2 ** min(failure_count - 1, _DOUBLINGS_MAX)
        )
        return whole - entropy.jitter(whole / 2)


RETRY = Backoff(first=timedelta(milliseconds=10), longest=timedelta(seconds=60))
"""After a failure that may go away by itself, and after the world moved."""

STALLED = Backoff(first=timedelta(seconds=10), longest=timedelta(minutes=10))
"""After a failure that somebody must mend: a change wakes the key sooner."""

RECONNECT = Backoff(first=timedelta(milliseconds=100), longest=timedelta(seconds=30))
"""After a list or a watch that failed."""
