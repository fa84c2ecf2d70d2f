"""An agent keeps the pods of its node: the real API, virtual time, containers that are played."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from spinney.api import labels
from spinney.decisions.making.pods import STARTS_AFTER
from spinney.meta.documents import string_at
from spinney.meta.errors import Conflict, Unavailable
from spinney.meta.references import Precondition, Ref
from spinney.nodes.agent.station import CONFIG_MAP
from spinney.testing.runtimes import Script
from tests.nodes.agent.worlds import Ground, container, on_ground, ref

SECOND = timedelta(seconds=1)


def test_a_pod_comes_up_with_one_write() -> None:
    """What would have to be told anew at once is not told: one status, one event."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            await ground.make("a")
            await ground.rest()
            assert ground.is_ready("a")
            assert ground.status("a", "phase") == "Running"
            assert string_at(ground.status("a"), ["podIP"]).startswith("127.128.")
            assert ground.status("a", "hostIP") == "127.0.0.1"
            assert ground.status("a", "qosClass") == "BestEffort"
            assert ground.writes("a") == ["patch"]
            assert ground.events() == ["Started: Started container main"]

    on_ground(story)


def test_nothing_is_written_at_rest() -> None:
    """Probes look every second for ten minutes."""

    async def story(ground: Ground) -> None:
        probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
        async with ground.agency():
            await ground.make("a", container(readinessProbe=probe, livenessProbe=probe))
            await ground.rest()
            before = len(ground.network.calls)
            await ground.rest(600)
            assert len(ground.network.calls) == before
            assert ground.is_ready("a")

    on_ground(story)


def test_a_deleted_pod_tells_how_it_ended_and_goes() -> None:
    """The last status is there before the object goes: rule 4.3 reads exit codes from it."""

    async def story(ground: Ground) -> None:
        ground.scripts["a"] = Script(stop_takes=3 * SECOND)
        async with ground.agency():
            uid = await ground.make("a")
            await ground.rest()
            await ground.user.patch(
                ref("a"), {"metadata": {"finalizers": ["spinney.dev/outcome"]}}, Precondition()
            )
            await ground.delete("a")
            await ground.rest(2)
            assert ground.runtime.running_count == 1
            await ground.rest(2)
            assert ground.runtime.running_count == 0
            assert ground.status("a", "phase") == "Failed"
            ended = ground.status("a", "containerStatuses", 0, "state", "terminated")
            assert isinstance(ended, dict)
            assert ended["exitCode"] == 143
            await ground.user.patch(ref("a"), {"metadata": {"finalizers": None}}, Precondition())
            await ground.rest()
            assert ground.document("a") is None
            assert uid not in ground.runtime.pods

    on_ground(story)


def test_what_ignores_its_stop_signal_is_killed_after_its_grace() -> None:
    """Not before, and not much later."""

    async def story(ground: Ground) -> None:
        ground.scripts["a"] = Script(ignores_stop=True)
        async with ground.agency():
            await ground.make("a")
            await ground.rest()
            await ground.delete("a", 5)
            await ground.rest(4)
            assert ground.runtime.running_count == 1
            await ground.rest(2)
            assert ground.document("a") is None

    on_ground(story)


def test_a_pod_deleted_by_force_is_ended_all_the_same() -> None:
    """And the next of its name waits until it is gone from the node."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            first = await ground.make("a")
            await ground.rest()
            await ground.delete("a", 0)
            second = await ground.make("a")
            await ground.rest()
            assert not ground.runtime.is_running(first, "main")
            assert ground.runtime.is_running(second, "main")
            assert ground.is_ready("a")

    on_ground(story)


@pytest.mark.rule("2.3")
def test_pods_start_after_those_they_wait_for() -> None:
    """The status says for whom; the moment they are ready it starts."""

    async def story(ground: Ground) -> None:
        ground.scripts["leader"] = Script(ready_after=20 * SECOND)
        probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
        async with ground.agency():
            await ground.make(
                "worker", annotations={STARTS_AFTER: "lead=1"}, labels={labels.PODCLIQUE: "work"}
            )
            await ground.make(
                "leader", container(readinessProbe=probe), labels={labels.PODCLIQUE: "lead"}
            )
            await ground.rest(10)
            assert ground.waiting("worker") == {
                "reason": "WaitingForPodCliques",
                "message": "starts after PodClique lead (0 of 1 pods ready)",
            }
            assert ground.status("worker", "phase") == "Pending"
            await ground.rest(11.5)
            assert ground.is_ready("leader")
            assert ground.is_ready("worker")

    on_ground(story)


def test_a_missing_config_map_is_named_and_its_making_starts_the_pod() -> None:
    """In env and in a volume; a later change of it reaches the volume."""

    async def story(ground: Ground) -> None:
        env = [
            {
                "name": "X",
                "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x"}},
            }
        ]
        mount = {"name": "v", "mountPath": "/v"}
        volume = {"name": "v", "configMap": {"name": "files"}}
        async with ground.agency():
            uid = await ground.make("a", container(env=env, volumeMounts=[mount]), volumes=[volume])
            await ground.rest(5)
            assert ground.waiting("a") == {
                "reason": "CreateContainerConfigError",
                "message": 'volume "v": configmap "files" not found',
            }
            await ground.config_map("files", f="one")
            await ground.rest()
            assert ground.waiting("a") == {
                "reason": "CreateContainerConfigError",
                "message": 'configmap "settings" not found',
            }
            await ground.config_map("settings", x="y")
            await ground.rest()
            assert ground.is_ready("a")
            assert ground.runtime.plans[-1].environment == {"X": "y"}
            files = Ref(kind=CONFIG_MAP, namespace="default", name="files")
            await ground.user.patch(files, {"data": {"f": "two"}}, Precondition())
            await ground.rest()
            assert ground.runtime.volumes[uid]["v"].files == {"f": b"two"}

    on_ground(story)


def test_an_image_without_a_command_says_what_to_do(tmp_path: Path) -> None:
    """In the pod's condition and in an event."""

    async def story(ground: Ground) -> None:
        ground.files = [tmp_path / "spinney.toml"]
        async with ground.agency():
            await ground.make("a", {"name": "main", "image": "vllm:1"})
            await ground.rest(3)
            waiting = ground.waiting("a")
            assert isinstance(waiting, dict)
            assert waiting["reason"] == "NoCommand"
            assert 'map image "vllm:1" to one in [images] of' in str(waiting["message"])
            (tmp_path / "spinney.toml").write_text('[images]\nvllm = ["serve"]\n')
            await ground.delete("a")
            await ground.rest()
            await ground.make("a", {"name": "main", "image": "vllm:1"})
            await ground.rest()
            assert ground.runtime.plans[-1].command == ("serve",)

    on_ground(story)


