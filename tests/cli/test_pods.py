"""Logs, exec, port-forward and top, against a real server and pods that are real processes."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from worlds import lines_until

from spinney.cli import main, reading
from tests.server.machines import NODE

ROOT = Path(__file__).resolve().parents[2]
numbers = itertools.count()
FOREVER = "; exec sleep 1000"


class Manned:
    """A server of which one node runs pods as processes, as a process of its own."""

    def __init__(self, folder):
        self.kubeconfig = folder / "kubeconfig"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.manned", folder],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines_until(self._process.stdout, "up")

    def end(self):
        self._process.terminate()
        self._process.communicate(timeout=20)
        assert self._process.returncode == 0


def pod(name, *command, labels=None, containers=None, restart="Never"):
    """Return a pod on the machine that runs a command in a shell."""
    own = [{"name": "main", "image": "app", "command": ["sh", "-c", *command]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {
            "nodeName": NODE,
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 0,
            "containers": containers or own,
        },
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = Manned(tmp_path_factory.mktemp("manned"))
    yield made
    made.end()


class Here:
    """The command in this process, and names of its own."""

    def __init__(self, world, capfdbinary, monkeypatch):
        self._monkeypatch = monkeypatch
        self.world = world
        self.name = f"p{next(numbers)}"
        self._captured = capfdbinary

    def run(self, *words):
        code = main.run(["--kubeconfig", str(self.world.kubeconfig), *words])
        sys.stderr.flush()
        out, err = self._captured.readouterr()
        return code, out.decode("utf-8", "replace"), err.decode()

    def create(self, *documents):
        """Make objects."""
        text = "---\n".join(json.dumps(document) + "\n" for document in documents)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code, _, err = self.run("apply", "-f", "-")
        assert code == 0, err

    def start(self, *words, **options):
        """Start the command as a process."""
        environment = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "spinney", "--kubeconfig", str(self.world.kubeconfig), *words],
            env=environment,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def running(self, *commands, **labels):
        """Make pods that run, and wait until they do; returns their names."""
        names = [f"{self.name}-{index}" for index in range(len(commands))]
        self.create(
            *(
                pod(name, command, labels={**labels, "test": self.name})
                for name, command in zip(names, commands, strict=True)
            )
        )
        for name in names:
            running = "jsonpath={.status.containerStatuses[0].name}=main"
            code, _, err = self.run("wait", f"pod/{name}", "--for", running, "--timeout", "20s")
            assert code == 0, err
        return names

    def printed(self, name, text):
        """Wait until a pod has printed a text."""
        process = self.start("logs", "-f", name)
        for line in process.stdout:
            if text in line.decode():
                break
        process.kill()
        process.communicate()


@pytest.fixture
def here(world, capfdbinary, monkeypatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return Here(world, capfdbinary, monkeypatch)


# Logs


def test_the_log_of_one_pod_is_printed_as_it_is(here):
    (name,) = here.running("printf 'one\\ntwo\\n\\377\\n'" + FOREVER)
    here.printed(name, "two")
    code = main.run(["--kubeconfig", str(here.world.kubeconfig), "logs", f"pod/{name}"])
    assert code == 0
    assert here._captured.readouterr().out == b"one\ntwo\n\xff\n"
    stamped = here.run("logs", name, "--timestamps", "--tail", "3")[1]
    assert re.match(r"^\d{4}-\d\d-\d\dT\S+Z one\n", stamped)


def test_logs_of_several_pods_are_put_in_order_and_named(here):
    first, second = here.running("echo a; read x < /dev/null" + FOREVER, "echo b" + FOREVER)
    here.printed(first, "a")
    here.printed(second, "b")
    code, out, err = here.run("logs", "-l", f"test={here.name}")
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == [f"{first} | a", f"{second} | b"]
    assert sorted(here.run("logs", "-l", f"test={here.name}", "--no-prefix")[1].split()) == [
        "a",
        "b",
    ]


def test_of_several_containers_each_is_named(here):
    containers = [
        {"name": name, "image": "app", "command": ["sh", "-c", f"echo from {name}{FOREVER}"]}
        for name in ("web", "cache")
    ]
    here.create(pod(here.name, containers=containers))
    running = "jsonpath={.status.containerStatuses[1].ready}=true"
    assert here.run("wait", f"pod/{here.name}", "--for", running)[0] == 0
    process = here.start("logs", "-f", here.name)
    seen = {process.stdout.readline().decode().strip() for _ in range(2)}
    process.kill()
    process.communicate()
    assert seen == {f"{here.name}/cache | from cache", f"{here.name}/web   | from web"}
    assert here.run("logs", here.name, "-c", "web")[1] == "from web\n"
    code, _, err = here.run("logs", here.name, "-c", "wep")
    assert (code, err) == (2, 'spinney: no pod has a container "wep"; there are: web, cache\n')


def test_logs_are_followed_as_pods_come_and_go(here):
    (first,) = here.running("echo first" + FOREVER)
    process = here.start("logs", "-f", "-l", f"test={here.name}")
    assert process.stdout.readline().decode() == f"{first} | first\n"
    labels = {"test": here.name}
    here.create(pod(f"{here.name}-9", "echo second" + FOREVER, labels=labels))
    assert process.stdout.readline().decode() == f"{here.name}-9 | second\n"
    here.run("delete", "pod", first, "--now")
    here.create(pod(f"{here.name}-3", "echo third" + FOREVER, labels=labels))
    assert process.stdout.readline().decode() == f"{here.name}-3 | third\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")


def gated(file):
    """Return the words of a shell that waits for a file."""
    return f"until test -e {file}; do sleep 0.1; done"


def test_following_one_pod_ends_with_it(here, tmp_path):
    here.running(f"echo begun; {gated(tmp_path / 'go')}; echo done; exit 3")
    process = here.start("logs", "-f", f"{here.name}-0")
    assert process.stdout.readline() == b"begun\n"
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"done\n", b"")


def test_a_container_that_restarts_is_followed_on(here, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    again = f"echo run; test -e {first} && {gated(second)}; {gated(first)}; exit 1"
    here.create(pod(here.name, again, restart="OnFailure"))
    process = here.start("logs", "-f", here.name, "--prefix")
    assert process.stdout.readline().decode() == f"{here.name} | run\n"
    first.touch()
    assert process.stdout.readline().decode() == f"{here.name} | run\n"
    second.touch()
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("status", "has_begun"),
    [
        ({}, False),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, False),
        ({"state": {"running": {}}}, True),
        ({"state": {"terminated": {"exitCode": 1}}}, True),
        ({"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 1}}}, True),
    ],
)
def test_what_has_begun_has_a_log(status, has_begun):
    document = pod("x", "true")
    told = [{"name": "main", "restartCount": 2, **status}] if status else []
    (tap,) = reading.taps_of({**document, "status": {"containerStatuses": told}})
    assert tap.has_begun is has_begun


def test_logs_say_what_is_wrong(here):
    for words, code, said in (
        (["logs"], 2, "say whose logs: NAME of a set, group, clique, gang or pod, or -l LABELS"),
        (["logs", "nope"], 1, 'no set, group, clique, gang or pod is called "nope"'),
        (["logs", "pod/nope"], 1, 'pods "nope" not found'),
        (["logs", "x", "-l", "a=b"], 2, "say whose logs"),
        (["logs", "-l", "a=b"], 1, "No pods found in default namespace."),
        (["logs", "x", "-f", "-p"], 2, "-f and -p exclude each other"),
        (["logs", "x", "--tail", "-5"], 2, "--tail -5: must be a number of lines, or -1 for all"),
        (["logs", "node/bench"], 2, "node/bench has no pods of its own"),
    ):
        found, out, err = here.run(*words)
        assert (found, out) == (code, ""), words
        assert said in err, words


# Exec


def test_a_command_runs_and_its_exit_code_is_ours(here):
    (name,) = here.running(FOREVER[2:])
    assert here.run("exec", name, "--", "echo", "hello", "there") == (0, "hello there\n", "")
    code, out, err = here.run("exec", f"pod/{name}", "--", "sh", "-c", "echo no >&2; exit 7")
    assert (code, out, err) == (7, "", "no\n")
    assert here.run("exec", name, "-c", "main", "--", "true") == (0, "", "")


def test_what_is_piped_in_is_read_to_its_end(here):
    (name,) = here.running(FOREVER[2:])
    process = here.start("exec", "-i", name, "--", "wc", "-c", stdin=subprocess.PIPE)
    out, err = process.communicate(b"x" * 300_000, timeout=30)
    assert (process.returncode, out.strip(), err) == (0, b"300000", b"")


def test_a_terminal_is_given_with_its_size_and_left_as_it_was(here):
    (name,) = here.running(FOREVER[2:])
    ours, theirs = pty.openpty()
    process = here.start(
        "exec",
        "-it",
        name,
        "--",
        "sh",
        "-c",
        "read line; echo got $line; tty >/dev/null",
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, b"typed\r")
    seen = b""
    with contextlib.suppress(OSError):
        while b"got typed" not in seen:
            seen += os.read(ours, 1024)
    assert b"got typed" in seen
    assert process.wait(20) == 0
    os.close(ours)


def test_exec_says_what_is_wrong(here):
    (name,) = here.running(FOREVER[2:])
    for words, code, said in (
        (["exec", name], 2, "say which command, after --: spinney exec POD -- COMMAND"),
        (["exec", "nope", "--", "true"], 1, 'pods "nope" not found'),
        (["exec", "pcs/chat", "--", "true"], 2, '"pcs/chat": a pod is meant'),
        (
            ["exec", name, "-c", "wep", "--", "true"],
            1,
            f"container wep is not valid for pod {name}",
        ),
        (["exec", name, "--", "no-such-command"], 127, "no-such-command: not found"),
    ):
        found, out, err = here.run(*words)
        assert (found, out) == (code, ""), (words, out, err)
        assert said in err, words


def test_options_of_the_command_are_its_own(here):
    (name,) = here.running(FOREVER[2:])
    assert here.run("exec", name, "--", "echo", "-n", "--", "x")[1] == "-- x"


# Port-forward


def echo_server():
    """Serve one connection after another, in capitals; returns the port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    while data := connection.recv(65536):
                        connection.sendall(data.upper())

    threading.Thread(target=serve, daemon=True).start()
    return listening, listening.getsockname()[1]


