"""The verbs of objects, against one real world that is up for all of them.

They run in this process; each test has a namespace of its own.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from worlds import World, lines_until

from spinney.cli import main
from spinney.meta.times import format_time

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: chat
spec:
  replicas: 1
  template:
    cliques:
      - name: server
        spec:
          roleName: server
          replicas: 2
          podSpec:
            containers: [{name: server, image: "example/server:1.0"}]
"""
CLIQUE = """\
apiVersion: grove.io/v1alpha1
kind: PodClique
metadata: {name: lone}
spec:
  roleName: server
  replicas: 2
  minAvailable: 1
  podSpec:
    containers: [{name: server, image: "example/server:1.0"}]
"""
numbers = itertools.count()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world") / "data")
    made.up("--durability", "memory")
    yield made
    made.end()


class Here:
    """A namespace of the world, and the command in this process."""

    def __init__(self, world, namespace, capsys, monkeypatch):
        self.world = world
        self.namespace = namespace
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def run(self, line, stdin="", **environment):
        """Return exit code and what was printed."""
        reader = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        self._monkeypatch.setattr(sys, "stdin", reader)
        for key, value in environment.items():
            self._monkeypatch.setenv(key, str(value))
        code = main.run(["-n", self.namespace, *line.split()])
        return (code, *self._capsys.readouterr())

    def done(self, line, stdin="", **environment):
        """Return what was printed of a command that must succeed without a word aside."""
        code, out, err = self.run(line, stdin, **environment)
        assert (code, err) == (0, ""), out + err
        return out


@pytest.fixture
def here(world, capsys, monkeypatch):
    monkeypatch.setenv("SPINNEY_DATA", str(world.root))
    monkeypatch.setenv("HOME", str(world.root.parent))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    made = Here(world, f"n-{next(numbers)}", capsys, monkeypatch)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.namespace}}
    made.done("apply -f -", json.dumps(namespace))
    return made


