"""What `spinney tree` and `spinney why` draw of typical situations, word for word.

After a change that is meant, write the golden files anew and read the diff:

    SPINNEY_REGENERATE=1 pytest tests/cli/test_pictures.py
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from spinney.api import groupkinds
from spinney.cli import pictures
from spinney.cli.screen import Screen
from spinney.decisions.causes import chains, trees
from spinney.meta.references import Ref
from tests.decisions.situations import SITUATIONS

FOLDER = Path(__file__).parent / "golden"
CHAT = Ref(kind=groupkinds.SET, namespace="default", name="chat")


def drawn(world) -> str:
    plain = Screen(io.StringIO(), io.StringIO())
    scene = world.scene()
    tree = pictures.tree([trees.tree(scene, ref) for ref in trees.roots(scene)], world.now)
    why = pictures.chain(chains.chain(scene, CHAT), world.now)
    lines = ["$ spinney tree", *map(plain.parts, tree), "", "$ spinney why chat"]
    return "\n".join([*lines, *map(plain.parts, why), ""])


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_is_drawn(name):
    file = FOLDER / f"{name}.txt"
    found = drawn(SITUATIONS[name]())
    if os.environ.get("SPINNEY_REGENERATE"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(found)
    assert found == file.read_text()


def test_there_is_no_golden_file_too_many():
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(SITUATIONS)
