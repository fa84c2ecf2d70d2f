"""The programs of examples/serving.yaml: the model, whoever computes it, and its processes."""

from __future__ import annotations

import http.client
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spinney.cli import demonstrating

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples" / "serving" / "serving.py"
MODEL = runpy.run_path(str(PROGRAM))
HEADLESS = "serving-0.default.svc.cluster.local"


@pytest.mark.law
@given(st.lists(st.integers(0, 10**6), max_size=30), st.integers(1, 5))
def test_a_prompt_read_in_parts_is_the_prompt_read_whole(tokens, parts):
    placed = [[place, token] for place, token in enumerate(tokens)]
    found = [MODEL["read"](placed[index::parts]) for index in range(parts)]
    assert MODEL["added"](found) == MODEL["read"](placed)


@pytest.mark.law
@given(st.lists(st.integers(0, 10**9), min_size=32, max_size=32), st.integers(1, 7))
def test_a_word_looked_for_in_parts_is_the_word_looked_for_whole(state, parts):
    found = [MODEL["look"](state, index, parts) for index in range(parts)]
    assert max(found) == MODEL["look"](state, 0, 1)


def test_the_manifest_holds_the_program():
    documents = list(yaml.safe_load_all(demonstrating.example()))
    assert documents[1]["data"]["serving.py"] == PROGRAM.read_text()


class System:
    """The processes of one set replica, each with an address of its own."""

    def __init__(self, folder):
        self.hosts = folder / "hosts"
        self.processes = {}
        self.addresses = {}
        names = [
            "serving-0-router-0",
            *(f"serving-0-prefill-0-prefill-{role}" for role in ("leader-0", "worker-0")),
            *(f"serving-0-decode-{copy}-decode-leader-0" for copy in (0, 1)),
            *(f"serving-0-decode-{copy}-decode-worker-0" for copy in (0, 1)),
        ]
        block = os.getpid() % 200 + 20
        with socket.create_server(("0.0.0.0", 0)) as free:
            self.port = free.getsockname()[1]
        for index, name in enumerate(names):
            self.addresses[name] = f"127.88.{block}.{index + 1}"
        self._write_hosts(names)

    def _write_hosts(self, names):
        lines = [f"{self.addresses[name]}\t{name}.{HEADLESS}\n" for name in names]
        self.hosts.write_text("".join(lines))

    def start(self, name):
        parts = name.split("-")
        role = "-".join(parts[-3:-1]) if "router" not in name else "router"
        environment = {
            "PATH": os.environ["PATH"],
            "POD_IP": self.addresses[name],
            "PORT": str(self.port),
            "SPINNEY_HOSTS_FILE": str(self.hosts),
            "GROVE_PCS_NAME": "serving",
            "GROVE_PCS_INDEX": "0",
            "GROVE_HEADLESS_SERVICE": HEADLESS,
            "GROVE_PCSG_NAME": "-".join(parts[:3]),
            "GROVE_PCSG_INDEX": parts[3],
            "GROVE_PCSG_TEMPLATE_NUM_PODS": "2",
        }
        made = subprocess.Popen(
            [sys.executable, PROGRAM, role], env=environment, stdout=subprocess.PIPE, text=True
        )
        self.processes[name] = made
        assert "listens on" in made.stdout.readline()

    def ask(self, name, path, question=None):
        connection = http.client.HTTPConnection(self.addresses[name], self.port, timeout=20)
        method = "GET" if question is None else "POST"
        connection.request(method, path, None if question is None else json.dumps(question))
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def stop(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        process.communicate(timeout=10)
        return process.returncode

    def end(self):
        for name in list(self.processes):
            self.stop(name, signal.SIGKILL)


@pytest.fixture
def system(tmp_path):
    made = System(tmp_path)
    yield made
    made.end()


def test_processes_answer_together_and_one_takes_the_place_of_another(system):
    router, prefill = "serving-0-router-0", "serving-0-prefill-0-prefill-leader-0"
    system.start(router)
    code, told = system.ask(router, "/ready")
    assert code == 503
    assert "prefill-leader" in told["error"]
    for name in system.addresses:
        if name != router:
            system.start(name)
    assert system.ask(prefill, "/ready") == (200, {"ready": True})
    assert system.ask(router, "/ready") == (200, {"ready": True})
    question = {"prompt": "the quick brown fox", "words": 5}
    answers = [system.ask(router, "/generate", question)[1] for _ in range(4)]
    assert len({answer["text"] for answer in answers}) == 1
    assert len(answers[0]["text"].split()) == 5
    assert {answer["decode"][1] for answer in answers} == {
        "serving-0-decode-0-decode-worker-0",
        "serving-0-decode-1-decode-worker-0",
    }
    assert system.stop("serving-0-decode-0-decode-worker-0", signal.SIGKILL) == -signal.SIGKILL
    code, told = system.ask("serving-0-decode-0-decode-leader-0", "/ready")
    assert (code, "decode-worker-0" in told["error"]) == (503, True)
    later = [system.ask(router, "/generate", question) for _ in range(3)]
    assert {answer["text"] for _, answer in later} == {answers[0]["text"]}
    assert {answer["decode"][1] for _, answer in later} == {"serving-0-decode-1-decode-worker-0"}
    system.start("serving-0-decode-0-decode-worker-0")
    assert system.ask("serving-0-decode-0-decode-leader-0", "/ready")[0] == 200


def test_what_makes_no_sense_is_refused_and_the_end_comes_at_once(system):
    worker = "serving-0-prefill-0-prefill-worker-0"
    system.start(worker)
    assert system.ask(worker, "/nothing", {})[0] == 400
    assert system.ask(worker, "/read", {"tokens": "x"})[0] == 400
    with socket.create_connection((system.addresses[worker], system.port)):
        assert system.stop(worker, signal.SIGTERM) == 0


def test_without_its_environment_a_program_says_so():
    done = subprocess.run(
        [sys.executable, PROGRAM, "router"], env={}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "POD_IP is not set" in done.stderr) == (1, True)
    done = subprocess.run(
        [sys.executable, PROGRAM, "cook"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "router|prefill-leader" in done.stderr) == (1, True)
