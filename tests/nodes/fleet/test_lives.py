"""What becomes of a simulated pod: laws over all pods, plans and moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod, PodSpec, PodStatus
from spinney.meta import records
from spinney.meta.metadata import ObjectMeta
from spinney.nodes.fleet import lives, plans
from spinney.nodes.fleet.lives import Moment
from spinney.nodes.fleet.plans import BadPlan, Plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPANS = st.sampled_from([0, 1, 5, 60]).map(lambda seconds: timedelta(seconds=seconds))

PLANS = st.builds(
    Plan,
    start=SPANS,
    ready=st.none() | SPANS,
    stop=SPANS,
    runs_for=st.none() | SPANS,
    exit_code=st.sampled_from([0, 1]),
)
PODS = st.builds(
    lambda policy, init, deadline, keeps: Pod(
        metadata=ObjectMeta(name="a", uid="p", finalizers=("example.com/keep",) if keeps else ()),
        spec=PodSpec(
            containers=({"name": "main", "image": "m"}, {"name": "side", "image": "s"}),
            init_containers=init,
            restart_policy=policy,
            active_deadline_seconds=deadline,
        ),
    ),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.sampled_from(
        [
            (),
            ({"name": "first", "image": "f"},),
            ({"name": "beside", "image": "b", "restartPolicy": "Always"},),
        ]
    ),
    st.none() | st.sampled_from([1, 30]),
    st.booleans(),
)
MOVES = st.lists(st.sampled_from(["wait", "second", "minute", "delete"]), max_size=8)


class Played:
    """A pod that lives as its steps say."""

    def __init__(self, pod, plan):
        self.pod, self.plan = pod, plan
        self.now, self.since = NOW, NOW
        self.is_gone = False
        self.writes = 0

    def rest(self):
        """Take steps until there is nothing to do; return when to look again."""
        for _ in range(6):
            step = lives.step(self.pod, self.plan, self._moment())
            if step.status is None and not step.removes:
                return step.wake_after
            self.writes += 1
            stage = lives.stage(self.pod)
            if step.status is not None:
                self._tell(step.status)
            if step.removes:
                self._remove()
                if self.is_gone:
                    return None
            if lives.stage(self.pod) != stage:
                self.since = self.now
        raise AssertionError("it never comes to rest")

    def _moment(self):
        return Moment(
            now=self.now, age=self.now - self.since, host_ip="240.0.0.1", pod_ip="241.0.0.1"
        )

    def _tell(self, status):
        before = records.encode(self.pod.status)
        merged = {key: value for key, value in {**before, **status}.items() if value is not None}
        found = records.decode(PodStatus, merged)
        assert not (self.pod.status.phase in ("Succeeded", "Failed") and found.phase == "Running")
        self.pod = msgspec.structs.replace(self.pod, status=found)

    def _remove(self):
        self.is_gone = not self.pod.metadata.finalizers
        metadata = msgspec.structs.replace(
            self.pod.metadata, deletion_grace_period_seconds=0, deletion_timestamp=self.now
        )
        self.pod = msgspec.structs.replace(self.pod, metadata=metadata)

    def delete(self):
        grace = 0 if self.pod.status.phase in ("Succeeded", "Failed") else 30
        metadata = msgspec.structs.replace(
            self.pod.metadata,
            deletion_timestamp=self.now + timedelta(seconds=grace),
            deletion_grace_period_seconds=grace,
        )
        self.pod = msgspec.structs.replace(self.pod, metadata=metadata)
        self.since = self.now


@pytest.mark.law
@given(PODS, PLANS, MOVES)
def test_a_life_comes_to_rest_after_every_move_and_ends_when_it_is_told_to(pod, plan, moves):
    """Totality and fixpoint: a look that found nothing to do finds nothing a moment later."""
    if plan.runs_for == timedelta() and pod.spec.restart_policy != "Never":
        plan = msgspec.structs.replace(plan, runs_for=timedelta(seconds=1))
    played = Played(pod, plan)
    for move in moves:
        wait = played.rest()
        writes = played.writes
        assert played.is_gone or played.rest() == wait
        assert played.writes == writes
        if played.is_gone:
            return
        if move == "wait" and wait is not None:
            assert wait > timedelta()
            played.now += wait
        elif move == "second":
            played.now += timedelta(seconds=1)
        elif move == "minute":
            played.now += timedelta(minutes=1)
        elif move == "delete" and played.pod.metadata.deletion_timestamp is None:
            played.delete()
    if played.pod.metadata.deletion_timestamp is None:
        played.rest()
        played.delete()
    for _ in range(3):
        wait = played.rest()
        if played.is_gone or wait is None:
            break
        played.now += wait
    assert (
        played.is_gone
        or (played.pod.metadata.finalizers and played.pod.status.phase in ("Succeeded", "Failed"))
        or played.pod.status.phase in ("Succeeded", "Failed")
    )


@pytest.mark.law
@given(PODS)
def test_without_delays_one_write_leads_to_ready(pod):
    played = Played(pod, Plan())
    played.rest()
    assert played.writes == 1
    assert played.pod.status.phase == "Running"
    assert all(status.ready for status in played.pod.status.container_statuses)


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({"run-for": "soon"}, "must be a duration"),
        ({"run-for": "-1s"}, "must not be negative"),
        ({"run-for": "1s", "fails-after": "1s"}, "must not both be given"),
        ({"exit-code": "256"}, "must be a number from 0 to 255"),
        ({"exit-code": "x"}, "must be a number from 0 to 255"),
        ({"never-ready": "yes"}, 'must be "true" or "false"'),
        ({"usage": "cpu"}, "must be a quantity"),
        ({"usage": "gpu=1"}, "must be amounts of cpu and memory"),
        ({"usage": "cpu=-1"}, "must be amounts of cpu and memory"),
        ({"speed": "1"}, "annotation sim.spinney.dev/speed is not known: must be one of"),
    ],
)
def test_annotations_that_cannot_be_followed_are_named(marks, told):
    annotations = {f"sim.spinney.dev/{key}": value for key, value in marks.items()}
    pod = Pod(metadata=ObjectMeta(name="a", annotations=annotations))
    with pytest.raises(BadPlan) as caught:
        plans.plan(pod, Plan())
    assert told in str(caught.value)
    assert "sim.spinney.dev/" in str(caught.value)
