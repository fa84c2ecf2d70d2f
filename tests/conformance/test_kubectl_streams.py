"""kubectl's streams that no golden file can hold: forwarded ports, copied files, terminals.

With the newest kubectl, which speaks through WebSockets, and the oldest, which speaks SPDY.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import pty
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from tests.conformance.cases import MANIFESTS
from tools import kubectl

SECONDS_MAX = 40
MINORS = kubectl.minors(every=False)


@pytest.fixture(params=MINORS)
def run(request, manned, tmp_path):
    """Begin kubectl, in a namespace of its own where the pods of a manifest run."""
    minor = request.param
    name = f"streams-{minor}-{hashlib.sha1(request.node.name.encode()).hexdigest()[:8]}"
    manned.create_namespace(name)
    kubeconfig = manned.in_namespace(name, tmp_path / "kubeconfig")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "KUBECONFIG": str(kubeconfig),
        "TERM": "xterm",
    }

    def begin(*words, **options):
        return subprocess.Popen(
            [str(kubectl.program(minor)), *words], cwd=tmp_path, env=environment, **options
        )

    begin.folder = tmp_path
    begin.kubeconfig = kubeconfig
    begin.token = manned.read_only
    assert done(begin, "create", "-f", str(MANIFESTS / "running-pods.yaml"))[0] == 0
    phase = "--for=jsonpath={.status.phase}=Running"
    assert done(begin, "wait", phase, "pod/talker", "pod/pair")[0] == 0
    return begin


def done(run, *words, data=None):
    """Run kubectl to its end; returns its exit code, output and errors."""
    with run(
        *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        output, errors = process.communicate(data, SECONDS_MAX)
    return process.returncode, output, errors.decode()


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"asked for {self.path} ".encode() * 5000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


@contextlib.contextmanager
def answering():
    """An HTTP server in the pod, whose address is this machine's own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def forwarding(run, target, port):
    """Forward a port; gives the process and the URL."""
    with run(
        *("port-forward", "--address", "127.0.0.1", target, f":{port}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r"127\.0\.0\.1:\d+", line)
            assert found, line + process.stderr.read()
            yield process, f"http://{found[0]}"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=SECONDS_MAX)


def fetched(url):
    with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
        return answer.read()


@pytest.mark.timeout(120)
def test_a_forwarded_port_is_asked_many_times_at_once(run):
    with answering() as port, forwarding(run, "pod/talker", port) as (_, url):
        assert fetched(f"{url}/first") == b"asked for /first " * 5000
        answers = [b""] * 8

        def ask(number):
            answers[number] = fetched(f"{url}/{number}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [f"asked for /{number} ".encode() * 5000 for number in range(8)]


@pytest.mark.timeout(120)
def test_a_port_nobody_listens_on_is_named(run):
    with answering() as port:
        pass
    with forwarding(run, "pod/talker", port) as (process, url):
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            fetched(url)
        errors = process.stderr.read()
        assert process.wait(SECONDS_MAX) == 1
    assert f"nobody listens on port {port} of the pod" in errors
    assert "lost connection to pod" in errors


@pytest.mark.timeout(120)
def test_files_are_copied_there_and_back(run):
    content = bytes(range(256)) * 4000
    (run.folder / "here").write_bytes(content)
    there = run.folder / "there"
    there.mkdir()
    code, _, errors = done(run, "cp", "here", f"pair:{there}/copied", "-c", "side")
    assert code == 0, errors
    assert (there / "copied").read_bytes() == content
    code, _, errors = done(run, "cp", f"talker:{there}", "back")
    assert code == 0, errors
    assert (run.folder / "back" / "copied").read_bytes() == content


@pytest.mark.timeout(120)
def test_much_goes_through_a_command(run):
    """Four megabytes in and out at once."""
    content = bytes(range(256)) * 16_000
    code, output, errors = done(run, "exec", "-i", "talker", "--", "cat", data=content)
    assert (code, output == content) == (0, True), errors


@pytest.mark.timeout(120)
def test_a_terminal_is_one(run):
    """What is typed is seen, the terminal has a size, and the shell's exit code is kubectl's."""
    ours, theirs = pty.openpty()
    with run("exec", "-it", "talker", "--", "sh", stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        seen = b""
        os.write(ours, b"test -t 0 && echo it is $((6 * 7))\nexit 5\n")
        with contextlib.suppress(OSError):
            while data := os.read(ours, 4096):
                seen += data
        assert process.wait(SECONDS_MAX) == 5
    os.close(ours)
    assert b"it is 42" in seen


@pytest.mark.timeout(120)
def test_who_may_only_read_sees_logs_and_usage_and_runs_nothing(run):
    token = ("--token", run.token)
    assert done(run, "logs", "talker", "--tail=1", *token)[:2] == (0, b"line 3\n")
    assert b"talker" in done(run, "top", "pods", *token)[1]
    refused = (
        ("exec", "talker", "--", "true"),
        ("attach", "talker"),
        ("port-forward", "pod/talker", ":80"),
    )
    for words in refused:
        code, _, errors = done(run, *words[:1], *token, *words[1:])
        assert code == 1
        assert "the token is read-only" in errors
