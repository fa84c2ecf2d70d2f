"""Read-your-writes: a key waits until it sees what it wrote, and is woken by just that."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spinney.api.core.configuration import ConfigMap
from spinney.engine.expectations import Expectations
from spinney.meta import records
from spinney.meta.references import GroupKind
from tests.engine.worlds import CLIQUE, CONFIG_MAP, child_ref, clique_ref

SECRET = GroupKind(group="", kind="Secret")
KEYS = [clique_ref(name) for name in "xyz"]
keys = st.sampled_from(KEYS)
kinds = st.sampled_from([CLIQUE, CONFIG_MAP, SECRET])
children = st.sampled_from([child_ref(name) for name in "ab"])


class Sight:
    """A Reader as far as this needs one: versions by kind, and some ConfigMaps."""

    def __init__(self):
        self.versions = {CLIQUE: 1, CONFIG_MAP: 1, SECRET: 1}
        self.standing = {}  # ref: (uid, whether it is going)

    def seen(self, kind):
        return self.versions[kind]

    def get(self, record, namespace, name):
        assert record is ConfigMap
        found = self.standing.get(child_ref(name, namespace))
        if found is None:
            return None
        uid, is_going = found
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        if is_going:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return records.decode(ConfigMap, {"metadata": metadata})


class ExpectationMachine(RuleBasedStateMachine):
    """Against a list of what each key waits for."""

    def __init__(self):
        super().__init__()
        self.sight = Sight()
        self.expectations = Expectations(self.sight, [CLIQUE, CONFIG_MAP])
        self.waits = {key: [] for key in KEYS}  # predicates that must all hold
        self.parked = set()
        self.woken = set()
        self.version = 1

    def is_met(self, key):
        return all(holds() for holds in self.waits[key])

    @rule(key=keys, kind=kinds)
    def writes(self, key, kind):
        self.version += 1
        wanted = self.version
        self.expectations.wrote(key, kind, str(wanted))
        if kind != SECRET:
            self.waits[key].append(lambda: self.sight.versions[kind] >= wanted)

    @rule(each=children)
    def appears(self, each):
        if each not in self.sight.standing:
            self.version += 1
            self.sight.standing[each] = (f"uid-{self.version}", False)
            self.changed(CONFIG_MAP, each)

    @rule(key=keys, each=children)
    def deletes(self, key, each):
        found = self.sight.standing.get(each)
        uid = found[0] if found else None
        self.expectations.deleted(key, each, uid)
        if found is not None and not found[1]:
            self.waits[key].append(lambda: self.sight.standing.get(each) != (uid, False))

    @rule(each=children, gone=st.booleans())
    def goes(self, each, gone):
        found = self.sight.standing.get(each)
        if found is None:
            return
        self.version += 1
        if gone:
            del self.sight.standing[each]
        else:
            self.sight.standing[each] = (found[0], True)
        self.changed(CONFIG_MAP, each)

    @rule(kind=kinds, short_of=st.integers(0, 3))
    def sees(self, kind, short_of):
        self.changed(kind, child_ref("c") if kind == CONFIG_MAP else clique_ref(), short_of)

    def changed(self, kind, ref, short_of=0):
        self.sight.versions[kind] = max(self.sight.versions[kind], self.version - short_of)
        woken = [*self.expectations.met(type(ref)(kind=kind, namespace="default", name=ref.name))]
        assert len(woken) == len(set(woken))
        for key in woken:
            assert key in self.parked
            assert self.is_met(key)
            self.parked.discard(key)

    @rule(key=keys)
    def looks(self, key):
        must_wait = self.expectations.must_wait(key)
        assert must_wait == (not self.is_met(key))
        if must_wait:
            self.parked.add(key)
        else:
            self.parked.discard(key)
            self.waits[key] = []

    @rule(key=keys)
    def forgets(self, key):
        self.expectations.forget(key)
        self.waits[key] = []
        self.parked.discard(key)

    @invariant()
    def none_is_parked_for_nothing(self):
        self.expectations.validate()
        for key in self.parked:
            assert not self.is_met(key), f"{key} sleeps though it sees all it wrote"


ExpectationMachine.TestCase.settings = settings(settings.default, stateful_step_count=40)
TestExpectations = pytest.mark.law(ExpectationMachine.TestCase)
