"""The executor: order, preconditions, what an error means, and nothing written for nothing."""

from __future__ import annotations

import itertools
import logging
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.podclique import PodClique
from spinney.decisions.actions import Apply, Create, Decision, Delete, Emit, Evict, Patch
from spinney.engine import runs, subjects, verdicts
from spinney.engine.executor import Executor, Result
from spinney.engine.expectations import Expectations
from spinney.engine.recorder import Recorder
from spinney.engine.verdicts import Verdict
from spinney.meta import errors
from spinney.meta.errors import FieldError, Invalid, InvariantViolation, Terminal
from spinney.meta.references import Precondition
from tests.engine.worlds import (
    CLIQUE,
    CONFIG_MAP,
    child,
    child_ref,
    clique,
    clique_ref,
    in_world,
    milliseconds,
    seconds,
)


class Desk:
    """An executor, and what it needs to carry out decisions about one clique."""

    def __init__(self, bench, **options):
        self.bench = bench
        self.expectations = Expectations(bench.reader, [CLIQUE, CONFIG_MAP])
        self.recorder = Recorder(
            bench.reader, bench.network, bench.clock, bench.metrics, instance="test"
        )
        self.executor = Executor(
            "toy",
            bench.reader,
            bench.network,
            bench.clock,
            self.expectations,
            self.recorder,
            bench.metrics,
            **options,
        )

    @property
    def subject(self):
        return subjects.subject_of(self.bench.reader, clique_ref())

    async def carry_out(self, *actions, subject=None, **decision):
        return await self.executor.carry_out(
            subject or self.subject, Decision(actions=actions, **decision), "look-1"
        )

    @property
    def calls(self):
        return self.bench.network.calls


def at_desk(story, **options):
    async def told(bench):
        await bench.user.create(clique())
        return await story(bench, Desk(bench, **options))

    return in_world(told)


def make(name):
    return Create(document=child(name))


def remove(name, uid=None):
    return Delete(target=child_ref(name), only_if=Precondition(uid=uid))


def relabel(name, **only_if):
    merge = {"metadata": {"labels": {"seen": "yes"}}}
    return Patch(target=child_ref(name), merge=merge, only_if=Precondition(**only_if))


def refuse(bench, verb, name, error):
    bench.network.before = lambda v, n: error if (v, n) == (verb, name) else None


# Order


def test_actions_come_before_the_status():
    async def story(bench, desk):
        outcome = await desk.carry_out(make("a"), make("b"), status={"replicas": 2})
        assert outcome.result is Result.DONE
        assert outcome.changed_count == 3
        assert desk.calls[-1] == ("status", "chat")
        assert sorted(desk.calls[:2]) == [("create", "a"), ("create", "b")]

    at_desk(story)


ACTIONS = st.lists(
    st.one_of(
        st.sampled_from("abc").map(make),
        st.sampled_from("abc").map(remove),
        st.sampled_from("abc").map(relabel),
        st.just(Create(document=clique("other"))),
    ),
    max_size=12,
)


@pytest.mark.law
@given(ACTIONS)
def test_runs_keep_the_order_and_hold_one_sort_of_action_on_different_objects(actions):
    found = [*runs.runs_of(actions)]
    assert [action for run in found for action, _ in run] == actions
    for run in found:
        assert len({type(action) for action, _ in run}) == 1
        assert len({target for _, target in run}) == len(run)
        assert len({target.kind for _, target in run}) == 1
    for run, after in itertools.pairwise(found):
        first = after[0]
        assert (
            type(first[0]) is not type(run[0][0])
            or first[1].kind != run[0][1].kind
            or first[1] in {target for _, target in run}
        )


def test_neighbours_of_one_sort_go_at_the_same_time_up_to_a_bound_and_what_follows_waits():
    async def story(bench, desk):
        begun, order = [], []

        def latency(verb, name):
            begun.append(name)
            return milliseconds(10 if verb == "create" else 1)

        bench.network.latency = latency
        bench.network.arrived = lambda verb, name: order.append((verb, name))
        began = bench.clock.elapsed()
        names = [f"n{index}" for index in range(8)]
        await desk.carry_out(*map(make, names), relabel("n0"))
        assert bench.network.in_flight_most == 4
        assert bench.clock.elapsed() - began < milliseconds(30)
        assert order[-1] == ("patch", "n0")
        assert begun == [*names, "n0"]

    at_desk(story, in_flight_max=4)


def test_another_kind_waits_for_the_one_before():
    async def story(bench, desk):
        bench.network.latency = lambda _verb, name: seconds(1) if name == "other" else timedelta()
        await desk.carry_out(Create(document=clique("other")), make("a"))
        assert desk.calls == [("create", "other"), ("create", "a")]

    at_desk(story)


