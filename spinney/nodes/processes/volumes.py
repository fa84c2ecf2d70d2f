"""Volumes of a pod, as folders of this machine.

What comes from the API (config maps, secrets, the pod's own fields) is written to a folder of its
own, and a link, `..data`, is then turned to it in one step; each file is a link through that one.
So a reader sees all of the old contents or all of the new, as on Kubernetes. An empty folder is
made once and left alone; a folder of the machine is used where it stands.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from spinney.meta.errors import BadRequest
from spinney.ports import VolumeContent

DATA = "..data"
MEMORY = Path("/dev/shm")


def materialise(root: Path, pod_uid: str, volumes: Mapping[str, VolumeContent]) -> dict[str, str]:
    """Make a pod's volumes what they should be; returns where each is. Raises OSError."""
    return {name: _one(root, pod_uid, name, content) for name, content in volumes.items()}


def _one(root: Path, pod_uid: str, name: str, content: VolumeContent) -> str:
    if content.path:
        return content.path
    folder = root / "volumes" / name
    if content.in_memory and MEMORY.is_dir():
        held = in_memory(pod_uid) / name
        held.mkdir(mode=0o777, parents=True, exist_ok=True)
        held.parent.chmod(0o700)
        return str(held)
    folder.mkdir(mode=0o777, parents=True, exist_ok=True)
    if content.files or (folder / DATA).is_symlink():
        _fill(folder, content)
    return str(folder)


def in_memory(pod_uid: str) -> Path:
    """Return where the volumes of a pod are that memory holds."""
    return MEMORY / f"spinney-{pod_uid}"


def _fill(folder: Path, content: VolumeContent) -> None:
    """Turn a folder to new contents, if they are new."""
    version = f"..{_digest(content)}"
    current = folder / DATA
    former = os.readlink(current) if current.is_symlink() else ""
    if former == version:
        return
    made = folder / version
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o755)
    for path, data in content.files.items():
        _write(made, path, data, content.modes.get(path, content.mode))
    turning = folder / "..turning"
    turning.unlink(missing_ok=True)
    turning.symlink_to(version)
    os.replace(turning, current)
    wanted = {path.partition("/")[0] for path in content.files}
    for name in wanted:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{DATA}/{name}")
    for entry in list(folder.iterdir()):
        if entry.is_symlink() and entry.name != DATA and entry.name not in wanted:
            entry.unlink()
    if former:
        shutil.rmtree(folder / former, ignore_errors=True)


def _digest(content: VolumeContent) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(content.files):
        mode = content.modes.get(path, content.mode)
        for part in (path.encode(), str(mode).encode(), content.files[path]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _write(folder: Path, path: str, data: bytes, mode: int) -> None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise BadRequest(f'volume file "{path}": must be a relative path without ".."')
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    place.chmod(mode)


def part(source: str, sub_path: str, *, make: bool) -> str:
    """Return the place of a part of a volume, which may not lead out of it.

    Raises BadRequest; a part that is not there is made, a folder, where the volume may be written.
    """
    if not sub_path:
        return source
    whole = os.path.realpath(source)
    place = os.path.realpath(os.path.join(whole, sub_path))
    if os.path.commonpath((whole, place)) != whole:
        raise BadRequest(f'subPath "{sub_path}" leads out of its volume')
    if not os.path.exists(place) and make:
        os.makedirs(place)
    return place


def forget(pod_uid: str) -> None:
    """Remove what memory holds for a pod."""
    shutil.rmtree(in_memory(pod_uid), ignore_errors=True)
