"""A fleet over a real store and registry, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

from spinney.api import groupkinds
from spinney.api.kinds import KINDS
from spinney.engine.manager import Manager
from spinney.meta.documents import string_at, value_at
from spinney.meta.references import Precondition, Ref
from spinney.nodes.fleet import shapes
from spinney.nodes.fleet.fleet import Fleet
from spinney.ports import Identity
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader
from spinney.store.store import Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor

NODES = Identity(user="system:node:simulated", groups=("system:nodes",), manager="kubelet")
CONTROLLERS = Identity(user="system:spinney:controllers", manager="spinney")
USER = Identity(user="system:admin", groups=("system:nodes",), manager="test")
READ = [kind for kind in KINDS.values() if kind.stored_as is None]


class Yard:
    """A world, fleets in it, and what tests ask of both."""

    def __init__(self, world, clock):
        self.world = world
        self.store = world.store
        self.clock = clock
        self.reader = StoreReader(world.store, READ)
        self.user = world.writer(USER)
        self.writes = Counter()
        self.entropy = SeededEntropy("fleet")
        self._running = []
        world.store.attach(None, world.store.version, self)

    def deliver(self, events):
        for event in events:
            self.writes[event.stored.ref.kind.kind, event.change.value] += 1

    def cut(self):
        raise AssertionError("events were missed")

    async def fleet(self, *texts):
        """Have a fleet run, and wait until its nodes are there."""
        fleet = Fleet(
            shapes.parse(texts).shapes if texts else (),
            self.reader,
            self.world.writer(NODES),
            self.clock,
            self.entropy,
        )
        self._running.append(asyncio.create_task(fleet.run()))
        await fleet.wait_ready()
        await fleet.wait_quiet()
        return fleet

    async def manager(self, *controllers):
        """Have controllers run, and wait until they have looked at everything."""
        manager = Manager(
            self.reader,
            self.world.writer(CONTROLLERS),
            self.clock,
            self.entropy.stream("manager"),
            controllers,
        )
        self._running.append(asyncio.create_task(manager.run()))
        await manager.wait_ready()
        return manager

    async def end(self):
        """End every fleet, as the end of a process would."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()

    async def passes(self, **duration):
        await self.clock.sleep(timedelta(**duration))

    async def pod(self, name, node="sim-0", **fields):
        """Make a pod that is bound to a node, if one is named."""
        document = pod(name, **fields)
        if node:
            document["spec"]["nodeName"] = node
        await self.user.create(document)
        return ref(name)

    async def delete(self, name, **options):
        await self.user.delete(
            ref(name),
            Precondition(),
            grace_seconds=options.get("grace_seconds"),
            propagation="Background",
        )

    async def patch(self, target, merge, subresource=""):
        await self.user.patch(target, merge, Precondition(), subresource)

    async def delete_node(self, name):
        await self.user.delete(
            Ref(kind=groupkinds.NODE, namespace="", name=name),
            Precondition(),
            grace_seconds=None,
            propagation="Background",
        )

    async def annotate_node(self, name, **marks):
        merge = {"metadata": {"annotations": marks}}
        await self.patch(Ref(kind=groupkinds.NODE, namespace="", name=name), merge)

    def document(self, kind, name, namespace="default"):
        stored = self.store.get(Ref(kind=kind, namespace=namespace, name=name))
        return None if stored is None else stored.document()

    def seen(self, name):
        """Return a pod's phase, and whether it is ready; None where there is none."""
        found = self.document(groupkinds.POD, name)
        if found is None:
            return None
        return string_at(found, ["status", "phase"]), condition(found, "Ready") == "True"

    def node(self, name):
        return self.document(groupkinds.NODE, name, "")


def condition(document, name, field="status"):
    for item in value_at(document, ["status", "conditions"]) or []:
        if item["type"] == name:
            return item.get(field, "")
    return ""


def ref(name):
    return Ref(kind=groupkinds.POD, namespace="default", name=name)


def pod(name, *, annotations=None, labels=None, containers=("main",), finalizers=(), **spec):
    metadata = {"name": name, "namespace": "default"}
    metadata |= {"annotations": annotations} if annotations else {}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"finalizers": [*finalizers]} if finalizers else {}
    made = [{"name": container, "image": "example/main:1"} for container in containers]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": made, **spec},
    }


def within(story):
    """Run a story in a yard of its own."""

    async def run():
        clock = VirtualClock()
        store = await Store.open(MemoryJournal(), clock, executor=InlineExecutor())
        world = await open_world(store, clock, SeededEntropy("world"))
        keeping = asyncio.create_task(world.run())
        yard = Yard(world, clock)
        try:
            await story(yard)
        finally:
            await yard.end()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await store.close()

    loop.run(run())
