"""Answers: what simulated pods say when they are asked, and what they are said to use."""

# ruff: noqa: ARG002 - whatever it is asked, the answer is the same

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from typing import Final, NoReturn

from spinney.api.core.pod import Pod
from spinney.decisions import pods
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta import quantities
from spinney.meta.documents import object_at, string_at
from spinney.meta.errors import BadRequest
from spinney.nodes.fleet import plans
from spinney.ports import (
    Console,
    ContainerPlan,
    ContainerState,
    LogOptions,
    Sandbox,
    Streams,
    VolumeContent,
)

IDLE_USAGE: Final[Mapping[str, str]] = {"cpu": "10m", "memory": "64Mi"}
"""What a pod is said to use that asked for nothing."""

USED_PER_CENT: Final[Mapping[str, int]] = {"cpu": 60, "memory": 70}
"""How much of what it asked for a ready pod is said to use."""


def usage(pod: Pod, now: datetime) -> PodUsage:
    """Return what a pod is said to use: part of what it asked for, or what it is annotated with."""
    try:
        said = plans.usage(pod.metadata.annotations)
    except plans.BadPlan:
        said = {}
    share = max(len(pod.spec.containers), 1)
    found: dict[str, Mapping[str, int]] = {}
    for container in pod.spec.containers:
        asked = object_at(container, ["resources", "requests"])
        amounts: dict[str, int] = {}
        for name, idle in IDLE_USAGE.items():
            if name in said:
                amounts[name] = said[name] // share
            elif not pods.is_ready(pod):
                amounts[name] = 0
            elif isinstance(wanted := asked.get(name), str | int):
                amounts[name] = quantities.parse_quantity(wanted) * USED_PER_CENT[name] // 100
            else:
                amounts[name] = quantities.parse_quantity(idle)
        found[string_at(container, ["name"])] = amounts
    return PodUsage(measured_at=now, containers=found)


def node_usage(on_it: Iterable[Pod], now: datetime) -> NodeUsage:
    """Return what a node is said to use: what its pods do."""
    total = dict.fromkeys(IDLE_USAGE, 0)
    for pod in on_it:
        for amounts in usage(pod, now).containers.values():
            for name, amount in amounts.items():
                total[name] += amount
    return NodeUsage(measured_at=now, values=total)


class SimulatedRuntime:
    """What runs simulated pods, as the server asks it; fills `ports.PodRuntime`.

    Nothing starts containers here: the fleet makes up what becomes of them.
    """

    async def prepare(self, pod: Pod, volumes: Mapping[str, VolumeContent]) -> Sandbox:
        """Refuse."""
        _refuse("start containers")

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        """Refuse."""
        _refuse("start containers")

    async def stop(self, pod_uid: str, container: str, grace_seconds: int) -> None:
        """Refuse."""
        _refuse("stop containers")

    async def remove(self, pod_uid: str) -> None:
        """Refuse."""
        _refuse("remove pods")

    async def adopt(self) -> tuple[ContainerState, ...]:
        """Return that nothing runs."""
        return ()

    async def events(self) -> AsyncIterator[ContainerState]:
        """Yield nothing: no container is there."""
        none: tuple[ContainerState, ...] = ()
        for state in none:
            yield state

    async def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield one line, that there is nothing."""
        yield f'container "{container}" is simulated: no process runs that could print\n'.encode()

    async def exec(
        self,
        pod_uid: str,
        container: str,
        command: tuple[str, ...],
        console: Console,
        *,
        terminal: bool = False,
    ) -> int:
        """Refuse."""
        _refuse("run a command in a container")

    async def connect(self, pod_uid: str, port: int) -> Streams:
        """Refuse."""
        _refuse(f"connect to port {port}")


def _refuse(what: str) -> NoReturn:
    raise BadRequest(f"cannot {what}: the node is simulated and no process runs on it")
