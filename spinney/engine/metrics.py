"""Metrics: what is measured, and how Prometheus is told.

Everything here goes through `Metrics`, so that a simulation can use none. Numbers that stand in the
state of a part anyway, such as the depth of a queue, are read when somebody asks (`watch`), and
cost nothing in between. Every metric has a row in docs/reference/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, Protocol, TypeAlias

import prometheus_client
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from spinney.meta.records import Record


class Gauge(Record):
    """A number as it is now, with the values of its labels."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


Watched: TypeAlias = Callable[[], Iterable[Gauge]]
"""Reads gauges off the state of a part."""


class Metrics(Protocol):
    """Where measurements go."""

    def count(self, name: str, *labels: str) -> None:
        """Count that something happened."""

    def took(self, name: str, duration: timedelta, *labels: str) -> None:
        """Note how long something took."""

    def watch(self, read: Watched) -> None:
        """Have gauges read whenever somebody asks."""


class NoMetrics:
    """Measures nothing."""

    def count(self, name: str, *labels: str) -> None:
        """Do nothing."""

    def took(self, name: str, duration: timedelta, *labels: str) -> None:
        """Do nothing."""

    def watch(self, read: Watched) -> None:
        """Do nothing."""


class Declared(Record):
    """A metric: what it means and by what it is told apart."""

    doc: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Of a duration: its limits, in seconds."""


_FAST = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

COUNTERS: Final[Mapping[str, Declared]] = {
    "spinney_reconciles_total": Declared(
        doc="Looks at a key, by what became of them: done, intent, moved, later, stalled, error.",
        labels=("controller", "result"),
    ),
    "spinney_actions_total": Declared(
        doc="Actions carried out, by what they do, to which kind, and what came of it: changed, "
        "unchanged, gone, exists, taken, held, moved, later, stalled.",
        labels=("controller", "action", "kind", "result"),
    ),
    "spinney_conflicts_total": Declared(
        doc="Writes refused because the world had moved.", labels=("controller", "kind")
    ),
    "spinney_wakeups_total": Declared(
        doc="Keys woken, by the kind whose change woke them, or by `timer`.",
        labels=("controller", "by"),
    ),
    "spinney_retries_total": Declared(
        doc="Keys looked at again after a failure, by why.", labels=("controller", "why")
    ),
    "spinney_events_total": Declared(
        doc="Events told, by what came of it: created, counted, dropped, failed.",
        labels=("result",),
    ),
    "spinney_watches_total": Declared(
        doc="Watches begun, by kind and by why: start, cut, expired.", labels=("kind", "why")
    ),
    "spinney_placements_total": Declared(
        doc="Looks of the scheduler at a gang that waits, by what came of them: placed, surplus "
        "(as many as it needs have nodes, more wait), refused, waits (others go for it).",
        labels=("result",),
    ),
    "spinney_disruptions_total": Declared(
        doc="Gangs taken away whole, by why: PreemptionByScheduler, PartialGang.",
        labels=("reason",),
    ),
    "spinney_lease_writes_total": Declared(
        doc="Writes of the leader's lease, by what came of them: taken, renewed, released, "
        "refused, failed.",
        labels=("result",),
    ),
}

DURATIONS: Final[Mapping[str, Declared]] = {
    "spinney_queue_wait_seconds": Declared(
        doc="How long a key was due before it was looked at.",
        labels=("controller",),
        buckets=_FAST,
    ),
    "spinney_decide_seconds": Declared(
        doc="How long observing and deciding took.", labels=("controller",), buckets=_FAST
    ),
    "spinney_reconcile_seconds": Declared(
        doc="How long a look took that had something to do, its writes included.",
        labels=("controller",),
        buckets=_FAST,
    ),
    "spinney_gang_wait_seconds": Declared(
        doc="How long a gang waited: from its first unbound pod until every pod had a node.",
        buckets=_SLOW,
    ),
}

GAUGES: Final[Mapping[str, Declared]] = {
    "spinney_queue_keys": Declared(
        doc="Keys in the queue, by state: ready, delayed, under_way, failing.",
        labels=("controller", "state"),
    ),
    "spinney_parked_keys": Declared(
        doc="Keys that wait until their own last writes are seen.", labels=("controller",)
    ),
    "spinney_update_step_age_seconds": Declared(
        doc="How long ago the update of a set last made progress; only sets in update.",
        labels=("namespace", "name"),
    ),
    "spinney_gangs_waiting": Declared(doc="Gangs that have pods without a node."),
    "spinney_leader": Declared(doc="1 where this process leads, else 0."),
    "spinney_cache_objects": Declared(doc="Objects in the cache, by kind.", labels=("kind",)),
    "spinney_cache_synced": Declared(
        doc="1 where the cache of a kind was filled and its watch runs, else 0.", labels=("kind",)
    ),
}


class PrometheusMetrics:
    """Keeps measurements in a registry of its own, for Prometheus to fetch."""

    def __init__(self) -> None:
        """Declare every metric, so that each is there from the first fetch."""
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = prometheus_client.CollectorRegistry()
        self._counters = {
            name: prometheus_client.Counter(
                name, declared.doc, declared.labels, registry=self._registry
            )
            for name, declared in COUNTERS.items()
        }
        self._durations = {
            name: prometheus_client.Histogram(
                name,
                declared.doc,
                declared.labels,
                buckets=declared.buckets,
                registry=self._registry,
            )
            for name, declared in DURATIONS.items()
        }
        self._found: dict[tuple[str, ...], Callable[[float], None]] = {}
        self._watched = _Watched()
        self._registry.register(self._watched)

    def count(self, name: str, *labels: str) -> None:
        """Count that something happened."""
        found = self._found.get((name, *labels))
        if found is None:
            counter = self._counters[name]
            found = (counter.labels(*labels) if labels else counter).inc
            self._found[name, *labels] = found
        found(1)

    def took(self, name: str, duration: timedelta, *labels: str) -> None:
        """Note how long something took."""
        found = self._found.get((name, *labels))
        if found is None:
            histogram = self._durations[name]
            found = (histogram.labels(*labels) if labels else histogram).observe
            self._found[name, *labels] = found
        found(duration.total_seconds())

    def watch(self, read: Watched) -> None:
        """Have gauges read at every fetch."""
        self._watched.reads.append(read)

    def text(self) -> bytes:
        """Return all measurements as Prometheus reads them."""
        return prometheus_client.generate_latest(self._registry)


CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
"""What `text` is, for the header of a reply."""


class _Watched(Collector):
    """Reads every gauge at every fetch."""

    def __init__(self) -> None:
        self.reads: list[Watched] = []

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield each gauge with all its values."""
        families = {
            name: GaugeMetricFamily(name, declared.doc, labels=declared.labels)
            for name, declared in GAUGES.items()
        }
        for read in self.reads:
            for gauge in read():
                families[gauge.name].add_metric(gauge.labels, gauge.value)
        return families.values()
