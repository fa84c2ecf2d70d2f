"""Laws of a pod's life, whatever happens to it.

Totality: no order of events breaks the machine. Safety: never two attempts of a container at once;
init containers in their order; an end is an end. Liveness: a deleted pod is gone within its grace,
its hooks and the kill; a back-off is never longer than five minutes.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.meta.documents import Document
from spinney.nodes.agent import containers, statuses
from spinney.nodes.agent import instructions as said
from spinney.nodes.agent.instructions import Event, Hook
from spinney.nodes.agent.probes import ProbeKind
from spinney.ports import ContainerState
from tests.nodes.agent.stage import (
    LIVENESS,
    POST_START,
    PRE_STOP,
    READINESS,
    START,
    STARTUP,
    Node,
    container,
    deleted,
    pod,
)

HELD = ContainerStateWaiting(reason="WaitingForCliques", message="waits")
NAMES = ("a", "side", "main", "other")
DECLARED = st.lists(
    st.sampled_from([LIVENESS, READINESS, STARTUP, POST_START, PRE_STOP]), max_size=3
).map(lambda parts: {key: value for part in parts for key, value in part.items()})
POLICIES = st.sampled_from(["Always", "OnFailure", "Never"])


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Return a pod of up to four containers."""
    init: list[Document] = []
    if draw(st.booleans()):
        init.append(container("a", **draw(DECLARED)))
    if draw(st.booleans()):
        init.append(container("side", restartPolicy="Always", **draw(DECLARED)))
    main = [container("main", **draw(DECLARED))]
    if draw(st.booleans()):
        main.append(container("other", **draw(DECLARED)))
    more: Document = draw(st.sampled_from([{}, {"activeDeadlineSeconds": 20}]))
    return pod(*main, init=tuple(init), policy=draw(POLICIES), **more)


def events(of: Pod) -> st.SearchStrategy[Event]:
    """Return anything that may be told of a pod, in or out of place."""
    name, attempt = st.sampled_from([*NAMES, "none"]), st.integers(0, 3)
    state = st.builds(
        ContainerState,
        pod_uid=st.just("u1"),
        container=name,
        attempt=attempt,
        started_at=st.sampled_from([None, START]),
        ended_at=st.sampled_from([None, START]),
        exit_code=st.sampled_from([None, 0, 1]),
        signal=st.sampled_from([None, 9]),
        reason=st.sampled_from(["", "OOMKilled"]),
    )
    text = st.sampled_from(["", "x"])
    seen = st.sampled_from([of, deleted(of, 0), deleted(of, 5)])
    return st.one_of(
        st.builds(said.Seen, pod=seen, held=st.sampled_from([None, HELD])),
        st.builds(said.Gone),
        st.builds(said.Prepared, ip=text),
        st.builds(said.PrepareFailed, reason=text, message=text, is_blocked=st.booleans()),
        st.builds(said.Blocked, container=name, attempt=attempt, reason=text, message=text),
        st.builds(said.StartFailed, container=name, attempt=attempt, reason=text, message=text),
        st.builds(said.Unblocked),
        st.builds(said.Became, state=state),
        st.builds(
            said.HookDone,
            container=name,
            attempt=attempt,
            hook=st.sampled_from(Hook),
            fault=text,
        ),
        st.builds(
            said.Probed,
            container=name,
            attempt=attempt,
            kind=st.sampled_from(ProbeKind),
            is_success=st.booleans(),
        ),
        st.builds(said.Removed),
        st.builds(said.Leave, grace_seconds=st.integers(0, 5)),
        st.builds(said.Tick),
    )


