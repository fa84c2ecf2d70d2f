"""Fields: what is known of a field, as text for people. The form is `kubectl explain`'s.

Kubernetes' own types carry no prose here: their fields and types are listed, and the reader is
sent to `kubectl explain` for the rest.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

import msgspec

from spinney.api.kinds import Kind
from spinney.meta import errors, shapes
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.meta.schemas import Schema

WIDTH = 80
"""Where lines are broken, as kubectl does."""

KUBECTL_PATHS: Mapping[str, str] = {
    "Affinity": "pod.spec.affinity",
    "Container": "pod.spec.containers",
    "EnvVar": "pod.spec.containers.env",
    "HorizontalPodAutoscalerBehavior": "hpa.spec.behavior",
    "LabelSelector": "deployment.spec.selector",
    "ManagedFieldsEntry": "pod.metadata.managedFields",
    "MetricSpec": "hpa.spec.metrics",
    "ObjectMeta": "pod.metadata",
    "PersistentVolumeClaimSpec": "pvc.spec",
    "PodSpec": "pod.spec",
    "PodTemplateSpec": "deployment.spec.template",
    "Probe": "pod.spec.containers.livenessProbe",
    "ResourceClaimSpec": "resourceclaim.spec",
    "ResourceClaimTemplateSpec": "resourceclaimtemplate.spec",
    "ResourceRequirements": "pod.spec.containers.resources",
    "ServicePort": "service.spec.ports",
    "Toleration": "pod.spec.tolerations",
    "Volume": "pod.spec.volumes",
    "VolumeMount": "pod.spec.containers.volumeMounts",
}
"""Where `kubectl explain` tells of a Kubernetes definition that a kind of ours embeds."""


class NoSuchField(SpinneyError):
    """The user: a path steps to a field there is not. Says which step, and what there is."""


class _Place(Record):
    """Where a path leads to."""

    schema: Schema
    name: str = ""
    required: bool = False
    core: bool = False
    """Whether this is a part of a Kubernetes type."""

    kubectl: str = ""
    """Where `kubectl explain` tells of it, if that is known."""


def parse_path(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the word for the kind and the path: `pcs.spec.template.cliques[0].name`."""
    word, *path = re.sub(r"\[[^\]]*\]", "", text).strip(".").split(".")
    return word, tuple(path)


def describe(kind: Kind, path: tuple[str, ...], *, recursive: bool = False) -> str:
    """Return the text of a field, and of the fields it has; of the kind itself for no path.

    `recursive` gives the names and types of all fields at every depth instead; Kubernetes' types
    are unfolded only when the path itself leads into one. Raises NoSuchField.
    """
    place = _find(kind, path)
    names = kind.names
    lines = [
        f"GROUP:      {names.group}",
        f"KIND:       {names.kind}",
        f"VERSION:    {names.version}",
        "",
    ]
    if path:
        lines.append(f"FIELD: {_signature(place, separator=' ')}")
        if choices := beneath(place.schema).enum:
            lines += ["ENUM:", *(f"    {choice}" for choice in choices)]
        lines.append("")
    lines += ["DESCRIPTION:", *_described(place, indent=4)]
    if told := list(facts(place.schema)):
        lines += ["", *(f"{label.upper() + ':':<11} {text}" for label, text in told)]
    if fields := list(_fields(place)):
        lines += ["", "FIELDS:"]
        lines += _tree(place, 2, ()) if recursive else _listed(fields)
    return "\n".join(lines).rstrip()


def beneath(schema: Schema) -> Schema:
    """Return the schema of what a list or map holds, however deep; else the schema itself."""
    while (inner := schema.items or schema.values) is not None:
        schema = inner
    return schema


