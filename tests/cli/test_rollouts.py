"""Seeing and steering updates, against a real world with simulated nodes."""

from __future__ import annotations

import itertools
import json

import pytest
from test_insight import ESCAPE, Here
from worlds import World

from spinney.testing.build import podcliqueset

numbers = itertools.count()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("rollouts") / "data")
    made.up("--durability", "memory", "--nodes", "sim:2,cpu=8,memory=16Gi")
    yield made
    made.end()


@pytest.fixture
def here(world, capsys, monkeypatch):
    monkeypatch.setenv("SPINNEY_DATA", str(world.root))
    monkeypatch.setenv("HOME", str(world.root.parent))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    made = Here(world, f"r-{next(numbers)}", capsys, monkeypatch)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.namespace}}
    made.done("apply", "-f", "-", stdin=json.dumps(namespace))
    return made


CPU = "spec.template.cliques[{}].spec.podSpec.containers[0]"


def chat(version=1, cause="", replicas=2, cpu="100m"):
    made = podcliqueset("chat").with_("spec.replicas", replicas)
    made = made.with_clique("web", replicas=2).with_clique("model", replicas=2)
    asks = {"resources": {"requests": {"cpu": cpu}}}
    made = made.with_(CPU.format(0), {"name": "main", "image": f"example/main:{version}", **asks})
    if cause:
        made = made.with_("metadata.annotations", {"kubernetes.io/change-cause": cause})
    return made


def ready(here):
    here.done("wait", "pcs/chat", "--for", "ready", "--timeout", "40s")


