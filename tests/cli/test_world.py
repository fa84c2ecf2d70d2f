"""The life of a world: up, down, killed, held, damaged; as real processes on a scratch folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import urllib.error
import urllib.request

import pytest
from worlds import World, lines_until

from spinney.app.datafolder import DataFolder


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.end()


def status(world):
    done = world.run("status", "-o", "json")
    return json.loads(done.stdout) | {"code": done.returncode}


def kill(pid, number):
    """Signal a process, and wait until it has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, number)
        import select

        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(30_000)
    finally:
        os.close(descriptor)


def test_up_says_where_things_are_and_down_ends_it(world):
    told = world.up().stdout.splitlines()
    assert len(told) == 10
    address = told[0].split(" at ")[1].split()[0]
    assert told[0].startswith("Spinney ")
    assert told[1:4] == [
        f"  data         {world.root} (durability full)",
        f"  kubeconfig   {world.root}/kubeconfig",
        f"  log          {world.root}/log",
    ]
    found = status(world)
    assert (found["state"], found["ready"], found["code"]) == ("up", True, 0)
    assert found["address"] == address
    assert world.run("kubeconfig").stdout == f"{world.root}/kubeconfig\n"
    assert address in world.run("kubeconfig", "--show").stdout
    down = world.run("down")
    assert (down.stdout, down.returncode) == (f"process {found['pid']} has ended\n", 0)
    assert (status(world)["state"], status(world)["code"]) == ("down", 1)
    again = world.run("down")
    assert (again.stderr, again.returncode) == (f"nothing is up under {world.root}\n", 0)


