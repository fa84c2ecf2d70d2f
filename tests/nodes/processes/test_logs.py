"""Logs: what comes back is what was printed, whatever was asked for and however it was rotated."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.nodes.processes import logfile, reading
from spinney.nodes.processes.logfile import LogFile, Stream
from spinney.ports import LogOptions
from tests.nodes.processes.pods import log_of, plan, pod, run, runtime_of, said, shell

START = datetime(2026, 1, 1, tzinfo=UTC)


class Times:
    """A time that moves on by a second each time it is asked."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return START + timedelta(seconds=self.count - 1)


def whole(path, **options):
    async def main():
        told = reading.read(path, None, LogOptions(**options))
        return b"".join([chunk async for chunk in told])

    return run(main())


LINES = st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"\r"))


@pytest.mark.law
@given(
    chunks=st.lists(
        st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=200)), max_size=30
    )
)
def test_each_stream_comes_back_as_it_was_written(chunks):
    """Whatever bytes, in whatever pieces; the two are told apart by the lines' own tags."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.log"
        log = LogFile(path, 10**9, 3)
        streams = {name: Stream(name, log, Times()) for name in ("stdout", "stderr")}
        for name, data in chunks:
            streams[name].feed(data)
        for stream in streams.values():
            stream.end()
        log.close()
        raw = path.read_bytes().split(b"\n")[:-1]
        for name in ("stdout", "stderr"):
            mine = [line for line in raw if line[28:34] == name.encode()]
            ends = {b"F": b"\n", b"P": b""}
            told = b"".join(line[37:] + ends[line[35:36]] for line in mine)
            assert told == b"".join(data for each, data in chunks if each == name)


@pytest.mark.law
@given(
    lines=st.lists(LINES, max_size=40),
    tail=st.none() | st.integers(0, 45),
    limit=st.none() | st.integers(0, 500),
    bytes_max=st.sampled_from([60, 300, 10**6]),
    block=st.sampled_from([16, 100, 4096]),
)
def test_tail_and_limit_are_those_of_the_whole(lines, tail, limit, bytes_max, block):
    """Over many files, read in blocks of any size."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.log"
        log = LogFile(path, bytes_max, 1000)
        stream = Stream("stdout", log, Times())
        for line in lines:
            stream.feed(line + b"\n")
        log.close()
        former, reading.CHUNK_BYTES = reading.CHUNK_BYTES, max(block, 120)
        try:
            told = whole(path, tail_lines=tail, limit_bytes=limit)
        finally:
            reading.CHUNK_BYTES = former
        kept = lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]
        expected = b"".join(line + b"\n" for line in kept)
        assert told == (expected if limit is None else expected[:limit])


def test_times_and_since(tmp_path):
    log = LogFile(tmp_path / "0.log", 10**6, 3)
    stream = Stream("stdout", log, Times())
    for number in range(3):
        stream.feed(b"line %d\n" % number)
    stream.feed(b"x" * logfile.CARRIED_BYTES_MAX)
    stream.feed(b"end\n")
    log.close()
    told = whole(tmp_path / "0.log", since=START + timedelta(seconds=2), timestamps=True)
    first, second, rest = told.split(b"\n")
    assert first == b"2026-01-01T00:00:02.000000Z line 2"
    assert second == b"2026-01-01T00:00:03.000000Z " + b"x" * logfile.CARRIED_BYTES_MAX + b"end"
    assert rest == b""


def test_old_files_are_dropped_and_the_disk_they_take_is_bounded(tmp_path):
    log = LogFile(tmp_path / "0.log", 1000, 3)
    stream = Stream("stdout", log, Times())
    for number in range(500):
        stream.feed(b"%d\n" % number)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", "0.log.1", "0.log.2"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3100
    told = [int(line) for line in whole(tmp_path / "0.log").split()]
    assert told == list(range(told[0], 500))


def test_a_full_disk_costs_lines_and_says_how_many(tmp_path):
    """The limit on files' sizes stands for the disk: what is beyond it is refused."""
    log = LogFile(tmp_path / "0.log", 10**6, 3)
    stream = Stream("stdout", log, Times())
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    stream.feed(b"before\n")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, former[1]))
        stream.feed(b"lost\n" * 3)
        stream.feed(b"lost too\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    lost = log.lost_bytes
    stream.feed(b"after\n")
    log.close()
    assert lost > 0
    assert whole(tmp_path / "0.log") == (
        b"before\n%d bytes of output were lost: the disk was full\nafter\n" % lost
    )


def test_a_container_goes_on_while_its_log_cannot_be_written(tmp_path):
    async def main():
        async with runtime_of(tmp_path / "pods") as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            full = plan(
                sys.executable, "-c", "print('x' * 10_000_000); exit(6)", log_path="/dev/full"
            )
            await runtime.start(sandbox, full)
            assert (await seen.end()).exit_code == 6

    run(main())


def test_a_log_that_cannot_be_opened_is_a_start_error(tmp_path):
    async def main():
        async with runtime_of(tmp_path / "pods") as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("true", log_path="/no/such/log"))
            end = await seen.end()
            assert end.reason == "StartError"
            assert "/no/such/log" in end.message

    run(main())


def test_following_goes_on_through_rotations_until_the_end(tmp_path):
    async def main():
        async with runtime_of(tmp_path / "pods", log_bytes_max=100_000, log_files_max=100) as (
            runtime,
            _,
        ):
            sandbox = await runtime.prepare(pod(), {})
            script = (
                "import sys\n"
                "print('up', flush=True)\n"
                "sys.stdin = open(sys.argv[1])\n"
                "sys.stdin.readline()\n"
                "for number in range(20_000): print(number)\n"
            )
            go = tmp_path / "go"

            os.mkfifo(go)
            await runtime.start(sandbox, plan(sys.executable, "-c", script, str(go)))
            await said(runtime, b"up\n")
            following = asyncio.ensure_future(log_of(runtime, follow=True))
            await asyncio.to_thread(go.write_text, "go\n")
            expected = "up\n" + "".join(f"{number}\n" for number in range(20_000))
            assert (await following).decode() == expected

    run(main())


def test_following_a_log_that_nobody_writes_ends(tmp_path):
    async def main():
        async with runtime_of(tmp_path) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("echo -n partial"))
            await seen.end()
            assert await log_of(runtime, follow=True) == b"partial"
        async with runtime_of(tmp_path) as (runtime, _):
            await runtime.adopt()
            assert await log_of(runtime, follow=True) == b"partial"

    run(main())


def test_an_end_does_not_wait_for_output_that_is_held_elsewhere(tmp_path):
    """A process outside the container has the other end of its output: the test itself."""

    async def main():
        async with runtime_of(tmp_path / "pods", log_patience=timedelta(milliseconds=50)) as (
            runtime,
            seen,
        ):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("echo up; read x"))
            await runtime.start(sandbox, shell("echo $$; while :; do sleep 1; done", name="other"))
            assert (await seen.end()).exit_code == 1
            number = int(await said(runtime, b"\n", container="other"))
            held = os.open(f"/proc/{number}/fd/1", os.O_WRONLY)
            try:
                await runtime.stop("uid-web-0", "other", 30)
                assert (await seen.end("other")).signal == 15
            finally:
                os.close(held)

    run(main())
