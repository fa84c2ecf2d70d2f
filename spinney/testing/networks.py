"""A network before the server: notes every write; can delay one, refuse it, or lose its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from spinney.meta.documents import Document, string_at
from spinney.meta.references import Precondition, Ref
from spinney.ports import Clock, Writer, Written

T = TypeVar("T")

Fault: TypeAlias = Callable[[str, str], BaseException | None]
"""Says, of a write's verb and the object's name, what goes wrong with it, if anything does."""


def nothing_wrong(_verb: str, _name: str) -> None:
    """Let a write pass."""


def no_latency(_verb: str, _name: str) -> timedelta:
    """Let a write arrive at once."""
    return timedelta()


class Network:
    """A Writer over another. Verbs: create, apply, patch, status, delete, evict, bind.

    Set what you need: `latency` before a write arrives, `before` to refuse it, `after` to lose its
    answer though it took, `arrived` to be told of it.
    """

    def __init__(self, writer: Writer, clock: Clock) -> None:
        """Let everything pass at once."""
        self._writer = writer
        self._clock = clock
        self.calls: list[tuple[str, str]] = []
        """Every write that reached the other side, as verb and name."""

        self.in_flight = 0
        self.in_flight_most = 0
        self.latency: Callable[[str, str], timedelta] = no_latency
        self.before: Fault = nothing_wrong
        self.after: Fault = nothing_wrong
        self.arrived: Callable[[str, str], None] = nothing_wrong

    async def _send(self, verb: str, name: str, write: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight, self.in_flight_most)
        try:
            latency = self.latency(verb, name)
            if latency:
                await self._clock.sleep(latency)
            if (error := self.before(verb, name)) is not None:
                raise error
            self.arrived(verb, name)
            self.calls.append((verb, name))
            written = await write()
            if (error := self.after(verb, name)) is not None:
                raise error
            return written
        finally:
            self.in_flight -= 1

    async def create(self, document: Document) -> Written:
        """Make an object."""
        name = string_at(document, ["metadata", "name"])
        return await self._send("create", name, lambda: self._writer.create(document))

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Say how an object should be."""
        name = string_at(document, ["metadata", "name"])
        return await self._send("apply", name, lambda: self._writer.apply(document, force=force))

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object."""
        return await self._send(
            "patch",
            target.name,
            lambda: self._writer.patch(target, merge, only_if, subresource),
        )

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status."""
        return await self._send(
            "status",
            target.name,
            lambda: self._writer.put_status(target, status, resource_version),
        )

    async def delete(
        self, target: Ref, only_if: Precondition, *, grace_seconds: int | None, propagation: str
    ) -> None:
        """Delete an object."""
        await self._send(
            "delete",
            target.name,
            lambda: self._writer.delete(
                target, only_if, grace_seconds=grace_seconds, propagation=propagation
            ),
        )

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod if disruption budgets allow it."""
        await self._send("evict", target.name, lambda: self._writer.evict(target, only_if))

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        await self._send("bind", pod.name, lambda: self._writer.bind(pod, node, only_if))
