"""The other commands, and what starting one costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

import spinney
from spinney.api.kinds import OUR_KINDS
from spinney.cli import completing, main

VERBS = [
    *("up", "down", "status", "kubeconfig", "demo", "token"),
    *("apply", "get", "describe", "delete", "scale", "wait", "events", "edit", "diff"),
    *("tree", "why", "logs", "top", "exec", "port-forward", "plan", "rollout"),
    *("validate", "show-defaults", "crds", "fields", "version", "completion"),
]
KIND_NAMES = sorted(kind.kind for kind in OUR_KINDS)


def run(capsys, *words):
    code = main.run(words)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def test_crds_are_those_of_all_kinds(capsys):
    found = list(yaml.load_all(run(capsys, "crds"), yaml.CSafeLoader))
    assert sorted(item["spec"]["names"]["kind"] for item in found) == KIND_NAMES
    assert {item["kind"] for item in found} == {"CustomResourceDefinition"}


@pytest.mark.parametrize(
    "word", ["pcs", "pgs", "podcliquesets", "PodCliqueSet", "podcliqueset.grove.io"]
)
def test_a_kind_is_known_by_all_its_names(capsys, word):
    crd = json.loads(run(capsys, "crds", word, "-o", "json"))
    assert crd["metadata"]["name"] == "podcliquesets.grove.io"


def test_fields_tell_what_a_field_means(capsys):
    out = run(capsys, "fields", "podcliqueset.spec.template.terminationDelay")
    assert (
        out
        == """\
GROUP:      grove.io
KIND:       PodCliqueSet
VERSION:    v1alpha1

FIELD: terminationDelay <Duration>

DESCRIPTION:
    How long fewer than minAvailable may be ready before the gang is torn down
    and rebuilt. Not given: never (gang termination is off). Training: 0s by
    default.

EXAMPLE:    4h
"""
    )


def test_the_version_is_told(capsys):
    assert run(capsys, "version") == f"spinney {spinney.__version__}\n"
    assert json.loads(run(capsys, "version", "-o", "json")) == {"version": spinney.__version__}


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ([""], VERBS),
        (["va"], ["validate"]),
        (["validate", "--a"], ["--against"]),
        (["validate", "-o", ""], ["text", "json"]),
        (["validate", "--output=json", "--h"], ["--help"]),
        (["completion", "z"], ["zsh"]),
        (["validate", "some"], []),
        (["nonsense", ""], VERBS),
        (["get", "--show-l"], ["--show-labels"]),
        (["--data", "x", "up", "--durability", "r"], ["relaxed"]),
    ],
)
def test_what_may_follow_is_offered(words, answers):
    assert completing.answers(main.parser(), words) == answers


@pytest.mark.parametrize("shell", sorted(completing.SCRIPTS))
def test_a_shell_gets_its_script(capsys, shell):
    out = run(capsys, "completion", shell)
    assert main.COMPLETION_VARIABLE in out
    assert out == completing.SCRIPTS[shell]


def test_bash_completes_with_the_script(tmp_path):
    """The script is sourced by a real bash, which then completes a line."""
    lines = [
        f'source <("{sys.executable}" -m spinney completion bash)',
        f'spinney() {{ "{sys.executable}" -m spinney "$@"; }}',
        "COMP_WORDS=(spinney show) COMP_CWORD=1; _spinney_completion spinney",
        'echo "${COMPREPLY[*]}"',
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "show-defaults\n"


LOADED = """\
import sys
sys.stdout = sys.stderr
from spinney.cli import main
try:
    main.run({words})
except SystemExit:
    pass
here = sys.modules.values()
names = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
ours = {{name for name in sys.modules if name.startswith("spinney.")}}
sys.__stdout__.write("\\n".join(sorted(names | ours)))
"""


def loaded(*words):
    """Return the modules, other than Python's own, that a command loads."""
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"import sys; sys.path[:] = {sys.path!r}\n" + LOADED.format(words=list(words)),
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(done.stdout.split()) - {"__main__", "sitecustomize"}


def test_help_loads_nothing_but_the_command_line():
    assert loaded("--help") == {
        "spinney",
        "spinney.cli",
        "spinney.cli.completing",
        "spinney.cli.insight",
        "spinney.cli.rollouts",
        "spinney.cli.main",
        "spinney.cli.objects",
        "spinney.cli.offline",
        "spinney.cli.parsing",
        "spinney.cli.world",
    }


def test_validate_loads_what_it_needs_and_no_more(tmp_path):
    manifest = tmp_path / "a.json"
    manifest.write_text("{}")
    modules = loaded("validate", os.fspath(manifest))
    others = {name for name in modules if not name.startswith(("spinney", "cython", "_cython"))}
    assert others == {"msgspec", "typing_extensions", "yaml"}
    layers = {name.split(".")[1] for name in modules if name.startswith("spinney.")}
    assert layers == {"api", "cli", "meta"}


SPINNEY = f'"{sys.executable}" -m spinney'


def shell(script, folder, **environment):
    """Run a script of a real shell, in which `spinney` is the command."""
    done = subprocess.run(
        ["bash", "-c", f'spinney() {{ {SPINNEY} "$@"; }}\n{script}'],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
ODD = '{"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "spec": {"größe": 1}}'


def test_everything_is_written_in_utf_8_whatever_the_locale(tmp_path):
    (tmp_path / "a.json").write_text(ODD, "utf-8")
    code, out, _ = shell("spinney validate a.json", tmp_path, **ASCII)
    assert code == 1
    assert "spec.größe: Unknown field" in out


def test_a_file_may_have_any_name(tmp_path):
    script = "printf '{}' > $'\\xff.json'; spinney validate -o json $'\\xff.json'"
    code, out, err = shell(script, tmp_path)
    assert (code, err) == (1, "")
    assert json.loads(out)["documents"][0]["file"] == r"\udcff.json"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("spinney validate - <&-", (2, "", "spinney: -: standard input is closed\n")),
        ("spinney version >&-", (0, "", "")),
        ("spinney fields nope 2>&-", (2, "", "")),
        (
            "spinney version >/dev/full",
            (1, "", "spinney: cannot write the answer: No space left on device\n"),
        ),
    ],
)
def test_a_closed_or_full_stream_is_no_crash(tmp_path, script, expected):
    assert shell(script, tmp_path) == expected


def test_a_reader_that_went_away_is_no_crash():
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "{sys.executable}" -m spinney crds | head -c 10'],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout[:3], done.stderr) == (b"api", b"")
