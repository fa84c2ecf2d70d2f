"""Storms: everything goes wrong by chance for a while, and then nothing. What must hold after all.

While it lasts: never two attempts of a container at once. Once it is over, within the longest
back-off: the API tells what is true, whoever is to run runs, and nothing runs that is not to.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod
from spinney.meta.documents import Document, Json
from spinney.meta.errors import AlreadyExists, Conflict, NotFound, Unavailable
from spinney.nodes.agent import statuses
from spinney.nodes.agent.station import POD
from spinney.ports import ContainerPlan, Sandbox
from spinney.testing.entropy import SeededEntropy
from spinney.testing.runtimes import Script, ScriptedRuntime
from tests import laws
from tests.nodes.agent.worlds import Ground, container, on_ground, ref

NAMES = ("a", "b", "c", "d")
SECOND = timedelta(seconds=1)
PROBE: Document = {"tcpSocket": {"port": 80}, "periodSeconds": 2, "failureThreshold": 2}


class Watched(ScriptedRuntime):
    """Takes note where a container is started that runs."""

    twins: list[str]

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        if self.is_running(sandbox.pod_uid, container.name):
            former = self._attempts[(sandbox.pod_uid, container.name)]
            if former.plan.attempt != container.attempt:
                self.twins.append(f"{sandbox.pod_uid}/{container.name}")
        await super().start(sandbox, container)


class Storm:
    """Chance, from a seed."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground = ground
        self.chance = SeededEntropy(f"storm/{seed}")
        self.is_over = False
        ground.runtime = Watched(ground.clock, self.script)
        ground.runtime.twins = self.twins = []
        ground.network.before = self.fault(self.chance.between(0, 300))
        ground.network.after = self.fault(self.chance.between(0, 200))
        ground.network.latency = lambda *_: self.chance.jitter(SECOND * 3)

    def fault(self, per_mille: int):  # type: ignore[no-untyped-def]
        """Return what goes wrong with so many of a thousand writes."""
        kinds = (Conflict("x"), Unavailable("x"), TimeoutError(), ConnectionResetError())

        def draw(_verb: str, _name: str) -> BaseException | None:
            if self.is_over or not self.chance.happens(per_mille):
                return None
            return kinds[self.chance.between(0, len(kinds) - 1)]

        return draw

    def script(self, _pod: Pod, plan: ContainerPlan) -> Script:
        """Return how an attempt behaves: any way, until the storm is over."""
        chance = self.chance
        if self.is_over:
            is_init = plan.name == "first"
            return Script(
                start_takes=chance.jitter(SECOND), exits_after=SECOND if is_init else None
            )
        return Script(
            start_takes=chance.jitter(SECOND * 2),
            start_fault="no such file" if chance.happens(100) else "",
            exits_after=chance.jitter(SECOND * 60) if chance.happens(500) else None,
            exit_code=chance.between(0, 2),
            ready_after=None if chance.happens(200) else chance.jitter(SECOND * 5),
            hangs_after=chance.jitter(SECOND * 60) if chance.happens(300) else None,
            ignores_stop=chance.happens(300),
            stop_takes=chance.jitter(SECOND * 3),
        )

    async def make(self, name: str) -> None:
        """Make a pod of some sort."""
        chance = self.chance
        probes: Document = {}
        for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
            if chance.happens(400):
                probes[kind] = PROBE
        more: dict[str, Json] = {
            "restartPolicy": ("Always", "OnFailure", "Never")[chance.between(0, 2)],
            "terminationGracePeriodSeconds": chance.between(0, 5),
        }
        if chance.happens(300):
            more["initContainers"] = [container("first")]
        if chance.happens(300):
            side = container("side", restartPolicy="Always")
            more["initContainers"] = [*more.get("initContainers", []), side]  # type: ignore[misc]
        if chance.happens(200):
            more["activeDeadlineSeconds"] = chance.between(1, 60)
        try:
            await self.ground.make(name, container(**probes), **more)
        except AlreadyExists:
            return

    async def blow(self) -> None:
        """Do one thing a user or the world may do."""
        name = NAMES[self.chance.between(0, len(NAMES) - 1)]
        match self.chance.between(0, 3):
            case 0 | 1:
                await self.make(name)
            case 2:
                try:
                    await self.ground.delete(name, (0, 1, None)[self.chance.between(0, 2)])
                except NotFound:
                    return
            case 3:
                uids = [*self.ground.runtime.pods]
                if uids:
                    uid = uids[self.chance.between(0, len(uids) - 1)]
                    if self.ground.runtime.is_running(uid, "main"):
                        self.ground.runtime.kill(uid, "main")
        await self.ground.clock.sleep(self.chance.jitter(SECOND * 30))

    async def crash(self) -> None:
        """Have the agent die, with all that runs."""
        before = self.ground.runtime
        after = await before.crash()
        watched = Watched(self.ground.clock, self.script)
        watched.__dict__.update(after.__dict__)
        watched.twins = self.twins
        self.ground.runtime = watched


def check(storm: Storm) -> None:
    """Check that the API tells what is true, and that this is as it should be."""
    ground = storm.ground
    assert storm.twins == []
    stored = {
        view.metadata.uid: view
        for view in (each.view(Pod) for each in ground.world.store.list(POD))
    }
    assert set(ground.runtime.pods) <= set(stored), "nothing is left of what is stored no more"
    for uid, pod in stored.items():
        assert pod.metadata.deletion_timestamp is None, "every deletion ends"
        told = {
            one.name: one
            for one in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        }
        for name, one in told.items():
            is_running = ground.runtime.is_running(uid, name)
            assert (one.state.running is not None) == is_running, (pod.metadata.name, name)
        if pod.status.phase in statuses.ENDED:
            assert not any(ground.runtime.is_running(uid, name) for name in told)
        else:
            assert ground.is_ready(pod.metadata.name), msgspec.to_builtins(pod.status)


@pytest.mark.law
@laws.examples(4)
@given(seed=st.integers(0, 1_000_000))
def test_after_every_storm_all_is_as_it_should_be(seed: int) -> None:
    """Two lives of the agent, ten blows each, then ten quiet minutes."""

    async def story(ground: Ground) -> None:
        storm = Storm(ground, seed)
        for _ in range(2):
            async with ground.agency():
                for _ in range(10):
                    await storm.blow()
            await storm.crash()
        storm.is_over = True
        async with ground.agency():
            await ground.rest(600)
            check(storm)
            calls = len(ground.network.calls)
            await ground.rest(600)
            assert len(ground.network.calls) == calls, "nothing is written at rest"
            await asyncio.gather(*(delete(ground, name) for name in NAMES))
            await ground.rest(60)
            assert ground.runtime.running_count == 0
            assert not ground.runtime.pods

    on_ground(story, seed)


async def delete(ground: Ground, name: str) -> None:
    """Delete a pod, if it is there."""
    if ground.world.store.get(ref(name)) is not None:
        await ground.delete(name)
