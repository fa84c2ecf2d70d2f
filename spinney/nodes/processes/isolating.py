"""Finding out which isolation this machine gives: by trying, once, when the runtime begins."""

from __future__ import annotations

import os
from pathlib import Path

from spinney.nodes.processes import cgroups, hosts
from spinney.nodes.processes.abilities import Abilities
from spinney.nodes.processes.cgroups import Groups
from spinney.nodes.processes.settings import Settings
from spinney.nodes.processes.spawner.plans import Plan
from spinney.nodes.processes.spawning import Isolation, Spawner, SpawnerFailed

PROBE = "probe"


async def begin(settings: Settings, world: str, scratch: Path) -> tuple[Spawner, Groups, Abilities]:
    """Start the spawner that isolates most, or as is wanted, and find control groups.

    Raises SpawnerFailed where what is wanted cannot be had.
    """
    groups = Groups.find(world) if settings.control_groups else Groups(())
    own_user = os.geteuid() != 0 if settings.own_user is None else settings.own_user
    refusals: list[str] = []
    for isolation in Isolation if settings.isolation is None else (settings.isolation,):
        try:
            spawner = await Spawner.start(isolation, own_user=own_user)
        except SpawnerFailed as error:
            refusals.append(str(error))
            continue
        stage, text, notes = await _try(spawner, scratch, groups)
        if stage == "group":
            refusals.append(f"no control groups: {text}")
            groups.close()
            groups = Groups(())
            stage, text, notes = await _try(spawner, scratch, groups)
        if stage:
            refusals.append(f"no namespaces for {isolation.value}: {stage}: {text}")
            spawner.close()
            continue
        found = Abilities(
            isolation=isolation,
            own_user=spawner.own_user,
            hosts_are_seen=isolation is not Isolation.NOTHING and not notes,
            has_groups=bool(groups),
            limits=tuple(sorted(groups.controllers)),
            refusals=(*refusals, *notes),
        )
        return spawner, groups, found
    raise SpawnerFailed("; ".join(refusals))


async def _try(spawner: Spawner, scratch: Path, groups: Groups) -> tuple[str, str, tuple[str, ...]]:
    """Run a program that ends at once.

    Returns what it failed at, with the error, both "" where it ran; and what it went without.
    """
    own_mounts = spawner.isolation is not Isolation.NOTHING
    source = str(hosts.SYSTEM)
    is_there = hosts.SYSTEM.exists()
    folders = groups.make(PROBE, memory_bytes=None, processes_max=100)
    plan: Plan = {
        "title": "spinney:probe",
        "command": ["/bin/sh", "-c", ":"],
        "environment": {},
        "directory": "/",
        "own_mounts": own_mounts,
        "hostname": PROBE,
        "mounts": (
            [{"source": source, "target": source, "read_only": False}]
            if is_there and own_mounts
            else []
        ),
        "scratch": str(scratch),
        "groups": cgroups.procs_files(folders),
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
            return "start", "what was tried ended without a word", ()
        if "failed" in told:
            return str(told["failed"]), str(told.get("text", "")), ()
        notes = told["notes"]
        found = tuple(str(note) for note in notes) if isinstance(notes, list) else ()
        while await channel.receive() is not None:
            pass
        return "", "", found if is_there else (f"there is no {source}",)
    finally:
        channel.close()
        cgroups.remove(folders, channel.process_id)
