"""Keeping: the Node objects of a fleet, and which of its nodes answer.

Nodes are made once each time a process runs; one that a person deletes stays away until the next
start, as a machine that was unplugged. What an earlier process had and this one has not is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

from spinney.api import groupkinds
from spinney.api.core.node import Node
from spinney.meta.documents import Document
from spinney.meta.references import Precondition, Ref
from spinney.nodes.fleet import machines
from spinney.nodes.fleet.machines import Machine
from spinney.nodes.fleet.shapes import Shape
from spinney.ports import Clock, Reader, Writer


class NodeKeeper:
    """Keeps the Node objects of a fleet; a look returns what is to be written, if anything is."""

    def __init__(
        self,
        shapes: Sequence[Shape],
        reader: Reader,
        writer: Writer,
        clock: Clock,
        is_back: Callable[[str], None],
    ) -> None:
        """Have nodes of shapes; `is_back` is told of each that answers again."""
        self.machines: Mapping[str, Machine] = {
            machine.name: machine for machine in machines.machines(shapes)
        }
        self.ready = asyncio.Event()
        """Set once every node was there."""

        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._is_back = is_back
        self._unmade = {*self.machines}
        self._silent: set[str] = set()

    def begin(self) -> Iterator[Ref]:
        """Yield the nodes to look at: those there should be, and those that are left over."""
        if not self.machines:
            self.ready.set()
        by = (f"label:{machines.SIMULATED}", "true")
        left = [node.metadata.name for node in self._reader.list(Node, by=by)]
        for name in dict.fromkeys((*self.machines, *left)):
            yield Ref(kind=groupkinds.NODE, namespace="", name=name)

    def is_silent(self, name: str) -> bool:
        """Whether a node does not answer."""
        return name in self._silent

    @property
    def silent_count(self) -> int:
        """How many nodes do not answer."""
        return len(self._silent)

    def look(self, ref: Ref) -> Coroutine[None, None, None] | None:
        """Return what makes a node's object right, None where it is."""
        node = self._reader.get(Node, "", ref.name)
        machine = self.machines.get(ref.name)
        if machine is None:
            return None if node is None else self._remove(ref, node)
        if node is None and ref.name in self._unmade:
            return self._make(machine)
        self._made(ref.name)
        self._listen(ref.name, is_silent=node is None or machines.is_vanished(node))
        if node is None:
            return None
        now = self._clock.now()
        labels = machines.label_changes(machine, node)
        status: Document | None = None
        if not machines.is_told(machine, node, now):
            status = machines.status(machine, node, now)
        if labels is None and status is None:
            return None
        return self._tell(ref, node, labels, status)

    def _made(self, name: str) -> None:
        self._unmade.discard(name)
        if not self._unmade:
            self.ready.set()

    def _listen(self, name: str, *, is_silent: bool) -> None:
        if is_silent:
            self._silent.add(name)
        elif name in self._silent:
            self._silent.discard(name)
            self._is_back(name)

    async def _make(self, machine: Machine) -> None:
        await self._writer.create(machines.document(machine, self._clock.now()))
        self._made(machine.name)

    async def _remove(self, ref: Ref, node: Node) -> None:
        only_if = Precondition(uid=node.metadata.uid)
        await self._writer.delete(ref, only_if, grace_seconds=None, propagation="Background")

    async def _tell(
        self, ref: Ref, node: Node, labels: Document | None, status: Document | None
    ) -> None:
        only_if = Precondition(uid=node.metadata.uid)
        if labels is not None:
            await self._writer.patch(ref, labels, only_if)
        if status is not None:
            await self._writer.patch(ref, {"status": status}, only_if, "status")
