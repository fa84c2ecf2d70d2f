"""The environment, command and mounts of a container, with everything it refers to resolved."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from typing import Final

from spinney.meta import quantities
from spinney.meta.documents import Document, Json, is_integer, list_at, object_at, string_at
from spinney.nodes.agent.givens import Givens
from spinney.nodes.agent.images import Images
from spinney.nodes.agent.lacking import NO_COMMAND, UNSUPPORTED, Lacking
from spinney.nodes.agent.probes import ProbeKind
from spinney.ports import ContainerPlan, Mount

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
HANDLERS: Final = ("exec", "httpGet", "tcpSocket")


def container_plan(
    container: Document, attempt: int, givens: Givens, images: Images
) -> ContainerPlan:
    """Return how one attempt of a container is started; raises Lacking."""
    _refuse_what_nobody_does(container)
    name = string_at(container, ["name"])
    variables = environment(container, givens)
    limits = object_at(container, ["resources", "limits"])
    return ContainerPlan(
        name=name,
        attempt=attempt,
        command=tuple(expanded(part, variables) for part in _command(container, images)),
        environment=variables,
        working_directory=string_at(container, ["workingDir"]),
        mounts=tuple(_mounts(container, variables)),
        ports=tuple(
            port
            for each in list_at(container, ["ports"])
            if string_at(each, ["protocol"]) in ("", "TCP")
            and is_integer(port := each.get("containerPort") if isinstance(each, dict) else None)
        ),
        devices={
            resource: quantities.units(_nanos(amount, resource))
            for resource, amount in limits.items()
            if "/" in resource
        },
        memory_bytes=(
            quantities.units(_nanos(limits["memory"], "memory")) if "memory" in limits else None
        ),
        stop_signal=_stop_signal(container),
    )


def _nanos(amount: Json, resource: str) -> int:
    try:
        return quantities.parse_quantity(amount if isinstance(amount, (str, int)) else "")
    except ValueError as error:
        raise Lacking(f"resources.limits.{resource}: {error}") from error


def _stop_signal(container: Document) -> int:
    word = string_at(container, ["lifecycle", "stopSignal"])
    if not word:
        return int(signal.SIGTERM)
    try:
        return int(signal.Signals[word])
    except KeyError as error:
        raise Lacking(f"lifecycle.stopSignal: {word} is no signal of this machine") from error


def _refuse_what_nobody_does(container: Document) -> None:
    """Raise Lacking for what would silently not be done."""
    name = string_at(container, ["name"])
    for kind in ProbeKind:
        probe = object_at(container, [kind.value])
        if probe and not any(handler in probe for handler in HANDLERS):
            said = "grpc" if "grpc" in probe else "nothing to do"
            raise Lacking(
                f'container "{name}": {kind.value} asks for {said}, which a local node does not '
                "do: use httpGet, tcpSocket or exec",
                UNSUPPORTED,
            )


def _command(container: Document, images: Images) -> list[str]:
    """Return the command line; an image here is only a name, so it has none of its own."""
    command = [part for part in list_at(container, ["command"]) if isinstance(part, str)]
    arguments = [part for part in list_at(container, ["args"]) if isinstance(part, str)]
    if command:
        return [*command, *arguments]
    image = string_at(container, ["image"])
    mapped = images.command(image)
    if mapped is None:
        raise Lacking(
            f'container "{string_at(container, ["name"])}" has no command, and this node runs '
            f'processes, not images: give it a "command", or map image "{image}" to one in '
            f"[images] of {images.told_file}, then delete the pod",
            NO_COMMAND,
        )
    return [*mapped, *arguments]


# Variables


def environment(container: Document, givens: Givens) -> dict[str, str]:
    """Return the variables of a container; raises Lacking.

    Later ones win; `$(NAME)` refers to those before.
    """
    made: dict[str, str] = {}
    for source in list_at(container, ["envFrom"]):
        made |= _from(source, givens)
    for item in list_at(container, ["env"]):
        name = string_at(item, ["name"])
        source = object_at(item, ["valueFrom"])
        if not source:
            made[name] = expanded(string_at(item, ["value"]), made)
        elif (value := _value(name, source, container, givens)) is not None:
            made[name] = value
    return made


def _from(source: Json, givens: Givens) -> dict[str, str]:
    """Return all entries of a config map or secret as variables; what cannot be one is left out."""
    prefix = string_at(source, ["prefix"])
    for field, look in (("configMapRef", givens.config_map), ("secretRef", givens.secret)):
        reference = object_at(source, [field])
        if reference:
            name = string_at(reference, ["name"])
            entries = look(name, is_optional=reference.get("optional") is True)
            return {
                f"{prefix}{key}": _text(value, f"{key} of {name}")
                for key, value in (entries or {}).items()
            }
    return {}


def _value(name: str, source: Document, container: Document, givens: Givens) -> str | None:
    if reference := object_at(source, ["fieldRef"]):
        return givens.field(string_at(reference, ["fieldPath"]))
    if reference := object_at(source, ["resourceFieldRef"]):
        return givens.resource(reference, container)
    for field, sort in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference := object_at(source, [field]):
            found = givens.entry(sort, reference)
            return None if found is None else _text(found, f"variable {name}")
    raise Lacking(
        f"variable {name}: valueFrom {', '.join(source) or 'nothing'} is not known here: use "
        "fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef",
        UNSUPPORTED,
    )


def _text(value: bytes, what: str) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise Lacking(f"{what} is not text: mount it as a volume instead") from error
    if "\0" in text:
        raise Lacking(f"{what} holds a zero byte: mount it as a volume instead")
    return text


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with `$(NAME)` replaced where there is such a variable; `$$` is a dollar."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


# Mounts


def _mounts(container: Document, variables: Mapping[str, str]) -> Iterator[Mount]:
    for each in list_at(container, ["volumeMounts"]):
        if not isinstance(each, dict):
            continue
        sub_path = string_at(each, ["subPath"])
        if expression := string_at(each, ["subPathExpr"]):
            sub_path = expanded(expression, variables)
            if "$(" in sub_path:
                raise Lacking(f"subPathExpr {expression}: missing value for a variable in it")
        yield Mount(
            volume=string_at(each, ["name"]),
            path=string_at(each, ["mountPath"]),
            sub_path=sub_path,
            read_only=each.get("readOnly") is True,
        )
