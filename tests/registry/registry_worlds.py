"""What tests of the registry share: worlds in virtual time, and short ways to speak to them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta

from spinney.api.kinds import KINDS, named
from spinney.meta.errors import NotFound
from spinney.meta.references import GroupKind, Precondition
from spinney.meta.selectors import EVERYTHING, parse_selector
from spinney.ports import Identity
from spinney.registry import patching
from spinney.registry.listing import Selection
from spinney.registry.patching import Patch
from spinney.registry.requests import DeleteOptions, Request
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from spinney.testing import loop
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor

ANNA = Identity(user="anna", groups=("system:authenticated",), manager="kubectl")
CONTROLLERS = Identity(user="system:spinney:controllers", manager="spinney")
KUBELET = Identity(user="system:node:one", groups=("system:nodes",), manager="kubelet")


class TestWorld:
    """A world with somebody who speaks to it."""

    __test__ = False

    def __init__(self, world, clock):
        self.world = world
        self.registry = world.registry
        self.store = world.store
        self.clock = clock

    def kind(self, word):
        found = named(word)
        if found is None:
            found = next(kind for kind in self.world.catalog if kind.names.plural == word)
        return found

    def kind_of(self, document):
        found = self.world.catalog.kind_of(document)
        assert found is not None, document
        return found

    async def create(self, document, who=ANNA, *, duplicates=(), **options):
        request = Request(who=who, **options)
        return await self.registry.create(
            self.kind_of(document), document, request, duplicates=duplicates
        )

    async def update(self, document, who=ANNA, *, subresource="", **options):
        request = Request(who=who, **options)
        return await self.registry.update(
            self.kind_of(document), document, request, subresource=subresource
        )

    async def patch(
        self,
        word,
        name,
        body,
        *,
        namespace="default",
        type=patching.MERGE_PATCH,
        force=False,
        who=ANNA,
        subresource="",
        only_if=None,
        **options,
    ):
        return await self.registry.patch(
            self.kind(word),
            namespace,
            name,
            Patch(type=type, body=body, force=force),
            Request(who=who, **options),
            subresource=subresource,
            only_if=only_if,
        )

    async def apply(self, document, who=ANNA, *, force=False, subresource="", **options):
        metadata = document["metadata"]
        return await self.registry.patch(
            self.kind_of(document),
            metadata.get("namespace", "default"),
            metadata["name"],
            Patch(type=patching.APPLY_PATCH, body=document, force=force),
            Request(who=who, **options),
            subresource=subresource,
        )

    async def delete(
        self,
        word,
        name,
        *,
        namespace="default",
        propagation="",
        grace=None,
        uid=None,
        version=None,
        who=ANNA,
        dry_run=False,
    ):
        options = DeleteOptions(
            only_if=Precondition(uid=uid, resource_version=version),
            grace_seconds=grace,
            propagation=propagation,
        )
        request = Request(who=who, dry_run=dry_run)
        return await self.registry.delete(self.kind(word), namespace, name, options, request)

    async def scale(self, word, name, replicas, *, namespace="default", who=ANNA):
        def change(scale):
            return {**scale, "spec": {"replicas": replicas}}

        return await self.registry.scale(self.kind(word), namespace, name, change, Request(who=who))

    async def status(self, word, name, status, *, namespace="default", who=CONTROLLERS):
        def change(before):
            return {**before, "status": status}

        return await self.registry.change(
            self.kind(word), namespace, name, change, Request(who=who), subresource="status"
        )

    def get(self, word, name, namespace="default"):
        return self.registry.get(self.kind(word), namespace, name).document()

    def has(self, word, name, namespace="default"):
        try:
            self.get(word, name, namespace)
        except NotFound:
            return False
        return True

    def select(self, word, labels="", namespace=""):
        selector = parse_selector(labels) if labels else EVERYTHING
        kind = self.kind(word)
        return self.world.lister.select(kind, Selection(namespace=namespace, labels=selector))

    def names(self, word, namespace="default"):
        return [stored.ref.name for stored in self.select(word, namespace=namespace)]

    async def settle(self):
        await self.world.settle()

    async def sleep(self, **duration):
        await self.clock.sleep(timedelta(**duration))


_FOUNDATIONS = []
"""What a new world writes when it is opened: written once, and given to each world after."""


async def opened(journal=None, seed=1, clock=None):
    """Open a world in virtual time; one that closed goes on in its journal."""
    clock = clock or VirtualClock()
    if journal is None:
        journal = MemoryJournal()
        journal.commit(_FOUNDATIONS)
    store = await Store.open(journal, clock, executor=InlineExecutor())
    world = TestWorld(await open_world(store, clock, SeededEntropy(seed)), clock)
    await world.settle()
    if not _FOUNDATIONS:
        _FOUNDATIONS.extend(journal.load())
    return world


def story(test: Callable) -> Callable:
    """Run an async test in virtual time, with a new world as its first argument."""

    def run(**given):
        async def tell():
            world = await opened()
            try:
                await test(world, **given)
            finally:
                await world.store.close()

        loop.run(tell())

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    run.pytestmark = getattr(test, "pytestmark", [])
    signature = inspect.signature(test)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])
    return run


def running(world):
    """Keep the world's keepers at work for a while; cancel what it returns."""
    return asyncio.ensure_future(world.world.run())


