"""A world with nodes: real store, registry, controllers and scheduler, in virtual time.

Agents are played: they start the pods that are bound to their node, and take deleted ones away.
Guards stand outside, read the store's log alone, and say when a node holds more than it has or a
gang runs in part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from spinney.api import groupkinds, labels
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions.placement import amounts, requesting
from spinney.engine.informer import Informer
from spinney.engine.metrics import NoMetrics, PrometheusMetrics
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.errors import Conflict, NotFound
from spinney.meta.references import Precondition, Ref
from spinney.ports import Change, Clock, Identity, Reader, Writer
from spinney.registry.world import World
from spinney.scheduler.scheduler import Scheduler
from spinney.scheduler.settings import Settings
from spinney.store.reader import StoreReader, StoreSource
from spinney.store.store import Event, Store
from spinney.testing.entropy import SeededEntropy
from spinney.testing.lines import BadLine, LineFaults
from tests.controllers.living import NODES, READ, Life, live

SCHEDULER = Identity(user="system:spinney:controllers", manager="spinney-scheduler")
MINUTE = timedelta(minutes=1)
GPU = "nvidia.com/gpu"


class Agents:
    """Plays the agents of all nodes."""

    def __init__(self, world: World, clock: Clock, entropy: SeededEntropy) -> None:
        self._world = world
        self._writer = world.writer(NODES)
        self._clock = clock
        self._entropy = entropy
        self._tasks: set[asyncio.Task[None]] = set()
        self.starts_within = timedelta(milliseconds=20)
        self.ends_within = timedelta(milliseconds=20)
        self.is_up = True
        world.store.attach(groupkinds.POD, world.store.version, self)

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.change is not Change.DELETED and self.is_up:
                task = asyncio.create_task(self._look(event.stored.ref))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def cut(self) -> None:
        raise AssertionError("agents missed something")

    async def wait_quiet(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _look(self, ref: Ref) -> None:
        stored = self._world.store.get(ref)
        if stored is None:
            return
        is_going = bool(string_at(stored.document(), ["metadata", "deletionTimestamp"]))
        await self._clock.sleep(
            self._entropy.jitter(self.ends_within if is_going else self.starts_within)
        )
        stored = self._world.store.get(ref)
        if stored is None:
            return
        pod = stored.document()
        if not string_at(pod, ["spec", "nodeName"]):
            return
        try:
            await self._act(ref, pod)
        except (Conflict, NotFound):
            return

    async def _act(self, ref: Ref, pod: Document) -> None:
        if string_at(pod, ["metadata", "deletionTimestamp"]):
            only_if = Precondition(uid=string_at(pod, ["metadata", "uid"]))
            await self._writer.delete(ref, only_if, grace_seconds=0, propagation="Background")
        elif string_at(pod, ["status", "phase"]) == "Pending":
            told: Json = [{"type": "PodScheduled", "status": "True"}]
            told.append({"type": "Ready", "status": "True"})
            version = string_at(pod, ["metadata", "resourceVersion"])
            await self._writer.put_status(ref, {"phase": "Running", "conditions": told}, version)


class Guard:
    """Tells, from the log alone, when a node holds too much or a pod changes its node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._on: dict[str, dict[str, Mapping[str, int]]] = {}
        self._node_of: dict[str, str] = {}
        self.bound: list[str] = []
        """The names of pods in the order they got their nodes."""

        self.faults: list[str] = []
        self.most_used: dict[str, Mapping[str, int]] = {}

    def deliver(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.stored.ref.kind == groupkinds.POD:
                self._note(event)

    def cut(self) -> None:
        raise AssertionError("the guard of nodes missed something")

    def _note(self, event: Event) -> None:
        pod, uid = event.stored.view(Pod), event.stored.uid
        node = pod.spec.node_name
        before = self._node_of.get(uid, "")
        if before and node != before:
            self.faults.append(f"{pod.metadata.name} went from {before} to {node or 'nowhere'}")
        gone = event.change is Change.DELETED or pod.status.phase in ("Succeeded", "Failed")
        if gone:
            self._node_of.pop(uid, None)
            self._on.get(before, {}).pop(uid, None)
            return
        if node and not before:
            self._node_of[uid] = node
            self.bound.append(pod.metadata.name)
            self._on.setdefault(node, {})[uid] = dict(requesting.requests(pod.spec))
            self._weigh(node)

    def _weigh(self, node: str) -> None:
        stored = self._store.get(Ref(kind=groupkinds.NODE, namespace="", name=node))
        if stored is None:
            self.faults.append(f"{node} got a pod and is not there")
            return
        has = value_at(stored.document(), ["status", "allocatable"])
        assert isinstance(has, dict)
        used: dict[str, int] = {}
        for requests in self._on[node].values():
            for name, value in requests.items():
                used[name] = used.get(name, 0) + value
        for name, value in used.items():
            most = amounts.offered(has.get(name), name)
            if value > most:
                self.faults.append(f"{node} holds {value} of {name} and has {most}")


def node(name: str, *, gpus: int = 8, cpu: str = "64", pods: int = 110, **marks: str) -> Document:
    """Return a node as it joins; its labels are given as words: `rack="r1"`."""
    has: Document = {"cpu": cpu, "memory": "256Gi", "pods": str(pods), GPU: str(gpus)}
    found: Document = {"kubernetes.io/hostname": name, **marks}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": found},
        "status": {
            "capacity": has,
            "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, *, gpus: int = 1, **spec: Json) -> Document:
    """Return a pod outside any gang."""
    container: Document = {
        "name": "main",
        "image": "example/main:1",
        "resources": {"limits": {GPU: str(gpus)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def clique(
    name: str,
    replicas: int,
    *,
    gpus: int = 1,
    least: int | None = None,
    pack: Document | None = None,
    **pod_spec: Json,
) -> Document:
    """Return a clique of a set's template."""
    container: Document = {
        "name": "main",
        "image": "example/main:1",
        "resources": {"limits": {GPU: str(gpus)}},
    }
    spec: Document = {
        "roleName": name,
        "replicas": replicas,
        "podSpec": {"containers": [container], **pod_spec},
    }
    if least is not None:
        spec["minAvailable"] = least
    found: Document = {"name": name, "spec": spec}
    return found if pack is None else {**found, "topologyConstraint": pack}


def group(
    name: str, cliques: Sequence[str], replicas: int, least: int = 1, pack: Document | None = None
) -> Document:
    """Return a scaling group of a set's template."""
    found: Document = {
        "name": name,
        "cliqueNames": [*cliques],
        "replicas": replicas,
        "minAvailable": least,
    }
    return found if pack is None else {**found, "topologyConstraint": pack}


def set_of(
    name: str,
    cliques: Sequence[Document],
    groups: Sequence[Document] = (),
    *,
    replicas: int = 1,
    pack: Document | None = None,
    priority_class: str = "",
) -> Document:
    """Return a PodCliqueSet."""
    template: Document = {"cliques": [*cliques]}
    if groups:
        template["podCliqueScalingGroups"] = [*groups]
    if pack is not None:
        template["topologyConstraint"] = pack
    if priority_class:
        template["priorityClassName"] = priority_class
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "template": template},
    }


def priority_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Document:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


TOPOLOGY: Document = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "racks"},
    "spec": {
        "levels": [
            {"domain": "rack", "key": "rack"},
            {"domain": "host", "key": "kubernetes.io/hostname"},
        ]
    },
}


def packed(domain: str, preferred: str = "") -> Document:
    """Return a constraint: all within one domain of a level."""
    pack: Document = {"required": domain}
    if preferred:
        pack["preferred"] = preferred
    return {"topologyName": "racks", "pack": pack}


class Site(Life):
    """A world with nodes, and what tests of the scheduler ask of it."""

    def __init__(self, life: Life) -> None:
        self.__dict__ = life.__dict__
        self.nodes.is_up = False
        self.agents = Agents(self.world, self.clock, self.entropy.stream("agents"))
        self.guard = Guard(self.store)
        self.store.attach(None, self.store.version, self.guard)
        self.metrics = PrometheusMetrics()

    def scheduler(
        self,
        reader: Reader | None = None,
        writer: Writer | None = None,
        settings: Settings | None = None,
    ) -> Scheduler:
        return Scheduler(
            reader or StoreReader(self.store, READ),
            writer or self.world.writer(SCHEDULER),
            self.clock,
            self.entropy.stream("scheduler"),
            metrics=self.metrics,
            settings=settings or Settings(),
        )

    @asynccontextmanager
    async def scheduling(
        self,
        reader: Reader | None = None,
        writer: Writer | None = None,
        settings: Settings | None = None,
    ) -> AsyncIterator[Scheduler]:
        """Run a scheduler; leaving kills it."""
        scheduler = self.scheduler(reader, writer, settings)
        task = asyncio.create_task(scheduler.run())
        try:
            yield scheduler
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def lagging_scheduling(
        self,
        faults: LineFaults | None = None,
        settings: Settings | None = None,
        writer: Writer | None = None,
    ) -> AsyncIterator[Scheduler]:
        """Run a scheduler over an informer whose line is bad."""
        line = BadLine(StoreSource(self.store), self.clock, self.entropy.stream("far"), faults)
        informer = Informer(line, READ, self.clock, self.entropy.stream("informer"), NoMetrics())
        following = asyncio.create_task(informer.run())
        try:
            await informer.wait_synced()
            async with self.scheduling(informer, writer, settings) as scheduler:
                yield scheduler
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def join(self, *nodes: Document) -> None:
        """Have nodes join."""
        for document in nodes:
            status = document["status"]
            assert isinstance(status, dict)
            written = await self.user.create({**document, "status": status})
            await self.user.put_status(written.ref, status, written.resource_version)

    async def create(self, *documents: Document) -> None:
        for document in documents:
            await self.user.create(document)

    # What is seen

    def pods(self) -> list[Pod]:
        """Return all pods of the namespace that are not on their way out."""
        found = StoreReader(self.store, READ).list(Pod, namespace="default")
        return [each for each in found if each.metadata.deletion_timestamp is None]

    def places(self, prefix: str = "") -> dict[str, str]:
        """Return the node of each pod that has one."""
        return {
            each.metadata.name: each.spec.node_name
            for each in self.pods()
            if each.spec.node_name and each.metadata.name.startswith(prefix)
        }

    def gang(self, name: str) -> PodGang:
        found = StoreReader(self.store, READ).get(PodGang, "default", name)
        assert found is not None, f"gang {name} is not there"
        return found

    def condition(self, gang: str, type_: str) -> tuple[str, str, str]:
        """Return a condition of a gang: status, reason, message; three "" where it has none."""
        found = StoreReader(self.store, READ).get(PodGang, "default", gang)
        for each in () if found is None else found.status.conditions:
            if each.type == type_:
                return each.status, each.reason, each.message
        return "", "", ""

    def events(self, reason: str) -> list[Document]:
        return [
            stored.document()
            for stored in self.store.list(groupkinds.EVENT)
            if string_at(stored.document(), ["reason"]) == reason
        ]

    def waiting(self) -> list[str]:
        """Return the pods that may be placed and have no node."""
        return [
            each.metadata.name
            for each in self.pods()
            if not each.spec.node_name and not each.spec.scheduling_gates
        ]

    def all_placed(self, count: int) -> bool:
        return len(self.places()) == count == len(self.pods())

    def partial_gangs(self) -> list[str]:
        """Return the gangs that have nodes for some of the pods a group needs, and not for all."""
        found = []
        for stored in self.store.list(groupkinds.GANG):
            gang = stored.view(PodGang)
            bound = [
                sum(reference.name in self.places() for reference in part.pod_references)
                >= part.min_replicas
                for part in gang.spec.pod_groups
            ]
            has_any = any(
                each.metadata.labels.get(labels.PODGANG) == gang.metadata.name
                and each.spec.node_name
                for each in self.pods()
            )
            if has_any and not all(bound):
                found.append(gang.metadata.name)
        return found

    def check(self) -> None:
        super().check()
        assert not self.guard.faults, self.guard.faults


def at_site(story: Callable[[Site], Awaitable[None]], seed: int = 1) -> None:
    """Run a story in a world with nodes, in virtual time."""

    async def told(life: Life) -> None:
        site = Site(life)
        await story(site)
        await site.agents.wait_quiet()
        site.check()

    live(told, seed)


def conditions_of(document: Document) -> list[Json]:
    return list_at(document, ["status", "conditions"])


class Dying:
    """A writer whose process is killed at a write: before it goes out, or before its answer."""

    def __init__(self, writer: Writer, writes: int, *, after: bool = False) -> None:
        self._writer = writer
        self._after = after
        self.left = writes

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[object]]:
        async def write(*args: object, **options: object) -> object:
            self.left -= 1
            if self.left < 0 and not (self._after and self.left == -1):
                await asyncio.Event().wait()
            answer = await getattr(self._writer, verb)(*args, **options)
            if self.left < 0:
                await asyncio.Event().wait()
            return answer

        return write

    @property
    def is_dead(self) -> bool:
        return self.left < 0
