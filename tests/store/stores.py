"""What tests of the store share: documents, watchers, and stores in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from spinney.meta.references import GroupKind, Ref
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from spinney.testing.clock import VirtualClock
from spinney.testing.executors import InlineExecutor

POD = GroupKind(group="", kind="Pod")
SET = GroupKind(group="grove.io", kind="PodCliqueSet")


def ref(name, namespace="default", kind=POD):
    return Ref(kind=kind, namespace=namespace, name=name)


def document(target, *, uid="", labels=None, owner="", node="", payload=""):
    metadata = {"name": target.name, "namespace": target.namespace, "uid": uid or target.name}
    if labels:
        metadata["labels"] = labels
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": owner, "uid": owner}
        ]
    spec = {"nodeName": node} if node else {}
    return {"metadata": metadata, "spec": {**spec, "payload": payload}}


class Recorder:
    """A watcher that takes note of all it is told."""

    def __init__(self):
        self.batches = []
        self.cuts = 0

    def deliver(self, events):
        self.batches.append(tuple(events))

    def cut(self):
        self.cuts += 1

    @property
    def events(self):
        return [event for batch in self.batches for event in batch]

    @property
    def versions(self):
        return [event.version for event in self.events]


@asynccontextmanager
async def opened(journal=None, **options):
    options.setdefault("executor", InlineExecutor())
    store = await Store.open(journal or MemoryJournal(), VirtualClock(), **options)
    try:
        yield store
    finally:
        await store.close()


async def put(store, target, **contents):
    head = store.head(target)
    expects = head.version if head else 0
    return await store.put(target, document(target, **contents), expects=expects)


async def remove(store, target):
    head = store.head(target)
    return await store.remove(target, expects=head.version, document=head.document())


async def settled(writes):
    return await asyncio.gather(*writes, return_exceptions=True)