def test_nothing_in_the_folder_is_anybody_elses(world):
    world.up()
    pods = world.root / "pods"
    for path in (world.root, *world.root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.name != "ca.crt" and pods not in path.parents:
            assert mode & 0o077 == 0, f"{path} has mode {mode:o}"


def ask(world, path, token):
    context = ssl.create_default_context(cafile=world.root / "pki" / "ca.crt")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(status(world)["address"] + path, headers=headers)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_token_is_needed_and_the_read_only_one_reads(world):
    world.up()
    admin = world.run("token").stdout.strip()
    reader = world.run("token", "--read-only").stdout.strip()
    maps = "/api/v1/namespaces/default/configmaps"
    assert ask(world, maps, "") == 401
    assert ask(world, maps, "wrong") == 401
    assert ask(world, maps, admin) == 200
    assert ask(world, maps, reader) == 200
    assert ask(world, "/api/v1/secrets", reader) == 403
    assert ask(world, "/readyz", "") == 200
    text = (world.root / "kubeconfig").read_text()
    config = world.root.parent / "reader"
    config.write_text(text.replace(admin, reader))
    assert world.run("--kubeconfig", config, "get", "cm").returncode == 0
    made = world.run("--kubeconfig", config, "apply", "-f", "-", stdin=json.dumps(config_map("a")))
    assert (made.returncode, "the token is read-only" in made.stderr) == (3, True)
    config.write_text(text.replace(admin, "wrong"))
    refused = world.run("--kubeconfig", config, "get", "cm")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("Error from server (Unauthorized): Unauthorized\n")


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_second_one_is_told_who_holds_the_folder(world):
    world.up()
    first = status(world)
    told = (
        f"spinney: {world.root} is held by process {first['pid']} since {first['since']}, "
        f"at {first['address']}: stop it with `spinney --data {world.root} down`, or give this "
        "one another folder with --data\n"
    )
    for words in (["up"], ["up", "--detach"]):
        second = world.run(*words, "--listen", "127.0.0.1:0")
        assert (second.stdout, second.stderr, second.returncode) == ("", told, 1)
    assert status(world)["pid"] == first["pid"]


def test_what_was_written_is_there_after_a_kill(world):
    """Kill -9; the lock it leaves is nobody's, tokens and certificates are the same."""
    world.up()
    made = world.run("apply", "-f", "-", stdin=json.dumps(config_map("kept", a="1")))
    assert made.stdout == "configmap/kept created\n"
    token = world.run("token").stdout
    authority = (world.root / "pki" / "ca.crt").read_bytes()
    kill(status(world)["pid"], signal.SIGKILL)
    assert status(world)["state"] == "down"
    world.up()
    found = world.run("get", "cm", "kept", "-o", "jsonpath={.data.a}")
    assert (found.stdout, found.stderr) == ("1", "")
    assert world.run("token").stdout == token
    assert (world.root / "pki" / "ca.crt").read_bytes() == authority


def test_what_is_kept_in_memory_is_gone(world):
    assert "kept in memory" in world.up("--durability", "memory").stdout
    world.run("apply", "-f", "-", stdin=json.dumps(config_map("gone")))
    world.run("down")
    world.up("--durability", "memory")
    assert world.run("get", "cm", "gone").returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well_in_the_foreground(world, number):
    process = world.start("up", "--listen", "127.0.0.1:0")
    lines_until(process.stdout, "  spinney down")
    watching = world.start("get", "cm", "-w")
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err == "Ctrl-C ends it.\n\nstopping (again to end at once)\n"
    assert " INFO spinney.app down " in (world.root / "log").read_text()
    watching.kill()


def test_a_second_signal_ends_it_at_once(world):
    """While a client that never ends its request keeps the first from ending it."""
    process = world.start("up", "--listen", "127.0.0.1:0")
    lines_until(process.stdout, "  spinney down")
    address = status(world)["address"]
    context = ssl.create_default_context(cafile=world.root / "pki" / "ca.crt")
    port = int(address.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as slow,
    ):
        token = world.run("token").stdout.strip()
        head = f"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        slow.sendall(
            f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode()
        )
        assert world.run("get", "ns").returncode == 0
        process.send_signal(signal.SIGINT)
        lines_until(process.stderr, "stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert status(world)["state"] == "down"
    world.up()


def test_a_world_open_to_others_is_warned_of(world):
    done = world.run("up", "--detach", "--listen", "0.0.0.0:0")
    assert done.stderr == (
        f"Warning: listening beyond this machine: whoever has the token of {world.root}/kubeconfig "
        "may change everything.\n"
    )
    assert status(world)["address"].startswith("https://127.0.0.1:")
    assert world.run("get", "ns", "default", "-o", "name").stdout == "namespace/default\n"


def test_a_world_does_not_end_with_its_reader(world):
    process = world.start("up", "--listen", "127.0.0.1:0")
    process.stdout.close()
    lines_until(process.stderr, "Ctrl-C")
    assert status(world)["state"] == "up"


def test_a_command_that_is_interrupted_says_so_by_its_code(world):
    world.up()
    world.run("apply", "-f", "-", stdin=json.dumps(config_map("a")))
    watching = world.start("get", "cm", "-w")
    lines_until(watching.stdout, "a ")
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (130, "")


def test_a_port_that_is_taken_is_told_with_who_has_it(world):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for words in (["up"], ["up", "--detach"]):
            done = world.run(*words, "--listen", f"127.0.0.1:{port}")
            told = f"spinney: 127.0.0.1:{port} is taken by process {os.getpid()} ("
            assert done.stderr.startswith(told)
            assert done.returncode == 1
    assert status(world)["state"] == "down"
    world.up()


def test_a_damaged_database_is_told_and_not_touched(world):
    world.up()
    world.run("apply", "-f", "-", stdin=json.dumps(config_map("kept", a="x" * 20_000)))
    world.run("down")
    store = DataFolder(world.root).store
    body = bytearray(store.read_bytes())
    body[4096 : 4096 * 4] = os.urandom(4096 * 3)
    store.write_bytes(body)
    for words in (["up"], ["up", "--detach"]):
        done = world.run(*words, "--listen", "127.0.0.1:0")
        assert done.returncode == 1
        assert done.stderr.startswith(f"spinney: {store}")
        assert "begin anew" in done.stderr
    assert store.read_bytes() == bytes(body)


def test_a_world_is_merged_into_the_kubeconfig_people_have(world):
    """Once beside what is there, and again in place of itself."""
    mine = world.root.parent / "mine"
    mine.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: work\n"
        "contexts: [{name: work, context: {cluster: lab}}]\n"
        "clusters: [{name: lab, cluster: {server: 'https://10.0.0.1'}}]\n"
    )
    world.up()
    for _ in range(2):
        done = world.run("kubeconfig", "--merge", KUBECONFIG=str(mine))
        assert done.stdout == f"context spinney is in {mine}\n"
        assert mine.read_text().count("name: spinney") == 3
        assert "current-context: work" in mine.read_text()
    assert mine.stat().st_mode & 0o777 == 0o600
    done = world.run("--context", "spinney", "get", "ns", "-o", "name", KUBECONFIG=str(mine))
    assert done.stdout.splitlines()[0] == "namespace/default"
    fresh = world.root.parent / ".kube" / "config"
    assert world.run("kubeconfig", "--merge").stdout == f"context spinney is in {fresh}\n"
    assert "current-context: spinney" in fresh.read_text()


def test_which_server_is_asked_is_said_on_request(world):
    world.up()
    address = status(world)["address"]
    said = world.run("-v", "get", "ns").stderr
    place = f"context spinney of {world.root}/kubeconfig"
    assert said == (
        f"asking {address} (the world under {world.root}: {place}), namespace default\n"
    )
    other = world.root.parent / "other"
    other.write_text(
        (world.root / "kubeconfig").read_text().replace(address, "https://127.0.0.1:9")
    )
    done = world.run("-v", "get", "ns", KUBECONFIG=str(other))
    assert done.stderr.splitlines() == [
        f"asking https://127.0.0.1:9 ($KUBECONFIG: context spinney of {other}), namespace default",
        "spinney: https://127.0.0.1:9: connection refused",
    ]
    assert done.returncode == 3
    typed = world.run("--data", world.root, "get", "ns", KUBECONFIG=str(other))
    assert typed.returncode == 0
