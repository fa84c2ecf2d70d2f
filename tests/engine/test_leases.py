"""Leadership: never two at once, whatever is delayed, lost or seen late."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spinney.api.core.lease import Lease
from spinney.engine.leases import Election, LeaseSettings, Verb
from spinney.meta import records
from spinney.meta.errors import InvariantViolation, Unavailable
from spinney.meta.references import Ref
from spinney.ports import Identity
from spinney.testing.clock import START
from spinney.testing.entropy import SeededEntropy
from spinney.testing.networks import Network
from tests import laws
from tests.engine.worlds import (
    ENGINE,
    LEASE,
    clique,
    decide,
    in_world,
    milliseconds,
    seconds,
    toy,
)

SETTINGS = LeaseSettings(namespace="kube-system", name="test")
NAMES = ("anna", "berta", "clara")
names = st.sampled_from(NAMES)


class Request:
    """A write of the lease on its way: where it is, and what becomes of it."""

    def __init__(self, step, document, sent_at):
        self.step = step
        self.document = document
        self.sent_at = sent_at
        self.is_awaited = True
        self.version = None
        """The version it made; 0 if it was refused; None while it is on its way."""


class ElectionMachine(RuleBasedStateMachine):
    """Three candidates and a server; requests, answers and sights of the lease come when they may.

    What a candidate has given up waiting for may still reach the server later.
    """

    def __init__(self):
        super().__init__()
        self.now = timedelta()
        self.history = []  # every version of the lease, as a Lease
        self.elections = {name: Election(name, SETTINGS) for name in NAMES}
        self.sent = {name: [] for name in NAMES}
        self.leaders = []

    def awaited(self, name):
        return next((each for each in self.sent[name] if each.is_awaited), None)

    @rule(by=st.integers(1, 12_000))
    def time_passes(self, by):
        self.now += milliseconds(by)

    @rule(name=names, back=st.integers(0, 3))
    def sees(self, name, back):
        """A candidate sees the lease, as it is or as it was a few versions ago."""
        seen = self.history[: len(self.history) - back]
        self.elections[name].observe(seen[-1] if seen else None, self.now)

    @rule(name=names)
    def steps(self, name):
        election = self.elections[name]
        if self.awaited(name) is not None:
            return
        step = election.next_step(self.now)
        wall = START + self.now
        if step.verb is Verb.CREATE:
            document = election.new_lease(wall)
        elif step.verb is Verb.TAKE:
            document = election.taking(wall)
        elif step.verb is Verb.RENEW:
            document = election.renewing(wall)
        else:
            if step.verb is Verb.STAND_DOWN:
                election.stood_down()
            return
        self.sent[name].append(Request(step, document, self.now))

    @rule(name=names, data=st.data())
    def a_request_arrives(self, name, data):
        on_the_way = [each for each in self.sent[name] if each.version is None]
        if not on_the_way:
            return
        request = data.draw(st.sampled_from(on_the_way))
        current = self.history[-1] if self.history else None
        found = current.metadata.resource_version if current else ""
        if request.step.version != found:
            request.version = 0
            return
        version = len(self.history) + 1
        spec = {**(records.encode(current)["spec"] if current else {}), **request.document["spec"]}
        document = {"metadata": {"name": "test", "resourceVersion": str(version)}, "spec": spec}
        self.history.append(records.decode(Lease, document))
        request.version = version

    @rule(name=names)
    def an_answer_arrives(self, name):
        request = self.awaited(name)
        if request is None or request.version is None:
            return
        request.is_awaited = False
        if request.version:
            version = str(request.version)
            self.elections[name].succeeded(version, request.sent_at, self.now)
        else:
            self.elections[name].failed(self.now, timedelta())

    @rule(name=names)
    def an_answer_is_given_up(self, name):
        request = self.awaited(name)
        if request is not None:
            request.is_awaited = False
            self.elections[name].failed(self.now, timedelta())

    @precondition(lambda self: self.history)
    @rule(name=names)
    def gives_up_the_lease(self, name):
        """A leader that stops releases the lease, having stopped to act first."""
        election = self.elections[name]
        election.observe(self.history[-1], self.now)
        if not election.may_act(self.now) or self.awaited(name) is not None:
            return
        election.stood_down()
        current = self.history[-1]
        if current.metadata.resource_version == election.version:
            version = len(self.history) + 1
            spec = {**records.encode(current)["spec"], "holderIdentity": ""}
            document = {"metadata": {"name": "test", "resourceVersion": str(version)}, "spec": spec}
            self.history.append(records.decode(Lease, document))

    @invariant()
    def at_most_one_may_act(self):
        acting = [name for name in NAMES if self.elections[name].may_act(self.now)]
        assert len(acting) <= 1, acting
        for election in self.elections.values():
            election.validate()


ElectionMachine.TestCase.settings = settings(settings.default, stateful_step_count=60)
TestElection = pytest.mark.law(ElectionMachine.TestCase)


def lease(holder, version=1, duration=15, transitions=0):
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "leaseTransitions": transitions,
    }
    document = {"metadata": {"name": "test", "resourceVersion": str(version)}, "spec": spec}
    return records.decode(Lease, document)


@pytest.mark.parametrize(
    ("seen", "after", "verb"),
    [
        (None, 0, Verb.CREATE),
        (lease(""), 0, Verb.TAKE),
        (lease("berta"), 14.9, Verb.WAIT),
        (lease("berta"), 15, Verb.TAKE),
        (lease("berta", duration=40), 39, Verb.WAIT),
        (lease("berta", duration=40), 40, Verb.TAKE),
        (lease("anna"), 0, Verb.TAKE),
    ],
)
def test_who_follows(seen, after, verb):
    election = Election("anna", SETTINGS)
    election.observe(seen, timedelta())
    assert election.next_step(seconds(after)).verb is verb


@pytest.mark.parametrize(
    ("after", "verb", "until"),
    [
        (0, Verb.WAIT, 2),
        (2, Verb.RENEW, None),
        (9.9, Verb.RENEW, None),
        (10, Verb.STAND_DOWN, None),
    ],
)
def test_who_leads(after, verb, until):
    election = Election("anna", SETTINGS)
    election.succeeded("7", timedelta(), timedelta())
    step = election.next_step(seconds(after))
    assert (step.verb, step.until) == (verb, None if until is None else seconds(until))
    assert election.may_act(seconds(after)) == (after < 10)


def test_a_leader_that_sees_another_holder_stops_at_once():
    election = Election("anna", SETTINGS)
    election.succeeded("7", timedelta(), timedelta())
    election.observe(lease("berta", version=6), seconds(1))
    assert election.may_act(seconds(1)), "that was before ours"
    election.observe(lease("berta", version=8), seconds(1))
    assert not election.may_act(seconds(1))


@pytest.mark.parametrize(
    "times",
    [
        {"retry": seconds(10)},
        {"renew_deadline": seconds(15)},
        {"retry": timedelta()},
        {"duration": seconds(12.5)},
    ],
)
def test_times_that_would_not_keep_leaders_apart_are_refused(times):
    with pytest.raises(ValueError, match=r"must rise|whole seconds"):
        LeaseSettings(namespace="kube-system", **times)


@pytest.mark.law
@given(st.integers(0, 20_000), st.integers(0, 20_000), st.integers(0, 20_000))
def test_a_leader_counts_from_when_it_sent_not_from_when_it_was_answered(
    arrival, answer, other_sees
):
    """The renewal reaches the server late, and the answer later still; another watches closely."""
    election, other = Election("anna", SETTINGS), Election("berta", SETTINGS)
    arrives = milliseconds(arrival)
    answered = arrives + milliseconds(answer)
    sees = arrives + milliseconds(other_sees)
    election.succeeded("7", timedelta(), answered)
    other.observe(lease("anna", version=7), sees)
    while (step := other.next_step(sees)).verb is Verb.WAIT:
        sees = step.until
    taken_at = max(sees, answered)
    assert not election.may_act(taken_at)


def test_a_process_that_was_suspended_writes_nothing_when_it_wakes():
    """The laptop was closed for half a minute: what was ready to run meets the fence."""

    async def story(bench):
        writes = []
        candidate = Candidate(bench, "anna", writes)
        await bench.clock.sleep(seconds(5))
        assert candidate.manager.may_act()
        allowed = []

        def arrived(_verb, target):
            if target != SETTINGS.name:
                allowed.append(candidate.manager.may_act())

        candidate.network.arrived = arrived
        elapsed = bench.clock.elapsed
        bench.clock.elapsed = lambda: elapsed() + seconds(30)
        assert not candidate.manager.may_act()
        await bench.user.create(clique())
        await bench.clock.sleep(milliseconds(1))
        assert allowed == []
        await bench.clock.sleep(seconds(60))
        assert bench.names() == ["chat-0"]
        assert all(allowed)
        await candidate.end()

    in_world(story)


class Candidate:
    """A manager with a network of its own, and what it wrote and when."""

    def __init__(self, bench, name, writes, decide=decide):
        identity = Identity(user=ENGINE.user, manager=name)
        self.network = Network(bench.world.writer(identity), bench.clock)
        self.name = name
        self.manager = bench.manager(
            toy(decide=decide),
            writer=self.network,
            leases=SETTINGS,
            identity=name,
            metrics=None,
        )
        self.network.arrived = lambda verb, target: writes.append((self, verb, target))
        self.task = asyncio.create_task(self.manager.run())

    async def end(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.mark.law
@laws.examples(20)
@given(st.integers(0, 2**32))
def test_of_two_managers_only_the_leader_acts_whatever_the_network_does(seed):
    """Two managers over networks that stall for seconds, cut off, and lose answers.

    Every write of a controller that reaches the server is one of the only manager that may act.
    """

    async def story(bench):
        entropy = SeededEntropy(seed)
        writes, wrong = [], []
        candidates = [Candidate(bench, name, writes) for name in ("anna", "berta")]

        def acts_alone(candidate):
            def arrived(verb, target):
                writes.append((candidate.name, verb, target))
                if target == SETTINGS.name:
                    return
                if [each for each in candidates if each.manager.may_act()] != [candidate]:
                    wrong.append((candidate.name, verb, target, bench.clock.elapsed()))

            return arrived

        for each in candidates:
            chance = entropy.stream(each.name)
            is_cut = [False]
            each.network.arrived = acts_alone(each)
            each.network.latency = lambda _verb, _name, chance=chance: milliseconds(
                chance.between(0, 30_000) if chance.happens(60) else chance.between(0, 20)
            )

            def lost(_verb, _name, chance=chance, is_cut=is_cut):
                if chance.happens(30):
                    is_cut[0] = not is_cut[0]
                return Unavailable("cut off") if is_cut[0] or chance.happens(50) else None

            each.network.before = lost
            each.network.after = lost
        for turn in range(30):
            await bench.user.create(clique(f"chat{turn}", replicas=2))
            await bench.clock.sleep(milliseconds(entropy.between(0, 8_000)))
        for each in candidates:
            each.network.latency = lambda _verb, _name: timedelta()
            each.network.before = each.network.after = lambda _verb, _name: None
        await bench.clock.sleep(seconds(120))
        assert wrong == []
        assert len(bench.names()) == 60, "in the end all is as declared"
        assert sum(each.manager.is_leading for each in candidates) == 1
        for each in candidates:
            assert not each.task.done()
            await each.end()

    in_world(story, seed)


def test_a_leader_that_stops_hands_over_at_once():
    async def story(bench):
        writes = []
        first = Candidate(bench, "anna", writes)
        await bench.clock.sleep(seconds(1))
        second = Candidate(bench, "berta", writes)
        await bench.clock.sleep(seconds(60))
        assert first.manager.is_leading
        assert not second.manager.is_leading
        assert second.manager.ready, "one that follows is ready too"
        began = bench.clock.elapsed()
        first.manager.stop()
        await first.task
        await bench.user.create(clique())
        await second.manager.settle()
        assert second.manager.is_leading
        assert bench.names() == ["chat-0"]
        assert bench.clock.elapsed() - began < milliseconds(100)
        ref = Ref(kind=LEASE, namespace="kube-system", name="test")
        spec = bench.document(ref)["spec"]
        assert spec["holderIdentity"].startswith("berta_")
        assert spec["leaseTransitions"] >= 1
        await second.end()

    in_world(story)


def test_a_leader_that_dies_is_followed_when_the_lease_has_run_out():
    async def story(bench):
        writes = []
        first, second = Candidate(bench, "anna", writes), Candidate(bench, "berta", writes)
        await bench.clock.sleep(seconds(30))
        leader, other = (first, second) if first.manager.is_leading else (second, first)
        leader.network.before = lambda _verb, _name: Unavailable("the process is gone")
        leader.task.cancel()
        began = bench.clock.elapsed()
        while not other.manager.is_leading:
            await bench.clock.sleep(milliseconds(100))
        assert seconds(13) <= bench.clock.elapsed() - began <= seconds(15.5)
        await leader.end()
        await other.end()

    in_world(story)


def test_a_lease_costs_one_write_every_two_seconds_and_following_none():
    async def story(bench):
        writes = []
        candidates = [Candidate(bench, name, writes) for name in ("anna", "berta")]
        await bench.clock.sleep(seconds(10))
        writes.clear()
        await bench.clock.sleep(seconds(100))
        assert 48 <= len(writes) <= 51
        assert len({candidate.name for candidate, _, _ in writes}) == 1
        for each in candidates:
            await each.end()

    in_world(story)


def test_one_that_follows_stops_when_told_to():
    async def story(bench):
        writes = []
        first = Candidate(bench, "anna", writes)
        await bench.clock.sleep(seconds(1))
        second = Candidate(bench, "berta", writes)
        await bench.clock.sleep(seconds(1))
        second.manager.stop()
        await second.task
        assert first.manager.is_leading
        await first.end()

    in_world(story)


def test_a_bug_of_ours_ends_the_leader_and_another_follows_at_once():
    async def story(bench):
        def breaks_a_rule(_observation):
            raise InvariantViolation("two base gangs for one replica")

        writes = []
        first = Candidate(bench, "anna", writes, decide=breaks_a_rule)
        await bench.clock.sleep(seconds(1))
        second = Candidate(bench, "berta", writes)
        await bench.clock.sleep(seconds(1))
        await bench.user.create(clique())
        with pytest.raises(InvariantViolation, match="two base gangs"):
            await first.task
        await bench.clock.sleep(seconds(1))
        assert second.manager.is_leading
        assert bench.names() == ["chat-0"]
        await second.end()

    in_world(story)


def test_a_lease_that_cannot_be_released_runs_out():
    async def story(bench):
        writes = []
        first = Candidate(bench, "anna", writes)
        await bench.clock.sleep(seconds(1))
        first.network.before = lambda _verb, _name: Unavailable("cut off")
        first.manager.stop()
        await first.task
        second = Candidate(bench, "berta", writes)
        await bench.clock.sleep(seconds(16))
        assert second.manager.is_leading
        await second.end()

    in_world(story)