def test_a_crash_loop_is_told_and_ends_when_it_is_mended() -> None:
    """Two crashes, a back-off, then it stays up."""

    async def story(ground: Ground) -> None:
        ground.choose = lambda _pod, plan: (
            Script(exits_after=SECOND, exit_code=3) if plan.attempt < 2 else Script()
        )
        async with ground.agency():
            await ground.make("a")
            await ground.rest(4)
            assert ground.waiting("a") == {
                "reason": "CrashLoopBackOff",
                "message": "back-off 10s restarting failed container=main "
                f"pod=a_default({ground.pod('a').metadata.uid})",
            }
            await ground.rest(10)
            assert ground.is_ready("a")
            assert ground.status("a", "containerStatuses", 0, "restartCount") == 2
            last = ground.status("a", "containerStatuses", 0, "lastState", "terminated")
            assert isinstance(last, dict)
            assert last["exitCode"] == 3

    on_ground(story)


@pytest.mark.parametrize("handler", ["exec", "httpGet", "tcpSocket"])
def test_every_kind_of_probe_restarts_what_hangs(handler: str) -> None:
    """It answers for a while, then no more; the next attempt answers again."""

    async def story(ground: Ground) -> None:
        how = {"command": ["check"]} if handler == "exec" else {"port": 80, "path": "/healthz"}
        if handler == "tcpSocket":
            how = {"port": 80}
        probe = {handler: how, "periodSeconds": 2, "failureThreshold": 2}
        ground.choose = lambda _pod, plan: (
            Script(hangs_after=10 * SECOND) if plan.attempt == 0 else Script()
        )
        async with ground.agency():
            await ground.make("a", container(livenessProbe=probe))
            await ground.rest(9)
            assert ground.is_ready("a")
            await ground.rest(10)
            assert ground.status("a", "containerStatuses", 0, "restartCount") == 1
            assert ground.is_ready("a")
            told = ground.events()
            assert "Killing: Container main failed liveness probe, will be restarted" in told
            assert any(each.startswith("Unhealthy: Liveness probe failed: ") for each in told)

    on_ground(story)


def test_a_start_that_fails_is_told_with_its_reason() -> None:
    """The binary is missing: exit code 128, the reason, the sentence."""

    async def story(ground: Ground) -> None:
        ground.scripts["a"] = Script(start_fault="no such file or directory: serve")
        async with ground.agency():
            await ground.make("a", restartPolicy="Never")
            await ground.rest(3)
            ended = ground.status("a", "containerStatuses", 0, "state", "terminated")
            assert isinstance(ended, dict)
            assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
            assert ended["message"] == "no such file or directory: serve"
            assert ground.status("a", "phase") == "Failed"
            assert "FailedStart: Error: no such file or directory: serve" in ground.events()

    on_ground(story)


def test_pods_past_their_deadline_fail_and_stay() -> None:
    """Rule 5.5 ends training pods so."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            await ground.make("a", activeDeadlineSeconds=10, restartPolicy="Never")
            await ground.rest(13)
            assert ground.status("a", "phase") == "Failed"
            assert ground.status("a", "reason") == "DeadlineExceeded"
            assert ground.runtime.running_count == 0

    on_ground(story)


def test_names_of_a_headless_service_are_told_to_the_runtime() -> None:
    """For each pod, and for all of them together."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            for index in range(2):
                await ground.make(f"w-{index}", hostname=f"w-{index}", subdomain="svc")
            await ground.rest()
            first, second = (str(ground.status(f"w-{index}", "podIP")) for index in range(2))
            assert ground.runtime.names["w-0.svc.default.svc.cluster.local"] == (first,)
            assert ground.runtime.names["w-1.svc"] == (second,)
            assert ground.runtime.names["svc.default.svc"] == (first, second)
            await ground.delete("w-0")
            await ground.rest()
            assert ground.runtime.names["svc.default.svc"] == (second,)

    on_ground(story)


