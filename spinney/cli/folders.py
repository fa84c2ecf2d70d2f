"""Where things are on this machine, as a call and its environment say."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from spinney.app.datafolder import DataFolder


def data(arguments: argparse.Namespace) -> DataFolder:
    """Return the data folder: `--data`, `$SPINNEY_DATA`, else where such things are kept."""
    given = arguments.data or os.environ.get("SPINNEY_DATA")
    if given:
        return DataFolder(Path(given).expanduser().absolute())
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return DataFolder(Path(state).expanduser() / "spinney")


def kubeconfigs() -> list[Path]:
    """Return the files of `$KUBECONFIG`, none where it is not set."""
    return [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]


def home_kubeconfig() -> Path:
    """Return where kubectl keeps its file."""
    return Path("~/.kube/config").expanduser()