def config_map(name="settings", labels=None, **data):
    metadata = {"name": name, "labels": labels or {}}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_apply_tells_what_it_did(here):
    assert here.done("apply -f -", SET) == "podcliqueset.grove.io/chat created\n"
    assert here.done("apply -f -", SET) == "podcliqueset.grove.io/chat unchanged\n"
    larger = SET.replace("server:1.0", "server:1.1")
    assert here.done("apply --dry-run=server -f -", larger) == (
        "podcliqueset.grove.io/chat configured (server dry run)\n"
    )
    assert here.done("apply --dry-run=server -f -", SET) == (
        "podcliqueset.grove.io/chat unchanged (server dry run)\n"
    )
    assert here.done("apply -f -", larger) == "podcliqueset.grove.io/chat configured\n"
    assert here.done("apply -o name -f -", SET) == "podcliqueset.grove.io/chat\n"
    shown = yaml.safe_load(here.done("apply -o yaml -f -", SET))
    assert shown["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 2
    assert "managedFields" not in shown["metadata"]


def test_a_fault_is_told_with_its_line_and_the_rest_is_done(here, tmp_path):
    good = config_map()
    file = tmp_path / "all.yaml"
    file.write_text(
        SET.replace("replicas: 2", "replicas: -1")
        + "---\n"
        + SET.replace("roleName", "rollName")
        + f"---\n{good}\n"
    )
    code, out, err = here.run(f"apply -f {file}")
    assert (code, out) == (1, "configmap/settings created\n")
    first, second = err.splitlines()
    assert first.startswith(
        f"{file}:12: PodCliqueSet chat: spec.template.cliques[0].spec.replicas: Invalid value: -1"
    )
    assert second.startswith(f"{file}:26: Error from server (BadRequest)")
    assert 'unknown field "spec.template.cliques[0].spec.rollName"' in second


def test_apply_without_a_server_checks_as_validate_does(here):
    code, _, err = here.run("apply --dry-run -f -", SET.replace("replicas: 2", "replicas: -1"))
    assert (code, err.count("Invalid value")) == (1, 1)
    assert here.done("apply --dry-run=client -f -", SET) == (
        "podcliqueset.grove.io/chat valid (client dry run)\n"
    )


def test_what_others_hold_is_left_or_taken(here):
    here.done("apply --field-manager one -f -", config_map(a="1"))
    code, _, err = here.run("apply -f -", config_map(a="2"))
    assert code == 1
    assert 'conflict with "one": .data.a' in err
    assert "--force-conflicts" in err
    here.done("apply --force-conflicts -f -", config_map(a="2"))
    assert here.done("get cm settings -o jsonpath={.data}") == '{"a":"2"}'


def test_a_kind_can_be_defined_and_used_in_one_call(here):
    number = here.namespace.replace("-", "")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"toys.{number}.example.org"},
        "spec": {
            "group": f"{number}.example.org",
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    toy = {"apiVersion": f"{number}.example.org/v1", "kind": "Toy", "metadata": {"name": "ball"}}
    both = {"apiVersion": "v1", "kind": "List", "items": [toy, definition]}
    assert here.done("apply -f -", json.dumps(both)).splitlines() == [
        f"customresourcedefinition.apiextensions.k8s.io/toys.{number}.example.org created",
        f"toy.{number}.example.org/ball created",
    ]


def test_a_kind_nobody_knows_is_told(here):
    code, out, err = here.run("apply -f -", '{"apiVersion": "v1", "kind": "Toy", "metadata": {}}')
    assert (code, out) == (2, "")
    assert err == "spinney: <stdin>:1: metadata.name: Required value: a string\n"
    toy = '{"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "x"}}'
    code, out, err = here.run("apply -f -", toy)
    told = 'the server serves no kind "Pod" in version "v2"; Pod is served as v1'
    assert (code, err) == (1, f"spinney: <stdin>:1: {told}\n")


def test_get_shows_tables(here):
    for name in ("a", "longer"):
        here.done("apply -f -", config_map(name, {"size": name}, k="1"))
    out = here.done("get configmaps")
    assert [line.split() for line in out.splitlines()] == [
        ["NAME", "DATA", "AGE"],
        *(["a", "1", "0s"], ["longer", "1", "0s"]),
    ] or out.startswith("NAME     DATA   AGE\na        1      ")
    assert here.done("get cm a --no-headers").split()[0] == "a"
    assert here.done("get cm -l size=longer -o name") == "configmap/longer\n"
    assert here.done("get cm --field-selector metadata.name=a -o name") == "configmap/a\n"
    labelled = here.done("get cm a -L size --show-labels").splitlines()
    assert labelled[0].split() == ["NAME", "DATA", "AGE", "SIZE", "LABELS"]
    assert labelled[1].split()[-2:] == ["a", "size=a"]
    everywhere = here.done("get cm -A").splitlines()
    assert everywhere[0].startswith("NAMESPACE ")
    assert any(line.split()[:2] == [here.namespace, "longer"] for line in everywhere)


def test_get_shows_more_columns_when_asked_for(here):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "example/c:1"}]},
    }
    here.done("apply -f -", json.dumps(pod))
    headings = here.done("get pods").splitlines()[0].split()
    assert headings == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    wide = here.done("get pods -o wide").splitlines()[0].split()
    assert wide[:7] == [*headings, "IP", "NODE"]


def test_get_shows_several_kinds(here):
    here.done("apply -f -", SET)
    here.done("apply -f -", config_map("a"))
    first, second = here.done("get cm,pcs").split("\n\n")
    assert first.splitlines()[1].startswith("configmap/a ")
    assert second.splitlines()[1].startswith("podcliqueset.grove.io/chat ")
    assert here.done("get pcs/chat cm/a -o name").split() == [
        "podcliqueset.grove.io/chat",
        "configmap/a",
    ]
    assert "podcliqueset.grove.io/chat" not in here.done("get all").splitlines()[0]
    code, out, err = here.run("get cm a nope")
    assert (code, out.splitlines()[1].split()[0]) == (1, "a")
    assert err == 'Error from server (NotFound): configmaps "nope" not found\n'
    assert here.run("get cm nope --ignore-not-found") == (0, "", "")


