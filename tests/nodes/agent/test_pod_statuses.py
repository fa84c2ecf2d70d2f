"""What a pod's status says, of what its containers do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodContainerState,
    PodStatus,
)
from spinney.meta import conditions, records
from spinney.meta.documents import Document, Json
from spinney.nodes.agent import statuses

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HELD = ContainerStateWaiting(reason="WaitingForCliques", message="waits for 1 pod of leader")


def pod(*, policy: str = "Always", init: tuple[Document, ...] = (), **more: Json) -> Pod:
    """Return a pod of two main containers."""
    spec: Document = {
        "containers": [{"name": "main", "image": "a"}, {"name": "other", "image": "b"}],
        "initContainers": [*init],
        "restartPolicy": policy,
        "nodeName": "n",
        **more,
    }
    return records.decode(Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})


def ran(name: str) -> ContainerStatus:
    """Return a container that runs and is ready."""
    state = PodContainerState(running=ContainerStateRunning(started_at=NOW))
    return ContainerStatus(name=name, ready=True, started=True, state=state)


def ended(name: str, code: int) -> ContainerStatus:
    """Return a container that ended."""
    over = ContainerStateTerminated(exit_code=code, started_at=NOW, finished_at=NOW)
    return ContainerStatus(name=name, started=False, state=PodContainerState(terminated=over))


def told(
    given_pod: Pod,
    *containers: ContainerStatus,
    now: datetime = NOW,
    held: ContainerStateWaiting | None = None,
    verdict: statuses.Verdict | None = None,
) -> PodStatus:
    """Return the status as it is read back."""
    document = document_of(given_pod, *containers, now=now, held=held, verdict=verdict)
    return records.decode(PodStatus, {key: value for key, value in document.items() if value})


def document_of(
    given_pod: Pod,
    *containers: ContainerStatus,
    now: datetime = NOW,
    held: ContainerStateWaiting | None = None,
    verdict: statuses.Verdict | None = None,
) -> Document:
    """Return the status as it is written."""
    return statuses.pod_status(
        given_pod,
        {one.name: one for one in containers},
        host_ip="127.0.0.1",
        pod_ip="127.128.0.1",
        started_at=NOW,
        now=now,
        held=held,
        verdict=verdict,
    )


@pytest.mark.parametrize(
    ("policy", "codes", "phase"),
    [
        ("Always", (0, 0), "Running"),
        ("OnFailure", (0, 1), "Running"),
        ("OnFailure", (0, 0), "Succeeded"),
        ("Never", (0, 1), "Failed"),
        ("Never", (0, None), "Running"),
        ("Never", (0, 0), "Succeeded"),
    ],
)
def test_the_phase_follows_exits_and_policy(
    policy: str, codes: tuple[int | None, ...], phase: str
) -> None:
    """As Kubernetes does."""
    found = [
        ran(name) if code is None else ended(name, code)
        for name, code in zip(("main", "other"), codes, strict=True)
    ]
    assert told(pod(policy=policy), *found).phase == phase


def test_a_pod_whose_containers_serve_is_ready() -> None:
    """All four conditions hold, and clients find the fields they take for granted."""
    document = document_of(pod(), ran("main"), ran("other"))
    status = records.decode(PodStatus, document)
    assert status.phase == "Running"
    for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
        assert conditions.is_true(status.conditions, name)
    assert document["containerStatuses"] == [
        {
            "name": name,
            "image": image,
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "lastState": {},
        }
        for name, image in (("main", "a"), ("other", "b"))
    ]
    assert document["podIPs"] == [{"ip": "127.128.0.1"}]


def test_an_init_container_that_is_not_done_is_named() -> None:
    """Nothing of the main containers has begun: the pod is initializing."""
    status = told(pod(init=({"name": "first"}, {"name": "second"})), ended("first", 0))
    assert status.phase == "Pending"
    found = conditions.find(status.conditions, "Initialized")
    assert found is not None
    assert found.message == "containers with incomplete status: [second]"
    waiting = status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "PodInitializing"


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    """And only such a pod."""
    init: tuple[Document, ...] = ({"name": "first"},)
    assert told(pod(policy="Never", init=init), ended("first", 3)).phase == "Failed"
    assert told(pod(init=init), ended("first", 3)).phase == "Pending"


def test_a_sidecar_counts_for_readiness_and_keeps_the_pod_running() -> None:
    """The main containers are done, the sidecar is not yet."""
    given_pod = pod(policy="Never", init=({"name": "side", "restartPolicy": "Always"},))
    over = ended("main", 0), ended("other", 0)
    assert told(given_pod, ran("side"), *over).phase == "Running"
    assert told(given_pod, ended("side", 137), *over).phase == "Succeeded"


@pytest.mark.rule("2.3")
def test_what_holds_a_pod_back_is_said_of_pod_and_containers() -> None:
    """For people: in the STATUS column, and in a condition with the sentence."""
    status = told(pod(), held=HELD)
    assert [one.state.waiting for one in status.container_statuses] == [HELD, HELD]
    found = conditions.find(status.conditions, statuses.READY_TO_START)
    assert found is not None
    assert (found.status, found.reason, found.message) == ("False", HELD.reason, HELD.message)


def test_a_verdict_waits_for_what_runs() -> None:
    """A phase never claims an end while something runs."""
    verdict = statuses.Verdict(reason="DeadlineExceeded", message="too long")
    assert told(pod(), ran("main"), ended("other", 137), verdict=verdict).phase == "Running"
    status = told(pod(), ended("main", 137), ended("other", 137), verdict=verdict)
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "DeadlineExceeded",
        "too long",
    )


def test_a_readiness_gate_of_somebody_else_counts() -> None:
    """The containers are ready, the pod is not until whoever keeps the gate says so."""
    given_pod = pod(readinessGates=[{"conditionType": "example.com/lb"}])
    status = told(given_pod, ran("main"), ran("other"))
    assert conditions.is_true(status.conditions, "ContainersReady")
    assert not conditions.is_true(status.conditions, "Ready")


CONTAINERS = st.sampled_from(
    [
        lambda _: None,
        ran,
        lambda name: ended(name, 0),
        lambda name: ended(name, 1),
        lambda name: ContainerStatus(
            name=name,
            restart_count=2,
            state=PodContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
            last_state=PodContainerState(terminated=ContainerStateTerminated(exit_code=1)),
        ),
    ]
)


@pytest.mark.law
@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    makers=st.lists(CONTAINERS, min_size=4, max_size=4),
    sidecar=st.booleans(),
    held=st.sampled_from([None, HELD]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
)
def test_told_once_is_enough(
    policy: str,
    makers: list,  # type: ignore[type-arg]
    sidecar: bool,
    held: ContainerStateWaiting | None,
    phase: str,
) -> None:
    """Idempotent: read back, the same view says nothing new an hour later; ended stays ended."""
    second: Document = {"name": "side", **({"restartPolicy": "Always"} if sidecar else {})}
    given_pod = pod(policy=policy, init=({"name": "first"}, second))
    before = records.decode(
        Pod, {**records.encode(given_pod), "status": {"phase": phase, "reason": "Old"}}
    )
    names = ("first", "side", "main", "other")
    found = [made for make, name in zip(makers, names, strict=True) if (made := make(name))]
    status = document_of(before, *found, held=held)
    if phase in statuses.ENDED:
        assert status["phase"] == phase
    merged = {**records.encode(before.status), **status}
    merged = {key: value for key, value in merged.items() if value is not None}
    after = records.decode(Pod, {**records.encode(before), "status": merged})
    again = document_of(after, *found, held=held, now=NOW + timedelta(hours=1))
    assert statuses.is_told(after, again)