def facts(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield what holds of a field beyond its type and text, each with a label."""
    if schema.has_default:
        default = schema.default
        text = default if isinstance(default, str) and default else msgspec.json.encode(default)
        yield "default", text if isinstance(text, str) else text.decode()
    if bounds := _bounds(schema):
        yield "bounds", bounds
    if schema.pattern:
        yield "pattern", schema.pattern
    if schema.list_keys:
        yield "keys", f"items are told apart by {', '.join(schema.list_keys)}"
    if schema.list_type == "set":
        yield "keys", "no item twice"
    if schema.example:
        yield "example", schema.example
    if schema.ours:
        yield "origin", "an addition of Spinney's"
    for message in dict.fromkeys(rule.message for rule in beneath(schema).rules):
        yield "rule", message


def _find(kind: Kind, path: tuple[str, ...]) -> _Place:
    place = _Place(schema=kind.schema, name=kind.names.kind)
    for depth, step in enumerate(path):
        fields = {field.name: field for field in _fields(place)}
        if step not in fields:
            where = ".".join((kind.names.singular, *path[:depth]))
            raise NoSuchField(_missing(where, step, place, tuple(fields)))
        place = fields[step]
    return place


def _missing(where: str, step: str, place: _Place, known: tuple[str, ...]) -> str:
    asked = errors.json_string(step)
    if not known:
        return f"{where} is of type {place.schema.type_name} and has no fields, found: {asked}"
    hint = shapes.did_you_mean(step, known)
    return f"{where} has no field {asked}{hint}\nfields: {', '.join(known)}"


def _fields(place: _Place) -> Iterator[_Place]:
    """Yield the places one step below; lists and maps are passed through."""
    inner = beneath(place.schema)
    for name, schema in inner.properties.items():
        core = place.core or bool(schema.core)
        known = KUBECTL_PATHS.get(schema.core, "")
        below = f"{place.kubectl}.{name}" if place.kubectl else known
        yield _Place(
            schema=schema,
            name=name,
            required=name in inner.required,
            core=core,
            kubectl=below if core else "",
        )


def _signature(place: _Place, *, separator: str) -> str:
    marks = [" -required-"] if place.required else []
    if place.schema.ours:
        marks.append(" -spinney-")
    return f"{place.name}{separator}<{place.schema.type_name or 'any'}>{''.join(marks)}"


def _described(place: _Place, *, indent: int) -> list[str]:
    lines = _wrapped(place.schema.doc, indent)
    if (of_type := beneath(place.schema).type_doc) != place.schema.doc:
        lines += _wrapped(of_type, indent)
    if place.core and (not lines or beneath(place.schema).properties):
        said = "This is Kubernetes' own"
        more = f"{said}: kubectl explain {place.kubectl}" if place.kubectl else f"{said}."
        lines.append(" " * indent + more)
    return lines or [" " * indent + "<empty>"]


def _listed(fields: list[_Place]) -> Iterator[str]:
    for field in fields:
        yield f"  {_signature(field, separator=chr(9))}"
        if choices := beneath(field.schema).enum:
            yield f"  enum: {', '.join(choices)}"
        if field.schema.doc:
            yield from _wrapped(field.schema.doc, 4)
            yield ""


def _tree(place: _Place, indent: int, above: tuple[str, ...]) -> Iterator[str]:
    for field in _fields(place):
        yield " " * indent + _signature(field, separator="\t")
        inner = beneath(field.schema)
        if inner.enum:
            yield f"{' ' * indent}enum: {', '.join(inner.enum)}"
        entered = field.core and not place.core
        if not (inner.core and inner.core in above) and not (entered and inner.properties):
            yield from _tree(field, indent + 2, (*above, inner.core))


def _wrapped(text: str, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _bounds(schema: Schema) -> str:
    of_value = _span(schema.minimum, schema.maximum, "")
    of_length = _span(schema.min_length, schema.max_length, " characters")
    of_items = _span(schema.min_items, None, " items")
    return ", ".join(filter(None, (of_value, of_length, of_items)))


def _span(least: int | float | None, most: int | float | None, unit: str) -> str:
    if least is not None and most is not None:
        return f"{least} to {most}{unit}"
    if least is not None:
        return f"at least {least}{unit.removesuffix('s') if least == 1 else unit}"
    return f"at most {most}{unit}" if most is not None else ""