def test_a_new_agent_ends_what_the_old_one_left_and_says_so() -> None:
    """Killed with -9: ContainerStatusUnknown, and it runs again; what is stored no more goes."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            await ground.make("a")
            orphan = await ground.make("b")
            await ground.rest()
        ground.runtime = await ground.runtime.crash()
        await ground.delete("b", 0)
        async with ground.agency():
            await ground.rest()
            last = ground.status("a", "containerStatuses", 0, "lastState", "terminated")
            assert isinstance(last, dict)
            assert last["reason"] == "ContainerStatusUnknown"
            assert ground.is_ready("a")
            assert orphan not in ground.runtime.pods

    on_ground(story)


def test_an_agent_takes_up_what_runs_on() -> None:
    """A restart of the agent alone, over a runtime that stayed: nothing is started again."""

    async def story(ground: Ground) -> None:
        async with ground.agency():
            await ground.make("a")
            await ground.rest()
        async with ground.agency():
            await ground.rest()
            assert len(ground.runtime.plans) == 1
            assert ground.status("a", "containerStatuses", 0, "restartCount") == 0
            await ground.delete("a")
            await ground.rest()
            assert ground.document("a") is None

    on_ground(story)


def test_leaving_ends_everything_within_its_time_and_tells_it() -> None:
    """One obeys, one does not; the next agent brings both up again."""

    async def story(ground: Ground) -> None:
        ground.scripts["b"] = Script(ignores_stop=True)
        async with ground.agency() as agent:
            await ground.make("a")
            await ground.make("b")
            await ground.rest()
            await agent.leave(5 * SECOND)
            await agent.wait_told()
            assert ground.runtime.running_count == 0
            assert ground.status("a", "phase") == "Running"
            assert not ground.is_ready("a")
        async with ground.agency():
            await ground.rest()
            assert ground.is_ready("a")
            assert ground.status("a", "containerStatuses", 0, "restartCount") == 1

    on_ground(story)


def test_an_api_that_fails_for_a_while_loses_nothing() -> None:
    """Conflicts, outages, lost answers: in the end the status is what is true."""

    async def story(ground: Ground) -> None:
        faults = [Conflict("moved"), Unavailable("down"), TimeoutError(), ConnectionError("cut")]
        async with ground.agency():
            ground.network.before = lambda verb, _: (
                faults.pop() if verb == "patch" and faults else None
            )
            await ground.make("a")
            await ground.rest(5)
            assert not faults
            assert ground.is_ready("a")
            lost: list[BaseException] = [TimeoutError()]
            ground.network.after = lambda verb, _: (
                lost.pop() if verb in ("patch", "delete") and lost else None
            )
            await ground.delete("a")
            await ground.rest(5)
            assert ground.document("a") is None

    on_ground(story)


def test_a_slow_api_does_not_hold_up_containers() -> None:
    """A crash is answered at once though every write takes ten seconds."""

    async def story(ground: Ground) -> None:
        ground.network.latency = lambda *_: 10 * SECOND
        ground.choose = lambda _pod, plan: (
            Script(exits_after=SECOND, exit_code=1) if plan.attempt == 0 else Script()
        )
        async with ground.agency():
            uid = await ground.make("a")
            await ground.rest(1.5)
            assert [plan.attempt for plan in ground.runtime.plans] == [0, 1]
            assert ground.runtime.is_running(uid, "main")
            await ground.rest(40)
            assert ground.is_ready("a")

    on_ground(story)


def test_a_start_that_hangs_does_not_outlive_the_pod() -> None:
    """The runtime never answers: the pod goes all the same, when its grace is over."""

    async def story(ground: Ground) -> None:
        async def hang(*_: object) -> None:
            await asyncio.Event().wait()

        ground.runtime.start = hang  # type: ignore[method-assign, assignment]
        async with ground.agency():
            await ground.make("a")
            await ground.rest(5)
            assert ground.waiting("a") == {"reason": "ContainerCreating"}
            await ground.delete("a", 3)
            await ground.rest(10)
            assert ground.document("a") is None

    on_ground(story)


def test_leaving_may_be_hastened() -> None:
    """`down`, and then `down --now`."""

    async def story(ground: Ground) -> None:
        ground.scripts["a"] = Script(ignores_stop=True)
        async with ground.agency() as agent:
            await ground.make("a")
            await ground.rest()
            leaving = asyncio.create_task(agent.leave(20 * SECOND))
            await ground.rest(2)
            assert ground.runtime.running_count == 1
            await agent.leave(0 * SECOND)
            assert ground.runtime.running_count == 0
            await leaving

    on_ground(story)