def object_of(api_version, kind, name, namespace="default", **parts):
    metadata = {"name": name, **parts.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def config_map(name="settings", namespace="default", data=None, **metadata):
    return object_of("v1", "ConfigMap", name, namespace, metadata=metadata, data=data or {})


def pod(name="web", namespace="default", spec=None, **metadata):
    spec = {"containers": [{"name": "main", "image": "example/web:1"}], **(spec or {})}
    return object_of("v1", "Pod", name, namespace, metadata=metadata, spec=spec)


def service(name="web", namespace="default", **spec):
    spec = {"ports": [{"port": 80}], "selector": {"app": "web"}, **spec}
    return object_of("v1", "Service", name, namespace, spec=spec)


def namespace(name, **metadata):
    return object_of("v1", "Namespace", name, "", metadata=metadata)


def event(name, namespace="default", **fields):
    about = {"kind": "Pod", "name": "web", "namespace": namespace}
    return object_of("v1", "Event", name, namespace, involvedObject=about, **fields)


def clique(name, *, replicas=3, least=2, root="", namespace="default", **metadata):
    labels = (
        {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": root}
        if root
        else {}
    )
    return object_of(
        "grove.io/v1alpha1",
        "PodClique",
        name,
        namespace,
        metadata={"labels": labels, **metadata},
        spec={
            "roleName": "worker",
            "replicas": replicas,
            "minAvailable": least,
            "podSpec": {"containers": [{"name": "main", "image": "example/main:1"}]},
        },
    )


def group(name, *, replicas=3, least=2, root="", namespace="default"):
    labels = (
        {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": root}
        if root
        else {}
    )
    return object_of(
        "grove.io/v1alpha1",
        "PodCliqueScalingGroup",
        name,
        namespace,
        metadata={"labels": labels},
        spec={"replicas": replicas, "minAvailable": least, "cliqueNames": ["worker"]},
    )


def owner_of(document, *, blocks=None, controller=None):
    """Return an owner reference to an object."""
    reference = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": document["metadata"]["name"],
        "uid": document["metadata"]["uid"],
    }
    if blocks is not None:
        reference["blockOwnerDeletion"] = blocks
    if controller is not None:
        reference["controller"] = controller
    return reference


def cause(error):
    """Return the field and the message of each cause of an error."""
    return [(item["field"], item["message"]) for item in error.details["causes"]]


POD = GroupKind(group="", kind="Pod")
POD_KIND = KINDS[POD]
