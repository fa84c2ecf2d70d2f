"""Hands: what the scheduler writes, a bounded number at a time, each write judged and counted.

Nothing is retried here. A write whose answer is lost may have been carried out: who asked for it
goes on as if it had, and asks again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from spinney.engine import logs, verdicts
from spinney.engine.metrics import Metrics
from spinney.engine.verdicts import Failure, Refusal, Verdict
from spinney.meta import errors
from spinney.meta.documents import Document
from spinney.meta.references import Precondition, Ref
from spinney.ports import Writer

NAME: Final = "scheduler"
"""What it is called in metrics, logs and events."""

WRITE_MAX: Final = timedelta(seconds=30)
"""How long the answer to one write is waited for; then it counts as not given."""

_log = logs.logger(NAME)


class Hands:
    """Writes for the scheduler."""

    def __init__(self, writer: Writer, metrics: Metrics, in_flight_max: int) -> None:
        """Have at most so many writes under way."""
        self._writer = writer
        self._metrics = metrics
        self._free = asyncio.Semaphore(in_flight_max)

    async def bind(self, pod: Ref, uid: str, node: str) -> Failure | None:
        """Give a pod its node; returns what went wrong."""
        only_if = Precondition(uid=uid)
        return await self._write("bind", pod, lambda: self._writer.bind(pod, node, only_if))

    async def delete(self, pod: Ref, uid: str) -> Failure | None:
        """Delete a pod, with its grace; that it is gone already is no failure."""
        only_if = Precondition(uid=uid)
        return await self._write(
            "delete",
            pod,
            lambda: self._writer.delete(pod, only_if, grace_seconds=None, propagation="Background"),
        )

    async def put_in_status(
        self, target: Ref, change: Document, only_if: Precondition
    ) -> Failure | None:
        """Change part of an object's status."""
        merge: Document = {"status": change}
        return await self._write(
            "status", target, lambda: self._writer.patch(target, merge, only_if, "status")
        )

    async def _write(
        self, verb: str, target: Ref, do: Callable[[], Awaitable[object]]
    ) -> Failure | None:
        async with self._free:
            try:
                async with asyncio.timeout(WRITE_MAX.total_seconds()):
                    await do()
            except errors.NotFound as error:
                if verb == "delete":
                    self._count(verb, target, "gone")
                    return None
                return self._failed(verb, target, error)
            except Refusal as error:
                return self._failed(verb, target, error)
        self._count(verb, target, "changed")
        return None

    def _failed(
        self,
        verb: str,
        target: Ref,
        error: errors.ApiError | errors.Terminal | TimeoutError | OSError,
    ) -> Failure:
        failure = verdicts.judged(error)
        self._count(verb, target, failure.verdict.value)
        level = logging.DEBUG if failure.verdict is Verdict.MOVED else logging.WARNING
        if _log.isEnabledFor(level):
            said = logs.fields(
                object=target,
                action=verb,
                controller=NAME,
                reason=failure.reason,
                why=failure.message,
            )
            _log.log(level, "not written", extra=said)
        return failure

    def _count(self, verb: str, target: Ref, result: str) -> None:
        self._metrics.count("spinney_actions_total", NAME, verb, target.kind.kind, result)
