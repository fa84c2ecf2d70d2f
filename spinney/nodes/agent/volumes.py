"""What the volumes of a pod hold, with config maps, secrets and the pod's own fields resolved."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from spinney.meta.documents import Document, Json, is_integer, list_at, object_at, string_at
from spinney.nodes.agent.givens import Givens
from spinney.nodes.agent.lacking import FAILED_MOUNT, UNSUPPORTED, Lacking
from spinney.ports import VolumeContent

MODE: Final = 0o644


def contents(givens: Givens) -> dict[str, VolumeContent]:
    """Return what each volume of a pod holds, by name; raises Lacking naming the volume."""
    found: dict[str, VolumeContent] = {}
    for volume in givens.pod.spec.volumes:
        name = string_at(volume, ["name"])
        try:
            found[name] = _content(volume, givens)
        except Lacking as lacking:
            raise Lacking(f'volume "{name}": {lacking.message}', lacking.reason) from lacking
    return found


def references(volumes: Sequence[Document]) -> set[tuple[str, str]]:
    """Return which config maps and secrets some volumes show, as (word, name)."""
    found: set[tuple[str, str]] = set()
    for volume in volumes:
        parts = [volume, *list_at(volume, ["projected", "sources"])]
        for part in parts:
            if name := string_at(part, ["configMap", "name"]):
                found.add(("ConfigMap", name))
            name = string_at(part, ["secret", "secretName"]) or string_at(part, ["secret", "name"])
            if name:
                found.add(("Secret", name))
    return found


def _content(volume: Document, givens: Givens) -> VolumeContent:
    for field, make in _SOURCES.items():
        source = volume.get(field)
        if isinstance(source, dict):
            return make(source, givens)
    kinds = [key for key in volume if key != "name"]
    raise Lacking(
        f"{', '.join(kinds) or 'nothing'} is not supported on a local node: use "
        f"{', '.join(_SOURCES)}",
        UNSUPPORTED,
    )


def _empty(source: Document, _givens: Givens) -> VolumeContent:
    return VolumeContent(in_memory=source.get("medium") == "Memory")


def _host_path(source: Document, _givens: Givens) -> VolumeContent:
    path = Path(string_at(source, ["path"]))
    wanted = string_at(source, ["type"])
    try:
        if wanted == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif wanted == "FileOrCreate" and not path.exists():
            path.touch()
        mode = path.stat().st_mode if path.exists() else 0
    except OSError as error:
        raise Lacking(f"hostPath {path}: {error.strerror or error}", FAILED_MOUNT) from error
    is_wanted = _HOST_TYPES.get(wanted)
    if not mode:
        raise Lacking(f"hostPath {path} does not exist: make it, or say its type", FAILED_MOUNT)
    if is_wanted is not None and not is_wanted(mode):
        raise Lacking(f"hostPath type check failed: {path} is not a {wanted}", FAILED_MOUNT)
    return VolumeContent(path=str(path))


_HOST_TYPES: Final[Mapping[str, Callable[[int], bool]]] = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


def _config_map(source: Document, givens: Givens) -> VolumeContent:
    files, modes = _entries(source, "ConfigMap", string_at(source, ["name"]), givens)
    return VolumeContent(files=files, modes=modes, mode=_mode(source, MODE), read_only=True)


def _secret(source: Document, givens: Givens) -> VolumeContent:
    name = string_at(source, ["secretName"]) or string_at(source, ["name"])
    files, modes = _entries(source, "Secret", name, givens)
    return VolumeContent(files=files, modes=modes, mode=_mode(source, MODE), read_only=True)


def _downward(source: Document, givens: Givens) -> VolumeContent:
    files, modes = _fields(source, givens)
    return VolumeContent(files=files, modes=modes, mode=_mode(source, MODE), read_only=True)


def _projected(source: Document, givens: Givens) -> VolumeContent:
    files: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    for part in list_at(source, ["sources"]):
        if below := object_at(part, ["configMap"]):
            more = _entries(below, "ConfigMap", string_at(below, ["name"]), givens)
        elif below := object_at(part, ["secret"]):
            more = _entries(below, "Secret", string_at(below, ["name"]), givens)
        elif below := object_at(part, ["downwardAPI"]):
            more = _fields(below, givens)
        else:
            kinds = ", ".join(part) if isinstance(part, dict) else "nothing"
            raise Lacking(
                f"a projected {kinds} is not supported on a local node: use configMap, secret or "
                "downwardAPI",
                UNSUPPORTED,
            )
        files |= more[0]
        modes |= more[1]
    return VolumeContent(files=files, modes=modes, mode=_mode(source, MODE), read_only=True)


_SOURCES: Final[Mapping[str, Callable[[Document, Givens], VolumeContent]]] = {
    "emptyDir": _empty,
    "hostPath": _host_path,
    "configMap": _config_map,
    "secret": _secret,
    "downwardAPI": _downward,
    "projected": _projected,
}

_Files = tuple[dict[str, bytes], dict[str, int]]


def _mode(source: Json, default: int) -> int:
    found = source.get("defaultMode") if isinstance(source, dict) else None
    return found if is_integer(found) else default


def _entries(source: Document, sort: str, name: str, givens: Givens) -> _Files:
    """Return the entries of a config map or secret as files: all, or those that are listed."""
    is_optional = source.get("optional") is True
    look = givens.config_map if sort == "ConfigMap" else givens.secret
    entries = look(name, is_optional=is_optional)
    if entries is None:
        return {}, {}
    items = list_at(source, ["items"])
    if not items:
        return dict(entries), {}
    files: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    for item in items:
        key, path = string_at(item, ["key"]), string_at(item, ["path"])
        if key in entries:
            files[path] = entries[key]
            _note_mode(item, path, modes)
        elif not is_optional:
            where = f"{sort} {givens.pod.metadata.namespace}/{name}"
            raise Lacking(f"couldn't find key {key} in {where}")
    return files, modes


def _fields(source: Document, givens: Givens) -> _Files:
    """Return fields of the pod as files."""
    files: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    for item in list_at(source, ["items"]):
        path = string_at(item, ["path"])
        if reference := object_at(item, ["fieldRef"]):
            files[path] = givens.field(string_at(reference, ["fieldPath"])).encode()
        else:
            files[path] = givens.resource(object_at(item, ["resourceFieldRef"]), {}).encode()
        _note_mode(item, path, modes)
    return files, modes


def _note_mode(item: Json, path: str, modes: dict[str, int]) -> None:
    mode = item.get("mode") if isinstance(item, dict) else None
    if is_integer(mode):
        modes[path] = mode
