"""How much is used and had: against processes that use a known amount, and files made up."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta.quantities import NANO
from spinney.nodes.processes import capacity, cgroups, gpus
from spinney.nodes.processes.cgroups import Groups
from spinney.nodes.processes.gpus import Allotment, NoGpus
from spinney.nodes.processes.measuring import Counted, Meter, Subject
from tests.nodes.processes.pods import LOWEST, log_of, plan, pod, run, runtime_of, said, shell
from tests.nodes.processes.tiers import EVERY_TIER, TIERS

START = datetime(2026, 1, 1, tzinfo=UTC)
BUSY = """
import os, sys, time
held = bytearray(64 * 1024 * 1024)
if os.fork() == 0:
    while time.process_time() < 0.2: pass
    os._exit(0)
os.wait()
print("up", flush=True)
time.sleep(1000)
"""


@EVERY_TIER
def test_a_child_that_is_gone_was_counted_and_memory_is_of_now(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            await runtime.start(sandbox, plan(sys.executable, "-c", BUSY))
            await said(runtime, b"up\n")
            usage = (await runtime.usage())["uid-web-0"]
            used = usage.containers["main"]
            microseconds = usage.window // timedelta(microseconds=1)
            assert used["cpu"] * microseconds // 1_000_000 >= 190_000_000
            assert 64 * 2**20 <= used["memory"] // NANO < 256 * 2**20
            again = (await runtime.usage())["uid-web-0"]
            assert again.containers["main"]["cpu"] < used["cpu"]
            node = await runtime.node_usage()
            assert node.values["memory"] > used["memory"]
            await runtime.stop("uid-web-0", "main", 0)
            assert await runtime.usage() == {}

    run(main())


def test_a_rate_is_of_the_window_and_begins_anew_with_an_attempt():
    meter = Meter()

    def used(attempt, seconds, milliseconds):
        subject = Subject(key=("u", "c"), attempt=attempt, keeper=1, started_at=START)
        counted = {("u", "c"): Counted(cpu_nanoseconds=milliseconds * 10**6, memory_bytes=1)}
        found = meter.measured([subject], counted, START + timedelta(seconds=seconds))["u"]
        return found.containers["c"]["cpu"], found.window.total_seconds()

    assert used(0, 10, 5000) == (NANO // 2, 10)
    assert used(0, 12, 7000) == (NANO, 2)
    assert used(0, 12, 7000)[0] == 0
    assert used(1, 22, 1100) == (NANO // 20, 22)


def test_the_capacity_is_the_machines_or_that_of_our_control_group(tmp_path):
    real = capacity.capacity(tmp_path, 2)
    assert real["cpu"] <= len(os.sched_getaffinity(0)) * NANO
    assert real["nvidia.com/gpu"] == 2 * NANO
    assert real["ephemeral-storage"] > 0
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    group = tmp_path / "sys/fs/cgroup/a"
    (group / "b").mkdir(parents=True)
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "b/cpu.max").write_text("max 100000\n")
    (group / "b/memory.max").write_text("1048576\n")
    assert capacity.processors(tmp_path) == NANO // 2
    assert capacity.memory(tmp_path) == 1048576


@pytest.mark.law
@given(
    numbers=st.lists(st.integers(0, 15), max_size=8),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=40),
)
def test_no_gpu_is_given_to_two_and_what_is_free_can_be_had(numbers, steps):
    allotment = Allotment(numbers)
    held = {}
    for who, count, gives_back in steps:
        holder = (f"pod-{who}", "main")
        if gives_back or holder in held:
            allotment.give_back(holder)
            held.pop(holder, None)
            continue
        free = len(allotment.numbers) - sum(map(len, held.values()))
        if count > free:
            with pytest.raises(NoGpus, match=f"{free} of {len(allotment.numbers)} are free"):
                allotment.take(holder, count)
            continue
        held[holder] = allotment.take(holder, count)
        assert len(held[holder]) == count
        every = [number for taken in held.values() for number in taken]
        assert len(every) == len(set(every))
        assert set(every) <= set(numbers)


def test_a_container_gets_the_gpus_it_had_also_from_another_agent(tmp_path):
    async def main():
        async with runtime_of(tmp_path, gpus=(0, 1, 2, 3)) as (runtime, seen):
            for name, count in (("a", 1), ("b", 2)):
                sandbox = await runtime.prepare(pod(name), {})
                devices = {gpus.RESOURCE: count}
                await runtime.start(
                    sandbox, shell("echo $CUDA_VISIBLE_DEVICES; sleep 1000", devices=devices)
                )
            assert await said(runtime, b"\n", uid="uid-a") == b"0\n"
            assert await said(runtime, b"\n", uid="uid-b") == b"1,2\n"
            much = shell("true", devices={gpus.RESOURCE: 2}, name="much")
            await runtime.start(sandbox, much)
            end = await seen.end("much")
            assert (end.reason, end.exit_code) == ("StartError", 128)
            assert "2 of nvidia.com/gpu were asked for, 1 of 4 are free" in end.message
        async with runtime_of(tmp_path, gpus=(0, 1, 2, 3)) as (runtime, seen):
            await runtime.adopt()
            again = shell("echo $CUDA_VISIBLE_DEVICES", devices=devices, attempt=1)
            await runtime.start(sandbox, again)
            await seen.end(attempt=1)
            assert await log_of(runtime, uid="uid-b") == b"1,2\n"

    run(main())


def test_gpus_are_found_by_asking(tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\n[ "$1" = --query-gpu=index ] && printf "0\\n1\\n"\n')
    program.chmod(0o755)
    outer = {"PATH": f"{tmp_path}:/bin:/usr/bin"}
    assert gpus.find(outer) == (0, 1)
    program.write_text("#!/bin/sh\nexit 9\n")
    assert gpus.find(outer) == ()
    program.unlink()
    assert gpus.find(outer) == ()
    assert gpus.find({**outer, gpus.VARIABLE: "4,7"}) == (4, 7)


LIMITED = [tier for tier in TIERS if tier.control_groups]


def limits():
    """Return which limits this machine lets whoever runs the tests hold."""

    async def main():
        with tempfile.TemporaryDirectory() as folder:
            async with runtime_of(Path(folder), LIMITED[0] if LIMITED else LOWEST) as (runtime, _):
                return runtime.abilities.limits

    return run(main())


LIMITS = limits()


EVERY_LIMITED_TIER = pytest.mark.parametrize("tier", LIMITED, ids=lambda tier: tier.name)


if cgroups.MEMORY in LIMITS:

    @EVERY_LIMITED_TIER
    def test_who_takes_more_memory_than_its_limit_is_told_so(tmp_path, tier):
        async def main():
            async with runtime_of(tmp_path, tier) as (runtime, seen):
                sandbox = await runtime.prepare(pod(), {})
                greedy = plan(sys.executable, "-c", "bytearray(10**9)", memory_bytes=50_000_000)
                await runtime.start(sandbox, greedy)
                end = await seen.end()
                assert (end.exit_code, end.signal, end.reason) == (137, 9, "OOMKilled")

        run(main())


if cgroups.PIDS in LIMITS:

    @EVERY_LIMITED_TIER
    def test_who_forks_more_than_it_may_is_refused(tmp_path, tier):
        async def main():
            async with runtime_of(tmp_path, tier, processes_max=20) as (runtime, seen):
                sandbox = await runtime.prepare(pod(), {})
                script = (
                    "import os, errno\n"
                    "for number in range(100):\n"
                    "    try: process = os.fork()\n"
                    "    except OSError as error: exit(error.errno)\n"
                    "    if process == 0: __import__('signal').pause()\n"
                )
                await runtime.start(sandbox, plan(sys.executable, "-c", script))
                assert (await seen.end()).exit_code == 11

        run(main())


@pytest.fixture
def version_2(tmp_path):
    """A machine as systemd makes one: limits are for the groups above the user's own."""
    mounted = tmp_path / "sys/fs/cgroup"
    own = mounted / "user.slice/app.slice/shell.scope"
    own.mkdir(parents=True)
    for folder in (own, own.parent, own.parent.parent, mounted):
        (folder / "cgroup.procs").touch()
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/app.slice/shell.scope\n")
    (tmp_path / "proc/self/mountinfo").write_text(
        "26 25 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        "27 25 0:24 / /tmp rw - tmpfs tmpfs rw\n"
    )
    return tmp_path


