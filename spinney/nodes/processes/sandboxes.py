"""The folder of each pod, and what is remembered of the pod in it.

pods/<uid>/sandbox.json     address, hostname, where volumes are
           volumes/<name>/
           containers/<name>/<attempt>.json, <attempt>.log, work/
           mounting/        empty; needed while mounting
pods/.shared/world          which world this is, as its processes are marked
             hosts          the names all pods can resolve
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from spinney.api.core.pod import Pod
from spinney.meta.records import Record
from spinney.nodes.processes import addresses, records, volumes
from spinney.ports import Sandbox, VolumeContent


class Kept(Record):
    """What is remembered of a pod."""

    sandbox: Sandbox
    namespace: str
    name: str
    number: int = 0
    """The how manieth pod of this folder it is: of two with one hostname the older is resolved."""


class Sandboxes:
    """The pods of one folder. Its methods work on the disk: call them in one thread."""

    def __init__(self, folder: Path, new_world: str) -> None:
        """Find what is there; a new folder becomes the world `new_world`. Raises OSError."""
        self.folder = folder
        self.shared = folder / ".shared"
        self.shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.world = self._world(new_world)
        self._kept: dict[str, Kept] = {}
        for path in folder.glob("*/sandbox.json"):
            if (kept := records.read(path, Kept)) is not None:
                self._kept[kept.sandbox.pod_uid] = kept

    def _world(self, new_world: str) -> str:
        path = self.shared / "world"
        if path.exists() and (found := path.read_text().strip()):
            return found
        made = path.with_name("world.new")
        made.write_text(f"{new_world}\n")
        os.replace(made, path)
        return new_world

    def former_groups(self, current: Sequence[str]) -> list[str]:
        """Return where control groups of this world may stand, and take note of the current ones.

        An agent before this one may have been in another group, and so have made its own elsewhere.
        """
        path = self.shared / "groups"
        former = path.read_text().splitlines() if path.exists() else []
        path.write_text("".join(f"{folder}\n" for folder in current))
        return [*former, *(folder for folder in current if folder not in former)]

    def get(self, pod_uid: str) -> Kept | None:
        """Return what is remembered of a pod."""
        return self._kept.get(pod_uid)

    def all(self) -> list[Kept]:
        """Return all pods, oldest first."""
        return sorted(self._kept.values(), key=lambda kept: (kept.number, kept.sandbox.pod_uid))

    def root(self, pod_uid: str) -> Path:
        """Return the folder of a pod."""
        return self.folder / pod_uid

    def prepare(self, pod: Pod, content: Mapping[str, VolumeContent], scope: str) -> Sandbox:
        """Make a pod's folder, address and volumes, or bring the volumes up to date."""
        uid = pod.metadata.uid
        root = self.root(uid)
        (root / "mounting").mkdir(parents=True, exist_ok=True)
        former = self._kept.get(uid)
        places = volumes.materialise(root, uid, content)
        if former is not None:
            places = {**former.sandbox.volumes, **places}
            if places == former.sandbox.volumes:
                return former.sandbox
            ip, number = former.sandbox.ip, former.number
        else:
            taken = {kept.sandbox.ip for kept in self._kept.values()}
            ip = addresses.address_for(uid, taken)
            number = 1 + max((kept.number for kept in self._kept.values()), default=0)
        sandbox = Sandbox(
            pod_uid=uid,
            ip=ip,
            hostname=(pod.spec.hostname or pod.metadata.name)[:63],
            root=str(root),
            scope=scope,
            volumes=places,
        )
        kept = Kept(
            sandbox=sandbox,
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            number=number,
        )
        records.replace(root / "sandbox.json", kept)
        self._kept[uid] = kept
        return sandbox

    def forget(self, pod_uid: str) -> Path | None:
        """Forget a pod; returns the folder that is to be deleted, out of the way already."""
        self._kept.pop(pod_uid, None)
        volumes.forget(pod_uid)
        root = self.root(pod_uid)
        if not root.exists():
            return None
        removed = self.shared / f"removed-{pod_uid}"
        if removed.exists():
            delete(removed)
        os.replace(root, removed)
        return removed

    def removed(self) -> list[Path]:
        """Return the folders whose deletion was begun and is not done."""
        return list(self.shared.glob("removed-*"))


def delete(folder: Path) -> None:
    """Delete a folder, also what its owner may not write to; raises OSError."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        for place, below, _ in os.walk(folder):
            for name in below:
                if not os.path.islink(inner := os.path.join(place, name)):
                    os.chmod(inner, 0o700)
        shutil.rmtree(folder)
