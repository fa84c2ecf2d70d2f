"""Why a container that was to listen on a port ended: because somebody else listens there.

Pods have addresses of their own, so all may listen on one port. But who listens on all addresses
of the machine takes the port from everybody, and can only have it while nobody else listens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from spinney.meta.records import Record
from spinney.nodes.processes import listeners
from spinney.nodes.processes.listeners import ALL_ADDRESSES, Listener
from spinney.nodes.processes.spawner import sweeping

SAYS_SO = (b"ddress already in use", b"EADDRINUSE", b"address in use")
TAIL_BYTES = 8192


class Suspect(Record):
    """A container that runs."""

    keeper: int
    pod_uid: str
    pod: str
    """Namespace and name, as people say them."""

    container: str
    ip: str


def blame(ports: Sequence[int], own: Suspect, others: Sequence[Suspect], log: Path) -> str:
    """Return who has the port that a container should have had, and what to do; "" for nobody.

    Looks through /proc; call it in a thread.
    """
    found = listeners.on_ports(frozenset(ports))
    if not found:
        return ""
    for listener in found:
        if listener.address == ALL_ADDRESSES:
            return _taken(listener, own, others)
    if not _says_so(log):
        return ""
    by_address = {suspect.ip: suspect for suspect in others if suspect.pod_uid != own.pod_uid}
    for listener in found:
        if (suspect := by_address.get(listener.address)) is not None:
            return (
                f'pod "{suspect.pod}" listens on port {listener.port} of its own address, so '
                f"nobody can listen there on all addresses: have this container listen on its "
                f"own, $POD_IP ({own.ip})"
            )
    return ""


def _taken(listener: Listener, own: Suspect, others: Sequence[Suspect]) -> str:
    who, which = _who(listener, others)
    if who is not None and who.pod_uid == own.pod_uid:
        return (
            f'port {listener.port} is taken on all addresses by container "{who.container}" of '
            "this pod: give the two different ports"
        )
    remedy = (
        f"have that one listen on its own address, $POD_IP ({who.ip}), rather than on all"
        if who is not None
        else "end it, or give this container another port"
    )
    return f"port {listener.port} is taken on all addresses by {which}: {remedy}"


def _who(listener: Listener, others: Sequence[Suspect]) -> tuple[Suspect | None, str]:
    """Return which container holds a socket, and how to call whoever does."""
    keepers = {suspect.keeper: suspect for suspect in others}
    parents: dict[int, int] = {process: parent for process, parent, _ in sweeping.processes()}
    process = listeners.holder(listener.inode, _own_first(parents, keepers))
    if process is None:
        return None, "a process of somebody else"
    above = process
    while above and above not in keepers:
        above = parents.get(above, 0)
    if above:
        suspect = keepers[above]
        return suspect, f'container "{suspect.container}" of pod "{suspect.pod}"'
    return None, f"process {process} ({_name(process)}), which is no pod's"


def _own_first(parents: Mapping[int, int], keepers: Mapping[int, Suspect]) -> list[int]:
    """Return all processes, those right below keepers first: they are who it mostly is."""
    return sorted(parents, key=lambda process: (parents[process] not in keepers, process))


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return "gone"


def _says_so(log: Path) -> bool:
    """Whether the end of a log tells of an address in use."""
    try:
        with open(log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            end = file.read()
    except OSError:
        return False
    return any(words in end for words in SAYS_SO)
