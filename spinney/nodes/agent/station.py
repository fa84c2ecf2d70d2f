"""The station: what all keepers of one node share, and how they act on the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from spinney.api.core.pod import Pod
from spinney.decisions.actions import Emit
from spinney.engine.recorder import Recorder
from spinney.meta.references import GroupKind, Ref
from spinney.nodes.agent.givens import Givens, Machine
from spinney.nodes.agent.images import Images
from spinney.nodes.agent.instructions import Moment, Tell
from spinney.nodes.agent.prober import Prober
from spinney.ports import Clock, Entropy, PodRuntime, Reader, Writer

POD = GroupKind(group="", kind="Pod")
CONFIG_MAP = GroupKind(group="", kind="ConfigMap")
SECRET = GroupKind(group="", kind="Secret")
NODE = GroupKind(group="", kind="Node")
COMPONENT = "spinney-agent"
"""Who tells, as events name it."""


class LocalRuntime(PodRuntime, Protocol):
    """A runtime that also has pods resolve names."""

    async def set_hosts(self, names: Mapping[str, Sequence[str]]) -> None:
        """Have pods resolve these names, in place of those before."""


class Station:
    """One node."""

    def __init__(
        self,
        machine: Machine,
        reader: Reader,
        writer: Writer,
        runtime: LocalRuntime,
        clock: Clock,
        entropy: Entropy,
        recorder: Recorder,
        images: Images,
    ) -> None:
        """Put together what keepers need."""
        self.machine = machine
        self.reader = reader
        self.writer = writer
        self.runtime = runtime
        self.clock = clock
        self.entropy = entropy
        self.recorder = recorder
        self.images = images
        self.prober = Prober(runtime, clock)

    @property
    def now(self) -> Moment:
        """The time."""
        return Moment(wall=self.clock.now(), elapsed=self.clock.elapsed())

    def givens(self, pod: Pod, ip: str) -> Givens:
        """Return what a pod may refer to."""
        return Givens(pod, ip, self.machine, self.reader)

    def tell(self, pod: Pod, said: Tell) -> None:
        """Tell people something of a pod."""
        emit = Emit(
            about=ref_of(pod),
            type="Warning" if said.is_warning else "Normal",
            reason=said.reason,
            note=said.note,
            key=said.key,
        )
        self.recorder.emit(emit, COMPONENT)


def ref_of(pod: Pod) -> Ref:
    """Return where a pod is."""
    return Ref(kind=POD, namespace=pod.metadata.namespace, name=pod.metadata.name)
