"""`spinney demo`: what Spinney does, shown by its own commands in a world of its own.

Every step runs the real command against a control plane in a scratch folder. A step that does not
come out as it should is told in the summary and ends the demo with exit code 1. Nothing is left
behind, which is checked, too.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.resources
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import NoReturn

import spinney
from spinney.app.real import SystemClock
from spinney.cli import screen
from spinney.cli.loading import Load
from spinney.cli.screen import BOLD, DIM, GREEN, RED, Screen
from spinney.cli.usage import Usage

EXAMPLE = "serving.yaml"
ROUTER = "pod/serving-0-router-0"
VICTIM = "serving-0-decode-0-decode-worker-1"
DECODE = "pcsg/serving-0-decode"
REQUESTS = 60
CLIENTS = 3
LINES_SHOWN = 12
READY_WITHIN = "45s"
STEP_SECONDS_MOST = 60
END_SECONDS_MOST = 3

TOO_LARGE = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: too-large}
spec:
  replicas: 1
  template:
    cliques:
      - name: worker
        spec:
          roleName: worker
          replicas: 4
          podSpec:
            containers:
              - name: worker
                image: python:3-slim
                command: [sleep, infinity]
                resources: {limits: {nvidia.com/gpu: 64}}
"""


def run(arguments: argparse.Namespace) -> int:
    """Show everything; returns 0 where all came out as it should."""
    output = screen.for_call(arguments)
    folder = Path(tempfile.mkdtemp(prefix="spinney-demo-"))
    demo = Demo(output, folder)
    began = demo.clock.elapsed()
    signal.signal(signal.SIGTERM, _leave)
    try:
        _play(demo)
    finally:
        if not arguments.keep:
            demo.clean_up()
    demo.row("the whole demo", f"{(demo.clock.elapsed() - began).total_seconds():.0f} s")
    return demo.conclude(is_kept=arguments.keep)


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    """Clean up when the demo is told to end, too."""
    raise KeyboardInterrupt


def example() -> str:
    """Return the manifest of the system that is shown."""
    packaged = importlib.resources.files("spinney") / "examples" / EXAMPLE
    if packaged.is_file():
        return packaged.read_text("utf-8")
    beside = Path(spinney.__file__).resolve().parent.parent / "examples" / EXAMPLE
    if beside.is_file():
        return beside.read_text("utf-8")
    raise Usage(f"{EXAMPLE} is in neither the package nor its sources: install Spinney anew")