def test_get_shows_objects_as_they_are(here):
    here.done("apply -f -", config_map("a", k="1"))
    one = yaml.safe_load(here.done("get cm a -o yaml"))
    assert (one["kind"], one["data"]) == ("ConfigMap", {"k": "1"})
    assert "managedFields" not in one["metadata"]
    shown = json.loads(here.done("get cm a -o json --show-managed-fields"))
    assert shown["metadata"]["managedFields"][0]["manager"] == "spinney"
    several = json.loads(here.done("get cm -o json"))
    assert (several["kind"], [item["kind"] for item in several["items"]]) == ("List", ["ConfigMap"])
    template = "get cm -o jsonpath={range.items[*]}"
    assert here.run(template)[0] == 0
    assert here.done("get cm -o jsonpath={.items[*].metadata.name}") == "a"


def test_nothing_is_told_aside(here):
    code, out, err = here.run("get pods")
    assert (code, out, err) == (0, "", f"No resources found in {here.namespace} namespace.\n")
    assert here.run("get leases -A")[2] == "No resources found\n"


def test_a_watch_shows_what_changes(here):
    here.done("apply -f -", config_map("first"))
    watching = here.world.start("-n", here.namespace, "get", "cm", "-w")
    assert lines_until(watching.stdout, "first ")[0].split() == ["NAME", "DATA", "AGE"]
    here.done("apply -f -", config_map("second", k="1"))
    assert lines_until(watching.stdout, "second ")[-1].split()[:2] == ["second", "1"]
    here.done("delete cm second")
    assert lines_until(watching.stdout, "second ")[-1].split()[:2] == ["second", "1"]


def test_describe_tells_what_matters(here):
    here.done("apply -f -", SET)
    here.done("wait pcs chat --for jsonpath={.status.replicas}=1")
    lines = here.done("describe pcs chat").splitlines()
    told = dict(line.split(":", 1) for line in lines if ": " in line)
    assert told["Name"].strip() == "chat"
    assert told["Kind"].strip() == "PodCliqueSet (grove.io/v1alpha1)"
    assert told["Replicas"].strip() == "1 wanted, 1 present, 0 available, 0 updated"
    assert told["Events"].strip() == "<none>"
    start = lines.index("Cliques:")
    assert lines[start + 2].split() == [
        *("server", "server", "2", "2", "<none>", "example/server:1.0"),
    ]


def test_describe_tells_what_belongs_to_an_object(here):
    """The pods and PodCliques of a set, as the server shows them."""
    unprotected = SET.replace(
        "name: chat\n",
        "name: chat\n  annotations: {grove.io/disable-managed-resource-protection: 'true'}\n",
        1,
    )
    here.done("apply -f -", unprotected)
    here.done("wait pcs chat --for jsonpath={.status.replicas}=1")
    clique = yaml.safe_load(CLIQUE)
    clique["metadata"]["labels"] = {
        "app.kubernetes.io/part-of": "chat",
        "app.kubernetes.io/managed-by": "grove-operator",
    }
    here.done("apply -f -", json.dumps(clique))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "lone-0", "labels": {"grove.io/podclique": "lone"}},
        "spec": {"containers": [{"name": "c", "image": "example/c:1"}]},
    }
    here.done("apply -f -", json.dumps(pod))
    lines = here.done("describe pcs chat").splitlines()
    told = [line.split()[:2] for line in lines[lines.index("PodCliques:") + 2 :]]
    assert ["lone", "1"] in told
    assert lines[lines.index("Gangs:", lines.index("Cliques:")) + 2].split()[0] == "chat-0"
    lines = here.done("describe pclq lone").splitlines()
    assert lines[lines.index("Pods:") + 2].split()[:3] == ["lone-0", "0/1", "Pending"]
    assert "  c      example/c:1   <none>" in here.done("describe pod lone-0")


