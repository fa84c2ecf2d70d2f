"""What people ask of gangs and updates, measured: how long gangs wait, how old an update step is.

Both are read off objects as they change; no controller has to help.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.api.podcliqueset import PodCliqueSet
from spinney.engine.metrics import Gauge, Metrics
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Clock, Reader

POD = GroupKind(group="", kind="Pod")
SET = GroupKind(group="grove.io", kind="PodCliqueSet")


class GangWaits:
    """Measures, gang by gang, how long its pods wait until every one has a node."""

    def __init__(self, reader: Reader, clock: Clock, metrics: Metrics) -> None:
        """Follow every pod from now on."""
        self._reader = reader
        self._clock = clock
        self._metrics = metrics
        self._gang_of: dict[Ref, tuple[str, str]] = {}
        self._waiting: dict[tuple[str, str], set[Ref]] = {}
        self._since: dict[tuple[str, str], timedelta] = {}
        reader.on_change(POD, self._changed)
        metrics.watch(self._gauges)

    def _changed(self, ref: Ref, change: Change) -> None:
        if change is Change.BOOKMARK:
            return
        pod = self._reader.get(Pod, ref.namespace, ref.name)
        gang = None if pod is None else pod.metadata.labels.get(labels.PODGANG)
        if pod is None or gang is None or pod.spec.node_name or pod.metadata.deletion_timestamp:
            self._no_longer_waits(ref, is_bound=pod is not None and bool(pod.spec.node_name))
        elif ref not in self._gang_of:
            whole = (ref.namespace, gang)
            self._gang_of[ref] = whole
            self._waiting.setdefault(whole, set()).add(ref)
            self._since.setdefault(whole, self._clock.elapsed())

    def _no_longer_waits(self, ref: Ref, *, is_bound: bool) -> None:
        gang = self._gang_of.pop(ref, None)
        if gang is None:
            return
        self._waiting[gang].discard(ref)
        if self._waiting[gang]:
            return
        del self._waiting[gang]
        since = self._since.pop(gang)
        if is_bound:
            self._metrics.took("spinney_gang_wait_seconds", self._clock.elapsed() - since)

    def _gauges(self) -> Iterable[Gauge]:
        yield Gauge(name="spinney_gangs_waiting", value=len(self._waiting))


class UpdateAges:
    """Tells, for each set in update, how long ago it last made progress."""

    def __init__(self, reader: Reader, clock: Clock, metrics: Metrics) -> None:
        """Read sets whenever somebody asks."""
        self._reader = reader
        self._clock = clock
        metrics.watch(self._gauges)

    def _gauges(self) -> Iterable[Gauge]:
        if not self._reader.seen(SET):
            return
        now = self._clock.now()
        for each in self._reader.list(PodCliqueSet):
            progress = each.status.rolling_update_progress
            if progress is None or progress.update_ended_at is not None:
                continue
            since = progress.last_progress_at or progress.update_started_at
            if since is not None:
                yield Gauge(
                    name="spinney_update_step_age_seconds",
                    value=(now - since).total_seconds(),
                    labels=(each.metadata.namespace, each.metadata.name),
                )
