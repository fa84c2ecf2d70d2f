"""Puts programs into the manifests that run them, so that a manifest is all one needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "examples/serving"
PATH = "examples/serving.yaml"

CODE = """\
---
# Made by `make generate` from examples/serving/serving.py.
apiVersion: v1
kind: ConfigMap
metadata:
  name: serving
data:
  serving.py: |
"""


def files() -> Mapping[str, bytes]:
    """Return the manifests that hold programs, by path."""
    program = (ROOT / FOLDER / "serving.py").read_text()
    body = "".join(f"    {line}" if line.strip() else line for line in program.splitlines(True))
    text = (ROOT / FOLDER / "set.yaml").read_text() + CODE + body
    return {PATH: text.encode()}
