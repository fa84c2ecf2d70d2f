"""What `make check` forbids: each sort of breach is planted, and must be caught."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import promises

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

IMPORTS = {
    "layers": (
        ("meta", "api"),
        ("api", "decisions"),
        ("decisions", "ports"),
        ("ports", "store"),
        ("store", "registry"),
        ("registry", "server"),
        ("engine", "controllers"),
        ("controllers", "server"),
        ("scheduler", "controllers"),
        ("nodes", "scheduler"),
        ("router", "nodes"),
        ("kube", "router"),
        ("server", "kube"),
        ("controllers", "app"),
        ("server", "testing"),
        ("app", "cli"),
        ("testing", "cli"),
    ),
    "what runs controllers knows no store": (
        ("engine", "store"),
        ("controllers", "registry"),
        ("scheduler", "store"),
        ("nodes", "registry"),
        ("router", "store"),
        ("kube", "store"),
    ),
    "what serves the API knows no engine": (("server", "engine"), ("registry", "engine")),
}
IMPURE = tuple(
    (layer, module)
    for layer in ("meta", "api", "decisions")
    for module in ("asyncio", "time", "random", "secrets", "os", "logging", "threading")
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A copy of the package with every breach planted, and what lint-imports says of it."""
    root = tmp_path_factory.mktemp("planted")
    shutil.copytree(
        ROOT / "spinney", root / "spinney", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", root)
    for pairs in IMPORTS.values():
        for importer, imported in pairs:
            plant = f"planted_{imported}"
            text = f"from spinney import {imported}\n\nFOUND = {imported}\n"
            if importer == "ports":
                with (root / "spinney/ports.py").open("a") as file:
                    file.write(text)
            else:
                (root / "spinney" / importer / f"{plant}.py").write_text(text)
    for layer, module in IMPURE:
        (root / "spinney" / layer / f"planted_{module}.py").write_text(f"import {module}\n")
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache"],
        cwd=root,
        env={"PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_every_layer_contract_catches_its_breach(planted):
    assert planted.returncode == 1
    assert "Contracts: 0 kept, 4 broken." in planted.stdout
    for contract in IMPORTS:
        assert f"{contract} BROKEN" in planted.stdout


@pytest.mark.parametrize(
    ("importer", "imported"), [pair for pairs in IMPORTS.values() for pair in pairs]
)
def test_a_forbidden_import_is_caught(planted, importer, imported):
    source = "spinney.ports" if importer == "ports" else f"spinney.{importer}.planted_{imported}"
    assert f"{source} -> spinney.{imported} " in planted.stdout


@pytest.mark.parametrize(("layer", "module"), IMPURE)
def test_a_pure_layer_that_asks_the_world_is_caught(planted, layer, module):
    assert f"spinney.{layer}.planted_{module} -> {module} " in planted.stdout


BANNED = {
    "import time\n": "Clock",
    "import datetime\nNOW = datetime.datetime.now()\n": "Clock.now()",
    "import asyncio\nasync def f():\n    await asyncio.sleep(1)\n": "Clock.sleep()",
    "import random\n": "Entropy",
    "import secrets\n": "Entropy",
    "import uuid\nUID = uuid.uuid4()\n": "Entropy.uid()",
    "import os\nBYTES = os.urandom(3)\n": "Entropy",
}


def lint(text, file):
    done = subprocess.run(
        [BIN / "ruff", "check", "--select", "TID251", "--no-cache", "--stdin-filename", file, "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("text", BANNED)
def test_time_and_chance_are_passed_in(text):
    said = lint(text, "spinney/engine/planted.py")
    assert "TID251" in said
    assert BANNED[text] in said


@pytest.mark.parametrize("folder", ["app", "testing"])
def test_real_clocks_are_made_in_two_places_only(folder):
    assert "All checks passed!" in lint("import time\n", f"spinney/{folder}/planted.py")


def test_types_are_strict_and_the_pure_layers_say_no_any(tmp_path):
    package = tmp_path / "spinney" / "meta"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text('"""Planted."""\n')
    (package / "untyped.py").write_text("def f(x):\n    return x\n")
    (package / "loose.py").write_text("from typing import Any\n\nX: Any = 1\n")
    done = subprocess.run(
        [BIN / "mypy", "--config-file", ROOT / "pyproject.toml", "spinney"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "untyped.py:1: error: Function is missing a type annotation" in done.stdout
    assert 'loose.py:3: error: Explicit "Any" is not allowed' in done.stdout


def test_a_test_that_names_no_promise_is_found():
    source = '@pytest.mark.rule("99.9")\ndef test_x(): ...\n@pytest.mark.law\ndef test_y(): ...\n'
    assert list(promises.guarded(source)) == [("99.9", 1)]
    assert promises.promised("**1.2** A.\n\nB **3.4** c\n**1.10** D.\n") == ("1.2", "1.10")
