"""Logs: what a container printed, sent on as its node tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from datetime import datetime, timedelta

from aiohttp import HttpVersion11, web

from spinney.meta import errors, times
from spinney.meta.errors import BadRequest, FieldError, Invalid, NotFound
from spinney.ports import LogOptions
from spinney.server import asking, connections, links, parameters
from spinney.server.asking import LOG, Asked, whole_or_cut
from spinney.server.containers import Place
from spinney.server.lifetimes import Lifetimes
from spinney.server.parameters import Query

FIRST_SECONDS = 0.25
"""How long the head of an answer waits for what comes first, which may be an error."""

MEDIA = "text/plain; charset=utf-8"


def options_of(query: Query, now: datetime, name: str) -> LogOptions:
    """Return which part of a log a query asks for; raises BadRequest or Invalid."""
    tail, limit = parameters.integer(query, "tailLines"), parameters.integer(query, "limitBytes")
    seconds, since = parameters.integer(query, "sinceSeconds"), query.get("sinceTime", "")
    faults = list(_faults(tail, limit, seconds, since, query.get("stream", "")))
    if faults:
        raise Invalid(faults, group="", kind="PodLogOptions", name=name)
    begins: datetime | None = None
    if since:
        try:
            begins = times.parse_time(since)
        except ValueError as error:
            raise BadRequest(f"sinceTime: {error}") from error
    elif seconds is not None:
        begins = _before(now, seconds)
    return LogOptions(
        follow=parameters.flag(query, "follow"),
        previous=parameters.flag(query, "previous"),
        timestamps=parameters.flag(query, "timestamps"),
        tail_lines=tail,
        since=begins,
        limit_bytes=limit,
    )


def _before(now: datetime, seconds: int) -> datetime | None:
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:
        return None


def _faults(
    tail: int | None, limit: int | None, seconds: int | None, since: str, stream: str
) -> Iterator[FieldError]:
    if tail is not None and tail < 0:
        yield _invalid("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        yield _invalid("limitBytes", limit, "must be greater than 0")
    if seconds is not None and since:
        yield FieldError(
            path="",
            reason=errors.FORBIDDEN,
            message="at most one of `sinceTime` or `sinceSeconds` may be specified",
        )
    elif seconds is not None and seconds < 1:
        yield _invalid("sinceSeconds", seconds, "must be greater than 0")
    if stream not in ("", "All"):
        yield FieldError(
            path="stream",
            reason=errors.NOT_SUPPORTED,
            message='supported values: "All": output and errors are kept in one log',
            found=stream,
        )


def _invalid(path: str, found: int, message: str) -> FieldError:
    return FieldError(path=path, reason=errors.INVALID, message=message, found=found)


async def send(
    asked: Asked,
    place: Place,
    lifetimes: Lifetimes,
    chunks: AsyncIterator[bytes],
    *,
    limit_bytes: int | None,
    stall_seconds: float,
) -> web.StreamResponse:
    """Answer with a log, as fast as the client reads it."""
    links.keep_alive(asked.request)
    response = web.StreamResponse(headers={"Content-Type": MEDIA, "Cache-Control": "no-cache"})
    if asked.request.version < HttpVersion11:
        response.force_close()
    first = asyncio.ensure_future(anext(chunks, b""))
    try:
        await asyncio.wait({first}, timeout=FIRST_SECONDS)
        if first.done():
            first.result()
        await response.prepare(asked.request)
        with whole_or_cut(asked.request), connections.left(asked.request) as left:
            leaving = asyncio.create_task(left.wait())
            copying = _copied(first, chunks, response, limit_bytes, stall_seconds)
            try:
                await lifetimes.spend(copying, place, leaving)
            except NotFound:
                LOG.debug("a log ended with its pod", extra={"object": place.pod})
            except errors.ApiError as error:
                LOG.info("a log was cut short", extra={"object": place.pod, "reason": error})
                if asked.request.transport is not None:
                    asked.request.transport.abort()
                raise ConnectionResetError("the log was cut short") from error
            finally:
                leaving.cancel()
            await response.write_eof()
    finally:
        first.cancel()
        try:
            await asyncio.gather(first, return_exceptions=True)
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
    return response


async def _copied(
    first: asyncio.Future[bytes],
    chunks: AsyncIterator[bytes],
    response: web.StreamResponse,
    limit_bytes: int | None,
    stall_seconds: float,
) -> None:
    left = limit_bytes
    chunk = await first
    while chunk:
        if left is not None:
            chunk = chunk[:left]
            left -= len(chunk)
        await asking.write(response, chunk, stall_seconds)
        if left == 0:
            return
        chunk = await anext(chunks, b"")
