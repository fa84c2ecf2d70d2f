"""Lives of pods, told as film strips."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.meta import records
from spinney.meta.documents import Document, string_at, value_at
from spinney.nodes.agent import instructions as said
from spinney.nodes.agent.lifecycle import PodLife
from spinney.nodes.agent.probes import ProbeKind
from spinney.ports import ContainerState
from tests.nodes.agent.stage import (
    LIVENESS,
    POST_START,
    PRE_STOP,
    PROBE,
    READINESS,
    START,
    STARTUP,
    Node,
    container,
    deleted,
    pod,
)


def ready(node: Node) -> bool:
    """Whether the pod is told to be ready."""
    conditions = node.status()["conditions"]
    assert isinstance(conditions, list)
    return any(
        string_at(each, ["type"]) == "Ready" and string_at(each, ["status"]) == "True"
        for each in conditions
    )


def waiting(node: Node, name: str = "main") -> Document:
    """Return why a container waits."""
    status = node.life.view().containers.get(name)
    if status is None or status.state.waiting is None:
        return {}
    return {"reason": status.state.waiting.reason, "message": status.state.waiting.message}


def test_a_plain_pod_comes_up_and_goes() -> None:
    """Made, started, ready; deleted, ended, taken off the node, its object taken away."""
    node = Node(pod())
    assert node.log == ["Prepare", "Start main"]
    assert node.phase() == "Running"
    assert ready(node)
    node.delete()
    assert node.log[2:] == ["Stop main", "Remove", "DeleteObject"]
    assert node.is_deleted


def test_init_containers_run_one_after_another() -> None:
    """Each waits for the one before; a sidecar to have started; the main ones come last."""
    init = (container("a"), container("side", restartPolicy="Always"), container("b"))
    node = Node(pod(container("x"), container("y"), init=init))
    assert node.log == ["Prepare", "Start a"]
    node.ended("a")
    assert node.log[2:] == ["Start side", "Start b"]
    assert node.phase() == "Pending"
    node.ended("b")
    assert node.log[4:] == ["Start x", "Start y"]
    assert ready(node)


def test_a_failed_init_container_is_tried_again_or_fails_the_pod() -> None:
    """As the restart policy says; a sidecar that runs meanwhile is ended."""
    node = Node(pod(init=(container("a"),), policy="OnFailure"))
    node.ended("a", 1)
    assert node.log == ["Prepare", "Start a", "Start a"]
    side = container("side", restartPolicy="Always")
    node = Node(pod(init=(side, container("a")), policy="Never"))
    node.ended("a", 1)
    assert node.log[-1] == "Stop side"
    assert node.phase() == "Failed"
    assert node.life.is_idle


def test_sidecars_end_last_and_in_reverse() -> None:
    """When the work is done, and when the pod is deleted."""
    sides = tuple(container(name, restartPolicy="Always") for name in ("s1", "s2"))
    done = Node(pod(init=sides, policy="Never"))
    done.ended("main")
    assert done.log[4:] == ["Stop s2", "Stop s1"]
    assert done.phase() == "Succeeded"
    gone = Node(pod(init=sides))
    gone.delete()
    assert gone.log[4:] == ["Stop main", "Stop s2", "Stop s1", "Remove", "DeleteObject"]


def test_sidecars_do_not_outlive_the_grace_of_a_main_container_that_hangs() -> None:
    """All of them are told to end when the time is over, and killed soon after."""
    sides = tuple(container(name, restartPolicy="Always") for name in ("s1", "s2"))
    node = Node(pod(init=sides))
    node.ignores_stop = {"main", "s1", "s2"}
    node.delete(5)
    node.pass_time(6)
    assert node.log[4:] == ["Stop main", "Stop s2", "Stop s1"]
    node.pass_time(20)
    assert node.is_deleted


def test_crashes_back_off_from_ten_seconds_to_five_minutes() -> None:
    """The first restart comes at once, as kubectl users know it; ten good minutes forget it all."""
    node = Node(pod())
    waits = []
    for _ in range(8):
        node.ended("main", 1)
        waits.append(0 if "main" in node.running else node.to_next().seconds)
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    assert [event.reason for event in node.events].count("BackOff") == 7
    node.pass_time(600)
    node.ended("main", 1)
    assert "main" in node.running


def test_a_crash_loop_is_told_as_kubectl_users_know_it() -> None:
    """Waiting with CrashLoopBackOff, the last end kept, restarts counted."""
    node = Node(pod())
    node.ended("main", 1)
    node.ended("main", 3, "OOMKilled")
    assert waiting(node)["reason"] == "CrashLoopBackOff"
    assert string_at(waiting(node), ["message"]) == (
        "back-off 10s restarting failed container=main pod=p_default(u1)"
    )
    status = node.life.view().containers["main"]
    assert status.restart_count == 1
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.reason == "OOMKilled"
    assert node.phase() == "Running"


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 1, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_a_pod_that_is_done_stays_done(policy: str, code: int, phase: str) -> None:
    """Its object and its logs stay until it is deleted."""
    node = Node(pod(policy=policy))
    node.ended("main", code)
    assert (node.phase(), node.life.is_idle) == (phase, True)
    assert node.life.wake_at() is None
    node.delete(0)
    assert node.log[2:] == ["Remove", "DeleteObject"]


@pytest.mark.rule("2.3")
def test_who_starts_after_others_waits_and_says_for_whom() -> None:
    """Init containers run meanwhile; once begun, it does not wait again."""
    held = ContainerStateWaiting(reason="WaitingForCliques", message="waits for leader")
    node = Node(pod(init=(container("a"),)))
    node.hold(held)
    node.ended("a")
    assert node.log == ["Prepare", "Start a"]
    statuses = node.status()["containerStatuses"]
    assert value_at(statuses, [0, "state", "waiting", "message"]) == "waits for leader"
    node.hold(None)
    assert node.log[-1] == "Start main"
    node.hold(held)
    node.ended("main", 1)
    assert node.log[-1] == "Start main"
    assert node.life.view().held is None or "main" in node.running


def test_a_blocked_start_waits_for_a_word_from_outside() -> None:
    """No attempt is lost, nothing is tried until something changes."""
    node = Node(pod(init=(container("a"),)))
    node.is_obedient = False
    node.ended("a")
    del node.running["main"]
    node.give(
        said.Blocked(
            container="main",
            attempt=0,
            reason="CreateContainerConfigError",
            message='configmap "settings" not found',
        )
    )
    assert waiting(node)["message"] == 'configmap "settings" not found'
    assert node.life.wake_at() is None
    node.give(said.Unblocked())
    assert node.log[-1] == "Start main"
    assert node.running["main"] == 0


def test_a_start_that_fails_counts_as_a_crash() -> None:
    """Exit code 128 and the reason, then the back-off."""
    node = Node(pod(init=(container("a"),)))
    node.is_obedient = False
    node.ended("a")
    del node.running["main"]
    failed = said.StartFailed(
        container="main", attempt=0, reason="StartError", message="no such file: serve"
    )
    node.give(failed)
    assert node.log[-1] == "Start main"
    assert node.running["main"] == 1
    status = node.life.view().containers["main"]
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.exit_code == 128
    assert status.last_state.terminated.message == "no such file: serve"


def test_readiness_follows_its_probe() -> None:
    """Two failures in a row take it back, one success gives it again; nothing is restarted."""
    node = Node(pod(container("main", **READINESS)))
    assert ready(node)
    node.probes = lambda _: False
    node.pass_time(6)
    assert ready(node)
    node.pass_time(5)
    assert not ready(node)
    node.probes = lambda _: True
    node.pass_time(5)
    assert ready(node)
    assert node.log.count("Start main") == 1


def test_liveness_restarts_what_does_not_answer() -> None:
    """After two failures, with a word on why."""
    node = Node(pod(container("main", **LIVENESS)))
    node.probes = lambda _: False
    node.pass_time(11)
    assert node.log.count("Stop main") >= 1
    notes = [event.note for event in node.events if event.reason == "Killing"]
    assert notes[0] == "Container main failed liveness probe, will be restarted"
    assert "Liveness probe failed: refused" in [event.note for event in node.events]


def test_startup_goes_before_the_other_probes() -> None:
    """Slow starters are not killed by their liveness probe; too slow ones are."""
    asked: list[ProbeKind] = []

    def look(probe: said.Probe) -> bool:
        asked.append(probe.kind)
        return len(asked) > 1

    given = pod(container("main", **STARTUP, **LIVENESS, **READINESS), init=(container("a"),))
    node = Node(given)
    node.probes = look
    node.ended("a")
    assert asked == [ProbeKind.STARTUP]
    assert not ready(node)
    node.pass_time(5)
    assert asked[:2] == [ProbeKind.STARTUP, ProbeKind.STARTUP]
    assert set(asked[2:]) == {ProbeKind.LIVENESS, ProbeKind.READINESS}
    assert ready(node)
    too_slow = Node(given)
    too_slow.probes = lambda _: False
    too_slow.ended("a")
    too_slow.pass_time(11)
    assert "Stop main" in too_slow.log


def test_hooks_run_around_a_container() -> None:
    """It is ready only after postStart, and gets its signal only after preStop."""
    both = {"lifecycle": {**POST_START["lifecycle"], **PRE_STOP["lifecycle"]}}  # type: ignore[dict-item]
    node = Node(pod(container("main", **both)))
    assert node.log == ["Prepare", "Start main", "RunHook main"]
    assert ready(node)
    node.delete()
    assert node.log[3:] == ["RunHook main", "Stop main", "Remove", "DeleteObject"]


def test_a_hook_that_hangs_takes_no_more_than_the_grace() -> None:
    """Then comes the signal, with two seconds left, and after these the end."""
    node = Node(pod(container("main", **PRE_STOP)))
    node.hook_hangs = True
    node.ignores_stop = {"main"}
    node.delete(5)
    node.pass_time(4)
    assert "Stop main" not in node.log
    node.pass_time(2)
    assert "Stop main" in node.log
    node.pass_time(4)
    assert node.is_deleted


def test_a_failed_post_start_hook_ends_the_container() -> None:
    """It is as if it had crashed."""
    given = pod(container("main", **POST_START), init=(container("a"),))
    node = Node(given)
    node.hook_hangs = True
    node.ended("a")
    node.give(said.HookDone(container="main", attempt=0, hook=said.Hook.POST_START, fault="boom"))
    assert "Stop main" in node.log
    assert node.running == {"main": 1}


def test_a_pod_past_its_deadline_fails_and_stays() -> None:
    """Rule 5.5 relies on it: what ran is ended, pod and log remain."""
    node = Node(pod(activeDeadlineSeconds=10))
    node.pass_time(12)
    assert (node.phase(), node.status()["reason"]) == ("Failed", "DeadlineExceeded")
    assert "DeadlineExceeded" in [event.reason for event in node.events]
    assert node.running == {}
    assert "Remove" not in node.log


def test_a_shorter_grace_counts_at_once() -> None:
    """`kubectl delete --grace-period=1` after a plain one."""
    node = Node(pod())
    node.ignores_stop = {"main"}
    node.delete(30)
    node.delete(1)
    assert node.log[2:] == ["Stop main", "Stop main"]
    node.pass_time(4)
    assert node.is_deleted


def test_an_object_that_is_gone_leaves_nothing_behind() -> None:
    """Deleted by force: nobody is asked any more."""
    node = Node(pod())
    node.give(said.Gone())
    assert node.running == {}
    assert node.life.is_removed


def test_a_node_that_goes_down_ends_what_runs_and_says_so() -> None:
    """The pod is not failed by it: the next start of the node takes it up again."""
    node = Node(pod())
    node.give(said.Leave(grace_seconds=5))
    assert node.life.is_idle
    assert node.phase() == "Running"
    status = node.life.view().containers["main"]
    assert status.state.terminated is not None
    assert status.restart_count == 0
    assert "BackOff" not in [event.reason for event in node.events]


def told_again(node: Node) -> Node:
    """Return the next process on the node: all it knows is what was told."""
    document = {**records.encode(node.life.pod), "status": node.status()}
    return Node(records.decode(Pod, document))


def test_an_end_nobody_saw_is_told_as_unknown() -> None:
    """The agent was killed: what ran is counted as ended, and run again."""
    after = told_again(Node(pod()))
    status = after.life.view().containers["main"]
    assert status.last_state.terminated is not None
    assert status.last_state.terminated.reason == "ContainerStatusUnknown"
    assert (status.restart_count, after.running) == (1, {"main": 1})
    never = told_again(Node(pod(policy="Never")))
    assert never.phase() == "Failed"


def test_an_end_that_was_told_already_is_not_told_as_the_one_before_too() -> None:
    """The runtime remembers the same end as the status."""
    node = Node(pod(policy="Never"))
    node.ended("main", 3)
    told = node.life.view().containers["main"]
    over = ContainerState(
        pod_uid="u1", container="main", attempt=0, started_at=START, ended_at=START, exit_code=3
    )
    document = {**records.encode(node.life.pod), "status": node.status()}
    again = PodLife(records.decode(Pod, document), node.now, (over,))
    assert again.view().containers["main"] == told


def test_init_containers_that_are_done_are_not_run_again() -> None:
    """After the agent was restarted."""
    node = Node(pod(init=(container("a"),)))
    node.ended("a")
    after = told_again(node)
    assert after.log == ["Prepare", "Start main"]


def test_what_still_runs_is_adopted() -> None:
    """A runtime that outlived the agent."""
    state = ContainerState(pod_uid="u1", container="main", attempt=0, started_at=START)
    node = Node(pod(), main=state)
    assert node.log == ["Prepare"]
    assert ready(node)
    node.ended("main", 1)
    assert node.log[-1] == "Start main"


def test_a_pod_deleted_before_it_was_seen_is_only_taken_away() -> None:
    """Nothing is made for it."""
    node = Node(deleted(pod(), 30))
    assert node.log == ["Remove", "DeleteObject"]


def test_a_place_that_cannot_be_made_is_tried_again() -> None:
    """With a back-off; what only a user can mend waits for a change."""
    node = Node(pod(), is_obedient=False)
    node.give(said.PrepareFailed(reason="FailedMount", message="disk full"))
    assert node.to_next().seconds == 10
    assert node.log == ["Prepare", "Prepare"]
    node.give(said.PrepareFailed(reason="NoCommand", message="give a command", is_blocked=True))
    assert waiting_words(node) == ["give a command"]
    assert node.life.wake_at() is None
    node.give(said.Unblocked())
    assert node.log[2:] == ["Prepare"]


def waiting_words(node: Node) -> list[str]:
    """Return what is said of the containers that wait."""
    statuses = node.status()["containerStatuses"]
    assert isinstance(statuses, list)
    return [string_at(each, ["state", "waiting", "message"]) for each in statuses]


def test_time_between_two_probes_is_spread() -> None:
    """Pods that began together are not looked at together for ever."""
    node = Node(pod(container("main", **READINESS)))
    life = PodLife(node.life.pod, node.now, spread=timedelta(seconds=0.3))
    node.life = life
    node.running.clear()
    node.give(said.Seen(pod=life.pod))
    assert life.wake_at() == timedelta(seconds=5.3)


def test_an_answer_about_an_older_attempt_is_passed_over() -> None:
    """It came late: the attempt it tells of is over."""
    node = Node(pod())
    node.ended("main", 1)
    before = node.life.view()
    node.give(said.StartFailed(container="main", attempt=0, reason="StartError", message="late"))
    node.give(said.Blocked(container="main", attempt=0, reason="X", message="late"))
    node.give(said.HookDone(container="main", attempt=0, hook=said.Hook.PRE_STOP))
    assert node.life.view() == before


def test_a_container_that_is_told_to_end_before_it_runs_is_killed_in_time() -> None:
    """Its start was under way: what then runs has its grace, and no more."""
    node = Node(pod(init=(container("a"),)))
    node.is_obedient = False
    node.ended("a")
    node.ignores_stop = {"main"}
    node.delete(5)
    assert node.log[-1] == "Stop main"
    node.started("main")
    node.pass_time(8)
    assert node.is_deleted


def test_what_is_soon_ready_is_soon_seen_to_be() -> None:
    """It is looked at more often in the first period, and that costs nobody an event."""
    node = Node(pod(container("main", **READINESS), init=(container("a"),)))
    looks: list[float] = []

    def look(_: said.Probe) -> bool:
        looks.append(node.elapsed.total_seconds())
        return node.elapsed >= timedelta(seconds=1.2)

    node.probes = look
    node.ended("a")
    node.pass_time(4)
    assert looks == [0, 0.1, 0.3, 0.7, 1.5]
    assert ready(node)
    assert "Unhealthy" not in [event.reason for event in node.events]
    node.pass_time(6)
    assert looks[5:] == [6.5]


def test_failures_count_from_the_first_full_period() -> None:
    """So a slow starter has its threshold times its period, as it was promised."""
    node = Node(pod(container("main", **STARTUP), init=(container("a"),)))
    node.probes = lambda _: False
    node.ended("a")
    node.pass_time(9.9)
    assert "Stop main" not in node.log
    node.pass_time(0.2)
    assert "Stop main" in node.log


def test_liveness_is_not_hurried() -> None:
    """It decides nothing sooner."""
    node = Node(pod(container("main", **LIVENESS), init=(container("a"),)))
    node.probes = lambda _: False
    node.ended("a")
    node.pass_time(4.9)
    assert node.log.count("Probe main") == 1


def test_a_probe_may_say_how_long_its_failure_leaves() -> None:
    """A hung container need not be waited for as long as one that shuts down well."""
    probe: Document = {**PROBE, "terminationGracePeriodSeconds": 1}
    node = Node(pod(container("main", livenessProbe=probe), init=(container("a"),)))
    node.ignores_stop = {"main"}
    node.probes = lambda _: False
    node.ended("a")
    node.pass_time(7.9)
    assert node.running == {"main": 0}
    node.pass_time(0.2)
    assert node.running == {"main": 1}