def test_it_stops_at_the_first_failure_having_waited_for_those_under_way():
    async def story(bench, desk):
        bench.network.latency = lambda _verb, name: seconds(2 if name == "b" else 1)
        refuse(bench, "create", "a", errors.Unavailable("no"))
        actions = [make(name) for name in "abcdefgh"]
        outcome = await desk.carry_out(*actions, relabel("b"), status={"replicas": 9})
        assert outcome.result is Result.LATER
        assert desk.calls == [("create", "b")]
        assert bench.network.in_flight == 0
        assert "replicas" not in bench.document(clique_ref()).get("status", {})

    at_desk(story, in_flight_max=2)


def test_what_is_refused_for_good_holds_back_only_what_needs_it():
    async def story(bench, desk):
        refuse(bench, "create", "a", errors.Forbidden("no quota"))
        needs = (child_ref("a"),)
        outcome = await desk.carry_out(
            make("a"),
            make("b"),
            Create(document=clique("needs"), needs=needs),
            Create(document=clique("needs-that"), needs=(clique_ref("needs"),)),
            Create(document=clique("free"), needs=(child_ref("b"),)),
            relabel("b"),
            status={"replicas": 9},
        )
        assert outcome.result is Result.STALLED
        assert outcome.failure.reason == "Forbidden"
        done = [("create", "b"), ("create", "free"), ("patch", "b"), ("status", "chat")]
        assert desk.calls == done
        assert bench.document(clique_ref())["status"]["replicas"] == 0

    at_desk(story, in_flight_max=1)


def test_it_stops_where_the_world_moved_whatever_was_refused_before():
    async def story(bench, desk):
        refusals = {"a": errors.Forbidden("no quota"), "b": errors.Conflict("moved")}
        bench.network.before = lambda _verb, name: refusals.get(name)
        outcome = await desk.carry_out(make("a"), make("b"), make("c"))
        assert outcome.result is Result.STALLED
        assert desk.calls == [("status", "chat")]

    at_desk(story, in_flight_max=1)


def test_an_intent_is_stored_alone_and_only_where_it_is_new():
    async def story(bench, desk):
        intent = {"wasAvailable": True}
        outcome = await desk.carry_out(intent=intent)
        assert (outcome.result, desk.calls) == (Result.INTENT, [("status", "chat")])
        outcome = await desk.carry_out(intent=intent)
        assert (outcome.result, len(desk.calls)) == (Result.INTENT, 1)

    at_desk(story)


def test_a_decision_that_breaks_its_own_rules_is_a_bug():
    async def story(bench, desk):
        with pytest.raises(InvariantViolation, match="nothing else"):
            await desk.carry_out(make("a"), intent={"replicas": 1})
        await bench.user.patch(
            clique_ref(), {"metadata": {"finalizers": ["test/held"]}}, Precondition()
        )
        await bench.user.delete(
            clique_ref(), Precondition(), grace_seconds=None, propagation="Background"
        )
        with pytest.raises(InvariantViolation, match=r"being deleted.*create ConfigMap default/a"):
            await desk.carry_out(make("a"))
        with pytest.raises(InvariantViolation, match="status decided for PodClique default/chat"):
            await desk.carry_out(status={"replicas": "many"})
        assert desk.calls == []

    at_desk(story)


# Status


def test_a_status_that_stands_there_is_not_written():
    async def story(bench, desk):
        status = {"replicas": 1, "conditions": [{"type": "Seen", "status": "True"}]}
        await desk.carry_out(status=status)
        assert desk.calls == [("status", "chat")]
        for same in (status, {**status, "readyReplicas": 0, "hpaPodSelector": ""}):
            assert desk.executor.is_idle(desk.subject, Decision(status=same))
            outcome = await desk.carry_out(status=same)
            assert (outcome.result, outcome.changed_count) == (Result.DONE, 0)
        assert len(desk.calls) == 1
        assert not desk.executor.is_idle(desk.subject, Decision(status={"replicas": 2}))

    at_desk(story)


def test_a_status_decided_from_an_older_object_is_refused():
    async def story(bench, desk):
        old = desk.subject
        await bench.user.patch(clique_ref(), {"spec": {"replicas": 5}}, Precondition())
        outcome = await desk.carry_out(subject=old, status={"replicas": 1})
        assert outcome.result is Result.MOVED
        assert "status" not in bench.document(clique_ref())

    at_desk(story)


