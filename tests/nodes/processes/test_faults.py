"""The fault table: what goes wrong with processes, on every way of containing them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from datetime import timedelta

import pytest

from spinney.meta.errors import BadRequest, NotFound, Unavailable
from tests.nodes.processes.pods import (
    ObservedClock,
    Watched,
    log_of,
    plan,
    pod,
    run,
    runtime_of,
    said,
    shell,
    wait_gone,
)
from tests.nodes.processes.tiers import EVERY_TIER


@EVERY_TIER
def test_a_crash_loop_keeps_two_attempts_and_their_logs(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            for attempt in range(5):
                await runtime.start(sandbox, shell(f"echo {attempt}; exit 1", attempt=attempt))
                end = await seen.end(attempt=attempt)
                assert (end.exit_code, end.reason) == (1, "Error")
            assert await log_of(runtime) == b"4\n"
            assert await log_of(runtime, previous=True) == b"3\n"
            kept = sorted(path.name for path in (tmp_path / "uid-web-0/containers/main").iterdir())
            assert kept == ["3.json", "3.log", "4.json", "4.log", "work"]

    run(main())


@EVERY_TIER
def test_who_ignores_the_stop_signal_is_killed_after_its_grace(tmp_path, tier):
    """The clock stands still: it is the grace period that ends it, and nothing else."""

    async def main():
        clock = ObservedClock()
        async with runtime_of(tmp_path, tier, clock=clock) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("trap '' TERM; echo up; while :; do sleep 1; done"))
            await said(runtime, b"up\n")
            stopping = asyncio.ensure_future(runtime.stop("uid-web-0", "main", 30))
            await clock.slept.wait()
            clock.advance(timedelta(seconds=29))
            assert not stopping.done()
            clock.advance(timedelta(seconds=1))
            await stopping
            end = await seen.end()
            assert (end.exit_code, end.signal, end.reason) == (137, 9, "Error")
            assert end.message == "it did not end by itself and was killed"

    run(main())


@EVERY_TIER
def test_a_shorter_grace_overtakes_a_longer_one(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("trap '' TERM; echo up; while :; do sleep 1; done"))
            await said(runtime, b"up\n")
            stopping = asyncio.ensure_future(runtime.stop("uid-web-0", "main", 3600))
            await runtime.stop("uid-web-0", "main", 0)
            await stopping
            assert (await seen.end()).exit_code == 137

    run(main())


DAEMON = """
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
environment = {"PATH": os.environ["PATH"]}
held = os.open(sys.argv[1], os.O_WRONLY)
os.set_inheritable(held, True)
for number in (1, 2): os.close(number)
with open(sys.argv[2], "w") as ready: print("go", file=ready)
os.execvpe("sleep", ["sleep", "1000"], environment)
"""


@EVERY_TIER
@pytest.mark.parametrize("how", ["exits", "is stopped"])
def test_a_daemon_that_forked_twice_ends_with_its_container(tmp_path, tier, how):
    """It left its session, closed its output and its environment says nothing of us."""

    async def main():
        alive = Watched(tmp_path)
        async with runtime_of(tmp_path / "pods", tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            after = "exit 0" if how == "exits" else "while :; do sleep 1; done"
            script = f'"{sys.executable}" -c "$0" "$1" "$2"; read x < "$2"; echo up; {after}'
            ready = tmp_path / "ready"
            os.mkfifo(ready)
            command = ("/bin/sh", "-c", script, DAEMON, str(alive.path), str(ready))
            await runtime.start(sandbox, plan(*command))
            if how == "is stopped":
                await said(runtime, b"up\n")
                await runtime.stop("uid-web-0", "main", 1)
            await seen.end()
            await alive.gone()

    run(main())


BOMB = """
import os, signal, sys
held = os.open(sys.argv[1], os.O_WRONLY)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
for number in range(7):
    try:
        os.fork()
    except OSError:
        pass
    if number == 3:
        os.setsid() if os.getpid() != os.getsid(0) else None
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    except OSError:
        pass