def test_describe_tells_events_and_conditions_and_no_secrets(here):
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "stringData": {"token": "hunter2"},
    }
    here.done("apply -f -", json.dumps(document))
    uid = here.done("get secret key -o jsonpath={.metadata.uid}")
    now = datetime.now(UTC)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "key.1"},
        "involvedObject": {
            "kind": "Secret",
            "name": "key",
            "namespace": here.namespace,
            "uid": uid,
            "apiVersion": "v1",
        },
        "type": "Warning",
        "reason": "Leaked",
        "message": "it was read",
        "count": 3,
        "firstTimestamp": format_time(now - timedelta(minutes=30)),
        "lastTimestamp": format_time(now),
    }
    here.done("apply -f -", json.dumps(event))
    out = here.done("describe secret key")
    assert "hunter2" not in out
    assert "aHVudGVy" not in out
    assert "token   7 bytes" in out
    assert "Warning   Leaked" in out
    assert "(x3 over 30m)" in out
    line = here.done("events").splitlines()[1]
    assert "Warning   Leaked   Secret/key   it was read" in line
    assert here.done("events --for secret/key").splitlines()[1].endswith("it was read")
    assert here.run("events --for cm/key")[1] == ""
    assert (
        here.run("events --types Normal")[2] == f"No events found in {here.namespace} namespace.\n"
    )
    assert json.loads(here.done("events -o json"))["items"][0]["reason"] == "Leaked"


def test_delete_waits_until_they_are_gone(here):
    for name in ("a", "b", "c"):
        here.done("apply -f -", config_map(name, {"x": name}))
    assert here.done("delete cm a") == 'configmap "a" deleted\n'
    assert here.done("delete cm -l x=b -o name") == "configmap/b\n"
    code, out, err = here.run("delete cm a c")
    assert (code, out) == (1, 'configmap "c" deleted\n')
    assert err == 'Error from server (NotFound): configmaps "a" not found\n'
    assert here.run("delete cm a --ignore-not-found") == (0, "", "")
    assert here.run("delete cm --all") == (0, "", "No resources found\n")


def test_delete_of_what_a_finalizer_holds_times_out(here):
    document = json.loads(config_map("held"))
    document["metadata"]["finalizers"] = ["example.org/hold"]
    here.done("apply -f -", json.dumps(document))
    code, out, err = here.run("delete cm held --timeout 200ms")
    assert (code, out) == (1, 'configmap "held" deleted\n')
    assert err == "timed out: configmap/held is still there\n"
    assert "waits for example.org/hold" in here.done("describe cm held")
    document["metadata"]["finalizers"] = []
    waiting = here.world.start("-n", here.namespace, "wait", "cm/held", "--for=delete")
    here.done("apply -f -", json.dumps(document))
    assert waiting.communicate(timeout=40)[0] == "configmap/held deleted\n"
    assert waiting.returncode == 0


@pytest.mark.parametrize("word", ["", "..", "."])
def test_delete_takes_no_name_that_means_more(here, word):
    """As when a variable of the shell is not set."""
    here.done("apply -f -", config_map("kept"))
    code = main.run(["-n", here.namespace, "delete", "cm", word])
    assert code == (2 if not word else 1)
    nameless = json.loads(config_map("x"))
    nameless["metadata"] = {"generateName": "x-"}
    assert here.run("delete -f -", json.dumps(nameless))[0] == 1
    assert here.done("get cm -o name") == "configmap/kept\n"


def test_delete_can_be_tried(here):
    here.done("apply -f -", config_map("a"))
    assert here.done("delete cm a --dry-run=server") == 'configmap "a" deleted (server dry run)\n'
    assert here.done("delete cm a --dry-run=client") == 'configmap "a" deleted (client dry run)\n'
    here.done("get cm a")


