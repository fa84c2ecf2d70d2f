"""Telling: keeps the stored status of one pod what its life says, and takes its object away.

A status is written only where it would change something, under the version it was decided on, and
not again before that write was seen: so a lagging view costs no write. While a pod is about to
change, such as while its containers start, what would have to be told anew at once waits a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from spinney.api.core.pod import Pod
from spinney.engine import logs, verdicts
from spinney.engine.backoff import Backoff
from spinney.engine.verdicts import Refusal, Verdict
from spinney.meta.errors import NotFound
from spinney.meta.references import Precondition
from spinney.nodes.agent import statuses
from spinney.nodes.agent.lifecycle import View
from spinney.nodes.agent.station import Station, ref_of

PASSING_MAX: Final = timedelta(seconds=1)
"""How long a pod may be about to change before that itself is told."""

AGAIN: Final = Backoff(first=timedelta(milliseconds=50), longest=timedelta(seconds=10))
"""After a write that failed."""

UNSEEN_MAX: Final = timedelta(seconds=5)
"""How long an own write is waited for to be seen; it may have been undone."""

_log = logs.logger("agent")


class Telling:
    """Tells of one pod."""

    def __init__(self, pod: Pod, station: Station, view: Callable[[], View]) -> None:
        """Tell what `view` returns, whenever the bell is rung."""
        self._namespace = pod.metadata.namespace
        self._name = pod.metadata.name
        self._uid = pod.metadata.uid
        self._station = station
        self._view = view
        self._bell = asyncio.Event()
        self._wants_delete = self._is_deleted = False
        self._seen_from = 0
        self._unseen_until = timedelta()
        self._passing_since: timedelta | None = None
        self._failures = 0
        self._told = asyncio.Event()

    def ring(self) -> None:
        """Look again: the life, or what is stored, has changed."""
        self._told.clear()
        self._bell.set()

    def delete(self) -> None:
        """Take the object away, once its last status is told."""
        self._wants_delete = True
        self.ring()

    async def wait_told(self) -> None:
        """Wait until the stored status is what the life says, or the pod is stored no more."""
        await self._told.wait()

    async def run(self) -> None:
        """Tell, until cancelled."""
        while True:
            self._bell.clear()
            again = await self._look()
            seconds = None if again is None else max(again / timedelta(seconds=1), 0)
            try:
                async with asyncio.timeout(seconds):
                    await self._bell.wait()
            except TimeoutError:
                continue

    async def _look(self) -> timedelta | None:
        """Tell what is to be told; returns after which time to look again though nothing rings."""
        pod = self._station.reader.get(Pod, self._namespace, self._name)
        if pod is None or pod.metadata.uid != self._uid:
            self._told.set()
            return None
        now = self._station.now
        if int(pod.metadata.resource_version or 0) < self._seen_from:
            if now.elapsed < self._unseen_until:
                return self._unseen_until - now.elapsed
            self._seen_from = 0
        view = self._view()
        if view.is_passing and not self._wants_delete:
            if self._passing_since is None:
                self._passing_since = now.elapsed
            left = self._passing_since + PASSING_MAX - now.elapsed
            if left > timedelta():
                return left
        else:
            self._passing_since = None
        status = view.status(pod, self._station.machine.ip, now.wall)
        try:
            if not statuses.is_told(pod, status):
                only_if = Precondition(
                    uid=self._uid, resource_version=pod.metadata.resource_version
                )
                written = await self._station.writer.patch(
                    ref_of(pod), {"status": status}, only_if, "status"
                )
                self._seen_from = int(written.resource_version)
                self._unseen_until = self._station.clock.elapsed() + UNSEEN_MAX
            if self._wants_delete and not self._is_deleted:
                await self._delete(pod)
        except Refusal as error:
            return self._refused(pod, error)
        self._failures = 0
        self._told.set()
        return None

    async def _delete(self, pod: Pod) -> None:
        with contextlib.suppress(NotFound):
            await self._station.writer.delete(
                ref_of(pod),
                Precondition(uid=self._uid),
                grace_seconds=0,
                propagation="Background",
            )
        self._is_deleted = True

    def _refused(self, pod: Pod, error: BaseException) -> timedelta:
        """Judge a write that failed; returns when to try again."""
        assert isinstance(error, Refusal)
        failure = verdicts.judged(error)
        self._failures += 1
        delay = AGAIN.delay(self._failures, self._station.entropy)
        if failure.verdict is Verdict.STALLED:
            said = logs.fields(object=ref_of(pod), why=failure.message)
            _log.error("a pod's status was refused", extra=said)
        return max(delay, failure.retry_after or timedelta())
