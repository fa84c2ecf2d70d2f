"""Stock kubectl, newest and oldest, against a server of ours: what it prints is what it should.

The table of commands is `table/*.yaml`, what they should print `golden/`. `make golden` writes
the golden files anew; they are reviewed as diffs.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from tests.conformance import cases, transcripts
from tests.conformance.conftest import CASES
from tests.conformance.running import Runner
from tools import kubectl


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home folder, where kubectl keeps what it learned of each server."""
    return tmp_path_factory.mktemp("home")


def test_kubectl_prints_what_it_should(kubectl_case, minor, lives, home, tmp_path):
    live = lives.of(f"1.{minor}-{kubectl_case.world}")
    namespace = f"{kubectl_case.group}-{kubectl_case.name}"
    live.create_namespace(namespace)
    runner = Runner(
        program=kubectl.program(minor),
        home=home,
        kubeconfig=live.in_namespace(namespace, tmp_path / "kubeconfig"),
        folder=tmp_path,
    )
    for file in kubectl_case.given:
        given = runner.run(cases.Step(f"kubectl create -f {file}"))
        assert not given.exit_code, given.text()
    printed = [runner.run(step) for step in kubectl_case.steps_for(minor)]
    told = transcripts.told(printed, kubectl_case.masks)
    folder = os.environ.get("SPINNEY_TRANSCRIPTS")
    if folder:
        transcripts.keep(Path(folder), kubectl_case.group, kubectl_case.name, minor, told)
    else:
        compare(transcripts.golden_file(kubectl_case.group, kubectl_case.name, minor), told)


def compare(file: Path, told: str) -> None:
    """Fail, with what differs, unless a transcript is that of its golden file."""
    assert file.exists(), f"{file.name} is not there: `make golden` writes it"
    expected = transcripts.without_header(file.read_text())
    if told != expected:
        lines = difflib.unified_diff(
            expected.splitlines(), told.splitlines(), str(file), "printed now", lineterm="", n=6
        )
        pytest.fail("\n".join(lines), pytrace=False)


def test_the_table_is_broad():
    """Every command is run in many ways; no two cases have the same name."""
    commands = {line for case in CASES for step in case.steps for line in step.commands()}
    assert len(commands) >= 80
    assert len({(case.group, case.name) for case in CASES}) == len(CASES)


def test_every_case_has_a_golden_file_and_every_golden_file_a_case():
    wanted = {f"{case.group}/{case.name}" for case in CASES}
    found = {
        f"{file.parent.name}/{file.name.split('.to-1.')[0].removesuffix('.txt')}"
        for file in transcripts.GOLDEN.glob("*/*.txt")
    }
    assert found == wanted
