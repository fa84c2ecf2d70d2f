"""Writes what the vectors' tests know of the kinds in them: how their lists and maps merge.

    python tools/vectors/schemas.py tests/meta/patches/vectors

Made from the published definitions in the package `kubernetes-validate`. Defaults of keys, which
those do not tell, are in the table here.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import kubernetes_validate

KINDS = {
    "Pod": "io.k8s.api.core.v1.Pod",
    "Service": "io.k8s.api.core.v1.Service",
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "Deployment": "io.k8s.api.apps.v1.Deployment",
}
KEY_DEFAULTS = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}
HINTS = {
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "list_keys",
    "x-kubernetes-patch-merge-key": "merge_key",
}


def main(folder: Path) -> None:
    root = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    text = (root / "v1.37.0-local" / "_definitions.json").read_text("utf-8")
    published = json.loads(text)["$defs"]
    made: dict[str, object] = {}
    wanted = list(KINDS.values())
    while wanted:
        name = wanted.pop()
        if name not in made:
            made[name] = compact(published[name], name, wanted)
    package = f"kubernetes-validate {version('kubernetes-validate')}"
    origin = f"made by tools/vectors/schemas.py from {package}, v1.37.0"
    lines = [f"{json.dumps(name)}: {json.dumps(made[name])}" for name in sorted(made)]
    body = ",\n".join(lines)
    whole = (
        f'{{"origin": "{origin}",\n"kinds": {json.dumps(KINDS)},\n"definitions": {{\n{body}\n}}}}\n'
    )
    (folder / "schemas.json").write_text(whole, "utf-8")


def compact(found: dict[str, object], name: str, wanted: list[str]) -> dict[str, object]:
    """Return a definition with what merging asks of it; others it names are wanted too."""
    reference = found.get("$ref")
    if isinstance(reference, str):
        named = reference.rsplit("/", 1)[-1]
        wanted.append(named)
        return {"ref": named} | hints(found)
    kind = found.get("type", "")
    told: dict[str, object] = {"type": kind} if isinstance(kind, str) and kind else {}
    if isinstance(kind, list):
        told = {"type": next(one for one in kind if one != "null")}
    told |= hints(found)
    properties = found.get("properties")
    if isinstance(properties, dict):
        told["properties"] = {
            key: compact(below, "", wanted)
            | ({"default": KEY_DEFAULTS[name, key]} if (name, key) in KEY_DEFAULTS else {})
            for key, below in properties.items()
        }
    for ours, theirs in (("items", "items"), ("values", "additionalProperties")):
        below = found.get(theirs)
        if isinstance(below, dict):
            told[ours] = compact(below, "", wanted)
    if found.get("format") == "int-or-string" or "oneOf" in found:
        told.pop("type", None)
    return told


def hints(found: dict[str, object]) -> dict[str, object]:
    told: dict[str, object] = {
        ours: found[theirs] for theirs, ours in HINTS.items() if found.get(theirs)
    }
    strategy = found.get("x-kubernetes-patch-strategy")
    if isinstance(strategy, str):
        told["patch_strategy"] = strategy.split(",")
    if found.get("x-kubernetes-map-type") == "atomic":
        told["atomic_map"] = True
    return told


if __name__ == "__main__":
    main(Path(sys.argv[1]))
