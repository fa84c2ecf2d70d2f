"""The manager: runs controllers together, while this process leads.

    manager = Manager(reader, writer, clock, entropy, controllers)
    await manager.run()          # until `stop`, or a bug of ours

Without `leases` this process leads from the start: embedded, the lock on the data folder says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from spinney.engine import logs
from spinney.engine.controller import Controller, Runner
from spinney.engine.elector import Elector, FencedWriter
from spinney.engine.executor import IN_FLIGHT_MAX, Executor
from spinney.engine.expectations import Expectations
from spinney.engine.gangs import GangWaits, UpdateAges
from spinney.engine.leases import LeaseSettings
from spinney.engine.metrics import Gauge, Metrics, NoMetrics
from spinney.engine.queue import QueueStatistics
from spinney.engine.recorder import Recorder
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.ports import Clock, Entropy, Reader, Writer

DRAIN_MAX: Final = timedelta(seconds=5)
"""How long a graceful stop waits for what is under way."""

_log = logs.logger("engine")


async def _synced() -> None:
    """Wait for nothing: this reader never lags."""


class ManagerStatistics(Record):
    """How a process that runs controllers stands."""

    is_ready: bool
    is_leading: bool
    controllers: Mapping[str, QueueStatistics]
    """The queue of each controller, by name."""


class Manager:
    """Runs controllers."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
        controllers: Sequence[Controller[Any]],
        *,
        leases: LeaseSettings | None = None,
        lease_reader: Reader | None = None,
        metrics: Metrics | None = None,
        identity: str = "spinney",
        wait_synced: Callable[[], Awaitable[None]] = _synced,
        in_flight_max: int = IN_FLIGHT_MAX,
    ) -> None:
        """Put controllers together over a reader and a writer.

        `lease_reader` is where the lease is seen, if not in `reader`; `wait_synced` returns once
        the caches behind the readers are filled.
        """
        self._clock = clock
        self._wait_synced = wait_synced
        self._metrics = metrics or NoMetrics()
        self._elector: Elector | None = None
        if leases is not None:
            self._elector = Elector(
                leases,
                lease_reader or reader,
                writer,
                clock,
                entropy,
                self._metrics,
                identity=identity,
            )
            writer = FencedWriter(writer, self._elector.may_act)
        self._recorder = Recorder(reader, writer, clock, self._metrics, instance=identity)
        self.runners = tuple(
            self._runner(each, reader, writer, clock, entropy, in_flight_max)
            for each in controllers
        )
        names = [each.name for each in controllers]
        if len(names) != len(set(names)):
            raise InvariantViolation(f"controllers share a name: {', '.join(sorted(names))}")
        if metrics is not None:
            GangWaits(reader, clock, metrics)
            UpdateAges(reader, clock, metrics)
        self._metrics.watch(self._gauges)
        self._is_synced = self._is_leading = False
        self._failure: Exception | None = None
        self._stop = asyncio.Event()

    def _runner(
        self,
        controller: Controller[Any],
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
        in_flight_max: int,
    ) -> Runner:
        kinds = {controller.kind, *(wake.kind for wake in controller.wakes)}
        expectations = Expectations(reader, kinds)
        executor = Executor(
            controller.name,
            reader,
            writer,
            clock,
            expectations,
            self._recorder,
            self._metrics,
            in_flight_max=in_flight_max,
        )
        return Runner(controller, reader, executor, expectations, clock, entropy, self._metrics)

    # Running

    async def run(self) -> None:
        """Run until `stop`; raises InvariantViolation where a controller found a bug of ours."""
        try:
            self._is_synced = await self._wait_synced_or_stopped()
            if not self._is_synced:
                return
            if self._elector is None:
                await self._lead()
            else:
                await self._elector.run(self._lead)
        except Exception as error:
            self._failure = error
            for runner in self.runners:
                runner.release()
            raise
        finally:
            self._is_synced = False

    async def _wait_synced_or_stopped(self) -> bool:
        """Wait until caches are filled; returns whether they are, False where `stop` came first."""
        syncing = asyncio.ensure_future(self._wait_synced())
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait([syncing, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            errors = await _cancelled([syncing, stopping])
        for error in errors:
            raise error
        return not self._stop.is_set()

    def stop(self) -> None:
        """End gracefully: finish what is under way, tell what is to be told, release the lease."""
        self._stop.set()
        if self._elector is not None:
            self._elector.stop()

    async def _lead(self) -> None:
        """Do the leader's work until stopped or cancelled; raises what ended a controller."""
        self._is_leading = True
        recording = asyncio.create_task(self._recorder.run(), name="recorder")
        running = [
            asyncio.create_task(runner.run(), name=f"controller {runner.name}")
            for runner in self.runners
        ]
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                await self._drain(running)
        finally:
            self._is_leading = False
            ended = await _cancelled([*running, recording, stopping])
        for error in ended:
            raise error

    async def _drain(self, running: Sequence[asyncio.Task[None]]) -> None:
        for runner in self.runners:
            runner.drain()
        try:
            async with asyncio.timeout(DRAIN_MAX.total_seconds()):
                if running:
                    await asyncio.wait(running)
                await self._recorder.wait_quiet()
        except TimeoutError:
            _log.warning("what was under way was cut off", extra=logs.fields(after=DRAIN_MAX))

    # Looking at it

    @property
    def ready(self) -> bool:
        """Whether caches are filled and, where this process leads, every key was looked at once."""
        if not self._is_synced:
            return False
        return not self._is_leading or all(runner.is_ready for runner in self.runners)

    async def wait_ready(self) -> None:
        """Wait until caches are filled and every key was looked at once, here, as the leader."""
        await asyncio.gather(*(runner.wait_ready() for runner in self.runners))

    @property
    def is_leading(self) -> bool:
        """Whether controllers run here."""
        return self._is_leading

    def may_act(self) -> bool:
        """Whether a write of this manager's controllers would go out at this moment."""
        return self._elector is None or self._elector.may_act()

    def statistics(self) -> ManagerStatistics:
        """Return how this process stands."""
        return ManagerStatistics(
            is_ready=self.ready,
            is_leading=self._is_leading,
            controllers={each.name: each.queue.statistics() for each in self.runners},
        )

    def _gauges(self) -> Iterable[Gauge]:
        yield Gauge(name="spinney_leader", value=int(self._is_leading and self.may_act()))

    async def settle(self) -> None:
        """Wait until nothing is queued or under way and all events are told.

        For tests. Deadlines in the future do not count; back-off does. Raises what ended `run`.
        """
        while True:
            for runner in self.runners:
                await runner.wait_quiet()
            if self._failure is not None:
                raise self._failure
            await self._recorder.wait_quiet()
            if all(runner.is_quiet for runner in self.runners) and self._recorder.is_quiet:
                return
            await self._clock.sleep(timedelta())


async def _cancelled(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException]:
    """Cancel tasks, wait for their end, and return what they raised."""
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    return [
        each
        for each in ended
        if isinstance(each, BaseException) and not isinstance(each, asyncio.CancelledError)
    ]
