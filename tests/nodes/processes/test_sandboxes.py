"""What a container finds: addresses, names, volumes, its environment."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta.errors import BadRequest, NotFound
from spinney.nodes.processes import addresses, hosts, volumes
from spinney.nodes.processes.spawning import Isolation
from spinney.ports import Mount, VolumeContent
from tests.nodes.processes.pods import log_of, plan, pod, run, runtime_of, said, shell
from tests.nodes.processes.tiers import EVERY_TIER


def is_there(path):
    return os.path.lexists(path)


@pytest.mark.law
@given(st.lists(st.text(max_size=8), unique=True, max_size=60))
def test_addresses_are_apart_and_outside_what_is_reserved(uids):
    taken: set[str] = set()
    for uid in uids:
        address = addresses.address_for(uid, taken)
        assert address not in taken
        taken.add(address)
        number = ipaddress.ip_address(address)
        assert number in ipaddress.ip_network("127.0.0.0/8")
        assert number not in ipaddress.ip_network("127.0.0.0/16")
        assert number not in ipaddress.ip_network("127.96.0.0/12")
        assert not address.endswith((".0", ".255"))
        assert addresses.address_for(uid, taken - {address}) == address


@EVERY_TIER
def test_a_container_finds_its_environment(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier, gpus=(0, 1)) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {"model-cache": VolumeContent()})
            await runtime.start(sandbox, shell("env; echo cwd=$(pwd)", environment={"HOME": "/x"}))
            await seen.end()
            told = dict(
                line.split("=", 1) for line in (await log_of(runtime)).decode().splitlines()
            )
            assert told["POD_IP"] == sandbox.ip
            assert told["HOSTNAME"] == "web-0"
            assert told["HOME"] == "/x"
            assert told["PATH"].endswith(os.environ["PATH"])
            assert told["SPINNEY_POD_ROOT"] == sandbox.root
            assert told["SPINNEY_VOLUME_MODEL_CACHE"] == f"{sandbox.root}/volumes/model-cache"
            assert told["CUDA_VISIBLE_DEVICES"] == ""
            assert is_there(told["SPINNEY_HOSTS_FILE"])
            assert told["cwd"] == f"{sandbox.root}/containers/main/work"
            assert "PYTEST_CURRENT_TEST" not in told

    run(main())


@EVERY_TIER
def test_names_are_resolved_also_by_who_runs_already(tmp_path, tier):
    go = tmp_path / "go"
    os.mkfifo(go)

    async def main():
        async with runtime_of(tmp_path / "pods", tier) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {})
            if runtime.abilities.hosts_are_seen:
                look = "getent hosts $1 | cut -d' ' -f1"
            else:
                look = 'grep -w "$1" $SPINNEY_HOSTS_FILE | cut -f1'
            script = f"echo up; read x < {go}; set -- $x; {look}; set -- web-0; {look}"
            await runtime.start(sandbox, shell(script))
            await said(runtime, b"up\n")
            await runtime.set_hosts({"web-1.web.default.svc": ("127.9.9.9",)})
            await asyncio.to_thread(go.write_text, "web-1.web.default.svc\n")
            told = (await log_of(runtime, follow=True)).split()
            assert told == [b"up", b"127.9.9.9", sandbox.ip.encode()]

    run(main())


def test_a_hosts_file_is_rewritten_in_place(tmp_path):
    """A mount is of the file: it must stay the same one, and shrink when it must."""
    path = tmp_path / "hosts"
    hosts.write(path, "long enough\n")
    about = path.stat()
    hosts.write(path, "short\n")
    assert path.read_text() == "short\n"
    assert path.stat().st_ino == about.st_ino
    assert stat.S_IMODE(about.st_mode) == 0o644
    hosts.write(path, "short\n")
    text = hosts.text(
        "127.0.0.1 localhost\n", {"a": ("1.1.1.1", "2.2.2.2")}, [("a", "x"), ("b", "y"), ("b", "z")]
    )
    assert text.splitlines()[-3:] == ["1.1.1.1\ta", "2.2.2.2\ta", "y\tb"]


@EVERY_TIER
def test_volumes_stand_at_their_paths_or_in_the_environment(tmp_path, tier):
    """Paths that are there, that are not, below a folder that is not, and a single file."""
    (tmp_path / "host").mkdir()
    (tmp_path / "host/weights").write_text("heavy")
    there = tmp_path / "there"
    there.mkdir()

    async def main():
        contents = {
            "settings": VolumeContent(files={"a.conf": b"one", "sub/b.conf": b"two"}),
            "scratch": VolumeContent(),
            "host": VolumeContent(path=str(tmp_path / "host")),
        }
        mounts = (
            Mount(volume="settings", path="/etc/spinney-test/deep"),
            Mount(volume="settings", path="/spinney-test-file", sub_path="a.conf"),
            Mount(volume="scratch", path=str(there)),
            Mount(volume="host", path="/spinney-test-models", read_only=True),
        )
        async with runtime_of(tmp_path / "pods", tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), contents)
            script = (
                "cat /etc/spinney-test/deep/a.conf /etc/spinney-test/deep/sub/b.conf "
                "/spinney-test-file /spinney-test-models/weights;"
                f"echo hello > {there}/made; touch /spinney-test-models/x 2>/dev/null;"
                "echo; echo $?; ls /etc/passwd"
            )
            if tier.isolation is Isolation.NOTHING:
                script = (
                    "cat $SPINNEY_VOLUME_SETTINGS/a.conf $SPINNEY_VOLUME_SETTINGS/sub/b.conf "
                    "$SPINNEY_VOLUME_SETTINGS/a.conf $SPINNEY_VOLUME_HOST/weights;"
                    "echo hello > $SPINNEY_VOLUME_SCRATCH/made; echo; ls /etc/passwd"
                )
            await runtime.start(sandbox, shell(script, mounts=mounts))
            end = await seen.end()
            assert end.exit_code == 0
            assert seen.states[0].message == ""
            told = (await log_of(runtime)).splitlines()
            assert told[0] == b"onetwooneheavy"
            assert told[-1] == b"/etc/passwd"
            scratch = Path(sandbox.volumes["scratch"])
            assert (scratch / "made").read_text() == "hello\n"
            assert list(there.iterdir()) == []
            assert not is_there(tmp_path / "host/x")
            for path in ("/etc/spinney-test", "/spinney-test-file", "/spinney-test-models"):
                assert not is_there(path), "the machine's own folders are left alone"

    run(main())


@EVERY_TIER
def test_what_cannot_be_mounted_is_told_and_the_container_runs(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {"v": VolumeContent(files={"f": b""})})
            mounts = (Mount(volume="v", path="/etc/passwd"),)
            await runtime.start(sandbox, shell("ls $SPINNEY_VOLUME_V", mounts=mounts))
            assert (await seen.end()).exit_code == 0
            assert await log_of(runtime) == b"f\n"
            if tier.isolation is not Isolation.NOTHING:
                assert "is not mounted at /etc/passwd" in seen.states[0].message

    run(main())


def test_contents_are_turned_over_as_a_whole(tmp_path):
    def at(files, **more):
        content = VolumeContent(files=files, **more)
        return Path(volumes.materialise(tmp_path, "u", {"v": content})["v"])

    folder = at({"a": b"1", "b": b"1"}, mode=0o600)
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o600
    first = os.readlink(folder / "..data")
    assert at({"a": b"1", "b": b"1"}, mode=0o600) == folder
    assert os.readlink(folder / "..data") == first
    held = os.open(folder / "a", os.O_RDONLY)
    at({"a": b"2", "c": b"2"}, modes={"c": 0o640})
    assert os.read(held, 10) == b"1"
    os.close(held)
    assert sorted(path.name for path in folder.iterdir() if path.name[:2] != "..") == ["a", "c"]
    assert (folder / "a").read_bytes() == b"2"
    assert stat.S_IMODE((folder / "c").stat().st_mode) == 0o640
    assert len(list(folder.iterdir())) == 4
    at({})
    assert [path.name for path in folder.iterdir() if path.name[:2] != ".."] == []


@pytest.mark.parametrize("path", ["/abs", "../up", "a/../../up", "..data"])
def test_a_file_cannot_leave_its_volume(tmp_path, path):
    with pytest.raises(BadRequest, match="must be a relative path"):
        volumes.materialise(tmp_path, "u", {"v": VolumeContent(files={path: b""})})


def test_a_part_of_a_volume_cannot_leave_it(tmp_path):
    inside = tmp_path / "volume"
    inside.mkdir()
    (inside / "out").symlink_to("..")
    assert volumes.part(str(inside), "new/one", make=True) == str(inside / "new/one")
    assert (inside / "new/one").is_dir()
    for path in ("..", "out", "out/volume/../..", "/etc"):
        with pytest.raises(BadRequest, match="leads out of its volume"):
            volumes.part(str(inside), path, make=True)


def test_memory_holds_what_shall_be_held_in_memory(tmp_path):
    async def main():
        async with runtime_of(tmp_path) as (runtime, _):
            sandbox = await runtime.prepare(pod(), {"fast": VolumeContent(in_memory=True)})
            place = Path(sandbox.volumes["fast"])
            assert is_there(place)
            assert place.is_relative_to(volumes.MEMORY)
            await runtime.remove("uid-web-0")
            assert not is_there(place)

    run(main())


def test_preparing_again_brings_volumes_up_to_date(tmp_path):
    async def main():
        async with runtime_of(tmp_path) as (runtime, _):
            first = await runtime.prepare(pod(), {"v": VolumeContent(files={"f": b"1"})})
            again = await runtime.prepare(pod(), {"v": VolumeContent(files={"f": b"2"})})
            assert again == first
            assert (Path(first.volumes["v"]) / "f").read_bytes() == b"2"

    run(main())


def test_a_pod_that_is_not_prepared_or_lacks_a_volume_is_told(tmp_path):
    async def main():
        async with runtime_of(tmp_path) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            mounts = (Mount(volume="none", path="/x"),)
            await runtime.start(sandbox, plan("true", mounts=mounts))
            assert (await seen.end()).message == 'mount /x: the pod has no volume "none"'
            await runtime.remove("uid-web-0")
            with pytest.raises(NotFound, match="is not prepared"):
                await runtime.start(sandbox, plan("true"))

    run(main())


@EVERY_TIER
def test_processes_have_ids_and_a_hostname_of_their_own_where_they_can(tmp_path, tier):
    async def main():
        async with runtime_of(tmp_path, tier) as (runtime, seen):
            sandbox = await runtime.prepare(pod(), {})
            script = (
                "import os, socket, pathlib\n"
                "own = pathlib.Path('/proc/self').resolve().name == str(os.getpid())\n"
                "print(own, socket.gethostname(), os.getppid(), os.getuid())\n"
            )
            await runtime.start(sandbox, plan(sys.executable, "-c", script))
            await seen.end()
            own, name, parent, user = (await log_of(runtime)).decode().split()
            assert (own, user) == ("True", str(os.getuid()))
            assert (name == "web-0") == (tier.isolation is not Isolation.NOTHING)
            assert (parent == "1") == tier.has_pids

    run(main())
