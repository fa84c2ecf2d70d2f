"""Reading the logs of containers: whole, merged by time, or as they are written."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from spinney.api import groupkinds
from spinney.cli import failing
from spinney.cli.connecting import Session
from spinney.cli.gathering import Gathering
from spinney.cli.tails import Printer
from spinney.decisions.causes import containers, scenes
from spinney.kube import client, resources, transport
from spinney.kube.transport import Unreachable
from spinney.meta.documents import Document, list_at, object_at, string_at
from spinney.meta.errors import ApiError, BadRequest, NotFound, SpinneyError, Unavailable
from spinney.meta.records import Record
from spinney.meta.references import Ref
from spinney.meta.times import format_time

PIECE_BYTES_MOST = 65536
"""A line that is longer is printed in pieces."""

FAILURES_MOST = 5
PAUSE = timedelta(milliseconds=300)
PODS = resources.Resource(group="", version="v1", plural="pods", kind="Pod", singular="pod")


class Tap(Record):
    """One run of one container, whose log can be read."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int = 0
    """How often it was restarted before."""

    is_first: bool = False
    """Whether it is an init container."""

    is_only: bool = True
    """Whether the pod has no other container."""

    has_begun: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes it this run."""
        return self.uid, self.container, self.run

    @property
    def has_previous(self) -> bool:
        """Whether there was a run before."""
        return self.run > 0

    @property
    def title(self) -> str:
        """What lines of it begin with."""
        return self.pod if self.is_only else f"{self.pod}/{self.container}"


class Query(Record):
    """Which part of a log is wanted."""

    previous: bool = False
    since: datetime | None = None
    tail: int | None = None

    def pairs(
        self, container: str, *, follow: bool = False, stamps: bool = True
    ) -> transport.Query:
        """Return it as a server takes it."""
        found = [("container", container)]
        found += [("follow", "true")] if follow else []
        found += [("previous", "true")] if self.previous else []
        found += [("timestamps", "true")] if stamps else []
        found += [("sinceTime", format_time(self.since))] if self.since is not None else []
        found += [("tailLines", str(self.tail))] if self.tail is not None else []
        return found


def taps_of(pod: Document) -> list[Tap]:
    """Return the runs of a pod's containers as they are now, init containers first."""
    own = len(scenes.objects_at(pod, "spec", "initContainers"))
    found = list(containers.statuses(pod))
    return [
        Tap(
            namespace=scenes.namespace_of(pod),
            pod=scenes.name_of(pod),
            uid=string_at(pod, ["metadata", "uid"]),
            container=string_at(container, ["name"]),
            run=scenes.number_at(status, "restartCount"),
            is_first=index < own,
            is_only=len(list_at(pod, ["spec", "containers"])) == 1 and index >= own,
            has_begun=containers.has_begun(status),
        )
        for index, (container, status) in enumerate(found)
    ]


def _path(tap: Tap) -> str:
    return client.place(PODS, tap.namespace, tap.pod, "log")


async def copy(session: Session, tap: Tap, query: Query, *, has_stamps: bool) -> None:
    """Print a log as it is, byte by byte."""
    pairs = query.pairs(tap.container, stamps=has_stamps)
    session.screen.out.flush()
    async with session.client.transport.stream(_path(tap), query=pairs) as parts:
        async for part in parts:
            session.screen.out.buffer.write(part)
    session.screen.out.buffer.flush()


async def lines(
    session: Session, tap: Tap, query: Query, *, follow: bool = False
) -> AsyncGenerator[tuple[str, bytes]]:
    """Yield the lines of a log, each with the time it was written."""
    pairs = query.pairs(tap.container, follow=follow)
    silence = None if follow else transport.ANSWER_TIMEOUT_SECONDS
    stream = session.client.transport.stream(_path(tap), query=pairs, silence_seconds=silence)
    rest, stamp = b"", ""
    async with stream as parts:
        async for part in parts:
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                stamp, text = _stamped(line) if not stamp else (stamp, line)
                yield stamp, text
                stamp = ""
            while len(rest) > PIECE_BYTES_MOST:
                piece, rest = rest[:PIECE_BYTES_MOST], rest[PIECE_BYTES_MOST:]
                if not stamp:
                    stamp, piece = _stamped(piece)
                yield stamp, piece
    if rest:
        yield (stamp, rest) if stamp else _stamped(rest)