def test_groups_are_made_where_most_can_be_limited(version_2):
    """The nearest has no controllers: the kernel gives none below a group with processes."""
    app = version_2 / "sys/fs/cgroup/user.slice/app.slice"
    ours = app / "spinney-w"
    ours.mkdir()
    (ours / "cgroup.controllers").write_text("cpu memory pids\n")
    (ours / "cgroup.subtree_control").touch()
    groups = Groups.find("w", version_2)
    assert groups.folders == (str(ours),)
    assert groups.controllers == {"memory", "pids"}
    assert not (app / "shell.scope/spinney-w").exists()
    (folder,) = groups.make("c", memory_bytes=1000, processes_max=7)
    assert (ours / "c/memory.max").read_text() == "1000"
    assert (ours / "c/pids.max").read_text() == "7"
    assert cgroups.procs_files((folder,)) == [f"{ours}/c/cgroup.procs"]
    assert not cgroups.is_out_of_memory((folder,))
    (ours / "c/memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert cgroups.is_out_of_memory((folder,))
    (ours / "c/cpu.stat").write_text("usage_usec 5\nuser_usec 4\n")
    (ours / "c/memory.current").write_text("900\n")
    (ours / "c/memory.stat").write_text("anon 500\ninactive_file 300\n")
    used = cgroups.usage((folder,))
    assert (used.cpu_nanoseconds, used.memory_bytes) == (5000, 600)


def test_a_machine_without_control_groups_has_none(tmp_path):
    groups = Groups.find("w", tmp_path)
    assert not groups
    assert groups.make("c", memory_bytes=1, processes_max=1) == ()


@EVERY_TIER
def test_abilities_are_told_in_sentences(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier, gpus=(0,)) as (runtime, _):
            told = "\n".join(runtime.abilities.sentences())
            assert ("has a PID namespace" in told) == tier.has_pids
            assert ("way of a user namespace" in told) == (tier.own_user and tier.has_pids)
            assert "1 GPU, each given to one container at a time" in told
            if tier == LOWEST:
                assert "$SPINNEY_HOSTS_FILE" in told
                assert "$SPINNEY_VOLUME_<NAME>" in told
                assert "is found by its environment" in told
                assert "memory limits are not held" in told

    run(main())
