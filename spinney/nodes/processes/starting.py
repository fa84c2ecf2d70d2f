"""Making of a container's plan what its keeper is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spinney.meta.errors import BadRequest
from spinney.nodes.processes import hosts, records, volumes
from spinney.nodes.processes.spawner.plans import MountPlan, Plan
from spinney.ports import ContainerPlan, Sandbox


def log_path(plan: ContainerPlan, sandbox: Sandbox) -> Path:
    """Return where a container's output goes."""
    if plan.log_path:
        return Path(plan.log_path)
    return records.folder_of(Path(sandbox.root), plan.name) / f"{plan.attempt}.log"


def work_folder(plan: ContainerPlan, sandbox: Sandbox) -> Path:
    """Return where a container begins that names no folder: one of its own."""
    return records.folder_of(Path(sandbox.root), plan.name) / "work"


def mounts(
    plan: ContainerPlan, sandbox: Sandbox, shared_hosts: Path, *, hosts_are_seen: bool
) -> list[MountPlan]:
    """Return what a container shall see where; raises BadRequest for a volume that is not there."""
    made: list[MountPlan] = []
    if hosts_are_seen:
        made.append({"source": str(shared_hosts), "target": str(hosts.SYSTEM), "read_only": False})
    for mount in sorted(plan.mounts, key=lambda mount: mount.path.count("/")):
        if mount.volume not in sandbox.volumes:
            raise BadRequest(f'mount {mount.path}: the pod has no volume "{mount.volume}"')
        source = volumes.part(
            sandbox.volumes[mount.volume], mount.sub_path, make=not mount.read_only
        )
        made.append({"source": source, "target": mount.path, "read_only": mount.read_only})
    return made


def keeper_plan(
    plan: ContainerPlan,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    wanted: Sequence[MountPlan],
    *,
    own_mounts: bool,
    groups: Sequence[str],
    files_max: tuple[int, int],
    processes_max: int,
) -> Plan:
    """Return what a keeper is told."""
    return {
        "title": f"spinney:{plan.name}",
        "command": list(plan.command),
        "environment": dict(environment),
        "directory": plan.working_directory or str(work_folder(plan, sandbox)),
        "own_mounts": own_mounts,
        "hostname": sandbox.hostname,
        "mounts": list(wanted) if own_mounts else [],
        "scratch": str(Path(sandbox.root) / "mounting"),
        "groups": list(groups),
        "files_max": list(files_max),
        "processes_max": processes_max,
    }