def test_a_port_of_a_pod_is_reached_from_here(here):
    (name,) = here.running(FOREVER[2:])
    listening, port = echo_server()
    process = here.start("port-forward", name, f":{port}")
    line = process.stdout.readline().decode()
    local = int(re.fullmatch(rf"Forwarding from 127.0.0.1:(\d+) -> {port}\n", line)[1])
    for text in (b"one", b"x" * 200_000):
        with socket.create_connection(("127.0.0.1", local)) as connection:
            connection.settimeout(20)
            threading.Thread(target=connection.sendall, args=(text,)).start()
            found = b""
            while len(found) < len(text):
                found += connection.recv(65536)
            assert found == text.upper()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out.count(b"Handling connection"), err) == (130, 2, b"")
    listening.close()


def test_a_port_nobody_listens_on_is_told_and_others_go_on(here):
    (name,) = here.running(FOREVER[2:])
    process = here.start("port-forward", name, ":9")
    local = int(process.stdout.readline().decode().split(":")[1].split()[0])
    with socket.create_connection(("127.0.0.1", local)) as connection:
        connection.settimeout(20)
        assert connection.recv(10) == b""
    assert b"port 9:" in process.stderr.readline()
    assert process.poll() is None
    process.kill()
    process.communicate()


def test_port_forward_says_what_is_wrong(here):
    (name,) = here.running(FOREVER[2:])
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    for words, code, said in (
        (["port-forward", name, "x"], 2, '"x": must be [LOCAL:]REMOTE'),
        (["port-forward", name, "70000"], 2, '"70000": must be [LOCAL:]REMOTE'),
        (["port-forward", "nope", "80"], 1, 'pods "nope" not found'),
        (["port-forward", name, f"{port}:80"], 1, f"cannot listen on 127.0.0.1:{port}: something"),
        (["port-forward", "pcs/x", "80"], 2, "a pod is meant"),
    ):
        found, out, err = here.run(*words)
        assert (found, out) == (code, ""), (words, err)
        assert said in err, words
    taken.close()


# Top


def test_top_shows_what_is_used(here):
    (name,) = here.running(FOREVER[2:])
    _, out, _ = here.run("top")
    assert out.splitlines()[0].split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert [name, "12m", "34Mi"] in [line.split() for line in out.splitlines()]
    assert here.run("top", "pods", name, "--containers", "--no-headers")[1].split() == [
        name,
        "main",
        "12m",
        "34Mi",
    ]
    _, out, _ = here.run("top", "nodes")
    assert out.splitlines()[1].split() == ["bench", "500m", "12%", "512Mi", "12%"]
    assert here.run("top", "-l", "test=nobody")[2] == "There are no pods in namespace default.\n"


def test_top_says_what_is_wrong(here):
    for words, code, said in (
        (["top", "nope"], 1, 'is called "nope"'),
        (["top", "pods", "nope"], 1, 'nope" not found'),
        (["top", "nodes", "-A"], 2, "nodes have neither containers nor namespaces"),
        (["top", "--sort-by", "size"], 2, ""),
    ):
        if code == 2 and not said:
            with pytest.raises(SystemExit):
                here.run(*words)
            continue
        found, _, err = here.run(*words)
        assert (found, said in err) == (code, True), (words, err)