"""


@EVERY_TIER
def test_a_fork_bomb_ends_with_its_container(tmp_path, tier):
    """A hundred processes in many sessions fork without pause; all of them are ended."""

    async def main():
        alive = Watched(tmp_path)
        async with runtime_of(tmp_path / "pods", tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan(sys.executable, "-c", BOMB, str(alive.path)))
            await said(runtime, b"up\n")
            await runtime.stop("uid-web-0", "main", 0)
            assert (await seen.end()).exit_code == 137
            await alive.gone()

    run(main())


@EVERY_TIER
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("no-such-program",), 'exec: "no-such-program": executable file not found in $PATH ('),
        (("/no/such/program",), 'exec: "/no/such/program": no such file or directory'),
        (("{}/script",), 'exec: "{}/script": permission denied: make it executable'),
        (("{}/badscript",), "the interpreter it names in its first line is not"),
        (("{}/noscript",), "exec format error"),
        (("true", "x" * 200_000), "its arguments and environment are too long together"),
    ],
)
def test_a_program_that_cannot_be_started_is_named(tmp_path, tier, command, told):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "badscript").write_text("#!/no/such/interpreter\n")
    (tmp_path / "badscript").chmod(0o755)
    (tmp_path / "noscript").write_text("\x00")
    (tmp_path / "noscript").chmod(0o755)

    async def main():
        async with runtime_of(tmp_path / "pods", tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan(*(word.format(tmp_path) for word in command)))
            end = await seen.end()
            assert (end.exit_code, end.reason) == (128, "StartError")
            assert told.format(tmp_path) in end.message
            assert len(seen.states) == 1

    run(main())


@EVERY_TIER
def test_a_working_directory_that_is_missing_is_named(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan("true", working_directory="/no/such"))
            end = await seen.end()
            assert end.reason == "StartError"
            assert end.message == 'workingDir "/no/such": no such file or directory'

    run(main())


@EVERY_TIER
def test_an_exit_during_the_start_is_an_end_like_others(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            for attempt in range(10):
                await runtime.start(sandbox, shell("exit 5", attempt=attempt))
                assert (await seen.end(attempt=attempt)).exit_code == 5

    run(main())


@EVERY_TIER
def test_ten_megabytes_without_a_newline_come_back_as_they_were(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier, log_bytes_max=50_000_000) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            script = "import os; [os.write(1, b'x' * 100_000) for _ in range(100)]"
            await runtime.start(sandbox, plan(sys.executable, "-c", script))
            await seen.end()
            assert await log_of(runtime) == b"x" * 10_000_000

    run(main())


@EVERY_TIER
def test_a_keeper_that_is_killed_takes_its_container_with_it(tmp_path, tier):
    async def main():
        alive = Watched(tmp_path)
        async with runtime_of(tmp_path / "pods", tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            script = f"exec 3>{alive.path}; (setsid sleep 1000 &); echo up; sleep 1000"
            await runtime.start(sandbox, shell(script))
            await said(runtime, b"up\n")
            os.kill(runtime._machine.living[("uid-web-0", "main")].keeper_id, signal.SIGKILL)
            end = await seen.end()
            assert (end.exit_code, end.reason) == (137, "ContainerStatusUnknown")
            await alive.gone()
            await runtime.start(sandbox, shell("exit 4", attempt=1))
            assert (await seen.end(attempt=1)).exit_code == 4

    run(main())


@EVERY_TIER
def test_a_spawner_that_is_killed_is_started_anew(tmp_path, tier):
    """What runs goes on where it can; where its PID namespace is gone, that is told."""

    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, shell("echo up; sleep 1000"))
            spawner = runtime._machine._spawner.process_id
            descriptor = os.pidfd_open(spawner)
            os.kill(spawner, signal.SIGKILL)
            await asyncio.to_thread(wait_gone, descriptor)
            if tier.has_pids:
                assert (await seen.end()).reason == "ContainerStatusUnknown"
            await runtime.start(sandbox, shell("exit 4", name="other"))
            assert (await seen.end("other")).exit_code == 4
            if not tier.has_pids:
                await runtime.stop("uid-web-0", "main", 30)
                assert (await seen.end()).signal == signal.SIGTERM

    run(main())


@EVERY_TIER
def test_closed_ports_and_unknown_pods_are_told_apart(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            with pytest.raises(Unavailable, match=f"nothing listens on port 9.*{sandbox.ip}"):
                await runtime.connect("uid-web-0", 9)
            with pytest.raises(NotFound, match="is not on this node"):
                await runtime.connect("uid-other", 9)
            with pytest.raises(NotFound, match="has not been started"):
                await log_of(runtime)
            await runtime.start(sandbox, plan("true"))
            with pytest.raises(BadRequest, match="previous terminated container"):
                await log_of(runtime, previous=True)

    run(main())


SERVER = """
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept()
    c.sendall(c.recv(100).upper())
    c.close()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@EVERY_TIER
def test_two_pods_listen_on_one_port_of_their_own_addresses(tmp_path, tier):
    async def main():
        port = str(free_port())
        async with runtime_of(tmp_path, tier) as (runtime, _):
            for name in ("web-0", "web-1"):
                sandbox = await runtime.prepare(pod(name), {})
                script = f'exec "{sys.executable}" -c "$0" "$POD_IP" {port}'
                await runtime.start(sandbox, plan("/bin/sh", "-c", script, SERVER))
                await said(runtime, b"up\n", uid=f"uid-{name}")
            for name in ("web-0", "web-1"):
                streams = await runtime.connect(f"uid-{name}", int(port))
                await streams.write(name.encode())
                assert await streams.read() == name.upper().encode()
                assert await streams.read() == b""
                await streams.close()

    run(main())


@EVERY_TIER
def test_who_has_taken_a_port_on_all_addresses_is_named(tmp_path, tier):
    async def main():
        port = free_port()
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            greedy = await runtime.prepare(pod("greedy", namespace="team"), {})
            serve = (sys.executable, "-c", SERVER)
            await runtime.start(greedy, plan(*serve, "0.0.0.0", str(port), ports=(port,)))
            await said(runtime, b"up\n", uid="uid-greedy")
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(
                sandbox, plan(*serve, sandbox.ip, str(port), ports=(port,), name="server")
            )
            end = await seen.end("server")
            assert end.reason == "AddressInUse"
            assert end.message == (
                f'port {port} is taken on all addresses by container "main" of pod "team/greedy": '
                f"have that one listen on its own address, $POD_IP ({greedy.ip}), rather than on "
                "all"
            )

    run(main())


@EVERY_TIER
def test_who_wants_all_addresses_is_told_of_the_one_that_is_taken(tmp_path, tier):
    async def main():
        port = free_port()
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            modest = await runtime.prepare(pod("modest"), {})
            serve = (sys.executable, "-c", SERVER)
            await runtime.start(modest, plan(*serve, modest.ip, str(port)))
            await said(runtime, b"up\n", uid="uid-modest")
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(
                sandbox, plan(*serve, "0.0.0.0", str(port), ports=(port,), name="server")
            )
            end = await seen.end("server")
            assert end.reason == "AddressInUse"
            assert f"$POD_IP ({sandbox.ip})" in end.message
            assert '"default/modest"' in end.message
            await runtime.start(sandbox, shell("exit 1", ports=(port,), name="server", attempt=1))
            assert (await seen.end("server", attempt=1)).reason == "Error"

    run(main())
