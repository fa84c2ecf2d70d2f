"""Addresses to listen on: who reaches them, and who has them already, as far as Linux tells."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

from spinney.meta.errors import SpinneyError

_LISTENING = "0A"


class PortTaken(SpinneyError):
    """The user: another process listens there; says which, where that can be known."""

    def __init__(self, host: str, port: int) -> None:
        """Name the address, and the process."""
        process = process_on(port)
        by = f" by process {process[0]} ({process[1]})" if process else ""
        super().__init__(
            f"{host}:{port} is taken{by}: choose another port with --listen {host}:PORT, "
            "or 0 for any that is free"
        )


class BadAddress(SpinneyError):
    """The user: an address that this machine cannot listen on."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def process_on(port: int) -> tuple[int, str] | None:
    """Return pid and name of a process that listens on a TCP port, None where it is not known."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and sockets & set(_open(process)):
            return int(process.name), _name(process)
    return None


def _listening(port: int) -> Iterator[str]:
    """Yield the inodes of sockets that listen on a port."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _open(process: Path) -> Iterator[str]:
    """Yield what a process has open; nothing of one that is another user's, or has ended."""
    with contextlib.suppress(OSError):
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(entry)


def _name(process: Path) -> str:
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().split(b"\0")
        text = " ".join(word.decode("utf-8", "replace") for word in words if word)
        return text if len(text) <= 60 else f"{text[:60]}…"
    return "?"
