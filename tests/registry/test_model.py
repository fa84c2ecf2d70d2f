"""The registry against a dict: whatever is done in whatever order, both tell the same story.

The model knows an object as a few plain values. After each step the registry, the events it sent
and the model must agree; versions only grow, and what is refused is refused for the model's reason.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from registry_worlds import clique, opened, owner_of

from spinney.meta.errors import AlreadyExists, ApplyConflict, Conflict, Invalid, NotFound
from spinney.ports import Change, Identity
from spinney.testing.loop import VirtualLoop

NAMES = ("a", "b", "c", "d")
FINALIZERS = ("example.com/x", "example.com/y")
GITOPS = Identity(user="gitops", manager="gitops")

_names = st.sampled_from(NAMES)
_counts = st.integers(2, 4)
_finalizers = st.lists(st.sampled_from(FINALIZERS), unique=True, max_size=2)


@dataclasses.dataclass
class Known:
    """What the model knows of one object."""

    uid: str
    version: int
    replicas: int
    labels: dict[str, str]
    finalizers: list[str]
    owner: str = ""
    status: int | None = None
    generation: int = 1
    marked: bool = False
    applied: int | None = None
    """The replicas gitops holds, if it ever applied and nobody changed them since."""


class Follower:
    """Keeps what it is told, and that it is told in order."""

    def __init__(self):
        self.documents = {}
        self.version = 0

    def deliver(self, events):
        for event in events:
            assert event.version > self.version
            self.version = event.version
            name = event.stored.ref.name
            assert (event.change is Change.ADDED) == (name not in self.documents)
            if event.change is Change.DELETED:
                del self.documents[name]
            else:
                self.documents[name] = event.stored.document()

    def cut(self):
        raise AssertionError("nothing is missed here")


class RegistryAgainstModel(RuleBasedStateMachine):
    """PodCliques, four names of them."""

    def __init__(self):
        super().__init__()
        self.loop = VirtualLoop()
        self.world = self.do(opened())
        self.follower = Follower()
        kind = self.world.kind("podcliques").stored_kind
        self.world.store.attach(kind, self.world.store.version, self.follower)
        self.known = {}
        self.stale = {}

    def teardown(self):
        self.do(self.world.store.close())
        self.loop.close()

    def do(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def refused(self, error, coroutine):
        version = self.world.store.version
        with pytest.raises(error):
            self.do(coroutine)
        assert self.world.store.version == version

    def wrote(self, name, outcome, *, counts=False):
        """Note a write in the model; it has a newer version, and its finalizers may let it go."""
        known = self.known[name]
        known.version = self.world.store.version
        known.generation += counts
        assert outcome.document["metadata"]["resourceVersion"] == str(known.version)
        gone = known.marked and not known.finalizers
        assert outcome.gone == gone
        if gone:
            del self.known[name]

    # Steps

    @rule(
        name=_names, replicas=_counts, finalizers=_finalizers, owner=st.sampled_from(["", *NAMES])
    )
    def create(self, name, replicas, finalizers, owner):
        document = clique(name, replicas=replicas, finalizers=finalizers)
        uid = ""
        if owner in self.known and owner != name:
            found = self.world.get("podcliques", owner)
            uid = self.known[owner].uid
            document["metadata"]["ownerReferences"] = [owner_of(found)]
        if name in self.known:
            self.refused(AlreadyExists, self.world.create(document))
            return
        outcome = self.do(self.world.create(document))
        made = outcome.document["metadata"]
        self.known[name] = Known(
            uid=made["uid"],
            version=self.world.store.version,
            replicas=replicas,
            labels={},
            finalizers=finalizers,
            owner=uid,
        )
        self.stale.setdefault(name, outcome.document)

    @rule(name=_names, replicas=_counts, label=st.sampled_from(["1", "2", None]))
    def patch(self, name, replicas, label):
        change = {"metadata": {"labels": {"l": label}}, "spec": {"replicas": replicas}}
        if name not in self.known:
            self.refused(NotFound, self.world.patch("podcliques", name, change))
            return
        known = self.known[name]
        version = self.world.store.version
        outcome = self.do(self.world.patch("podcliques", name, change))
        labels = {"l": label} if label else {}
        if (known.replicas, known.labels) == (replicas, labels):
            assert self.world.store.version == version, "nothing changed, nothing is written"
            return
        if known.replicas != replicas:
            known.applied = None
        counts = known.replicas != replicas
        known.replicas, known.labels = replicas, labels
        self.wrote(name, outcome, counts=counts)

    @rule(name=_names, replicas=_counts)
    def scale(self, name, replicas):
        if name not in self.known:
            self.refused(NotFound, self.world.scale("podcliques", name, replicas))
            return
        known = self.known[name]
        outcome = self.do(self.world.scale("podcliques", name, replicas))
        assert outcome.document["spec"]["replicas"] == replicas
        if known.replicas != replicas:
            known.replicas, known.applied = replicas, None
            known.version = self.world.store.version
            known.generation += 1

    @rule(name=_names, finalizers=_finalizers)
    def hold(self, name, finalizers):
        change = {"metadata": {"finalizers": finalizers}}
        if name not in self.known:
            self.refused(NotFound, self.world.patch("podcliques", name, change))
            return
        known = self.known[name]
        if known.marked and set(finalizers) - set(known.finalizers):
            self.refused(Invalid, self.world.patch("podcliques", name, change))
            return
        version = self.world.store.version
        outcome = self.do(self.world.patch("podcliques", name, change))
        if self.world.store.version != version:
            known.finalizers = finalizers
            self.wrote(name, outcome)
        assert known.finalizers == finalizers

    @rule(name=_names, count=st.integers(0, 3))
    def put_status(self, name, count):
        if name not in self.known:
            self.refused(NotFound, self.world.status("podcliques", name, {"replicas": count}))
            return
        known = self.known[name]
        outcome = self.do(self.world.status("podcliques", name, {"replicas": count}))
        if known.status != count:
            known.status = count
            self.wrote(name, outcome)
        assert outcome.document["metadata"]["resourceVersion"] == str(known.version)

    @rule(name=_names, replicas=_counts, force=st.booleans())
    def apply(self, name, replicas, force):
        wanted = {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": replicas},
        }
        if name not in self.known:
            self.refused(Invalid, self.world.apply(wanted, who=GITOPS))
            return
        known = self.known[name]
        if replicas != known.replicas and known.applied is None and not force:
            self.refused(ApplyConflict, self.world.apply(wanted, who=GITOPS))
            return
        if replicas != known.replicas and not force and known.applied is not None:
            # others may hold the same value beside gitops
            try:
                outcome = self.do(self.world.apply(wanted, who=GITOPS))
            except ApplyConflict:
                return
        else:
            outcome = self.do(self.world.apply(wanted, who=GITOPS, force=force))
        counts = replicas != known.replicas
        known.replicas, known.applied = replicas, replicas
        if int(outcome.document["metadata"]["resourceVersion"]) != known.version:
            self.wrote(name, outcome, counts=counts)
        else:
            assert not counts
        version = self.world.store.version
        self.do(self.world.apply(wanted, who=GITOPS))
        assert self.world.store.version == version, "applied again, nothing is written"

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def replace_a_stale_one(self, data):
        name = data.draw(st.sampled_from(sorted(self.stale)))
        document = self.stale.pop(name)
        known = self.known.get(name)
        metadata = document["metadata"]
        if known is None:
            self.refused(NotFound, self.world.update(document))
        elif (known.uid, str(known.version)) != (metadata["uid"], metadata["resourceVersion"]):
            self.refused(Conflict, self.world.update(document))
        else:
            version = self.world.store.version
            self.do(self.world.update(document))
            assert self.world.store.version == version

    @rule(name=_names, dry_run=st.booleans())
    def delete(self, name, dry_run):
        if name not in self.known:
            self.refused(NotFound, self.world.delete("podcliques", name))
            return
        known = self.known[name]
        outcome = self.do(self.world.delete("podcliques", name, dry_run=dry_run))
        assert outcome.gone == (not known.finalizers)
        if dry_run:
            return
        if not known.marked:
            known.marked = True
            known.version = self.world.store.version
            known.generation += 1
        if not known.finalizers:
            del self.known[name]

    @rule()
    def collect(self):
        """What lost its owner goes, and what that owned, until all is in order."""
        self.do(self.world.settle())
        while True:
            uids = {known.uid for known in self.known.values()}
            lost = [
                name
                for name, known in self.known.items()
                if known.owner and known.owner not in uids and not known.marked
            ]
            if not lost:
                break
            for name in lost:
                known = self.known[name]
                known.marked, known.generation = True, known.generation + 1
                if not known.finalizers:
                    del self.known[name]
                else:
                    found = self.world.get("podcliques", name)
                    known.version = int(found["metadata"]["resourceVersion"])

    # What always holds

    @invariant()
    def registry_and_model_agree(self):
        documents = {name: self.world.get("podcliques", name) for name in self.known}
        assert self.world.names("podcliques") == sorted(self.known)
        assert self.follower.documents == documents
        for name, known in self.known.items():
            document = documents[name]
            metadata = document["metadata"]
            assert metadata["uid"] == known.uid
            assert metadata["resourceVersion"] == str(known.version)
            assert metadata["generation"] == known.generation
            assert metadata.get("labels", {}) == known.labels
            assert metadata.get("finalizers", []) == known.finalizers
            assert ("deletionTimestamp" in metadata) == known.marked
            assert document["spec"]["replicas"] == known.replicas
            assert document.get("status", {}).get("replicas") == known.status


RegistryAgainstModel.TestCase.settings = settings(
    max_examples=max(20, settings().max_examples // 5), stateful_step_count=40, deadline=None
)
TestRegistryAgainstModel = pytest.mark.law(RegistryAgainstModel.TestCase)
