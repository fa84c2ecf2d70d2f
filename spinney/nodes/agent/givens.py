"""Givens: what a pod's env and volumes refer to, looked up and turned to bytes.

A pod may name entries of config maps and secrets, its own fields, and what its containers are
given of the machine. Each lookup returns what is there, nothing where that is optional and absent,
or raises Lacking with the sentence kubectl users know.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from spinney.api.core.configuration import ConfigMap, Secret
from spinney.api.core.pod import Pod
from spinney.meta import quantities
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.records import Record
from spinney.nodes.agent.lacking import Lacking
from spinney.ports import Reader

_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class Machine(Record):
    """What a pod may ask of its node."""

    node: str
    ip: str
    allocatable: Mapping[str, str | int] = {}


class Givens:
    """What one pod may refer to."""

    def __init__(self, pod: Pod, pod_ip: str, machine: Machine, reader: Reader) -> None:
        """Look things up in the pod's namespace."""
        self.pod = pod
        self._ip = pod_ip
        self._machine = machine
        self._reader = reader
        self._fields: Mapping[str, Callable[[], str]] = {
            "metadata.name": lambda: pod.metadata.name,
            "metadata.namespace": lambda: pod.metadata.namespace,
            "metadata.uid": lambda: pod.metadata.uid,
            "metadata.labels": lambda: _lines(pod.metadata.labels),
            "metadata.annotations": lambda: _lines(pod.metadata.annotations),
            "spec.nodeName": lambda: machine.node,
            "spec.serviceAccountName": lambda: pod.spec.service_account_name,
            "status.hostIP": lambda: machine.ip,
            "status.hostIPs": lambda: machine.ip,
            "status.podIP": lambda: pod_ip,
            "status.podIPs": lambda: pod_ip,
        }

    # Config maps and secrets

    def config_map(self, name: str, *, is_optional: bool) -> Mapping[str, bytes] | None:
        """Return the entries of a config map."""
        found = self._reader.get(ConfigMap, self.pod.metadata.namespace, name)
        if found is None:
            return self._absent(f'configmap "{name}" not found', is_optional=is_optional)
        where = f"ConfigMap {self.pod.metadata.namespace}/{name}"
        entries = {key: text.encode() for key, text in found.data.items()}
        return entries | _decoded(found.binary_data, where)

    def secret(self, name: str, *, is_optional: bool) -> Mapping[str, bytes] | None:
        """Return the entries of a secret."""
        found = self._reader.get(Secret, self.pod.metadata.namespace, name)
        if found is None:
            return self._absent(f'secret "{name}" not found', is_optional=is_optional)
        return _decoded(found.data, f"Secret {self.pod.metadata.namespace}/{name}")

    @staticmethod
    def _absent(message: str, *, is_optional: bool) -> None:
        if not is_optional:
            raise Lacking(message)

    def entry(self, sort: str, reference: Document) -> bytes | None:
        """Return one entry of a config map or secret: `sort` is the word for it."""
        name, key = string_at(reference, ["name"]), string_at(reference, ["key"])
        is_optional = reference.get("optional") is True
        look = self.config_map if sort == "ConfigMap" else self.secret
        entries = look(name, is_optional=is_optional)
        if entries is None:
            return None
        if key not in entries and not is_optional:
            raise Lacking(f"couldn't find key {key} in {sort} {self.pod.metadata.namespace}/{name}")
        return entries.get(key)

    # The pod itself

    def field(self, path: str) -> str:
        """Return a field of the pod."""
        if (match := _KEYED.fullmatch(path)) is not None:
            metadata = self.pod.metadata
            held = metadata.labels if match[1] == "labels" else metadata.annotations
            return held.get(match[2], "")
        read = self._fields.get(path)
        if read is None:
            known = ", ".join([*self._fields, "metadata.labels['KEY']"])
            raise Lacking(f'fieldRef "{path}" is not known here: it may be one of {known}')
        return read()

    def resource(self, reference: Document, container: Document) -> str:
        """Return how much a container may have, or asks for, in units of the divisor."""
        name = string_at(reference, ["containerName"])
        if name:
            container = self._container(name)
        asked = string_at(reference, ["resource"])
        part, _, resource = asked.partition(".")
        amount = object_at(container, ["resources", part]).get(resource)
        if amount is None and part == "limits":
            amount = self._machine.allocatable.get(resource)
        divisor = reference.get("divisor")
        try:
            nanos = quantities.parse_quantity(amount if isinstance(amount, (str, int)) else 0)
            unit = quantities.parse_quantity(divisor if isinstance(divisor, (str, int)) else 1)
        except ValueError as error:
            raise Lacking(f'resourceFieldRef "{asked}": {error}') from error
        return str(-(-nanos // (unit or quantities.NANO)))

    def _container(self, name: str) -> Document:
        spec = self.pod.spec
        for container in (*spec.containers, *spec.init_containers):
            if string_at(container, ["name"]) == name:
                return container
        raise Lacking(f'resourceFieldRef names container "{name}", which the pod has not')


def _decoded(entries: Mapping[str, str], where: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(text, validate=True) for key, text in entries.items()}
    except (binascii.Error, ValueError) as error:
        raise Lacking(f"{where} holds what is no base64") from error


def _lines(entries: Mapping[str, str]) -> str:
    """Return labels or annotations as a file tells them: `key="value"`, a line each."""
    lines = (f"{key}={json.dumps(entries[key], ensure_ascii=False)}" for key in sorted(entries))
    return "\n".join(lines)
