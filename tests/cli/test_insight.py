"""Trees and causes, against a real world with simulated nodes; live drawing on a real terminal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest
from worlds import World

from spinney.cli import live, main, progress, screen
from spinney.cli.screen import Screen
from spinney.testing.build import podcliqueset
from spinney.testing.clock import ManualClock

numbers = itertools.count()
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
AGE = re.compile(r"\[\d+s\]")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("insight") / "data")
    made.up("--durability", "memory", "--nodes", "sim:2,cpu=8,memory=16Gi")
    yield made
    made.end()


class Here:
    """A namespace of the world, and the command in this process."""

    def __init__(self, world, namespace, capsys, monkeypatch):
        self.world = world
        self.namespace = namespace
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def run(self, *words, stdin=""):
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main.run(["-n", self.namespace, *words])
        return (code, *self._capsys.readouterr())

    def done(self, *words, stdin=""):
        code, out, err = self.run(*words, stdin=stdin)
        assert (code, err) == (0, ""), out + err
        return out

    def apply(self, made):
        self.done("apply", "-f", "-", stdin=json.dumps(made.document()))

    def on_terminal(self, *words, until, end_by=None, rows=40, columns=100, **environment):
        """Run the command on a terminal until it has drawn something; returns all it drew."""
        ours, theirs = pty.openpty()
        kept = {"TERM": "xterm", "LINES": str(rows), "COLUMNS": str(columns)}
        process = subprocess.Popen(
            [sys.executable, "-m", "spinney", "-n", self.namespace, *words],
            env={**self.world.environment, **kept, **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):
            while until.encode() not in drawn:
                drawn += os.read(ours, 4096)
            if end_by is not None:
                process.send_signal(end_by)
            while more := os.read(ours, 4096):
                drawn += more
        os.close(ours)
        return process.wait(20), drawn.decode()


@pytest.fixture
def here(world, capsys, monkeypatch):
    monkeypatch.setenv("SPINNEY_DATA", str(world.root))
    monkeypatch.setenv("HOME", str(world.root.parent))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    made = Here(world, f"n-{next(numbers)}", capsys, monkeypatch)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.namespace}}
    made.done("apply", "-f", "-", stdin=json.dumps(namespace))
    return made


def small():
    return podcliqueset("chat").with_clique("web").with_clique("model", replicas=2)


def large():
    asks = {"resources": {"requests": {"cpu": "100"}}}
    made = podcliqueset("vast").with_clique("model", replicas=2)
    path = "spec.template.cliques[0].spec.podSpec.containers[0]"
    return made.with_(path, {"name": "main", "image": "example/main:1", **asks})


def test_a_tree_is_drawn_from_the_set_to_its_pods(here):
    here.apply(small())
    assert here.done("wait", "pcs/chat", "--for", "ready") == "podcliqueset.grove.io/chat ready\n"
    lines = here.done("tree", "chat").splitlines()
    assert lines[0].split() == ["NAME", "STATE", "READY", "NODE", "AGE"]
    assert "chat-0-model-0 … 1 (2 pods)" in lines[-1]
    assert len(here.done("tree", "chat", "--all").splitlines()) == len(lines) + 1
    assert here.done("tree") == here.done("tree", "pcs/chat")
    assert "chat-0-web-0" in here.done("tree", "podgang", "chat-0")
    assert "chat-0-web-0" in here.done("tree", "node/sim-0") + here.done("tree", "node/sim-1")
    told = json.loads(here.done("tree", "chat", "-o", "json"))
    assert (told["sort"], told["ready"], told["wanted"]) == ("PodCliqueSet", 1, 1)
    assert [below["name"] for below in told["below"][0]["below"]] == ["chat-0-web", "chat-0-model"]
    assert here.done("why", "chat").startswith("PodCliqueSet chat in ")
    assert here.done("why") == f"The only set of namespace {here.namespace} is as it should be.\n"


def test_why_tells_what_a_gang_lacks(here):
    here.apply(large())
    refused = ("wait", "podgang/vast-0", "--for", "condition=Schedulable=False")
    assert here.run(*refused, "--timeout", "20s")[0] == 0
    out = here.done("why", "vast")
    assert "cpu" in out.splitlines()[1]
    assert "└─ PodGang vast-0: is not placed: " in out
    assert "→ " in out
    assert AGE.sub("[<age>]", here.done("why")) == AGE.sub("[<age>]", out)
    told = json.loads(here.done("why", "pod/vast-0-model-0", "-o", "json"))
    assert told["ready"] is False
    assert told["causes"][-1]["root"] is True
    assert told["causes"][-1]["object"]["kind"] == "PodGang"
    code, _, err = here.run("wait", "pcs/vast", "--for", "ready", "--timeout", "1s")
    assert (code, err) == (
        1,
        "timed out waiting for ready on podcliqueset.grove.io/vast: "
        "0 of 1 replicas are available\n",
    )
    code, _, err = here.run("tree", "vast", "--until-ready", "--timeout", "1s")
    assert (code, "spinney why tells" in err) == (1, True)


def test_a_tree_is_drawn_in_place_on_a_terminal(here):
    here.apply(small())
    code, drawn = here.on_terminal("tree", "chat", "--until-ready", until="\x1b[?25h")
    assert code == 0
    assert drawn.count("\x1b[?25l") == 1
    last = ESCAPE.sub("", drawn).replace("\r", "").split("NAME ")[-1]
    assert "set chat" in last
    assert "\x1b[32mReady\x1b[0m" in drawn
    code, drawn = here.on_terminal("tree", "chat", until="chat-0-web", NO_COLOR="1")
    assert "\x1b[" not in drawn
    code, drawn = here.on_terminal("tree", "chat", until="…", columns=40)
    assert max(map(len, ESCAPE.sub("", drawn).split("\r\n"))) <= 40


def test_a_live_tree_ends_by_ctrl_c_with_130(here):
    here.apply(small())
    code, drawn = here.on_terminal("tree", "-w", until="chat-0-web", end_by=signal.SIGINT)
    assert code == 130
    assert drawn.rstrip().endswith("\x1b[?25h")


def test_a_wait_shows_on_a_terminal_what_is_missing(here):
    here.apply(large())
    code, drawn = here.on_terminal(
        "wait", "pcs/vast", "--for", "ready", "--timeout", "3s", until="replicas are available"
    )
    assert code == 1
    assert "0 of 1 replicas are available" in ESCAPE.sub("", drawn)


def test_a_reader_that_leaves_is_no_fault(here):
    here.apply(small())
    done = subprocess.run(
        f"{sys.executable} -m spinney -n {here.namespace} tree -A | head -1",
        shell=True,
        env=here.world.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("NAME")


def test_mistakes_are_told(here):
    here.apply(small())
    for words, code, said in (
        (["tree", "chta"], 1, 'did you mean "chat"?'),
        (["tree", "pcs/"], 2, '"pcs/": must be NAME or KIND/NAME'),
        (["tree", "a", "b", "c"], 2, "one object is meant"),
        (["tree", "chat", "-A"], 2, "-A is for all sets"),
        (["tree", "-w", "-o", "json"], 2, "-w draws for people"),
        (["tree", "chat", "--timeout", "3s"], 2, "--timeout goes with --until-ready"),
        (["tree", "toys/ball"], 1, 'doesn\'t have a resource type "toys"'),
        (["why", "chta"], 1, 'no set, group, clique, gang or pod is called "chta"'),
        (["why", ""], 2, "a name is empty"),
        (["why", "pod/nope"], 1, 'pods "nope" not found'),
        (["why", "pcs/chat/x"], 2, '"pcs/chat/x": must be NAME or KIND/NAME'),
        (["exec", "chat", "--", "true"], 1, 'pods "chat" not found'),
        (["logs", "configmap/kube-root-ca.crt"], 1, ""),
    ):
        found, out, err = here.run(*words)
        assert (found, out) == (code, ""), (words, out, err)
        assert said in err, words


def test_a_name_of_another_namespace_is_pointed_to(here):
    here.apply(small().with_("metadata.name", "elsewhere"))
    code, _, err = here.run("-n", "default", "tree", "elsewhere")
    assert (code, f"in namespace {here.namespace}: -n {here.namespace}" in err) == (1, True)


# Drawing


def test_what_is_drawn_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    monkeypatch.setenv("LINES", "4")
    out = io.StringIO()
    with live.Live(Screen(out, out), out) as area:
        area.draw([[("é" * 20, "")], [("b", "")], [("c", "")], [("d", "")]])
        area.draw([[("x", "")]])
    text = out.getvalue()
    assert f"{'é' * 9}…\x1b[K\n" in text
    assert "… 2 more lines"[:9] in text
    assert "\x1b[3F" in text


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("plain", 5, "plain"),
        ("plain", 4, "pla…"),
        ("界界界", 6, "界界界"),
        ("界界界", 5, "界界…"),
        ("界界界", 4, "界…"),
        ("e\u0301te\u0301", 3, "e\u0301te\u0301"),
    ],
)
def test_wide_letters_take_two_columns(text, columns, shown):
    assert "".join(part for part, _ in screen.cut([(text, "")], columns)) == shown


async def settled():
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_without_a_terminal_little_is_told_of_a_wait():
    async def story():
        out = io.StringIO()
        clock = ManualClock()
        shown = progress.Progress(Screen(out, out), clock, progress.QUIET * 10)
        shown.subject, shown.lacks = "pod/x", "it is not there"
        async with shown.shown():
            for _ in range(4):
                await settled()
                clock.advance(progress.QUIET)
            await settled()
        return out.getvalue()

    assert asyncio.run(story()) == "5s of 50s  waiting for pod/x: it is not there\n"
