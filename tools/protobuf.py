"""Makes `spinney/server/messages.json` from the protobuf declarations Kubernetes publishes.

The declarations are `generated.proto` (numbers and types) and `types*.go` (how a field is spelled
in JSON, whether it is left out when empty, whether it is folded into the object around it) of the
Go modules `k8s.io/api`, `k8s.io/apimachinery` and `k8s.io/apiextensions-apiserver` (Apache-2.0).
Only these facts are kept, none of the prose.

The modules are fetched by `go mod download`; `python -m tools.protobuf FOLDER` takes them from a
folder of unpacked modules instead. This runs by hand, when the version below is raised: what it
makes is committed, and needs no Go afterwards.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

VERSION = "v0.37.2"
MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver")
PATH = "spinney/server/messages.json"
ROOT = Path(__file__).resolve().parent.parent

PACKAGES: Mapping[str, str] = {
    "k8s.io/api": "k8s.io.api",
    "k8s.io/apimachinery": "k8s.io.apimachinery",
    "k8s.io/apiextensions-apiserver": "k8s.io.apiextensions_apiserver",
}

KINDS: Mapping[str, tuple[str, ...]] = {
    "core/v1": (
        "Binding",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolumeClaim",
        "Pod",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    ),
    "apps/v1": ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "authentication/v1": ("SelfSubjectReview", "TokenRequest", "TokenReview"),
    "authorization/v1": (
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
    "autoscaling/v1": ("Scale",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "batch/v1": ("CronJob", "Job"),
    "coordination/v1": ("Lease",),
    "discovery/v1": ("EndpointSlice",),
    "events/v1": ("Event",),
    "networking/v1": ("Ingress",),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
    "rbac/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "resource/v1": ("ResourceClaim", "ResourceClaimTemplate"),
    "scheduling/v1": ("PriorityClass",),
}
GROUPS: Mapping[str, str] = {
    "core": "",
    "authentication": "authentication.k8s.io",
    "authorization": "authorization.k8s.io",
    "coordination": "coordination.k8s.io",
    "discovery": "discovery.k8s.io",
    "events": "events.k8s.io",
    "networking": "networking.k8s.io",
    "rbac": "rbac.authorization.k8s.io",
    "resource": "resource.k8s.io",
    "scheduling": "scheduling.k8s.io",
}
DEFINITIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1"
META = "k8s.io.apimachinery.pkg.apis.meta.v1"
META_KINDS = ("CreateOptions", "DeleteOptions", "PatchOptions", "UpdateOptions", "Status")
WELL_KNOWN: Mapping[str, str] = {
    f"{META}.Time": "time",
    f"{META}.MicroTime": "microtime",
    f"{META}.Duration": "duration",
    f"{META}.FieldsV1": "raw",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "raw",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    f"{DEFINITIONS}.JSON": "raw",
    f"{DEFINITIONS}.JSONSchemaPropsOrArray": "schemaorarray",
    f"{DEFINITIONS}.JSONSchemaPropsOrBool": "schemaorbool",
    f"{DEFINITIONS}.JSONSchemaPropsOrStringArray": "schemaorstrings",
}
"""Messages whose JSON is not an object of their fields: `spinney/server/protobuf.py` knows them."""

LISTS = (
    "k8s.io.api.authentication.v1.ExtraValue",
    "k8s.io.api.authorization.v1.ExtraValue",
    f"{META}.Verbs",
)
"""Messages that stand for the list they hold."""

_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(
    r"^  (?:(?:optional|required) |(?P<many>repeated ))?"
    r"(?:map<string, (?P<of>[.\w]+)>|(?P<type>[.\w]+)) (?P<name>\w+) = (?P<number>\d+);",
    re.MULTILINE,
)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(
    r'^\s*(?:\w+\s+)?(?P<type>[*\[\]\w.]+)\s+`json:"(?P<json>[^"]*)"[^`\n]*'
    r'protobuf:"[^",]+,(?P<number>\d+)',
    re.MULTILINE,
)


class Spelling(msgspec.Struct, frozen=True):
    """What a Go declaration says of a field."""

    name: str
    inline: bool
    omitted: bool
    """Whether it is left out where it has the value its type begins with."""


class Field(msgspec.Struct, frozen=True):
    """One field of a message."""

    number: int
    name: str
    type: str
    many: bool
    mapped: bool


def folders(given: str) -> Mapping[str, Path]:
    """Return where each module lies, fetched if no folder is given."""
    if given:
        return {module: Path(given) / f"{module}@{VERSION}" for module in MODULES}
    found = {}
    for module in MODULES:
        command = ["go", "mod", "download", "-json", f"{module}@{VERSION}"]
        told = subprocess.run(command, check=True, capture_output=True, cwd="/").stdout
        found[module] = Path(json.loads(told)["Dir"])
    return found


def _declared(folder: Path) -> Iterator[tuple[str, tuple[Field, ...]]]:
    text = (folder / "generated.proto").read_text()
    for name, body in _MESSAGE.findall(text):
        yield (
            name,
            tuple(
                Field(
                    number=int(match["number"]),
                    name=match["name"],
                    type=(match["of"] or match["type"]).removeprefix("."),
                    many=bool(match["many"]),
                    mapped=bool(match["of"]),
                )
                for match in _FIELD.finditer(body)
            ),
        )


def _spelled(folder: Path) -> Mapping[tuple[str, int], Spelling]:
    """Return how each field of each struct is spelled, by its number."""
    found: dict[tuple[str, int], Spelling] = {}
    for file in sorted(folder.glob("*.go")):
        for struct, body in _STRUCT.findall(file.read_text()):
            for match in _TAGGED.finditer(body):
                name, *flags = match["json"].split(",")
                found[struct, int(match["number"])] = Spelling(
                    name=name,
                    inline=not name or "inline" in flags,
                    omitted="omitempty" in flags and not match["type"].startswith("*"),
                )
    return found


def messages(modules: Mapping[str, Path]) -> dict[str, list[list[object]]]:
    """Return every message's fields: number, name, type, and letters for what else holds.

    `r`: repeated, `m`: a map, `i`: folded into the object around it, `o`: left out when empty.
    """
    made: dict[str, list[list[object]]] = {}
    for module, folder in modules.items():
        for file in sorted(folder.rglob("generated.proto")):
            place = file.parent.relative_to(folder).as_posix().replace("/", ".")
            package = f"{PACKAGES[module]}.{place}"
            spelled = _spelled(file.parent)
            for message, fields in _declared(file.parent):
                made[f"{package}.{message}"] = [
                    _row(field, package, spelled.get((message, field.number))) for field in fields
                ]
    return made


_SCALARS = ("bool", "bytes", "double", "float", "int32", "int64", "string")


def _row(field: Field, package: str, spelling: Spelling | None) -> list[object]:
    type_ = field.type
    if type_ not in _SCALARS and "." not in type_:
        type_ = f"{package}.{type_}"
    flags = ("r" if field.many else "") + ("m" if field.mapped else "")
    name = field.name
    if spelling is not None:
        name = spelling.name or name
        flags += ("i" if spelling.inline else "") + ("o" if spelling.omitted else "")
    return [field.number, name, type_, flags]


def made(modules: Mapping[str, Path]) -> bytes:
    """Return the file: the kinds, and the messages they are made of."""
    known = messages(modules)
    kinds: dict[str, str] = {}
    for place, names in KINDS.items():
        group, _, version = place.partition("/")
        for name in names:
            whole = GROUPS.get(group, group)
            key = f"{whole}/{version}/{name}" if whole else f"{version}/{name}"
            kinds[key] = f"k8s.io.api.{group}.{version}.{name}"
    for name in META_KINDS:
        kinds[f"meta.k8s.io/v1/{name}"] = f"{META}.{name}"
        kinds[f"v1/{name}"] = f"{META}.{name}"
    kinds["apiextensions.k8s.io/v1/CustomResourceDefinition"] = (
        f"{DEFINITIONS}.CustomResourceDefinition"
    )
    needed: dict[str, list[list[object]]] = {}
    waiting = sorted(set(kinds.values()))
    while waiting:
        name = waiting.pop()
        if name in needed or name in WELL_KNOWN:
            continue
        rows = needed[name] = known[name]
        waiting.extend(str(row[2]) for row in rows if str(row[2]) not in _SCALARS)
    short = _short(needed)
    lines = [
        f"{_text(short[name])}:{_text([_shortened(row, short) for row in needed[name]])}"
        for name in sorted(needed, key=lambda name: short[name])
    ]
    named = {key: short[name] for key, name in sorted(kinds.items())}
    return (
        f'{{"version":{_text(VERSION)},\n"kinds":{_text(named)},\n"messages":{{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    ).encode()


def _short(names: Mapping[str, object]) -> dict[str, str]:
    """Return a short name for each message, with its package where two would share one."""
    found: dict[str, str] = {}
    for name in sorted(names):
        *package, last = name.split(".")
        twins = [other for other in names if other.rpartition(".")[2] == last]
        found[name] = last if len(twins) == 1 else ".".join([*package[-2:], last])
    for name, kind in WELL_KNOWN.items():
        found[name] = f"={kind}"
    for name in LISTS:
        found[name] = f"*{found[name]}" if name in found else name
    return found


def _shortened(row: list[object], short: Mapping[str, str]) -> list[object]:
    number, name, type_, flags = row
    return [number, name, short.get(str(type_), type_), flags]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=isinstance(value, dict))


def main(arguments: list[str]) -> int:
    body = made(folders(arguments[0] if arguments else ""))
    (ROOT / PATH).write_bytes(body)
    print(f"wrote {PATH}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
