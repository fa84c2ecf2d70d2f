"""The store alone: durable creates beside raw group commit, restarts, memory, lists, watchers.

Raw group commit is the least a durable store in Python must do: bytes that are encoded already,
handed to one thread, which inserts whatever has queued into one table and flushes once.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import msgspec

from bench.measuring import best_seconds
from spinney.app.real import SystemClock
from spinney.meta.documents import Document, Json
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Entry
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Event, Store

POD = GroupKind(group="", kind="Pod")
SECONDS = 1.5
"""How long each rate is measured, each time."""

ROUNDS = 3
RATIO_TARGET = 0.5
RESTART_TARGETS = {10_000: 0.5, 100_000: 4.0}


def pod(number: int) -> Document:
    """Return a pod of 5.4 KB, as one of a real workload is."""
    variables: list[Json] = [{"name": f"OPTION_{index}", "value": "v" * 24} for index in range(22)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"chat-0-decode-{number}",
            "namespace": f"team-{number % 10}",
            "uid": f"8c0a2f04-5c1d-4a54-9a3e-{number:012d}",
            "labels": {f"grove.io/label-{index}": f"value-{index}" for index in range(6)},
            "ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1",
                    "kind": "PodClique",
                    "name": f"chat-0-decode-{number // 8}",
                    "uid": f"5d7f5a0e-9d0c-4a64-8b1e-{number // 8:012d}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"node-{number % 100}",
            "containers": [
                {"name": name, "image": f"registry/{name}:1.2.3", "env": variables}
                for name in ("main", "proxy", "metrics", "logs")
            ],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    }


def _ref(number: int) -> Ref:
    return Ref(kind=POD, namespace=f"team-{number % 10}", name=f"chat-0-decode-{number}")


class _RawGroupCommit:
    """The baseline: nothing but bytes, one thread and one table."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.wal_autocheckpoint(0)
        self._connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, body BLOB)")
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1)
        self._waiting: list[tuple[int, str, bytes, asyncio.Future[None]]] = []
        self._is_working = False

    def put(self, number: int, name: str, body: bytes) -> asyncio.Future[None]:
        done = self._loop.create_future()
        self._waiting.append((number, name, body, done))
        if not self._is_working:
            self._is_working = True
            self._loop.call_soon(self._work)
        return done

    def _work(self) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            self._is_working = False
            return
        call = self._loop.run_in_executor(self._executor, self._commit, batch)
        call.add_done_callback(lambda _: self._ended(batch))

    def _commit(self, batch: Sequence[tuple[int, str, bytes, asyncio.Future[None]]]) -> None:
        with self._connection:
            self._connection.executemany(
                "INSERT INTO t VALUES (?, ?, ?)", [write[:3] for write in batch]
            )

    def _ended(self, batch: Sequence[tuple[int, str, bytes, asyncio.Future[None]]]) -> None:
        self._work()
        for write in batch:
            write[3].set_result(None)

    def close(self) -> None:
        self._executor.shutdown()
        self._connection.close()


async def _rate(write: Callable[[int], Awaitable[object]], concurrency: int) -> float:
    """Return how many writes a second so many writers got durable, one after the other each."""
    count = 0
    began = time.perf_counter()

    async def work() -> None:
        nonlocal count
        while time.perf_counter() - began < SECONDS:
            count += 1
            await write(count)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return count / (time.perf_counter() - began)


async def _raw_rate(concurrency: int) -> float:
    body = msgspec.json.encode(pod(123456))
    with tempfile.TemporaryDirectory() as folder:
        raw = _RawGroupCommit(Path(folder) / "raw.db")
        rate = await _rate(lambda number: raw.put(number, f"pod-{number}", body), concurrency)
        raw.close()
    return rate


async def _store_rate(concurrency: int) -> float:
    body = pod(123456)
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(SqliteJournal(Path(folder)), SystemClock())
        rate = await _rate(lambda number: store.put(_ref(number), body, expects=0), concurrency)
        await store.close()
    return rate


def _creates() -> Iterator[str]:
    size = len(msgspec.json.encode(pod(123456)))
    yield f"durable creates of pods of {size} bytes, every commit flushed"
    for concurrency in (1, 50, 200):
        raw = store = 0.0
        for _ in range(ROUNDS):
            gc.collect()
            raw = max(raw, asyncio.run(_raw_rate(concurrency)))
            gc.collect()
            store = max(store, asyncio.run(_store_rate(concurrency)))
        yield (
            f"  {concurrency:>3} at once: store {store:>7,.0f}/s, raw group commit {raw:>7,.0f}/s: "
            f"{store / raw:.2f} of it (target: at least {RATIO_TARGET})"
        )


