"""What can be typed, and what is said of what cannot."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.cli import main


def parsed(*words):
    return main.parser().parse_args(words)


def refused(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main.parser().parse_args(words)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize(
    "line",
    [
        "get pods chat -n team -o wide",
        "get -n team pods -o wide chat",
        "-n team get pods chat -o=wide",
        "get -nteam -owide -- pods chat",
    ],
)
def test_options_stand_anywhere(line):
    found = parsed(*line.split())
    assert (found.objects, found.namespace, found.output) == (["pods", "chat"], "team", "wide")


def test_what_stands_after_the_verb_wins():
    assert parsed("-n", "one", "get", "pods", "-n", "two").namespace == "two"
    assert parsed("-n", "one", "get", "pods").namespace == "one"


@pytest.mark.parametrize(
    ("line", "wait", "dry_run"),
    [
        ("delete cm a", True, "none"),
        ("delete --wait cm a", True, "none"),
        ("delete --wait=false cm a", False, "none"),
        ("delete --wait false cm a", False, "none"),
        ("delete cm a --wait", True, "none"),
        ("delete --dry-run cm a", True, "client"),
        ("delete --dry-run server cm a", True, "server"),
        ("delete cm a --dry-run", True, "client"),
    ],
)
def test_an_option_that_may_stand_alone_takes_no_name_for_its_value(line, wait, dry_run):
    found = parsed(*line.split())
    assert (found.objects, found.wait, found.dry_run) == (["cm", "a"], wait, dry_run)


@pytest.mark.parametrize(
    ("text", "duration"),
    [("90s", timedelta(seconds=90)), ("1h30m", timedelta(minutes=90)), ("5", timedelta(seconds=5))],
)
def test_a_time_may_have_a_unit(text, duration):
    assert parsed("delete", "pods", "--timeout", text).timeout == duration


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nonsense", "argument VERB: invalid choice: 'nonsense'"),
        ("", "the following arguments are required: VERB"),
        ("get pods --nonsense", "unrecognized arguments: --nonsense"),
        ("get pods --out yaml", "unrecognized arguments: --out yaml"),
        ("scale pods x", "the following arguments are required: --replicas"),
        ("scale pods x --replicas many", "argument --replicas: invalid int value: 'many'"),
        ("delete pods --timeout soon", 'argument --timeout: "soon": must be a duration'),
        ("delete pods --wait=maybe", 'argument --wait: "maybe" must be true or false'),
        ("delete pods --cascade=no", "argument --cascade: invalid choice: 'no'"),
        ("up --durability none", "argument --durability: invalid choice: 'none'"),
        ("kubeconfig --show --merge", "argument --merge: not allowed with argument --show"),
    ],
)
def test_what_cannot_be_is_told_in_a_line_with_where_to_read_on(capsys, line, told):
    said = refused(capsys, *line.split())
    assert said.startswith(f"spinney: {told}")
    assert said.splitlines()[-1].startswith("Try: spinney")
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("get", "say which objects: either KIND [NAME...], or -f FILE"),
        ("get pods -o nice", '-o "nice": must be table, wide, yaml, json, name or jsonpath='),
        ("get pods -o jsonpath={.a", "jsonpath {.a: a brace is not closed"),
        ("get pods -o jsonpath={end}", "jsonpath: {end} without {range}"),
        ("get pods -o jsonpath={.a[}", "jsonpath .a[: no index, field or filter at position 3"),
        ("apply", "say which manifests: -f FILE"),
        ("apply -k here", "-k is not done here: kubectl kustomize here | spinney apply -f -"),
        ("diff -k here", "-k is not done here: kubectl kustomize here | spinney diff -f -"),
        ("apply -f /nowhere", "/nowhere: cannot be read: No such file or directory"),
        ("delete pods", "say which: NAME..., -l LABELS, --field-selector FIELDS, or --all"),
        ("delete pods x --all", "a name does not go together with -l, --field-selector or --all"),
        ("delete pods x -A", "a name does not go together with -A"),
        ("delete pods x --force --grace-period 5", "--force does not go together with"),
        ("scale pclq --replicas 1", "say which: NAME..., -l LABELS, or --all"),
        ("scale pclq x --replicas -1", "--replicas: must be 0 or more, found -1"),
        ("wait pods x --for=luck", '--for "luck": must be ready, condition=TYPE[=STATUS]'),
        ("wait pods --for=delete", "say which: NAME..., -l LABELS"),
        ("edit pods", "say which: pods NAME..."),
        ("up --listen 7443", '--listen "7443": must be HOST:PORT, such as 127.0.0.1:7443'),
        ("up --listen [::1]:99999", '--listen "[::1]:99999": must be HOST:PORT'),
        ("up --nodes sim:two", '--nodes sim:two: "two" must be a number of nodes'),
        ("up --nodes sim:2 --nodes sim:3", '--nodes sim:3: other simulated nodes are named "sim"'),
    ],
)
def test_a_call_that_makes_no_sense_asks_no_server(capsys, line, told, monkeypatch, tmp_path):
    monkeypatch.setenv("SPINNEY_DATA", str(tmp_path / "none"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main.run(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"spinney: {told}")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("line", ["get pods", "describe pcs", "events", "delete pods x"])
def test_without_a_server_it_is_told_how_to_start_one(capsys, line, monkeypatch, tmp_path):
    monkeypatch.setenv("SPINNEY_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main.run(line.split()) == 3
    assert capsys.readouterr().err == (
        f"spinney: there is no server to ask: nothing is up under {tmp_path}/none, and neither "
        f"$KUBECONFIG nor {tmp_path}/.kube/config names one. Start one with: spinney up\n"
    )


@pytest.mark.parametrize("line", ["down", "status", "token", "kubeconfig"])
def test_verbs_of_a_world_that_never_was(capsys, line, monkeypatch, tmp_path):
    monkeypatch.setenv("SPINNEY_DATA", str(tmp_path / "none"))
    code = {"down": 0, "status": 1}.get(line, 3)
    assert main.run([line]) == code
    assert str(tmp_path / "none") in "".join(capsys.readouterr())
    assert not (tmp_path / "none").exists()
