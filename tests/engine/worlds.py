"""What tests of the engine share: a real world in virtual time, a toy controller, a bad network."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from spinney.api.core.configuration import ConfigMap
from spinney.api.kinds import KINDS
from spinney.api.podclique import PodClique
from spinney.decisions.actions import Create, Decision, Delete
from spinney.engine.controller import Controller
from spinney.engine.manager import Manager
from spinney.engine.metrics import PrometheusMetrics
from spinney.engine.wakes import Wake
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Identity
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader, StoreSource
from spinney.store.store import Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor
from spinney.testing.networks import Network

CLIQUE = GroupKind(group="grove.io", kind="PodClique")
CONFIG_MAP = GroupKind(group="", kind="ConfigMap")
LEASE = GroupKind(group="coordination.k8s.io", kind="Lease")
EVENT = GroupKind(group="", kind="Event")
ENGINE = Identity(user="system:spinney:controllers", manager="spinney")
READ = [kind for kind in KINDS.values() if kind.names.group != "events.k8s.io"]


def milliseconds(count):
    return timedelta(milliseconds=count)


def seconds(count):
    return timedelta(seconds=count)


def clique_ref(name="chat", namespace="default"):
    return Ref(kind=CLIQUE, namespace=namespace, name=name)


def child_ref(name, namespace="default"):
    return Ref(kind=CONFIG_MAP, namespace=namespace, name=name)


def clique(name="chat", replicas=1, namespace="default"):
    """A PodClique as a user writes it; here it is what a toy controller looks after."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "roleName": "decode",
            "replicas": replicas,
            "minAvailable": 1,
            "podSpec": {"containers": [{"name": "main", "image": "main:1"}]},
        },
    }


def child(name, owner=None, namespace="default", **data):
    """A ConfigMap, which stands for whatever a controller makes."""
    metadata = {"name": name, "namespace": namespace}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodClique",
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
            }
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class ToyObservation(Record):
    """A clique and the children it has, by what they are called."""

    now: datetime
    clique: PodClique
    children: tuple[ConfigMap, ...]


def observe(reader, key, now):
    found = reader.get(PodClique, key.namespace, key.name)
    if found is None:
        return None
    children = reader.list(ConfigMap, namespace=key.namespace, by=("owner", found.metadata.uid))
    return ToyObservation(now=now, clique=found, children=tuple(children))


def decide(observation):
    """As many children as replicas, by name; their number in the status."""
    found = observation.clique
    wanted = [f"{found.metadata.name}-{index}" for index in range(found.spec.replicas)]
    if found.metadata.deletion_timestamp is not None:
        wanted = []
    had = {each.metadata.name: each for each in observation.children}
    creates = [
        Create(document=child(name, found.metadata, found.metadata.namespace))
        for name in wanted
        if name not in had
    ]
    deletes = [
        Delete(
            target=child_ref(name, found.metadata.namespace),
            only_if=Precondition(uid=each.metadata.uid),
        )
        for name, each in had.items()
        if name not in wanted and each.metadata.deletion_timestamp is None
    ]
    return Decision(actions=(*creates, *deletes), status={"replicas": len(had)})


def owners_of(each):
    metadata = each.metadata
    return [
        Ref(kind=CLIQUE, namespace=metadata.namespace, name=owner.name)
        for owner in metadata.owner_references
        if owner.kind == "PodClique"
    ]


BY_OWNER = Wake(kind=CONFIG_MAP, record=ConfigMap, keys=owners_of)


def toy(decide=decide, observe=observe, name="toy", wakes=(BY_OWNER,), workers=4):
    return Controller(
        name=name, kind=CLIQUE, observe=observe, decide=decide, wakes=wakes, workers=workers
    )


class Bench:
    """A world, and all that a manager needs."""

    def __init__(self, world, clock, entropy):
        self.world = world
        self.store = world.store
        self.clock = clock
        self.entropy = entropy
        self.reader = StoreReader(world.store, READ)
        self.source = StoreSource(world.store)
        self.user = world.writer(Identity(user="anna", manager="kubectl"))
        self.network = Network(world.writer(ENGINE), clock)
        self.metrics = PrometheusMetrics()

    def manager(self, *controllers, reader=None, writer=None, **options):
        options.setdefault("metrics", self.metrics)
        return Manager(
            reader or self.reader,
            writer or self.network,
            self.clock,
            self.entropy.stream("manager"),
            controllers,
            **options,
        )

    @asynccontextmanager
    async def running(self, *controllers, **options):
        """A manager that runs, and has looked at everything once."""
        manager = self.manager(*controllers, **options)
        task = asyncio.create_task(manager.run())
        try:
            await manager.settle()
            yield manager
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def document(self, ref):
        stored = self.store.get(ref)
        return None if stored is None else stored.document()

    def names(self, kind=CONFIG_MAP):
        own = self.store.list(kind, namespace="default")
        return [each.ref.name for each in own if each.ref.name != "kube-root-ca.crt"]

    def events(self):
        return [stored.document() for stored in self.store.list(EVENT)]

    def measured(self, metric, /, **labels):
        """The value of a metric; 0 where nothing was measured."""
        wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
        total = 0.0
        for line in self.metrics.text().decode().splitlines():
            name, _, value = line.rpartition(" ")
            bare, _, found = name.partition("{")
            if bare == metric and all(part in found for part in wanted.split(",") if part):
                total += float(value)
        return total


def in_world(test, seed=1):
    """Run an async test with a Bench in virtual time."""

    async def run():
        clock = VirtualClock()
        entropy = SeededEntropy(seed)
        store = await Store.open(MemoryJournal(), clock, executor=InlineExecutor())
        try:
            world = await open_world(store, clock, entropy.stream("world"))
            return await test(Bench(world, clock, entropy))
        finally:
            await store.close()

    return loop.run(run())