def _fill(folder: Path, count: int) -> None:
    journal = SqliteJournal(folder)
    list(journal.load())
    for start in range(0, count, 1000):
        journal.commit(
            [
                Entry(
                    version=number + 1,
                    ref=_ref(number),
                    uid=f"uid-{number}",
                    body=msgspec.json.encode(pod(number)),
                )
                for number in range(start, min(count, start + 1000))
            ]
        )
        journal.tend()
    journal.close()


async def _open(folder: Path) -> Store:
    return await Store.open(SqliteJournal(folder), SystemClock())


def _restarts() -> Iterator[str]:
    yield "restart: every page, entry and total checked, beside a bare scan"
    for count, target in RESTART_TARGETS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _fill(folder, count)

            async def restart(folder: Path = folder) -> tuple[float, float]:
                began, worked = time.perf_counter(), time.process_time()
                store = await _open(folder)
                found = time.perf_counter() - began, time.process_time() - worked
                await store.close()
                return found

            bare: list[float] = []
            whole: list[tuple[float, float]] = []
            for _ in range(ROUNDS):
                gc.collect()
                began = time.perf_counter()
                connection = apsw.Connection(str(folder / "store.db"))
                rows = list(connection.execute("SELECT * FROM entries ORDER BY version"))
                bare.append(time.perf_counter() - began)
                connection.close()
                assert len(rows) == count
                del rows
                gc.collect()
                whole.append(asyncio.run(restart()))
        seconds, worked = min(whole)
        yield (
            f"  {count:>7,} objects: {seconds:.2f} s (target: under {target} s), of which "
            f"{worked:.2f} s of work; {seconds / min(bare):.1f} x a bare scan"
        )


_MEMORY = """
import asyncio, pathlib, sys
from bench import store
asyncio.run(store.measure_memory(pathlib.Path(sys.argv[1])))
"""


async def measure_memory(folder: Path) -> None:
    """Print by how many bytes this process grew by loading, beside the bytes of the objects."""
    before = _resident_bytes()
    store = await _open(folder)
    gc.collect()
    grown = _resident_bytes() - before
    began = time.perf_counter()
    gc.collect()
    stop = time.perf_counter() - began
    print(grown, store.statistics().object_bytes, stop)
    await store.close()


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _memory_and_lists() -> Iterator[str]:
    count = 10_000
    with tempfile.TemporaryDirectory() as name:
        _fill(Path(name), count)
        done = subprocess.run(
            [sys.executable, "-c", _MEMORY, name], capture_output=True, text=True, check=True
        )
        grown, size, stop = done.stdout.split()
        yield (
            f"memory of {count:,} pods: {int(grown) / 2**20:.0f} MiB, "
            f"{int(grown) / int(size):.2f} x their bytes; "
            f"a full garbage collection stops for {float(stop) * 1000:.0f} ms"
        )
        store = asyncio.run(_loaded(Path(name)))
        bodies = [stored.body for stored in store.list(POD)]
        seconds = best_seconds(
            {
                "join": lambda: b",".join(bodies),
                "list": lambda: store.list(POD),
                "list and join": lambda: b",".join(stored.body for stored in store.list(POD)),
                "by node": lambda: store.list(POD, by=("node", "node-7")),
                "one namespace": lambda: store.list(POD, namespace="team-3"),
            }
        )
    for what, value in seconds.items():
        yield f"  {what:<14} {value * 1000:>8.3f} ms  {value / seconds['join']:>6.3f} x join alone"


async def _loaded(folder: Path) -> Store:
    store = await _open(folder)
    await store.close()
    return store


class _Watcher:
    count = 0

    def deliver(self, events: Sequence[Event]) -> None:
        self.count += len(events)

    def cut(self) -> None:
        raise AssertionError("cut")


async def _watched_rate(watcher_count: int) -> float:
    body = pod(123456)
    with tempfile.TemporaryDirectory() as folder:
        store = await Store.open(SqliteJournal(Path(folder)), SystemClock())
        for _ in range(watcher_count):
            store.attach(POD, 0, _Watcher())
        rate = await _rate(lambda number: store.put(_ref(number), body, expects=0), 50)
        await store.close()
    return rate


def _watchers() -> Iterator[str]:
    yield "50 writers at once, every event told to each watcher"
    best = {0: 0.0, 100: 0.0, 1000: 0.0}
    for _ in range(ROUNDS):
        for count in best:
            gc.collect()
            best[count] = max(best[count], asyncio.run(_watched_rate(count)))
    for count, rate in best.items():
        yield f"  {count:>4} watchers: {rate:>7,.0f}/s, {rate / best[0]:.2f} of the rate without"


def run() -> Iterator[str]:
    """Yield all of it."""
    yield from _creates()
    yield from _restarts()
    yield from _memory_and_lists()
    yield from _watchers()