class Demo:
    """Runs commands as a person would, and keeps count of what came out."""

    def __init__(self, output: Screen, folder: Path) -> None:
        """Work in a folder of its own."""
        self.folder = folder
        self.clock = SystemClock()
        self.screen = output
        self.failed: list[str] = []
        self._rows: list[tuple[str, str]] = []
        self._data = folder / "world"
        kept = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
        paths = [str(Path(spinney.__file__).resolve().parent.parent), kept.get("PYTHONPATH", "")]
        self._environment = {
            **kept,
            "SPINNEY_DATA": str(self._data),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    # Telling

    def say(self, text: str) -> None:
        """Say what comes now."""
        self.screen.line()
        self.screen.line(self.screen.painted(f"== {text}", BOLD))

    def row(self, what: str, number: str) -> None:
        """Have something told in the summary."""
        self._rows.append((what, number))

    def check(self, holds: bool, sentence: str) -> None:
        """Note what should have come out, where it did not."""
        if not holds:
            self.failed.append(sentence)
            self.screen.line(self.screen.painted(f"  failed: {sentence}", RED))

    def conclude(self, *, is_kept: bool) -> int:
        """Tell what came out; returns the exit code."""
        self.say("Summary")
        width = max(len(what) for what, _ in self._rows) + 3
        for what, number in self._rows:
            self.screen.line(f"  {what:<{width}}{number}")
        for sentence in self.failed:
            self.screen.line(self.screen.painted(f"  FAILED: {sentence}", RED))
        if not self.failed:
            text = "Everything came out as it should."
            self.screen.line(f"  {self.screen.painted(text, GREEN)}")
        if is_kept:
            self.screen.line(f"  It still runs: export SPINNEY_DATA={self._data}; spinney tree")
            self.screen.line("  spinney down ends it; the folder is yours to remove.")
        return 1 if self.failed else 0

    # Commands

    def run(self, *words: str, expect: int = 0, lines: int = LINES_SHOWN) -> str:
        """Run a command, and show how its output begins; returns its output."""
        self.screen.line(self._typed(words))
        done = self._done(*words)
        for text in (done.stdout, done.stderr):
            self._show(text.splitlines(), lines)
        self.check(done.returncode == expect, f"{' '.join(words)}: exit code {done.returncode}")
        return done.stdout

    def draw(self, *words: str) -> None:
        """Run a command that draws by itself."""
        self.screen.line(self._typed(words))
        code = subprocess.run(
            self._command(words), cwd=self.folder, env=self._environment, check=False
        ).returncode
        self.check(code == 0, f"{' '.join(words)}: exit code {code}")

    def asked(self, *words: str) -> str:
        """Return what a command answers, without showing it."""
        return self._done(*words).stdout

    def _typed(self, words: Sequence[str]) -> str:
        return self.screen.painted(f"$ spinney {' '.join(words)}", DIM)

    def _command(self, words: Sequence[str]) -> list[str]:
        colour = [] if self.screen.has_colour else ["--no-color"]
        return [sys.executable, "-m", "spinney", *colour, *words]

    def _done(self, *words: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                self._command(words),
                cwd=self.folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=STEP_SECONDS_MOST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            told = f"not done within {STEP_SECONDS_MOST} s"
            return subprocess.CompletedProcess([*words], 1, "", told)

    def _show(self, lines: Sequence[str], most: int) -> None:
        for line in lines[:most]:
            self.screen.line(f"  {line}")
        if len(lines) > most:
            self.screen.line(f"  … and {len(lines) - most} lines more")

    # Processes

    def processes(self, marker: str) -> list[int]:
        """Return the processes whose environment or command holds a text of this demo's own."""
        return sorted(pid for pid in _pids() if pid != os.getpid() and _mentions(pid, marker))

    def _left_behind(self) -> list[int]:
        """Return the processes of the demo that are still there; those that end have a moment."""
        give_up = self.clock.elapsed() + timedelta(seconds=END_SECONDS_MOST)
        pause = threading.Event()
        while (left := self.processes(str(self.folder))) and self.clock.elapsed() < give_up:
            pause.wait(0.05)
        return left

    def clean_up(self) -> None:
        """End everything, remove the folder, and see that nothing is left."""
        if self._data.exists():
            self._done("down")
        left = self._left_behind()
        told = ", ".join(f"{pid} ({_command_of(pid)})" for pid in left)
        self.check(not left, f"processes are left behind: {told}")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for path in sorted(self.folder.rglob("*"), reverse=True):
            with contextlib.suppress(OSError):
                path.unlink() if path.is_symlink() or not path.is_dir() else path.rmdir()
        with contextlib.suppress(OSError):
            self.folder.rmdir()
        self.check(not self.folder.exists(), f"the folder {self.folder} is left behind")
        is_clean = not left and not self.folder.exists()
        self.row("left behind", "no process, no file" if is_clean else "something: see above")


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            yield int(name)


def _mentions(pid: int, marker: str) -> bool:
    for file in ("environ", "cmdline"):
        with contextlib.suppress(OSError):
            if marker.encode() in Path(f"/proc/{pid}/{file}").read_bytes():
                return True
    return False


def _command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode("utf-8", "replace").strip()[:80]
    return "ended"


# The steps


def _play(demo: Demo) -> None:
    (demo.folder / EXAMPLE).write_text(example(), "utf-8")
    (demo.folder / "too-large.yaml").write_text(TOO_LARGE, "utf-8")
    demo.say("A control plane on this machine: one command, nothing else to install")
    began = demo.clock.elapsed()
    up = ("up", "--detach", "--listen", "127.0.0.1:0")
    demo.run(*up)
    if demo.failed:
        return
    demo.row("control plane up, and answering", _seconds(demo, began))
    _serve(demo)
    if demo.failed:
        return
    host = demo.asked("get", ROUTER, "-o", "jsonpath={.status.podIP}")
    _ask(demo, host)
    _kill(demo, host)
    _scale(demo, host)
    _explain(demo)
    demo.say("And away again")
    demo.run("delete", "-f", EXAMPLE)


def _seconds(demo: Demo, began: timedelta) -> str:
    return f"{(demo.clock.elapsed() - began).total_seconds():.1f} s"


def _serve(demo: Demo) -> None:
    demo.say("An inference system: a router, prefill and decode instances of three processes each")
    began = demo.clock.elapsed()
    demo.run("apply", "-f", EXAMPLE)
    if demo.screen.is_live:
        demo.draw("tree", "serving", "--until-ready", "--timeout", READY_WITHIN)
    else:
        demo.run("wait", "pcs/serving", "--for", "ready", "--timeout", READY_WITHIN)
        demo.run("tree", "serving", lines=30)
    pods = json.loads(demo.asked("get", "pods", "-o", "json") or '{"items": []}')["items"]
    gangs = json.loads(demo.asked("get", "podgangs", "-o", "json") or '{"items": []}')["items"]
    told = f"{_seconds(demo, began)}: {len(gangs)} gangs, {len(pods)} processes"
    demo.row("system applied, and every gang ready", told)
    demo.check((len(gangs), len(pods)) == (2, 10), "2 gangs of 10 pods are there")


def _ask(demo: Demo, host: str) -> None:
    demo.say("Requests through the router: each read by a prefill gang, answered by a decode gang")
    load = Load(host, demo.clock)
    load.send(REQUESTS, CLIENTS)
    if load.answers:
        demo.screen.line(f'  "the quick brown fox" -> "{load.text}"')
    demo.screen.line(f"  {load.told()}")
    demo.run("logs", "serving", "--tail", "2", lines=6)
    demo.row(f"{REQUESTS} requests by {CLIENTS} clients", load.told())
    demo.check(len(load.answers) == REQUESTS, f"all {REQUESTS} requests are answered")
    demo.check(len(load.texts) == 1, "the same prompt has one answer, whoever took part")
    demo.check(len(load.decoders) == 2, "both decode instances took part")


def _kill(demo: Demo, host: str) -> None:
    demo.say("A process of a decode gang is killed while requests go on")
    uid = demo.asked("get", f"pod/{VICTIM}", "-o", "jsonpath={.metadata.uid}")
    found = [pid for pid in demo.processes(f"/{uid}/") if _mentions(pid, "SERVING=")]
    demo.check(bool(found), f"the process of {VICTIM} is found")
    load = Load(host, demo.clock)
    with load.going_on(CLIENTS):
        began = demo.clock.elapsed()
        for pid in found[-1:]:
            demo.screen.line(demo.screen.painted(f"$ kill -9 {pid}    # {VICTIM}", DIM))
            os.kill(pid, signal.SIGKILL)
        restarted = "jsonpath={.status.containerStatuses[0].restartCount}=1"
        demo.run("wait", f"pod/{VICTIM}", "--for", restarted, "--timeout", "20s")
        demo.run("wait", "pcs/serving", "--for", "ready", "--timeout", READY_WITHIN)
        recovered = _seconds(demo, began)
    demo.screen.line(f"  meanwhile: {load.told()}")
    demo.row("killed process ready again", f"after {recovered}")
    demo.row("requests meanwhile", load.told())
    demo.check(not load.failures, "no request fails while a process is replaced")


def _scale(demo: Demo, host: str) -> None:
    demo.say("One more decode instance: another gang, placed as a whole")
    began = demo.clock.elapsed()
    demo.run("scale", DECODE, "--replicas=3")
    demo.run("wait", DECODE, "--for", "ready", "--timeout", READY_WITHIN)
    ready = _seconds(demo, began)
    load = Load(host, demo.clock)
    load.send(12, CLIENTS)
    demo.screen.line(f"  {load.told()}")
    demo.row("group scaled from 2 to 3, and ready", ready)
    demo.check(len(load.decoders) == 3, "three decode instances take part")
    demo.run("top", "serving", lines=4)


def _explain(demo: Demo) -> None:
    demo.say("What cannot run says why, and what would help")
    demo.run("apply", "-f", "too-large.yaml")
    refused = "condition=Schedulable=False"
    demo.run("wait", "podgang/too-large-0", "--for", refused, "--timeout", "20s")
    told = demo.run("why", "too-large")
    demo.check("nvidia.com/gpu" in told, "why names what is missing")
    demo.run("delete", "-f", "too-large.yaml")