@pytest.mark.law
@given(data=st.data())
def test_no_order_of_events_breaks_it(data: st.DataObject) -> None:
    """Totality; and no attempt is started while another may run."""
    given_pod = data.draw(pods())
    node = Node(given_pod, is_obedient=False)
    life, live = node.life, dict(node.running)
    happens = events(given_pod)
    for _ in range(data.draw(st.integers(1, 25))):
        event = data.draw(happens)
        node.elapsed += timedelta(seconds=data.draw(st.sampled_from([0, 1, 30, 700])))
        for instruction in life.handle(event, node.now):
            if isinstance(instruction, said.Start):
                before = live.get(instruction.container, -1)
                assert instruction.attempt >= before, "an attempt is never begun twice"
                live[instruction.container] = instruction.attempt
        life.validate()
        status = life.view().status(life.pod, "127.0.0.1", node.now.wall)
        assert status["phase"] in ("Pending", "Running", "Succeeded", "Failed")
        due = life.wake_at()
        again = life.handle(said.Tick(), node.now)
        assert life.handle(said.Tick(), node.now) == (), f"a tick does all at once: {again}"
        assert due is None or isinstance(due, timedelta)


class Chance:
    """What happens on a node, drawn by Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        """Draw a pod, and how its node behaves."""
        self.data = data
        self.pod = data.draw(pods())
        self.node = Node(self.pod)
        self.node.probes = lambda _: data.draw(st.booleans())
        self.node.hook_hangs = data.draw(st.booleans())
        self.node.ignores_stop = set(data.draw(st.lists(st.sampled_from(NAMES))))

    def live(self, steps: int) -> None:
        """Let things happen."""
        for _ in range(steps):
            if self.node.running and self.data.draw(st.booleans()):
                name = self.data.draw(st.sampled_from(sorted(self.node.running)))
                self.node.ended(name, self.data.draw(st.sampled_from([0, 1])))
            self.node.pass_time(self.data.draw(st.sampled_from([0, 1, 7, 40, 400])))


@pytest.mark.law
@given(data=st.data())
def test_a_deleted_pod_is_gone_within_its_grace(data: st.DataObject) -> None:
    """Whatever hangs: grace, two seconds after a hook, two of slack, then killed."""
    chance = Chance(data)
    chance.live(data.draw(st.integers(0, 6)))
    grace = data.draw(st.sampled_from([0, 1, 30]))
    chance.node.delete(grace)
    chance.node.pass_time(grace + 15)
    assert chance.node.is_deleted
    assert not chance.node.running


@pytest.mark.law
@given(data=st.data())
def test_what_ended_stays_ended(data: st.DataObject) -> None:
    """No container of a pod that succeeded or failed is started again, and the phase stays."""
    chance = Chance(data)
    ended = ""
    for _ in range(data.draw(st.integers(1, 10))):
        chance.live(1)
        phase = str(chance.node.phase())
        if ended:
            assert phase == ended
            assert not chance.node.running
            assert chance.node.life.wake_at() is None
        ended = phase if phase in statuses.ENDED else ended


@pytest.mark.law
@given(data=st.data())
def test_main_containers_come_after_all_init_containers(data: st.DataObject) -> None:
    """The order in which they are listed, whatever fails on the way."""
    chance = Chance(data)
    chance.live(data.draw(st.integers(0, 6)))
    order = [call.split()[1] for call in chance.node.log if call.startswith("Start ")]
    firsts = list(dict.fromkeys(order))
    listed = [name for name in NAMES if name in firsts]
    assert firsts == listed


@pytest.mark.law
@given(st.integers(0, 10_000))
def test_a_back_off_is_bounded_and_never_shrinks(ends: int) -> None:
    """From nothing to five minutes."""
    wait = containers.backoff(ends)
    assert timedelta() <= wait <= containers.BACKOFF_MAX
    assert wait <= containers.backoff(ends + 1)


@pytest.mark.law
@given(data=st.data())
def test_the_same_word_twice_changes_nothing(data: st.DataObject) -> None:
    """Idempotent: what is stored may be shown any number of times."""
    chance = Chance(data)
    chance.live(data.draw(st.integers(0, 4)))
    before = chance.node.life.view()
    count = len(chance.node.log)
    chance.node.give(said.Seen(pod=chance.node.life.pod))
    chance.node.give(said.Seen(pod=chance.node.life.pod))
    assert chance.node.log[count:] == []
    assert chance.node.life.view() == before
