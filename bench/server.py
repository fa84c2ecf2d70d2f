"""The server over HTTPS on this machine: durable creations, a list, one write told to many.

The server runs in a process of its own, with TLS, a token, and a journal on disk that is flushed
before anything is acknowledged. Beside it stands what aiohttp alone does, giving back the same
bodies over the same TLS, in the same run; and what a real kube-apiserver over etcd is known to do.
Other work on the machine slows both down: what a creation costs in CPU tells more than its rate.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import uvloop

from bench import loading, serving
from bench.serving import Running
from bench.store import pod
from spinney.meta.documents import Document, Json, list_at, object_at, with_value, without

CONCURRENCIES = (1, 50, 200)
KUBERNETES = {1: 245, 50: 680, 200: 710}
"""Creations a second of a kube-apiserver over etcd on two cores, as published."""

TARGET = 5
"""By how much it is to be beaten, at 50."""

CREATE_TARGET = 290
"""How many millionths of a second of CPU a creation may take, its share of the disk included."""

SECONDS = 1.5
ROUNDS = 3
LISTED = 10_000
LISTS = 5
WATCHERS = 100
WRITES = 20

_Best = dict[tuple[str, int], tuple[float, float]]


def _creations(server: Running, owners: Sequence[str]) -> Iterator[bytes]:
    """Yield requests that create pods of 5 KB, each with its name in it, as gangs have them."""
    texts = [_text(place, uid) for place, uid in enumerate(owners)]
    for number in itertools.count():
        place = number % len(texts)
        yield _creation(
            server, place, texts[place].replace(b"%NAME%", b"chat-0-decode-%08d" % number)
        )


def _creation(server: Running, place: int, body: bytes) -> bytes:
    return loading.request(server, "POST", f"/api/v1/namespaces/team-{place}/pods", body)


def _text(place: int, owner_uid: str) -> bytes:
    """Return a pod as its maker sends it, with a name to be filled in wherever it stands."""
    given = without(without(pod(place), ("status",)), ("metadata", "uid"))
    owner: Document = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner_uid}
    metadata: Document = {
        **object_at(given, ("metadata",)),
        "name": "%NAME%",
        "ownerReferences": [owner],
    }
    spec = object_at(given, ("spec",))
    containers: list[Json] = [
        with_value(container, ("env",), [*list_at(container, ("env",)), _OWN_NAME])
        for container in list_at(spec, ("containers",))
        if isinstance(container, dict)
    ]
    named: Document = {**spec, "hostname": "%NAME%", "containers": containers}
    return msgspec.json.encode({**given, "metadata": metadata, "spec": named})


_OWN_NAME: Document = {"name": "POD_NAME", "value": "%NAME%"}


async def _rates(spinney: Running, echo: Running) -> _Best:
    """Return the best rate, and the least CPU, of each server at each concurrency."""
    best: _Best = {}
    creations = {server: _creations(server, spinney.owners) for server in (spinney, echo)}
    for _ in range(ROUNDS):
        for count in CONCURRENCIES:
            for name, server, status in (("spinney", spinney, 201), ("echo", echo, 200)):
                found = await loading.rate(server, count, creations[server], SECONDS, status)
                rate, cpu = best.get((name, count), (0.0, float("inf")))
                best[name, count] = max(rate, found[0]), min(cpu, found[1])
    return best


def _told_rates(best: _Best) -> Iterator[str]:
    for count in CONCURRENCIES:
        (rate, cpu), (bare, bare_cpu) = best["spinney", count], best["echo", count]
        known = KUBERNETES[count]
        yield (
            f"durable creates, {count:>3} at once {rate:>8,.0f}/s  {cpu * 1e6:>6.0f} us CPU each  "
            f"{rate / known:>5.1f} x kube-apiserver and etcd ({known}/s)  "
            f"{rate / bare:.2f} x bare aiohttp ({bare:,.0f}/s, {bare_cpu * 1e6:.0f} us)"
        )
    rate, cpu = best["spinney", 50]
    is_met = rate >= TARGET * KUBERNETES[50]
    yield (
        f"at 50 at once: target {TARGET} x, {'met' if is_met else 'MISSED'}; target "
        f"{CREATE_TARGET} us CPU, {'met' if cpu * 1e6 <= CREATE_TARGET else 'MISSED'}"
    )


async def _fill(server: Running, count: int) -> None:
    """Create so many pods."""
    connections = await loading.connected(server, 50)
    left = itertools.islice(_creations(server, server.owners), count)

    async def create(connection: loading.Connection) -> None:
        for asked in left:
            assert await connection.ask(asked) == 201

    await asyncio.gather(*map(create, connections))
    for connection in connections:
        connection.close()


async def _answered(server: Running, path: str) -> tuple[float, float, int]:
    """Return the least seconds until an answer is there whole, the least CPU, and its bytes."""
    (connection,) = await loading.connected(server, 1)
    least = least_cpu = float("inf")
    for _ in range(LISTS):
        before, began = await server.cpu_seconds(), time.perf_counter()
        assert await connection.ask(loading.request(server, "GET", path)) == 200
        least = min(least, time.perf_counter() - began)
        least_cpu = min(least_cpu, await server.cpu_seconds() - before)
    connection.close()
    return least, least_cpu, connection.received


async def _listing(spinney: Running, echo: Running) -> str:
    """Tell of a list of many pods, beside as many bytes from aiohttp alone."""
    seconds, cpu, size = await _answered(spinney, "/api/v1/pods")
    bare, _, _ = await _answered(echo, f"/{size}")
    return (
        f"list of {LISTED:,} pods, {size / 1e6:.0f} MB: {seconds * 1000:.0f} ms, {cpu * 1000:.0f} "
        f"ms CPU  {seconds / bare:.1f} x as many bytes from bare aiohttp"
    )


async def _telling(spinney: Running) -> str:
    """Tell how long after a write was sent many watchers know of it."""
    path = "/api/v1/namespaces/team-0/pods?watch=1&sendInitialEvents=false"
    path += "&resourceVersionMatch=NotOlderThan"
    watches = await loading.watching(spinney, WATCHERS, path)
    (connection,) = await loading.connected(spinney, 1)
    delays: list[float] = []
    used = 0.0
    for number in range(WRITES):
        name = f"told-{number}"
        asked = _creation(spinney, 0, _text(0, spinney.owners[0]).replace(b"%NAME%", name.encode()))
        waiting = [watch.ask(b"", f'"name":"{name}"'.encode()) for watch in watches]
        before, began = await spinney.cpu_seconds(), time.perf_counter()
        assert await connection.ask(asked) == 201
        delays.extend(at - began for at in await asyncio.gather(*waiting))
        used += await spinney.cpu_seconds() - before
    for watch in watches:
        watch.close()
    connection.close()
    delays.sort()
    middle, late = delays[len(delays) // 2], delays[len(delays) * 99 // 100]
    return (
        f"one write told to {WATCHERS} watchers: p50 {middle * 1000:.1f} ms, p99 "
        f"{late * 1000:.1f} ms after it was sent, {used / WRITES * 1000:.1f} ms CPU a write"
    )


async def _measured_rates() -> list[str]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        async with (
            serving.running("spinney", Path(one)) as spinney,
            serving.running("echo", Path(other)) as echo,
        ):
            return [*_told_rates(await _rates(spinney, echo))]


async def _measured_reads() -> list[str]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        async with (
            serving.running("spinney", Path(one)) as spinney,
            serving.running("echo", Path(other)) as echo,
        ):
            await _fill(spinney, LISTED)
            return [await _listing(spinney, echo), await _telling(spinney)]


def run() -> Iterator[str]:
    """Yield rates, CPU, and ratios to bare aiohttp and to a kube-apiserver."""
    yield from uvloop.run(_measured_rates())
    yield from uvloop.run(_measured_reads())
