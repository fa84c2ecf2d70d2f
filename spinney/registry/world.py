"""The world: a registry with all that keeps it in order, put together over a store.

store ──► registry ◄── writers, the server
  │           ▲
  └─ events ──┴── definitions   kinds users bring
                  collector     owners and dependents
                  namespaces    what lies in them, their service accounts
                  expiry        events of yesterday
"""

from __future__ import annotations

import asyncio

from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document
from spinney.meta.references import Ref
from spinney.ports import Clock, Entropy, Identity
from spinney.registry import priorities
from spinney.registry.catalog import Catalog
from spinney.registry.definitions import DefinitionKeeper
from spinney.registry.expiry import EventExpiry
from spinney.registry.garbage import GarbageCollector
from spinney.registry.listing import Lister
from spinney.registry.namespaces import NamespaceKeeper
from spinney.registry.registry import Registry
from spinney.registry.requests import Request
from spinney.registry.writer import RegistryWriter
from spinney.store.store import Store

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces that are there from the start."""

_FOUNDER = Request(
    who=Identity(user="system:apiserver", groups=("system:masters",), manager="kube-apiserver")
)


class World:
    """Everything that serves and keeps objects, over one store."""

    def __init__(self, registry: Registry) -> None:
        """Put it together; `open_world` also brings it to life."""
        self.registry = registry
        self.store: Store = registry.store
        self.catalog: Catalog = registry.catalog
        self.clock: Clock = registry.clock
        self.lister = Lister(registry.store)
        self.definitions = DefinitionKeeper(registry)
        self.collector = GarbageCollector(registry)
        self.namespaces = NamespaceKeeper(registry)
        self.expiry = EventExpiry(registry)

    def start(self) -> None:
        """Take note of what there is and of what will change; nothing is written yet."""
        self.definitions.start()
        self.collector.start()
        self.namespaces.start()
        self.expiry.start()

    def writer(self, who: Identity) -> RegistryWriter:
        """Return a writer for somebody in this process."""
        return RegistryWriter(self.registry, who)

    async def run(self) -> None:
        """Keep everything in order, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for keeper in (
                self.definitions.looks.run(),
                self.collector.looks.run(),
                self.namespaces.looks.run(),
                self.expiry.run(),
            ):
                group.create_task(keeper)

    async def settle(self) -> None:
        """Bring everything in order that is out of it now; for tests, and where no loop runs."""
        keepers = (self.definitions.looks, self.collector.looks, self.namespaces.looks)
        while True:
            await self.expiry.settle()
            if not any(map(len, keepers)):
                return
            for looks in keepers:
                await looks.settle()


async def open_world(
    store: Store,
    clock: Clock,
    entropy: Entropy,
    *,
    surroundings: Surroundings = NOTHING_KNOWN,
    exempt_users: frozenset[str] = frozenset(),
) -> World:
    """Open a world over a store: with the kinds users brought, and what must always be there.

    A world that was there before is opened without a write.
    """
    registry = Registry(store, clock, entropy, surroundings=surroundings, exempt_users=exempt_users)
    world = World(registry)
    world.start()
    for document in _foundations():
        await _found(registry, document)
    return world


def _foundations() -> list[Document]:
    namespaces: list[Document] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES
    ]
    return [*namespaces, *priorities.system_classes()]


async def _found(registry: Registry, document: Document) -> None:
    kind = registry.catalog.kind_of(document)
    assert kind is not None
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    ref = Ref(kind=kind.names.group_kind, namespace="", name=str(metadata["name"]))
    if registry.store.get(ref) is None:
        await registry.create(kind, document, _FOUNDER)
