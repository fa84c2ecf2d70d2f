"""The documentation: links lead somewhere, commands do what the page shows, words are the API's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.api.kinds import OUR_KINDS
from spinney.meta import schemas

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")]
    if ".venv" not in page.parts
)
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN = [
    "README.md",
    "docs/tutorial/first-manifest.md",
    "docs/tutorial/first-world.md",
    "docs/tutorial/first-gang.md",
    "docs/how-to/check-manifests-in-ci.md",
]
NOT_RUN = ("make ", "pip ", "kubectl ", "helm ", "curl ")
"""Commands of a page that need what a test has not, or that are the test's own caller."""


def named(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{named(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_begins_with_its_title(page):
    if "changelog.d" not in page.parts:
        text = re.sub(r"^<!--.*?-->\s*", "", page.read_text(), flags=re.DOTALL)
        assert text.startswith("# ")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "docs/decisions" in page.as_posix()], ids=named
)
def test_a_decision_is_short_and_in_the_index(page):
    assert len(page.read_text().splitlines()) <= 80
    if page.name != "index.md":
        assert page.name in (page.parent / "index.md").read_text()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_changelog_fragments_say_of_what_sort_they_are():
    for fragment in (ROOT / "changelog.d").iterdir():
        assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|breaking)\.md", fragment.name)


@pytest.mark.parametrize("name", RUN)
def test_commands_do_what_the_page_shows(name, tmp_path, request):
    """Files of a page are written, its commands run, in order; `...` stands for anything."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    command = bin_ / "spinney"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spinney "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "SPINNEY_DATA": str(tmp_path / "data"),
    }
    environment.pop("KUBECONFIG", None)
    request.addfinalizer(lambda: subprocess.run([command, "down"], env=environment, check=False))
    count = 0
    for language, info, body in FENCE.findall((ROOT / name).read_text()):
        if language == "yaml" and "file=" in info:
            (tmp_path / info.partition("file=")[2].strip()).write_text(body)
        if language != "console":
            continue
        for line, expected in commands(body):
            if line.startswith(NOT_RUN):
                continue
            done = subprocess.run(
                ["sh", "-c", f"{{ {line}\n}} 2>&1"],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            count += 1
            if expected:
                parts = map(re.escape, expected.split("...\n"))
                pattern = r"(?:.*\n)*?".join(part.replace(r"\.\.\.", ".*") for part in parts)
                assert re.fullmatch(pattern, done.stdout), f"{line}\n{done.stdout}"
            else:
                assert done.returncode == 0, f"{line}\n{done.stdout}"
    assert count > 0


def commands(body):
    """Yield each command of a console block with what the page shows of its output."""
    current, shown = "", []
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            if current:
                yield current, "".join(shown)
            current, shown = line[2:].rstrip(), []
        else:
            shown.append(line)
    if current:
        yield current, "".join(shown)


def test_python_of_a_page_runs():
    found = 0
    for page in PAGES:
        space: dict[str, object] = {}
        for language, info, body in FENCE.findall(page.read_text()):
            if language == "python" and info.strip() == "run":
                exec(compile(body, named(page), "exec"), space)
                found += 1
    assert found >= 2


def test_words_of_the_glossary_are_those_of_the_api():
    known = {kind.kind for kind in OUR_KINDS}
    for kind in OUR_KINDS.values():
        for path, below in schemas.walk(kind.schema):
            if below.core:
                continue
            known |= {path[-1], *re.findall(r"`(\w+)`", below.doc)}
    page = (ROOT / "docs/reference/glossary.md").read_text()
    words = re.findall(r"`(\w+)`", page)
    assert len(words) > 15
    assert [word for word in words if word not in known] == []


def test_conditions_the_promises_name_are_in_the_api():
    texts = [below.doc for kind in OUR_KINDS.values() for _, below in schemas.walk(kind.schema)]
    for condition in ("Progressing", "Failing", "Failed", "NameConflict", "Succeeded"):
        assert any(f"`{condition}`" in text for text in texts), condition


REASON = re.compile(r"\b(?:TRUE|FALSE|UNKNOWN), \"([A-Z]\w+)\"")


def test_every_reason_of_a_condition_is_explained():
    page = (ROOT / "docs/reference/conditions.md").read_text()
    given = {
        reason
        for module in ROOT.glob("spinney/decisions/*.py")
        for reason in REASON.findall(module.read_text())
    }
    assert len(given) > 10
    assert not sorted(reason for reason in given if f"`{reason}`" not in page)