def test_delete_takes_dependents_along_as_asked(here):
    here.done("apply -f -", config_map("owner"))
    uid = here.done("get cm owner -o jsonpath={.metadata.uid}")
    document = json.loads(config_map("owned"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    document["metadata"]["ownerReferences"] = [reference]
    here.done("apply -f -", json.dumps(document))
    here.done("delete cm owner --cascade=orphan")
    assert here.done("get cm owned -o jsonpath={.metadata.ownerReferences}") in ("", "[]")


def test_delete_of_manifests_goes_backwards(here, tmp_path):
    file = tmp_path / "both.yaml"
    file.write_text(f"{config_map('a')}\n---\n{config_map('b')}\n")
    here.done(f"apply -f {file}")
    assert here.done(f"delete -f {file}") == 'configmap "b" deleted\nconfigmap "a" deleted\n'


def test_scale_sets_replicas(here):
    here.done("apply -f -", CLIQUE)
    replicas = "get pclq lone -o jsonpath={.spec.replicas}"
    assert here.done("scale pclq/lone --replicas 3") == "podclique.grove.io/lone scaled\n"
    assert here.done(replicas) == "3"
    code, _, err = here.run("scale pclq lone --replicas 5 --current-replicas 2")
    assert (code, "podclique.grove.io/lone has 3 replicas, expected 2" in err) == (1, True)
    here.done("scale pclq lone --replicas 5 --current-replicas 3")
    assert here.done(replicas) == "5"
    code, _, err = here.run("scale cm x --replicas 3")
    assert (code, err) == (
        2,
        "spinney: configmaps cannot be scaled: the kind has no scale subresource\n",
    )


def test_wait_ends_when_it_holds(here):
    here.done("apply -f -", config_map("a", k="1"))
    held = "wait cm/a --for=jsonpath={.data.k}="
    assert here.done(f"{held}1") == "configmap/a condition met\n"
    code, out, err = here.run(f"{held}2 --timeout 100ms")
    assert (code, out) == (1, "")
    assert err == "timed out waiting for jsonpath={.data.k}=2 on configmap/a: it is 1\n"
    waiting = here.world.start(
        "-n", here.namespace, "wait", "cm/a", "--for=jsonpath={.data.k}=2", "--timeout=40s"
    )
    here.done("apply -f -", config_map("a", k="2"))
    assert waiting.communicate(timeout=40)[0] == "configmap/a condition met\n"
    code, _, err = here.run("wait cm/none --for=condition=Ready")
    assert (code, err) == (1, 'Error from server (NotFound): configmaps "none" not found\n')
    assert here.done("wait cm/none --for=delete") == "configmap/none deleted\n"
    waiting = here.world.start("-n", here.namespace, "wait", "cm/late", "--for=create")
    here.done("apply -f -", config_map("late"))
    assert waiting.communicate(timeout=40)[0] == "configmap/late created\n"


def test_diff_shows_what_apply_would_change(here):
    code, out, err = here.run("diff -f -", config_map("a", k="1"))
    assert (code, err) == (1, "")
    assert out.startswith("--- /dev/null\n+++ configmap/a (after <stdin>:1)\n")
    here.done("apply -f -", config_map("a", k="1"))
    assert here.run("diff -f -", config_map("a", k="1")) == (0, "", "")
    code, out, _ = here.run("diff -f -", config_map("a", k="2"))
    changed = [
        line for line in out.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert (code, changed) == (1, ["-  k: '1'", "+  k: '2'"])
    assert here.done("get cm a -o jsonpath={.data.k}") == "1"


@pytest.fixture
def editor(tmp_path):
    """An editor that does what a shell command says, and keeps what it was shown."""

    def make(command):
        script = tmp_path / "editor"
        script.write_text(f'#!/bin/sh\ncat "$1" >> "{tmp_path}/shown"\n{command}\n')
        script.chmod(0o755)
        return script

    make.shown = tmp_path / "shown"
    return make


def test_edit_sends_what_was_changed(here, editor):
    here.done("apply -f -", config_map("a", k="1"))
    change = editor("sed -i \"s/k: '1'/k: '2'/\" \"$1\"")
    assert here.done("edit cm/a", SPINNEY_EDITOR=change) == "configmap/a edited\n"
    assert here.done("get cm a -o jsonpath={.data.k}") == "2"
    assert "managedFields" not in editor.shown.read_text()
    code, out, err = here.run("edit cm a", SPINNEY_EDITOR="true")
    assert (code, out, err) == (0, "", "Edit cancelled, no changes made.\n")


def test_edit_opens_again_with_what_was_wrong_on_top(here, editor):
    here.done("apply -f -", config_map("a", k="1"))
    change = editor(
        'if grep -q "^# The ConfigMap" "$1"; then sed -i "s/k: 7/k: fine/" "$1"; '
        'else sed -i "s/k: \'1\'/k: 7/" "$1"; fi'
    )
    assert here.done("edit cm a", SPINNEY_EDITOR=change) == "configmap/a edited\n"
    assert here.done("get cm a -o jsonpath={.data.k}") == "fine"
    assert '# The ConfigMap "a" is invalid: data[k]: Invalid value: 7' in editor.shown.read_text()


def test_edit_keeps_what_could_not_be_sent(here, editor, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    here.done("apply -f -", config_map("a", k="1"))
    code, _, err = here.run("edit cm a", SPINNEY_EDITOR=editor('sed -i "s/k: \'1\'/k: 7/" "$1"'))
    assert code == 1
    told, kept = err.splitlines()
    assert told == "Edit cancelled, no changes made."
    assert "k: 7" in Path(kept.removeprefix("What you wrote is kept in ")).read_text()


def test_edit_lays_the_change_over_what_another_changed(here, editor):
    """Somebody applies in the meantime: it opens again, with both changes."""
    here.done("apply -f -", config_map("a", k="1", other="1"))
    other = config_map("a", k="1", other="2")
    command = (
        f"[ -e {editor.shown}.done ] && {{ echo '# seen' >> \"$1\"; exit 0; }}\n"
        f"touch {editor.shown}.done\n"
        f"echo '{other}' | {sys.executable} -m spinney -n {here.namespace} apply -f - > /dev/null\n"
        'sed -i "s/k: \'1\'/k: mine/" "$1"'
    )
    assert here.done("edit cm a", SPINNEY_EDITOR=editor(command)) == "configmap/a edited\n"
    data = json.loads(here.done("get cm a -o jsonpath={.data}"))
    assert data == {"k": "mine", "other": "2"}
    assert "# Below: your change on what it is now." in editor.shown.read_text()


@pytest.mark.parametrize(("name", "told"), [("false", "ended with exit code 1"), ("/no", "cannot")])
def test_an_editor_that_fails_sends_nothing(here, name, told):
    here.done("apply -f -", config_map("a"))
    code, _, err = here.run("edit cm a", SPINNEY_EDITOR=name)
    assert (code, told in err) == (2, True)


def test_colour_is_for_terminals(here):
    here.done("apply -f -", config_map("a"))
    assert "\x1b" not in here.done("get cm")
    command = f'"{sys.executable}" -m spinney -n {here.namespace} get ns default'
    for environment, has_colour in ((" ", True), ("NO_COLOR=1", False)):
        primary, secondary = os.openpty()
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", f"{environment} TERM=xterm {command}"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, secondary, 1)],
        )
        os.waitpid(pid, 0)
        os.close(secondary)
        shown = os.read(primary, 65536)
        os.close(primary)
        assert b"default" in shown
        assert (b"\x1b[32mActive" in shown) is has_colour


def test_a_reader_that_goes_away_ends_it_quietly(here):
    here.done("apply -f -", config_map("a"))
    command = f'"{sys.executable}" -m spinney get cm -A -o yaml | head -c 5'
    done = os.popen(f"exec 2>&1; {command}")
    assert done.read() == "apiVe"
    done.close()