def test_the_version_of_our_own_patch_is_carried_to_the_status():
    own = Patch(
        target=clique_ref(),
        merge={"metadata": {"finalizers": ["spinney.dev/test"]}},
        only_if=Precondition(),
    )

    async def story(bench, desk):
        outcome = await desk.carry_out(own, status={"replicas": 1})
        assert outcome.result is Result.DONE
        assert bench.document(clique_ref())["status"]["replicas"] == 1

    at_desk(story)

    async def moved(bench, desk):
        """Somebody changes the object between the observation and our patch of it."""
        old = desk.subject
        await bench.user.patch(clique_ref(), {"spec": {"replicas": 5}}, Precondition())
        outcome = await desk.carry_out(own, subject=old, status={"replicas": 1})
        assert outcome.result is Result.MOVED
        assert "finalizers" not in bench.document(clique_ref())["metadata"]

    at_desk(moved)


# What errors mean


def test_what_is_gone_needs_no_deleting():
    async def story(bench, desk):
        evict = Evict(target=child_ref("b"), only_if=Precondition())
        bench.network.before = lambda verb, _name: (
            errors.NotFound("gone") if verb == "evict" else None
        )
        outcome = await desk.carry_out(remove("a"), evict, make("c"))
        assert outcome.result is Result.DONE
        assert bench.names() == ["c"]

    at_desk(story)


def test_another_object_of_the_same_name_is_not_deleted():
    async def story(bench, desk):
        await bench.user.create(child("a"))
        outcome = await desk.carry_out(remove("a", uid="of-the-one-before"))
        assert outcome.result is Result.MOVED
        assert bench.names() == ["a"]

    at_desk(story)


def test_a_patch_of_what_is_gone_or_changed_is_a_moved_world():
    async def story(bench, desk):
        assert (await desk.carry_out(relabel("a"))).result is Result.MOVED
        await bench.user.create(child("a"))
        moved = await desk.carry_out(relabel("a", resource_version="1"))
        assert moved.result is Result.MOVED
        assert bench.measured("spinney_conflicts_total", controller="toy", kind="ConfigMap") == 2

    at_desk(story)


@pytest.mark.rule("1.5")
def test_a_name_that_another_holds_is_told_and_left_to_the_next_look(caplog):
    async def story(bench, desk):
        await bench.user.create(child("a"))
        await bench.user.create(child("b", desk.subject.metadata))
        with caplog.at_level(logging.WARNING, "spinney"):
            outcome = await desk.carry_out(make("b"), status={"replicas": 7})
            assert outcome.result is Result.MOVED
            assert not caplog.records
            outcome = await desk.carry_out(make("a"), status={"replicas": 7})
        assert outcome.result is Result.MOVED
        assert [record.getMessage() for record in caplog.records] == [
            "the name is held by an object of another"
        ]
        assert "status" not in bench.document(clique_ref())
        for result in ("exists", "taken"):
            assert bench.measured("spinney_actions_total", action="create", result=result) == 1

    at_desk(story)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (errors.NotFound("gone"), Verdict.MOVED),
        (errors.AlreadyExists("there"), Verdict.MOVED),
        (errors.Conflict("changed"), Verdict.MOVED),
        (errors.Unavailable("not now"), Verdict.LATER),
        (errors.Internal("oh"), Verdict.LATER),
        (errors.StorageFull("full"), Verdict.LATER),
        (errors.TooManyRequests("slow down"), Verdict.LATER),
        (errors.Unauthorized("the token ran out"), Verdict.LATER),
        (TimeoutError(), Verdict.LATER),
        (ConnectionResetError("peer"), Verdict.LATER),
        (errors.Forbidden("quota"), Verdict.STALLED),
        (errors.BadRequest("what"), Verdict.STALLED),
        (errors.TooLarge("too big"), Verdict.STALLED),
        (errors.MethodNotAllowed("no"), Verdict.STALLED),
        (errors.UnsupportedMediaType("no"), Verdict.STALLED),
        (Terminal("NoTopology", "no topology named racks"), Verdict.STALLED),
        (
            errors.Forbidden(
                "no new content", details={"causes": [{"reason": "NamespaceTerminating"}]}
            ),
            Verdict.MOVED,
        ),
    ],
)
def test_every_error_has_one_meaning(error, verdict):
    failure = verdicts.judged(error)
    assert failure.verdict is verdict
    assert failure.message


def test_how_long_to_wait_is_as_the_server_says():
    failure = verdicts.judged(errors.TooManyRequests("slow", retry_after_seconds=30))
    assert failure.retry_after == seconds(30)


BAD = Create(document=child("not a name"))


