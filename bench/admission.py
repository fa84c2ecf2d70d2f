"""Defaults and validation of 1,000 PodCliqueSets of 4 cliques, beside parsing and pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pydantic
import yaml

from bench.measuring import best_seconds
from spinney.api import kinds, podcliqueset
from spinney.meta import manifests
from spinney.meta.documents import Document
from spinney.meta.records import decode
from spinney.meta.schemas import Schema
from spinney.testing import build

COUNT = 1000
KIND = podcliqueset.KIND


def manifest(index: int) -> Document:
    """Return a PodCliqueSet of 4 cliques as people write them, about 5 KB of YAML."""
    made = (
        build.podcliqueset(f"chat-{index}")
        .with_clique("router", replicas=2, min_available=1)
        .with_clique("prefill", replicas=4, starts_after=("router",))
        .with_clique("leader", starts_after=("router",))
        .with_clique("worker", replicas=7, starts_after=("leader",))
        .with_group("decode", "leader", "worker", replicas=3, min_available=2)
        .with_template("cliqueStartupType", "CliqueStartupTypeExplicit")
        .with_template("terminationDelay", "4h")
    )
    for clique in range(4):
        at = f"spec.template.cliques[{clique}]"
        container = f"{at}.spec.podSpec.containers[0]"
        made = (
            made.with_(f"{at}.labels", {"app": "chat", "tier": f"t{clique}"})
            .with_(f"{container}.args", ["--model", "/models/small", "--port", "8000"])
            .with_(
                f"{container}.env",
                [{"name": f"OPTION_{number}", "value": f"v{number}"} for number in range(10)],
            )
            .with_(
                f"{container}.resources",
                {
                    "requests": {"cpu": "4", "memory": "32Gi"},
                    "limits": {"nvidia.com/gpu": "8", "memory": "64Gi"},
                },
            )
            .with_(f"{container}.ports", [{"containerPort": 8000, "name": "http"}])
            .with_(
                f"{container}.readinessProbe",
                {"httpGet": {"path": "/ready", "port": 8000}, "periodSeconds": 5},
            )
            .with_(f"{container}.volumeMounts", [{"name": "models", "mountPath": "/models"}])
            .with_(f"{at}.spec.podSpec.volumes", [{"name": "models", "emptyDir": {}}])
            .with_(
                f"{at}.spec.podSpec.tolerations",
                [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            )
        )
    return made.document()


def _model(schema: Schema, name: str, made: dict[str, Any]) -> Any:
    """Return a pydantic type for a schema: the same fields, the same requirements."""
    if schema.type == "array":
        return list[_model(schema.items or Schema(), name, made)]  # type: ignore[misc]
    if schema.type == "object" and schema.values is not None:
        return dict[str, _model(schema.values, name, made)]  # type: ignore[misc]
    if schema.type == "object" and schema.properties:
        key = schema.core or name
        if key not in made:
            made[key] = None
            fields: Any = {}
            for field, below in schema.properties.items():
                kind = _model(below, f"{name}_{field}", made)
                wanted = field in schema.required
                fields[f"f_{field}"] = (
                    kind if wanted else kind | None,
                    pydantic.Field(... if wanted else None, alias=field),
                )
            made[key] = pydantic.create_model(
                key.replace("/", "_"),
                __config__=pydantic.ConfigDict(extra="forbid", populate_by_name=False),
                **fields,
            )
        return made[key] or dict[str, Any]
    scalars = {"string": str, "integer": int, "boolean": bool, "number": float}
    if schema.format in ("quantity", "int-or-string"):
        return int | str
    return scalars.get(schema.type, Any)


def run() -> Iterator[str]:
    """Yield objects a second, and ratios to the YAML parser and to pydantic."""
    documents = [manifest(index) for index in range(COUNT)]
    texts = [yaml.dump(document, Dumper=yaml.CSafeDumper) for document in documents]
    stream = "---\n".join(texts).encode()
    model = _model(KIND.schema, "PodCliqueSet", {})

    def admit_all() -> None:
        for document in documents:
            _, faults = kinds.admit(KIND, document)
            assert faults == (), faults

    def validate_all() -> None:
        for found in manifests.load(stream):
            assert isinstance(found.document, dict)
            _, faults = kinds.admit(KIND, found.document)
            assert faults == (), faults

    def decode_all() -> None:
        for document in documents:
            decode(KIND.record, document)

    seconds = best_seconds(
        {
            "yaml.CSafeLoader": lambda: [yaml.load(text, yaml.CSafeLoader) for text in texts],
            "our loader": lambda: list(manifests.load(stream)),
            "admit (default, validate)": admit_all,
            "load and admit": validate_all,
            "decode to records": decode_all,
            "pydantic, same fields": lambda: [model.model_validate(item) for item in documents],
        },
        rounds=3,
    )
    size = len(msgspec.json.encode(documents[0]))
    yield f"{COUNT} PodCliqueSets of 4 cliques, {size} bytes of JSON, {len(texts[0])} of YAML each"
    parse = seconds["yaml.CSafeLoader"]
    other = seconds["pydantic, same fields"]
    for name, value in seconds.items():
        yield (
            f"{name:<28} {COUNT / value:>9,.0f} objects/s  "
            f"{value / parse:>6.2f} x CSafeLoader  {value / other:>6.2f} x pydantic"
        )
    share = seconds["load and admit"] / parse
    yield f"load and admit together: {share:.2f} x CSafeLoader alone (target: at most 2)"
