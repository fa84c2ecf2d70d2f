"""Autoscaling in a living world: real store, registry, engine; load is played, time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.controllers import catalog
from spinney.decisions import autoscaling
from spinney.decisions.usage import PodUsage
from spinney.engine.manager import Manager
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.quantities import NANO
from spinney.meta.references import GroupKind, Ref
from spinney.store.store import Event
from tests.controllers.living import CONTROLLERS, Life, live

SECOND = timedelta(seconds=1)
METRIC: Document = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100"}},
}
SCALED: Document = {"maxReplicas": 8, "metrics": [METRIC]}


def document() -> Document:
    """Return a set with a scaled clique of two pods, and a scaled group of three pods a copy."""

    def clique(name: str, replicas: int, **more: Json) -> Document:
        spec: Document = {
            "roleName": name,
            "replicas": replicas,
            "podSpec": {"containers": [{"name": "main", "image": "example/main:1"}]},
            **more,
        }
        return {"name": name, "spec": spec}

    group: Document = {"name": "unit", "cliqueNames": ["lead", "work"], "scaleConfig": SCALED}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "it", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": [
                    clique("web", 2, autoScalingConfig=SCALED),
                    clique("lead", 1),
                    clique("work", 2),
                ],
                "podCliqueScalingGroups": [group],
            },
        },
    }


class Load:
    """A load that all pods of a role share, in bytes; what is measured of each is its part."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.totals: dict[str, int] = {"web": 200, "unit": 300}

    def usage(self, pod_uid: str) -> PodUsage | None:
        running = {
            stored.uid: stored.ref.name
            for stored in self._life.store.list(groupkinds.POD, namespace="default")
            if value_at(stored.document(), ["status", "phase"]) == "Running"
        }
        name = running.get(pod_uid)
        if name is None:
            return None
        role = name.split("-")[2]
        count = sum(other.split("-")[2] == role for other in running.values())
        used = self.totals[role] * NANO // count
        return PodUsage(measured_at=self._life.clock.now(), containers={"main": {"memory": used}})


class Path:
    """What the log tells of a target's replicas: each change, with its time."""

    def __init__(self, life: Life, kind: GroupKind, name: str) -> None:
        self._life = life
        self._ref = Ref(kind=kind, namespace="default", name=name)
        self.steps: list[tuple[timedelta, int]] = []
        life.store.attach(kind, life.store.version, self)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            count = value_at(event.stored.document(), ["spec", "replicas"])
            if event.stored.ref == self._ref and isinstance(count, int) and count != self.last:
                self.steps.append((self._life.clock.elapsed(), count))

    def cut(self) -> None:
        raise AssertionError("the observer of replicas missed something")

    @property
    def last(self) -> int | None:
        return self.steps[-1][1] if self.steps else None

    @property
    def counts(self) -> list[int]:
        return [count for _, count in self.steps]


@asynccontextmanager
async def running(life: Life, load: Load) -> AsyncIterator[Manager]:
    manager = Manager(
        life.direct,
        life.world.writer(CONTROLLERS),
        life.clock,
        life.entropy.stream("manager"),
        catalog.controllers(life.direct, metrics=load),
    )
    task = asyncio.create_task(manager.run())
    try:
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def come_to_be(life: Life) -> None:
    await life.apply(document())
    await life.until(lambda: life.is_available("it", 1), 10 * SECOND)


