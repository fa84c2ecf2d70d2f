"""Who may come in: the tokens of a data folder, and the kubeconfig that carries one of them."""

from __future__ import annotations

import base64
import contextlib
from pathlib import Path

import msgspec

from spinney.app import files
from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.ports import Entropy

TOKEN_BYTES = 32
CONTEXT = "spinney"
"""What cluster, user and context are called in the kubeconfig."""


class Tokens(Record):
    """The secrets of a data folder."""

    admin: str
    """May do everything."""

    read_only: str
    """May read, and nothing else."""

    agent: str = ""
    """The agent of this machine's own node."""


def prepare(file: Path, entropy: Entropy) -> Tokens:
    """Return the tokens of a data folder; makes them once."""
    known = read(file)
    if known is not None and known.agent:
        return known
    made = Tokens(
        admin=known.admin if known is not None else entropy.token(TOKEN_BYTES),
        read_only=known.read_only if known is not None else entropy.token(TOKEN_BYTES),
        agent=entropy.token(TOKEN_BYTES),
    )
    files.write(file, msgspec.json.encode(made))
    return made


def read(file: Path) -> Tokens | None:
    """Return the tokens of a data folder, None where there are none or the file is damaged."""
    with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError):
        tokens = msgspec.json.decode(file.read_bytes(), type=Tokens)
        if tokens.admin and tokens.read_only:
            return tokens
    return None


def kubeconfig(address: str, authority: bytes, token: str) -> Document:
    """Return a kubeconfig for a server that is reached under an address."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {
                    "server": address,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [
            {
                "name": CONTEXT,
                "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"},
            }
        ],
        "current-context": CONTEXT,
    }
