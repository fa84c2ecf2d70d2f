"""Who listens on a TCP port of this machine: so that a start that failed for it can say so."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterable

from spinney.meta.records import Record

_LISTENING = "0A"
ALL_ADDRESSES = "0.0.0.0"
_ALL_6 = "::"


class Listener(Record):
    """Somebody who listens."""

    address: str
    port: int
    inode: int


def on_ports(ports: Collection[int]) -> list[Listener]:
    """Return who listens on any of these ports."""
    found = []
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            with open(f"/proc/net/{name}") as file:
                lines = file.readlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            address, _, port = fields[1].partition(":")
            if fields[3] == _LISTENING and int(port, 16) in ports:
                found.append(
                    Listener(
                        address=_address(address, family),
                        port=int(port, 16),
                        inode=int(fields[9]),
                    )
                )
    return found


def _address(text: str, family: int) -> str:
    """Return an address from the kernel's words: hexadecimal, each word in the machine's order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    address = socket.inet_ntop(family, b"".join(struct.pack("=I", word) for word in words))
    return ALL_ADDRESSES if address == _ALL_6 else address.removeprefix("::ffff:")


def holder(inode: int, processes: Iterable[int]) -> int | None:
    """Return the first of these processes that holds a socket, as far as we may look."""
    wanted = f"socket:[{inode}]"
    for process in processes:
        folder = f"/proc/{process}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:
            continue
        for number in numbers:
            try:
                if os.readlink(f"{folder}/{number}") == wanted:
                    return process
            except OSError:
                continue
    return None