def _stamped(line: bytes) -> tuple[str, bytes]:
    """Return when a line was written, and the line; "" where it does not say."""
    stamp, _, text = line.partition(b" ")
    if len(stamp) < 20 or stamp[4:5] != b"-" or b"T" not in stamp:
        return "", line
    return stamp.decode("ascii", "replace"), text


def _moment(stamp: str) -> tuple[str, str]:
    """Return what sorts stamps, whose fractions are of any length."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return whole, fraction.ljust(9, "0")


async def merge(
    session: Session, taps: Sequence[Tap], query: Query, printer: Printer
) -> list[SpinneyError]:
    """Print the lines of containers in order of time; returns what could not be read."""
    failures: list[SpinneyError] = []
    streams = [lines(session, tap, query) for tap in taps]
    heads: list[tuple[tuple[str, str], int, str, bytes]] = []

    async def advance(index: int, before: tuple[str, str]) -> None:
        try:
            stamp, text = await anext(streams[index])
        except StopAsyncIteration:
            return
        except (ApiError, Unreachable) as error:
            failures.append(error)
            return
        moment = max(_moment(stamp), before) if stamp else before
        heapq.heappush(heads, (moment, index, stamp, text))

    try:
        await asyncio.gather(*(advance(index, ("", "")) for index in range(len(streams))))
        while heads:
            moment, index, stamp, text = heapq.heappop(heads)
            printer.print(taps[index], stamp, text)
            await advance(index, moment)
    finally:
        for stream in streams:
            await stream.aclose()
    return failures


class Taps:
    """The taps that are open while logs are followed."""

    def __init__(self, session: Session) -> None:
        """Open none yet."""
        self.query = Query()
        """Which part is wanted of what was there at first."""

        self.first: set[tuple[str, str, int]] = set()
        self._session = session
        self._open: dict[tuple[str, str, int], asyncio.Task[None]] = {}

    def open(self, tap: Tap, printer: Printer, gathered: Gathering) -> None:
        """Follow a run of a container, unless it is followed."""
        if tap.key in self._open:
            return
        self._open[tap.key] = asyncio.create_task(self._follow(tap, printer, gathered))

    async def all_ended(self) -> bool:
        """Wait until all runs have been read to their end."""
        for task in list(self._open.values()):
            await task
        return True

    async def close(self) -> None:
        """Let go of all."""
        for task in self._open.values():
            task.cancel()
        await asyncio.gather(*self._open.values(), return_exceptions=True)

    async def _follow(self, tap: Tap, printer: Printer, gathered: Gathering) -> None:
        """Print a run to its end; a connection that is lost is taken up where it broke."""
        query = self.query if tap.key in self.first else Query()
        last, resumed, failures = "", "", 0
        while True:
            try:
                async with aclosing(lines(self._session, tap, query, follow=True)) as stream:
                    async for stamp, text in stream:
                        failures = 0
                        if resumed and stamp and _moment(stamp) <= _moment(resumed):
                            continue
                        resumed, last = "", stamp or last
                        printer.print(tap, stamp, text)
                if not _runs(gathered, tap):
                    return
            except NotFound:
                return
            except BadRequest as error:
                if failures:
                    self._session.screen.note(failing.text(error))
                    return
            except (Unreachable, Unavailable) as error:
                if failures >= FAILURES_MOST:
                    self._session.screen.note(f"{tap.title}: {failing.text(error)}")
                    return
            failures += 1
            if failures > FAILURES_MOST:
                return
            await self._session.clock.sleep(PAUSE * failures)
            query, resumed = (Query(since=_instant(last)), last) if last else (query, "")


def _instant(stamp: str) -> datetime | None:
    return scenes.instant_at({"at": stamp}, "at")


def _runs(gathered: Gathering, tap: Tap) -> bool:
    """Whether a run still goes on, as far as is known."""
    ref = Ref(kind=groupkinds.POD, namespace=tap.namespace, name=tap.pod)
    pod = gathered.scene().get(ref)
    if pod is None:
        return False
    for container, status in containers.statuses(pod):
        if string_at(container, ["name"]) == tap.container:
            is_same = scenes.number_at(status, "restartCount") == tap.run
            return is_same and "running" in object_at(status, ["state"])
    return False