def test_what_somebody_must_mend_stands_in_a_condition_and_in_an_event_until_it_is_mended():
    async def story(bench, desk):
        await desk.carry_out(status={"replicas": 1})
        outcome = await desk.carry_out(BAD, status={"replicas": 2})
        assert outcome.result is Result.STALLED
        status = bench.document(clique_ref())["status"]
        assert status["replicas"] == 1
        (condition,) = status["conditions"]
        assert (condition["type"], condition["status"]) == ("Stalled", "True")
        assert condition["reason"] == "Invalid"
        assert "metadata.name" in condition["message"]
        assert condition["observedGeneration"] == 1
        assert desk.recorder.statistics().waiting == 1

        version = bench.store.version
        await desk.carry_out(BAD, status={"replicas": 2})
        assert bench.store.version == version, "the same failure again writes nothing"

        kept = bench.reader.get(PodClique, "default", "chat").status.conditions
        told = [{"type": each.type, "status": each.status} for each in kept]
        await desk.carry_out(status={"replicas": 2, "conditions": told})
        assert not bench.document(clique_ref())["status"].get("conditions")

    at_desk(story)


def test_a_decision_that_leaves_the_status_still_takes_the_condition_away():
    async def story(bench, desk):
        await desk.carry_out(BAD)
        assert bench.document(clique_ref())["status"]["conditions"]
        assert not desk.executor.is_idle(desk.subject, Decision())
        await desk.carry_out()
        assert not bench.document(clique_ref())["status"].get("conditions")
        assert desk.executor.is_idle(desk.subject, Decision())

    at_desk(story)


def test_the_worst_failure_of_a_run_decides():
    async def story(bench, desk):
        await bench.user.create(child("a"))
        bench.network.latency = lambda _verb, name: milliseconds(1 if name == "a" else 2)
        outcome = await desk.carry_out(make("a"), BAD)
        assert outcome.result is Result.STALLED

    at_desk(story)


# What is written, told and counted


def test_an_apply_or_patch_that_changes_nothing_counts_as_nothing(caplog):
    async def story(bench, desk):
        apply = Apply(document=child("a", size="1"))
        assert (await desk.carry_out(apply)).changed_count == 1
        assert (await desk.carry_out(relabel("a"))).changed_count == 1
        version = bench.store.version
        caplog.clear()
        with caplog.at_level(logging.INFO, "spinney"):
            outcome = await desk.carry_out(apply, relabel("a"))
        assert outcome.changed_count == 0
        assert bench.store.version == version
        assert not caplog.records

    at_desk(story)


def test_each_action_that_changed_something_is_one_line_of_the_log(caplog):
    async def story(bench, desk):
        with caplog.at_level(logging.INFO, "spinney"):
            await desk.carry_out(make("a"), remove("b"), status={"replicas": 1})
        assert [record.getMessage() for record in caplog.records] == [
            "created",
            "wrote the status of",
        ]
        assert caplog.records[0].fields == {
            "object": child_ref("a"),
            "action": "create",
            "about": clique_ref(),
            "controller": "toy",
            "reconcile_id": "look-1",
        }

    at_desk(story)


def test_an_emit_is_handed_over_in_its_place_and_never_after_a_failure():
    async def story(bench, desk):
        said = Emit(about=clique_ref(), type="Normal", reason="Grew", note="one more")
        refuse(bench, "create", "a", errors.Unavailable("no"))
        await desk.carry_out(make("a"), said)
        assert desk.recorder.statistics().waiting == 0
        await desk.carry_out(make("b"), said)
        assert desk.recorder.statistics().waiting == 1

    at_desk(story)


def test_a_full_decision_says_that_there_may_be_more():
    async def story(bench, desk):
        outcome = await desk.carry_out(*[make(f"n{index}") for index in range(500)])
        assert outcome.is_cut_off
        assert len(bench.names()) == 500
        assert not (await desk.carry_out(make("one"))).is_cut_off

    at_desk(story)


def test_a_bug_while_writing_is_raised_and_leaves_no_task_behind():
    async def story(bench, desk):
        bench.network.before = lambda _verb, name: KeyError("a bug") if name == "b" else None
        with pytest.raises(KeyError):
            await desk.carry_out(make("a"), make("b"), make("c"))
        assert bench.network.in_flight == 0

    at_desk(story)


def test_field_errors_reach_the_condition():
    fault = FieldError(path="spec.x", reason=errors.REQUIRED, message="")
    invalid = Invalid([fault], group="", kind="Pod", name="p")
    assert verdicts.judged(invalid).reason == "Invalid"
    assert "spec.x: Required value" in verdicts.judged(invalid).message