def uids(here):
    pods = json.loads(here.done("get", "pods", "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def test_an_update_is_followed_and_its_history_told_and_undone(here):
    here.apply(chat(1, "the first one"))
    code, out, err = here.run("rollout", "status", "chat", "-w", "--timeout", "40s")
    assert (code, err) == (0, ""), out
    assert out.splitlines()[-1] == "chat: never updated yet; 2 of 2 replicas are available"
    assert here.done("rollout", "status", "chat") == out.splitlines()[-1] + "\n"
    assert here.run("rollout", "undo", "chat") == (
        1,
        "",
        "podcliqueset.grove.io/chat has no other revision to go back to\n",
    )

    before = uids(here)
    here.apply(chat(2, "a faster server"))
    lines = here.done("rollout", "status", "chat", "-w", "--timeout", "40s").splitlines()
    assert lines[-1].startswith("chat: 2 of 2 updated: every replica runs what the template says")
    after = uids(here)
    assert {name for name in before if before[name] != after[name]} == {
        f"chat-{replica}-web-{pod}" for replica in (0, 1) for pod in (0, 1)
    }

    table = here.done("rollout", "history", "chat").splitlines()
    assert table[0].split()[0] == "REVISION"
    assert table[1].split()[0] == "1"
    assert "the first one" in table[1]
    assert table[2].startswith("2 (now)")
    assert "a faster server" in table[2]
    path = "cliques[web].spec.podSpec.containers[main].image"
    assert f"{path}: example/main:1 -> example/main:2" in table[2]
    assert here.done("rollout", "history", "chat", "--diff", "2", "1") == (
        f"{path}: example/main:2 -> example/main:1\n"
    )
    shown = json.loads(here.done("rollout", "history", "chat", "--revision", "1", "-o", "json"))
    assert (shown["revision"], shown["changeCause"], shown["isNow"]) == (1, "the first one", False)
    assert shown["template"]["cliques"][0]["name"] == "web"
    code, out, err = here.run("rollout", "history", "chat", "--revision", "7")
    assert (code, out) == (1, "")
    assert "has no revision 7; kept are: 1, 2" in err

    here.done("scale", "pcs/chat", "--replicas", "3")
    dry = here.done("rollout", "undo", "pcs/chat", "--dry-run")
    assert dry.startswith("podcliqueset.grove.io/chat rolled back to revision 1 (dry run)\n")
    assert here.done("rollout", "undo", "pcs/chat").splitlines() == [
        "podcliqueset.grove.io/chat rolled back to revision 1",
        f"  {path}: example/main:2 -> example/main:1",
    ]
    here.done("rollout", "status", "chat", "-w", "--timeout", "40s")
    found = json.loads(here.done("get", "pcs", "chat", "-o", "json"))
    assert found["spec"]["replicas"] == 3, "an undo restores what a revision holds, and no more"
    assert found["metadata"]["annotations"]["kubernetes.io/change-cause"] == "the first one"
    last = here.done("rollout", "history", "chat").splitlines()[-1]
    assert last.startswith("3 (now)")
    assert "the first one" in last
    out = here.done("rollout", "undo", "chat", "--to-revision", "3")
    assert out.endswith("is at revision 3 already: nothing is changed\n")


def test_updates_are_held_and_let_on_and_pods_replaced_for_no_reason_but_the_wish(here):
    here.apply(chat(replicas=1))
    ready(here)
    before = uids(here)
    assert here.done("rollout", "pause", "chat") == "podcliqueset.grove.io/chat paused\n"
    assert here.done("rollout", "pause", "chat").endswith("is paused already\n")
    code, out, err = here.run("rollout", "restart", "chat")
    assert (code, out) == (
        0,
        "podcliqueset.grove.io/chat restarted: every pod is replaced in turn\n",
    )
    assert "rollout resume chat" in err
    waited = ("wait", "pcs/chat", "--for", "condition=Progressing=Unknown", "--timeout", "20s")
    assert here.run(*waited)[0] == 0
    code, out, _ = here.run("rollout", "status", "chat")
    assert (code, out.splitlines()[0]) == (
        1,
        "chat: the update is paused: nothing is taken until it is resumed",
    )
    assert uids(here) == before
    told = json.loads(here.run("rollout", "status", "chat", "-o", "json")[1])
    assert (told["state"], told["replicasToCome"], told["podsLeft"]) == ("paused", [0], 4)
    assert here.done("rollout", "resume", "chat") == "podcliqueset.grove.io/chat resumed\n"
    here.done("rollout", "status", "chat", "-w", "--timeout", "40s")
    after = uids(here)
    assert all(before[name] != after[name] for name in before)


def test_an_update_that_gets_on_no_more_ends_the_wait_with_what_blocks_it(here):
    here.apply(chat(1, replicas=1).with_("spec.updateStrategy", {"progressDeadlineSeconds": 1}))
    ready(here)
    stuck = chat(2, replicas=1, cpu="100").with_(
        "spec.updateStrategy", {"progressDeadlineSeconds": 1}
    )
    here.apply(stuck)
    code, out, _ = here.run("rollout", "status", "chat", "-w", "--timeout", "40s")
    assert code == 1
    last = out.splitlines()
    assert any(line.startswith("chat: ResourcesUnavailable: nothing was newly") for line in last), (
        out
    )
    assert any("waits for pod chat-0-web-" in line and "cpu" in line for line in last), out
    here.done("rollout", "undo", "chat")
    here.done("rollout", "status", "chat", "-w", "--timeout", "40s")


def test_a_wait_that_is_too_short_says_so(here):
    here.apply(chat(1, replicas=1, cpu="100"))
    code, _, err = here.run("rollout", "status", "chat", "-w", "--timeout", "1s")
    assert (code, err) == (1, "the update of chat was not complete in time\n")


def test_an_update_is_drawn_in_place_on_a_terminal(here):
    patient = {"progressDeadlineSeconds": 4}
    here.apply(chat(1).with_("spec.updateStrategy", patient))
    ready(here)
    here.apply(chat(2, cpu="100").with_("spec.updateStrategy", patient))
    words = ("rollout", "status", "chat", "-w", "--timeout", "40s")
    code, drawn = here.on_terminal(*words, until="\x1b[?25h")
    assert code == 1
    text = ESCAPE.sub("", drawn).replace("\r", "")
    assert "  now      replica 1" in text
    assert "chat-1-web  0 of 2 pods" in text
    assert "chat-1-model  updated" in text
    assert "  waits for pod chat-1-web-" in text
    assert "  to come  replica 0" in text
    assert "0 of 4 pods replaced" in text
    assert "chat: ResourcesUnavailable: nothing was newly complete for 4 s" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "pod/x", "--revision", "1"), "--revision goes with rollout history"),
        (("undo", "x", "-w"), "--watch goes with rollout status"),
        (("status", "x", "--timeout", "1s"), "--timeout goes with -w"),
        (("pause", "x", "-o", "json"), "-o json goes with"),
        (("pause", "x", "--dry-run"), "--dry-run goes with rollout undo and restart"),
        (("status", "ns/default"), "is no PodCliqueSet: updates are of whole sets"),
    ],
)
def test_a_wrong_call_is_told(here, words, said):
    code, out, err = here.run("rollout", *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_plan_is_told_before_anything_is_done_and_then_it_happens(here):
    here.apply(chat(1, cpu="100m"))
    ready(here)
    before = uids(here)
    new = chat(2).with_("spec.template.terminationDelay", "1h")
    plan = here.done("plan", "-f", "-", stdin=json.dumps(new.document()))
    path = "spec.podSpec.containers[main].image"
    assert (
        plan
        == f"""\
chat: replaces 4 pods
what rolls
  web    rolls    its pod template changes
      {path}: example/main:1 -> example/main:2
  model  stays    its pod template stays as it is
what else changes, and replaces no pod
  template.terminationDelay: <none> -> 1h
steps
  1. replica 1
     chat-1-web: chat-1-web-0, chat-1-web-1
  2. replica 0
     chat-0-web: chat-0-web-0, chat-0-web-1
at the worst
  set chat: 1 of 2
  clique chat-0-web: 1 of 2, 2 needed
  clique chat-1-web: 1 of 2, 2 needed
  away at once: 1 pod
"""
    )
    assert uids(here) == before
    told = json.loads(here.done("plan", "-f", "-", "-o", "json", stdin=json.dumps(new.document())))
    here.apply(new)
    here.done("rollout", "status", "chat", "-w", "--timeout", "40s")
    after = uids(here)
    taken = {step["subject"] for step in told["steps"] if step["sort"] == "pod"}
    assert {name for name in before if before[name] != after[name]} == taken


def test_a_plan_that_would_block_says_so_and_one_of_nothing_is_a_wrong_call(here):
    here.apply(chat(1))
    ready(here)
    code, out, err = here.run("plan", "-f", "-", stdin=json.dumps(chat(2, cpu="99").document()))
    assert (code, err) == (1, "")
    assert out.startswith("chat: replaces 1 pod, and does not come to its end\n")
    assert "  gang chat-1: " in out
    assert "have too little cpu" in out
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    code, _, err = here.run("plan", "-f", "-", stdin=json.dumps(config))
    assert code == 2
    assert "configmap/x is left out" in err
    assert "no PodCliqueSet is among the manifests" in err
    faulty = chat(1).with_("spec.replicas", -1).document()
    code, _, err = here.run("plan", "-f", "-", stdin=json.dumps(faulty))
    assert (code, "spec.replicas" in err) == (1, True)
