"""The names pods can resolve: one file for all of them, rewritten in place.

It begins with what the machine's own `/etc/hosts` says. Where containers have mounts of their own
it stands at `/etc/hosts`; elsewhere a program finds it by `SPINNEY_HOSTS_FILE`. It is rewritten in
place because a mount is of the file, not of its name: a file put in its place would not be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

SYSTEM = Path("/etc/hosts")

Names = Mapping[str, Sequence[str]]
"""Addresses by name, in the order they are to be tried."""


def text(system: str, names: Names, hostnames: Iterable[tuple[str, str]]) -> str:
    """Return the file: the machine's own lines, names of services, and hostnames of pods.

    `hostnames` are pairs of hostname and address; of several with one hostname the first counts.
    """
    lines = [system.rstrip("\n"), "", "# Pods of this machine, written by Spinney."]
    told = set(names)
    for name in sorted(names):
        lines += [f"{address}\t{name}" for address in names[name]]
    for hostname, address in hostnames:
        if hostname not in told:
            told.add(hostname)
            lines.append(f"{address}\t{hostname}")
    return "\n".join(lines) + "\n"


def write(path: Path, content: str) -> None:
    """Put a text in a file that stays the same file."""
    data = content.encode()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.pread(descriptor, len(data) + 1, 0) == data:
            return
        os.fchmod(descriptor, 0o644)
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def system_text() -> str:
    """Return the machine's own file; "" where it has none."""
    try:
        return SYSTEM.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
