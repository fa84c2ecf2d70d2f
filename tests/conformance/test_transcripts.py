"""How transcripts are masked, and folded into golden files."""

from __future__ import annotations

import pytest

from tests.conformance import transcripts
from tests.conformance.transcripts import Printed


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("a   Active   5s\n", "a   Active   <age>\n"),
        ("5s          Normal   x\n", "<age>       Normal   x\n"),
        ("12m         Normal   x\n", "<age>       Normal   x\n"),
        ("a   3d4h   b\n", "a   <age>  b\n"),
        ("terminationDelay: 10m\n", "terminationDelay: 10m\n"),
        ('resourceVersion: "17"\n', 'resourceVersion: "<version>"\n'),
        ('"resourceVersion":"17"', '"resourceVersion":"<version>"'),
        ("created 2026-01-02T03:04:05.000001Z", "created <time>"),
        ("uid: 0f3b9a52-0000-4000-8000-000000000001", "uid: <uid>"),
        ("at https://127.0.0.1:7443/x", "at https://<server>/x"),
        ("! W1119 22:30:48.577695   25367 prune.go:71] Old\n", "! W prune.go] Old\n"),
        ("! E1119 22:30:48.5   25367 reflector.go:7] cut\nnext\n", "next\n"),
        ('configmap "a" deleted from b namespace\n', 'configmap "a" deleted\n'),
        ("secret/c pruned\nconfigmap/a pruned\n", "configmap/a pruned\nsecret/c pruned\n"),
        ("--- /tmp/x/LIVE-12/v1.ConfigMap", "--- <folder>/LIVE/v1.ConfigMap"),
    ],
)
def test_what_differs_from_run_to_run_is_masked(printed, expected):
    assert transcripts.masked(printed, {}) == expected


def test_a_case_masks_what_only_it_prints():
    assert transcripts.masked("made-x7k2p", {"made-[a-z0-9]{5}": "made-<suffix>"}) == (
        "made-<suffix>"
    )


def test_a_transcript_reads_like_a_terminal():
    printed = Printed(
        "kubectl get -w",
        "a\nb",
        "wrong\n",
        None,
        (Printed("kubectl label", "done\n", "", 1),),
    )
    assert printed.text() == (
        "$ kubectl get -w\na\nb⏎\n! wrong\ninterrupted\nmeanwhile $ kubectl label\ndone\nexit 1\n"
    )


def test_neighbours_that_print_the_same_share_a_file():
    folded = transcripts.folded({36: "new", 35: "new", 34: "old", 27: "old"})
    assert folded == [(None, [36, 35], "new"), (34, [34, 27], "old")]


@pytest.mark.parametrize(
    ("minor", "name"),
    [
        (36, "x.txt"),
        (31, "x.txt"),
        (30, "x.to-1.30.txt"),
        (28, "x.to-1.28.txt"),
        (27, "x.to-1.28.txt"),
    ],
)
def test_the_golden_file_of_a_version_is_the_nearest_above(tmp_path, minor, name):
    (tmp_path / "get").mkdir()
    for file in ("x.txt", "x.to-1.30.txt", "x.to-1.28.txt"):
        (tmp_path / "get" / file).touch()
    assert transcripts.golden_file("get", "x", minor, tmp_path).name == name


def test_the_header_is_not_compared():
    header = transcripts.header("lists as tables", [36, 27])
    assert "1.27 1.36" in header
    assert transcripts.without_header(header + "$ kubectl\n") == "$ kubectl\n"
