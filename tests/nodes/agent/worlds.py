"""A real world in virtual time, with an agent whose containers are scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from spinney.api.core.pod import Pod
from spinney.api.kinds import KINDS
from spinney.engine.informer import Informer
from spinney.engine.metrics import NoMetrics
from spinney.engine.recorder import Recorder
from spinney.meta import records
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.nodes.agent.agent import Agent
from spinney.nodes.agent.givens import Machine
from spinney.nodes.agent.images import Images
from spinney.nodes.agent.station import CONFIG_MAP, NODE, POD, SECRET, Station
from spinney.ports import Identity
from spinney.registry.world import World, open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreSource
from spinney.store.store import Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor
from spinney.testing.networks import Network
from spinney.testing.runtimes import Choose, Script, ScriptedRuntime

AGENT = Identity(user="system:node:local", groups=("system:nodes",), manager="spinney-agent")
EVENT = GroupKind(group="", kind="Event")
FOLLOWED = [KINDS[kind] for kind in (POD, CONFIG_MAP, SECRET, NODE)]


class Ground:
    """A world, and the node `local`."""

    def __init__(self, world: World, clock: VirtualClock, entropy: SeededEntropy) -> None:
        self.world = world
        self.clock = clock
        self.entropy = entropy
        self.user = world.writer(Identity(user="anna", manager="kubectl"))
        self.network = Network(world.writer(AGENT), clock)
        self.scripts: dict[str, Script] = {}
        self.choose: Choose = lambda pod, plan: self.scripts.get(
            f"{pod.metadata.name}/{plan.name}", self.scripts.get(pod.metadata.name, Script())
        )
        self.runtime = ScriptedRuntime(clock, lambda pod, plan: self.choose(pod, plan))
        self.files: list[Path] = []
        self.agent: Agent | None = None
        self.station: Station | None = None

    @asynccontextmanager
    async def agency(self) -> AsyncIterator[Agent]:
        """Run an agent."""
        informer = Informer(
            StoreSource(self.world.store), FOLLOWED, self.clock, self.entropy, NoMetrics()
        )
        following = asyncio.create_task(informer.run(), name="informer")
        await informer.wait_synced()
        recorder = Recorder(informer, self.network, self.clock, NoMetrics(), instance="local")
        self.station = Station(
            Machine(node="local", ip="127.0.0.1", allocatable={"cpu": "4"}),
            informer,
            self.network,
            self.runtime,
            self.clock,
            self.entropy,
            recorder,
            Images(self.files),
        )
        self.agent = Agent(self.station)
        running = asyncio.create_task(self.agent.run(), name="agent")
        try:
            await self.agent.wait_begun()
            yield self.agent
            assert self.agent.failure_count == 0
        finally:
            running.cancel()
            following.cancel()
            await asyncio.gather(running, following, return_exceptions=True)

    async def make(self, name: str, *main: Document, node: str = "local", **more: Json) -> str:
        """Make a pod and give it its node; returns its uid."""
        spec: Document = {"containers": [*main] or [container()], **more}
        metadata: Document = {"name": name, "namespace": "default"}
        for field in ("labels", "annotations"):
            if field in spec:
                metadata[field] = spec.pop(field)
        written = await self.user.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        if node:
            await self.user.bind(written.ref, node, Precondition())
        return written.uid

    async def config_map(self, name: str, **data: Json) -> None:
        """Make a config map."""
        await self.user.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"},
                "data": {**data},
            }
        )

    async def delete(self, name: str, grace_seconds: int | None = None) -> None:
        """Delete a pod as a user does."""
        await self.user.delete(
            ref(name), Precondition(), grace_seconds=grace_seconds, propagation="Background"
        )

    async def rest(self, seconds: float = 1) -> None:
        """Let time go on."""
        await self.clock.sleep(timedelta(seconds=seconds))

    def document(self, name: str) -> Document | None:
        """Return a pod as it is stored."""
        stored = self.world.store.get(ref(name))
        return None if stored is None else stored.document()

    def pod(self, name: str) -> Pod:
        """Return a pod as it is stored."""
        document = self.document(name)
        assert document is not None
        return records.decode(Pod, document)

    def status(self, name: str, *path: str | int) -> Json:
        """Return something of a pod's status."""
        return value_at(self.document(name), ["status", *path])

    def is_ready(self, name: str) -> bool:
        """Whether a pod is told to be ready."""
        return any(
            string_at(each, ["type"]) == "Ready" and string_at(each, ["status"]) == "True"
            for each in list_at(self.document(name), ["status", "conditions"])
        )

    def waiting(self, name: str) -> Json:
        """Return why the first container of a pod waits."""
        return self.status(name, "containerStatuses", 0, "state", "waiting")

    def events(self) -> list[str]:
        """Return the reasons of all events, and what they say."""
        found = [stored.document() for stored in self.world.store.list(EVENT)]
        return sorted(f"{each['reason']}: {each['message']}" for each in found)

    def writes(self, name: str = "") -> list[str]:
        """Return what was written of a pod, or of all."""
        return [verb for verb, whose in self.network.calls if not name or whose == name]


def ref(name: str) -> Ref:
    """Return where a pod is."""
    return Ref(kind=POD, namespace="default", name=name)


def container(name: str = "main", **fields: Json) -> Document:
    """Return a container."""
    return {"name": name, "image": "x", "command": ["run"], **fields}


def on_ground(test: Callable[[Ground], Awaitable[None]], seed: int = 1) -> None:
    """Run a test in virtual time."""

    async def run() -> None:
        clock = VirtualClock()
        entropy = SeededEntropy(seed)
        store = await Store.open(MemoryJournal(), clock, executor=InlineExecutor())
        try:
            world = await open_world(store, clock, entropy.stream("world"))
            await test(Ground(world, clock, entropy))
        finally:
            await store.close()

    loop.run(run())
