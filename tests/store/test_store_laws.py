"""The store against a dict and a list.

The dict is what there must be, the list is the log. Writes queue, commit in small groups on a disk
that takes its time, and fail; watchers come and go; the store is closed and opened again.

* A write is taken where it expects the head, and only there.
* A commit that fails takes with it all that was queued on top of it, and nothing else.
* Resumed from any version, a watch gets exactly the events that are missing, or Expired.
* Each index finds what looking at every object finds, for what is committed and for heads.
* What was opened again is what was closed; versions only grow.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spinney.meta.errors import Expired, StorageFull, Unavailable
from spinney.ports import Change
from spinney.store.journals import MemoryJournal
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Limits, Moved, Store
from spinney.testing.clock import VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import SlowExecutor
from spinney.testing.faults import FaultyJournal
from spinney.testing.log_observer import LogObserver
from spinney.testing.loop import VirtualLoop
from tests.store.stores import POD, SET, Recorder, document, ref, settled

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
KEPT_MAX = 12
LIMITS = Limits(
    history_events_max=KEPT_MAX,
    batch_writes_max=3,
    compaction_versions=4,
    rest_after=timedelta(seconds=1),
)

REFS = st.builds(
    ref,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["one", "two"]),
    st.sampled_from([POD, SET]),
)
NODES = st.sampled_from(["", "n1", "n2"])
OWNERS = st.sampled_from(["", "o1", "o2"])
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
KINDS = st.sampled_from([None, POD, SET])
INDEXES = st.one_of(
    st.none(),
    st.tuples(st.just("node"), st.sampled_from(["n1", "n2", "n3"])),
    st.tuples(st.just("owner"), st.sampled_from(["o1", "o2"])),
    st.tuples(st.just("label:app"), st.sampled_from(["x", "y"])),
    st.tuples(st.just("payload"), st.sampled_from(["p", "pp"])),
)


def matches(found, namespace, by):
    """What `list` must go by, worked out from the document alone."""
    body = found.document()
    if namespace is not None and body["metadata"]["namespace"] != namespace:
        return False
    if by is None:
        return True
    name, value = by
    if name == "node":
        return body["spec"].get("nodeName") == value
    if name == "owner":
        return value in [owner["uid"] for owner in body["metadata"].get("ownerReferences", [])]
    if name == "payload":
        return body["spec"]["payload"] == value
    return body["metadata"].get("labels", {}).get(name.removeprefix("label:")) == value


class StoreMachine(RuleBasedStateMachine):
    """Drives one store, over many lives of it."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="spinney-", dir=IN_MEMORY))
        self.memory = MemoryJournal()
        self.loop = VirtualLoop()
        self.committed = {}
        self.log = []
        self.queued = []
        self.watchers = []
        self.gone = []
        self.version = 0
        self.store = self.wait(self.open())
        self.observer = LogObserver(self.store)

    def journal(self):
        return self.memory

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    async def open(self):
        self.faulty = FaultyJournal(self.journal(), SeededEntropy(0))
        self.clock = VirtualClock()
        store = await Store.open(
            self.faulty,
            self.clock,
            limits=LIMITS,
            executor=SlowExecutor(lambda: timedelta(milliseconds=5)),
        )
        for kind in (POD, SET):
            store.register(kind, "payload", lambda stored: [stored.document()["spec"]["payload"]])
        return store

    def teardown(self):
        self.wait(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def head(self, target):
        for written, _, _, outcome in reversed(self.queued):
            if written == target:
                return outcome
        return self.committed.get(target)

    # Writing

    @rule(
        at=REFS,
        node=NODES,
        owner=OWNERS,
        labels=LABELS,
        payload=st.sampled_from(["", "p", "pp"]),
    )
    def write(self, at, node, owner, labels, payload):
        before = self.head(at)
        body = document(
            at,
            uid=before["metadata"]["uid"] if before else f"uid-{self.store.version}-{at.name}",
            node=node,
            owner=owner,
            labels=labels,
            payload=payload,
        )
        head = self.store.head(at)
        done = self.store.put(at, body, expects=head.version if head else 0)
        outcome = self.store.head(at).document()
        assert outcome["spec"] == body["spec"]
        change = Change.MODIFIED if before else Change.ADDED
        self.queued.append((at, change, done, outcome))

    @rule(at=REFS, off=st.sampled_from([-1, 1, 1000]))
    def write_expecting_another_version(self, at, off):
        head = self.store.head(at)
        found = head.version if head else 0
        with pytest.raises(Moved) as caught:
            self.store.put(at, document(at), expects=found + off)
        assert caught.value.found == found
        with pytest.raises(Moved):
            self.store.remove(at, expects=found + off, document=document(at))

    @rule(at=REFS)
    def remove(self, at):
        head = self.store.head(at)
        if head is None:
            return
        last = {**head.document(), "spec": {"payload": "last"}}
        done = self.store.remove(at, expects=head.version, document=last)
        assert self.store.head(at) is None
        self.queued.append((at, Change.DELETED, done, None))

    @rule()
    def let_one_commit_end(self):
        self.wait(self.clock.sleep(timedelta(milliseconds=7)))
        self.take_outcomes()

    @rule()
    def let_all_commits_end(self):
        self.wait(settled([done for _, _, done, _ in self.queued]))
        self.take_outcomes()
        assert not self.queued

    @precondition(lambda self: self.queued)
    @rule(is_full=st.booleans())
    def let_the_disk_fail(self, is_full):
        self.faulty.is_full, self.faulty.is_broken = is_full, not is_full
        expected = StorageFull if is_full else Unavailable
        results = self.wait(settled([done for _, _, done, _ in self.queued]))
        failed = [isinstance(result, Exception) for result in results]
        assert failed == sorted(failed)
        assert all(
            isinstance(result, expected) for result in results if isinstance(result, Exception)
        )
        self.faulty.heal()
        self.take_outcomes()
        assert not self.queued

    def take_outcomes(self):
        """Have the model take what was acknowledged, in the order it was queued."""
        while self.queued and self.queued[0][2].done():
            target, change, done, outcome = self.queued.pop(0)
            if done.exception() is not None:
                continue
            stored = done.result()
            assert stored.version > self.version
            self.version = stored.version
            if outcome is None:
                assert stored.document()["spec"] == {"payload": "last"}
                del self.committed[target]
            else:
                assert stored.document() == outcome
                self.committed[target] = outcome
            self.log.append((stored.version, change, target, stored.body))

    @precondition(lambda self: self.queued and isinstance(self.journal(), MemoryJournal))
    @rule(dies=st.sampled_from(["before", "after"]))
    def be_killed_at_a_commit(self, dies):
        """What was queued may be there or not after a kill: a part from its beginning, whole."""
        self.faulty.dies = dies
        self.wait(settled([done for _, _, done, _ in self.queued]))
        queued, self.queued = self.queued, []
        self.wait(self.store.close())
        self.live_again()
        kept = self.store.since(self.version)
        assert bool(kept) is (dies == "after")
        for event, (at, change, _, outcome) in zip(kept, queued, strict=False):
            assert (event.stored.ref, event.change) == (at, change)
            if outcome is None:
                del self.committed[at]
            else:
                assert event.stored.document() == outcome
                self.committed[at] = outcome
            self.log.append((event.version, change, at, event.stored.body))
        self.version = self.store.version

    # Watching

    @rule(kind=KINDS, back=st.integers(0, 30))
    def watch(self, kind, back):
        watcher = Recorder()
        since = max(0, self.store.version - back)
        if since < self.store.statistics().floor:
            with pytest.raises(Expired):
                self.store.attach(kind, since, watcher)
        else:
            self.store.attach(kind, since, watcher)
            self.watchers.append((watcher, kind, since))

    @rule(kind=KINDS, beyond=st.integers(1, 5))
    def watch_from_the_future(self, kind, beyond):
        with pytest.raises(Expired):
            self.store.attach(kind, self.store.version + beyond, Recorder())

    @precondition(lambda self: self.watchers)
    @rule(number=st.integers(0, 100))
    def stop_watching(self, number):
        watcher, _, _ = self.watchers.pop(number % len(self.watchers))
        self.store.detach(watcher)
        self.gone.append((watcher, len(watcher.events)))

    def events_after(self, since, kind):
        return [
            (version, change, target, body)
            for version, change, target, body in self.log
            if version > since and kind in (None, target.kind)
        ]

    # The rest

    @rule()
    def let_it_rest(self):
        self.let_all_commits_end()
        self.wait(self.clock.sleep(timedelta(seconds=5)))

    @rule()
    def restart(self):
        before = self.store.statistics()
        self.wait(self.store.close())
        self.take_outcomes()
        assert not self.queued
        self.live_again()
        after = self.store.statistics()
        assert after.version >= before.version
        assert after.floor <= before.floor or after.events == KEPT_MAX

    def live_again(self):
        self.store = self.wait(self.open())
        self.watchers = []
        self.observer.resume(self.store)

    @rule(kind=st.sampled_from([POD, SET]), namespace=st.sampled_from([None, "one"]), by=INDEXES)
    def look(self, kind, namespace, by):
        for found, there in (
            (self.store.list(kind, namespace=namespace, by=by), self.committed),
            (
                self.store.heads(kind, namespace=namespace, by=by),
                {target: self.head(target) for target in {*self.committed, *self.targets()}},
            ),
        ):
            every = [target for target, body in sorted(there.items()) if body is not None]
            get = self.store.get if there is self.committed else self.store.head
            expected = [
                get(target)
                for target in every
                if target.kind == kind and matches(get(target), namespace, by)
            ]
            assert [*found] == expected

    def targets(self):
        return {target for target, _, _, _ in self.queued}

    @invariant()
    def what_is_committed_is_what_was_acknowledged(self):
        assert self.store.version == self.version
        stored = [item for kind in (POD, SET) for item in self.store.list(kind)]
        assert {item.ref: item.document() for item in stored} == self.committed
        for target in self.targets():
            head = self.store.head(target)
            assert (head.document() if head else None) == self.head(target)

    @invariant()
    def every_watcher_was_told_exactly_what_it_missed(self):
        for watcher, kind, since in self.watchers:
            told = [
                (event.version, event.change, event.stored.ref, event.stored.body)
                for event in watcher.events
            ]
            assert told == self.events_after(since, kind)
            assert all(watcher.batches)
            assert watcher.cuts == 0
        for watcher, told in self.gone:
            assert len(watcher.events) == told

    @invariant()
    def the_history_is_the_log_as_far_as_it_is_kept(self):
        floor = self.store.statistics().floor
        kept = self.events_after(floor, None)
        assert min(KEPT_MAX, len(self.log)) <= len(kept) <= KEPT_MAX
        for since in range(self.version + 1):
            if since < floor:
                with pytest.raises(Expired):
                    self.store.since(since)
            else:
                told = [
                    (e.version, e.change, e.stored.ref, e.stored.body)
                    for e in self.store.since(since)
                ]
                assert told == self.events_after(since, None)

    @invariant()
    def an_observer_finds_no_fault(self):
        self.observer.check()


class SqliteMachine(StoreMachine):
    """The same over a database."""

    def journal(self):
        return SqliteJournal(self.folder, "relaxed")


TestStoreInMemory = pytest.mark.law(StoreMachine.TestCase)
TestStoreOnDisk = pytest.mark.law(SqliteMachine.TestCase)