@pytest.mark.parametrize(
    ("kind", "name", "role", "pods_per_replica", "counts"),
    [
        (groupkinds.CLIQUE, "it-0-web", "web", 1, [2, 6, 8]),
        (groupkinds.SCALING_GROUP, "it-0-unit", "unit", 3, [1, 5, 8]),
    ],
)
def test_a_burst_is_followed_up_at_once_and_down_after_five_minutes(
    kind: GroupKind, name: str, role: str, pods_per_replica: int, counts: list[int]
) -> None:
    """Ten times the load: four replicas more, then as many as may be; and the least at last."""

    async def story(life: Life) -> None:
        load, path = Load(life), Path(life, kind, name)
        async with running(life, load):
            await come_to_be(life)
            await life.clock.sleep(60 * SECOND)
            assert path.counts == counts[:1]
            load.totals[role] *= 10
            await life.clock.sleep(60 * SECOND)
            assert path.counts == counts
            pods = [each for each in life.names(groupkinds.POD) if each.split("-")[2] == role]
            assert len(pods) == 8 * pods_per_replica
            load.totals[role] //= 10
            calm = life.clock.elapsed()
            await life.clock.sleep(600 * SECOND)
            (shrunk, least) = path.steps[-1]
            assert least == counts[0]
            assert len(path.steps) == len(counts) + 1
            assert 300 * SECOND <= shrunk - calm <= 330 * SECOND
            assert life.is_available("it", 1)

    live(story)


@pytest.mark.rule("7.3")
def test_an_autoscaler_at_rest_writes_nothing() -> None:
    async def story(life: Life) -> None:
        async with running(life, Load(life)) as manager:
            await come_to_be(life)
            await life.clock.sleep(60 * SECOND)
            await manager.settle()
            version = life.store.version
            await life.clock.sleep(600 * SECOND)
            assert life.store.version == version
            for name in ("it-0-web", "it-0-unit"):
                told = life.document(groupkinds.AUTOSCALER, name)
                reasons = [
                    string_at(each, ["reason"]) for each in list_at(told, ["status", "conditions"])
                ]
                assert reasons == ["ReadyForNewScale", "ValidMetricFound", "DesiredWithinRange"]

    live(story)


@pytest.mark.rule("7.1")
def test_controllers_that_come_back_remember_the_window() -> None:
    """Stopped in the middle of a calm, begun again: it shrinks when it would have, not sooner."""

    async def story(life: Life) -> None:
        load, path = Load(life), Path(life, groupkinds.CLIQUE, "it-0-web")
        async with running(life, load):
            await come_to_be(life)
            load.totals["web"] *= 10
            await life.clock.sleep(60 * SECOND)
            assert path.last == 8
            load.totals["web"] //= 10
            calm = life.clock.elapsed()
            await life.clock.sleep(150 * SECOND)
        await life.clock.sleep(20 * SECOND)
        async with running(life, load):
            await life.clock.sleep(600 * SECOND)
        (shrunk, least) = path.steps[-1]
        assert least == 2
        assert 300 * SECOND <= shrunk - calm <= 330 * SECOND

    live(story)


def test_a_person_who_scales_is_followed_from_there() -> None:
    """Scaled beyond the most by hand, a target is brought back; within it, after the window."""

    async def story(life: Life) -> None:
        path = Path(life, groupkinds.CLIQUE, "it-0-web")
        async with running(life, Load(life)):
            await come_to_be(life)
            await life.clock.sleep(60 * SECOND)
            await life.scale(Ref(kind=groupkinds.CLIQUE, namespace="default", name="it-0-web"), 12)
            await life.clock.sleep(30 * SECOND)
            assert path.counts[:3] == [2, 12, 8]
            await life.clock.sleep(600 * SECOND)
            assert path.last == 2

    live(story)


def test_without_anybody_who_measures_it_is_told_and_nothing_is_scaled() -> None:
    async def story(life: Life) -> None:
        load = Load(life)
        load.usage = lambda _uid: None  # type: ignore[method-assign]
        async with running(life, load):
            await come_to_be(life)
            await life.clock.sleep(120 * SECOND)
            told = life.document(groupkinds.AUTOSCALER, "it-0-web")
            conditions = {
                string_at(each, ["type"]): string_at(each, ["reason"])
                for each in list_at(told, ["status", "conditions"])
            }
            assert conditions[autoscaling.ACTIVE] == "FailedGetResourceMetric"
            version = life.store.version
            await life.clock.sleep(600 * SECOND)
            assert life.store.version == version

    live(story)
