"""The demo's own bookkeeping: what is counted, and that nothing is left behind, or it is told.

The whole of it is run by `make demo`.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from spinney.app.real import SystemClock
from spinney.cli import demonstrating, loading
from spinney.cli.demonstrating import Demo
from spinney.cli.loading import Load
from spinney.cli.screen import Screen


@pytest.fixture
def demo(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    out = io.StringIO()
    return Demo(Screen(out, out), folder)


def told(demo):
    return demo.screen.out.getvalue()


def test_a_demo_that_comes_out_well_ends_with_0(demo):
    (demo.folder / "below").mkdir()
    (demo.folder / "below" / "file").write_text("x")
    (demo.folder / "link").symlink_to("nowhere")
    assert demo.run("validate", "-", expect=2) == ""
    demo.failed.clear()
    demo.run("version")
    demo.clean_up()
    assert not demo.folder.exists()
    assert demo.conclude(is_kept=False) == 0
    assert "left behind   no process, no file" in told(demo)
    assert "Everything came out as it should." in told(demo)


def test_a_process_that_is_left_behind_is_told_and_ended(demo):
    environment = {**os.environ, "MARK": str(demo.folder / "world")}
    left = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=-1)
    demo.clean_up()
    assert left.wait(10) == -signal.SIGKILL
    left.stdin.close()
    assert demo.conclude(is_kept=False) == 1
    assert f"FAILED: processes are left behind: {left.pid} (" in told(demo)


def test_a_step_that_fails_is_told_and_ends_with_1(demo):
    demo.run("get", "pods")
    demo.check(False, "pods are there")
    demo.row("a number", "1")
    assert demo.conclude(is_kept=False) == 1
    assert "FAILED: get pods: exit code 3" in told(demo)
    assert "FAILED: pods are there" in told(demo)


def test_the_manifest_is_there():
    assert "kind: PodCliqueSet" in demonstrating.example()


class Router(BaseHTTPRequestHandler):
    """Answers, but for each fifth request."""

    count = 0
    lock = threading.Lock()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with Router.lock:
            Router.count += 1
            is_bad = Router.count % 5 == 0
        answer = {"error": "busy"} if is_bad else {"text": "a b", "decode": ["one", "two"]}
        body = json.dumps(answer).encode()
        self.send_response(503 if is_bad else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        return


def test_requests_are_counted(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Router) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(loading, "PORT", server.server_port)
        load = Load("127.0.0.1", SystemClock())
        load.send(20, 3)
        assert (len(load.answers), load.failures) == (16, ["busy"] * 4)
        assert (load.text, load.decoders) == ("a b", {"one"})
        assert load.told().startswith("16 answered, 4 failed; median ")
        going = Load("127.0.0.1", SystemClock())
        seen = threading.Event()
        with going.going_on(2):
            while not going.answers:
                seen.wait(0.01)
        assert going.answers
        server.shutdown()
        thread.join()
    gone = Load("127.0.0.1", SystemClock())
    gone.send(2, 1)
    assert gone.told().startswith("0 of 2 answered: ")
