"""`spinney kubeconfig` and `spinney token`: what lets a client in."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from spinney.app import credentials, files
from spinney.app.datafolder import DataFolder
from spinney.cli import folders, printing, screen
from spinney.cli.usage import NoServer, Usage
from spinney.kube import kubeconfig as kubeconfigs
from spinney.meta import manifests
from spinney.meta.documents import Document, Json, list_at, string_at

LISTS = ("clusters", "users", "contexts")


def kubeconfig(arguments: argparse.Namespace) -> int:
    """Print the path of the kubeconfig, or the file, or merge it into the user's own."""
    folder = folders.data(arguments)
    output = screen.for_call(arguments)
    if not folder.kubeconfig.exists():
        raise _never_up(folder)
    if folder.holder() is None:
        output.note(f"nothing is up under {folder.root}: the file is of the last time")
    if arguments.show:
        output.write(folder.kubeconfig.read_text())
    elif arguments.merge:
        given = folders.kubeconfigs()
        target = given[0] if given else folders.home_kubeconfig()
        if target.absolute() == folder.kubeconfig:
            raise Usage(f"$KUBECONFIG names {target} itself: there is nothing to merge")
        merge(folder.kubeconfig, target)
        output.line(f"context {credentials.CONTEXT} is in {target}")
        output.note(f"Try: kubectl --context {credentials.CONTEXT} get namespaces")
    else:
        output.line(str(folder.kubeconfig))
    return 0


def token(arguments: argparse.Namespace) -> int:
    """Print a token of the data folder."""
    folder = folders.data(arguments)
    with folder.explained():
        tokens = credentials.read(folder.tokens)
    if tokens is None:
        raise _never_up(folder)
    screen.for_call(arguments).line(tokens.read_only if arguments.read_only else tokens.admin)
    return 0


def _never_up(folder: DataFolder) -> NoServer:
    return NoServer(f"nothing was ever up under {folder.root}: start it with `spinney up`")


def merge(source: Path, target: Path) -> None:
    """Put the entries of one kubeconfig into another, in place of those of their names."""
    merged = _read(target)
    added = _read(source)
    for field in LISTS:
        merged[field] = _merged(list_at(merged, [field]), list_at(added, [field]))
    if not string_at(merged, ["current-context"]):
        merged["current-context"] = added["current-context"]
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write(Path(os.path.realpath(target)), printing.yaml_text(merged).encode())


def _read(path: Path) -> Document:
    kubeconfigs.read([path], must_exist=False)
    for found in manifests.load(path.read_bytes() if path.exists() else b""):
        if isinstance(found.document, dict):
            return dict(found.document)
    return {"apiVersion": "v1", "kind": "Config"}


def _merged(held: list[Json], added: list[Json]) -> list[Json]:
    names = {string_at(item, ["name"]) for item in added}
    return [*(item for item in held if string_at(item, ["name"]) not in names), *added]
