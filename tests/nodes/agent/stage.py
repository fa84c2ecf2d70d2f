"""A stage for one pod's life: a node that does what it is told, and a clock moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.nodes.agent import instructions as said
from spinney.nodes.agent.instructions import Event, Hook, Instruction, Moment
from spinney.nodes.agent.lifecycle import PodLife
from spinney.nodes.agent.probes import ProbeKind
from spinney.ports import ContainerState

START = datetime(2026, 1, 1, tzinfo=UTC)


def container(name: str, **fields: Json) -> Document:
    """Return a container."""
    return {"name": name, "image": "x", "command": ["run"], **fields}


def pod(
    *main: Document,
    init: tuple[Document, ...] = (),
    policy: str = "Always",
    annotations: dict[str, str] | None = None,
    **spec: Json,
) -> Pod:
    """Return a pod that is bound to a node."""
    return records.decode(
        Pod,
        {
            "metadata": {
                "name": "p",
                "namespace": "default",
                "uid": "u1",
                "annotations": {**(annotations or {})},
            },
            "spec": {
                "containers": [*main] or [container("main")],
                "initContainers": [*init],
                "restartPolicy": policy,
                "nodeName": "local",
                **spec,
            },
        },
    )


def deleted(of: Pod, grace_seconds: int) -> Pod:
    """Return a pod as it is stored once it was deleted."""
    metadata = msgspec.structs.replace(
        of.metadata, deletion_timestamp=START, deletion_grace_period_seconds=grace_seconds
    )
    return msgspec.structs.replace(of, metadata=metadata)


class Node:
    """Carries out instructions at once, unless it is told to leave that to the test."""

    def __init__(self, given: Pod, *, is_obedient: bool = True, **known: ContainerState) -> None:
        """Begin a life at the start of time."""
        self.elapsed = timedelta()
        self.running: dict[str, int] = {}
        self.log: list[str] = []
        self.events: list[said.Tell] = []
        self.is_obedient = is_obedient
        self.ignores_stop: set[str] = set()
        self.probes: Callable[[said.Probe], bool] = lambda _: True
        self.hook_hangs = False
        self.is_deleted = False
        self.life = PodLife(given, self.now, tuple(known.values()))
        for name, state in known.items():
            if state.ended_at is None:
                self.running[name] = state.attempt
        self.give(said.Seen(pod=given))

    @property
    def now(self) -> Moment:
        """Return the time."""
        return Moment(wall=START + self.elapsed, elapsed=self.elapsed)

    def give(self, event: Event) -> None:
        """Have something happen, and do what comes of it."""
        out = self.life.handle(event, self.now)
        self.life.validate()
        for instruction in out:
            self._do(instruction)

    def _do(self, instruction: Instruction) -> None:
        name = type(instruction).__name__
        what = getattr(instruction, "container", getattr(instruction, "reason", ""))
        if not isinstance(instruction, said.Tell):
            self.log.append(f"{name} {what}".strip())
        match instruction:
            case said.Tell():
                self.events.append(instruction)
            case said.Start(container=which, attempt=attempt):
                assert which not in self.running, f"two attempts of {which}"
                self.running[which] = attempt
                if self.is_obedient:
                    self.started(which)
            case said.Prepare():
                if self.is_obedient:
                    self.give(said.Prepared(ip="127.128.0.1"))
            case said.Stop(container=which, grace_seconds=grace):
                if which in self.running and (which not in self.ignores_stop or grace == 0):
                    self.ended(which, 143 if grace else 137)
            case said.RunHook(container=which, attempt=attempt, hook=hook):
                if not self.hook_hangs:
                    self.give(said.HookDone(container=which, attempt=attempt, hook=hook))
            case said.Probe(container=which, attempt=attempt, kind=kind):
                self.give(
                    said.Probed(
                        container=which,
                        attempt=attempt,
                        kind=kind,
                        is_success=self.probes(instruction),
                        message="refused",
                    )
                )
            case said.Remove():
                self.running.clear()
                self.give(said.Removed())
            case said.DeleteObject():
                self.is_deleted = True

    def started(self, name: str) -> None:
        """Have the runtime say that a container runs."""
        self.give(said.Became(state=self._state(name)))

    def ended(self, name: str, code: int = 0, reason: str = "") -> None:
        """Have a container end."""
        state = self._state(name)
        del self.running[name]
        over = msgspec.structs.replace(state, ended_at=self.now.wall, exit_code=code, reason=reason)
        self.give(said.Became(state=over))

    def _state(self, name: str) -> ContainerState:
        return ContainerState(
            pod_uid="u1", container=name, attempt=self.running[name], started_at=self.now.wall
        )

    def delete(self, grace_seconds: int = 30) -> None:
        """Have the pod deleted."""
        self.give(said.Seen(pod=deleted(self.life.pod, grace_seconds)))

    def hold(self, held: ContainerStateWaiting | None) -> None:
        """Hold the pod back, or let it go."""
        self.give(said.Seen(pod=self.life.pod, held=held))

    def pass_time(self, seconds: float) -> None:
        """Let time go on, with a tick whenever one is due."""
        until = self.elapsed + timedelta(seconds=seconds)
        for _ in range(10_000):
            due = self.life.wake_at()
            if due is None or due > until:
                self.elapsed = until
                return
            self.elapsed = max(self.elapsed, due)
            self.give(said.Tick())
        raise AssertionError("it never comes to rest")

    def to_next(self) -> timedelta:
        """Go to the next tick; returns how long that took."""
        due, before = self.life.wake_at(), self.elapsed
        assert due is not None
        self.pass_time((due - before).total_seconds())
        return self.elapsed - before

    def status(self) -> Document:
        """Return what is told."""
        return self.life.view().status(self.life.pod, "127.0.0.1", self.now.wall)

    def phase(self) -> Json:
        """Return the phase that is told."""
        return self.status()["phase"]


PRE_STOP: Document = {"lifecycle": {Hook.PRE_STOP.value: {"exec": {"command": ["bye"]}}}}
POST_START: Document = {"lifecycle": {Hook.POST_START.value: {"exec": {"command": ["hi"]}}}}
PROBE: Document = {"tcpSocket": {"port": 1}, "periodSeconds": 5, "failureThreshold": 2}
LIVENESS, READINESS, STARTUP = (
    {kind.value: PROBE} for kind in (ProbeKind.LIVENESS, ProbeKind.READINESS, ProbeKind.STARTUP)
)
