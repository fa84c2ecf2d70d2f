"""Finding out which isolation this machine gives: by trying, once, when the runtime begins."""

from __future__ import annotations

import os
from pathlib import Path

from spinney.meta.records import Record
from spinney.nodes.processes import hosts
from spinney.nodes.processes.spawner.plans import Plan
from spinney.nodes.processes.spawning import Isolation, Spawner, SpawnerFailed


class Isolated(Record):
    """What was found."""

    isolation: Isolation
    hosts_are_seen: bool
    """Whether containers see the names of pods in `/etc/hosts`."""

    refusals: tuple[str, ...] = ()
    """Why there is not more."""


async def begin(wanted: Isolation | None, scratch: Path) -> tuple[Spawner, Isolated]:
    """Start the spawner that isolates most, or as is wanted.

    Raises SpawnerFailed where what is wanted cannot be had.
    """
    refusals: list[str] = []
    for isolation in Isolation if wanted is None else (wanted,):
        try:
            spawner = await Spawner.start(isolation)
        except SpawnerFailed as error:
            refusals.append(str(error))
            continue
        failed, notes = await _try(spawner, scratch)
        if not failed:
            found = Isolated(
                isolation=isolation,
                hosts_are_seen=isolation is not Isolation.NOTHING and not notes,
                refusals=(*refusals, *notes),
            )
            return spawner, found
        refusals.append(f"no namespaces for {isolation.value}: {failed}")
        spawner.close()
    raise SpawnerFailed("; ".join(refusals))


async def _try(spawner: Spawner, scratch: Path) -> tuple[str, tuple[str, ...]]:
    """Run a program that ends at once; returns why it could not be, and what it went without."""
    own_mounts = spawner.isolation is not Isolation.NOTHING
    seen = hosts.SYSTEM.exists() and own_mounts
    source = str(hosts.SYSTEM)
    plan: Plan = {
        "title": "spinney:probe",
        "command": ["/bin/sh", "-c", ":"],
        "environment": {},
        "directory": "/",
        "own_mounts": own_mounts,
        "hostname": "probe",
        "mounts": [{"source": source, "target": source, "read_only": False}] if seen else [],
        "scratch": str(scratch),
        "groups": [],
        "files_max": [],
        "processes_max": 0,
    }
    silence = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        channel = await spawner.fork(plan, silence, silence)
    finally:
        os.close(silence)
    try:
        told = await channel.receive()
        if told is None:
            return "what was tried ended without a word", ()
        if "failed" in told:
            return f"{told['failed']}: {told.get('text', '')}", ()
        notes = told["notes"]
        found = tuple(str(note) for note in notes) if isinstance(notes, list) else ()
        while await channel.receive() is not None:
            pass
        return "", found if hosts.SYSTEM.exists() else (f"there is no {hosts.SYSTEM}",)
    finally:
        channel.close()
