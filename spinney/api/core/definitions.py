"""Definitions: the schemas of Kubernetes' own types, by short name.

They stand in `schemas.json` (see `tools/schemas.py` for how it is made and how names are spelled).
The file is cut into definitions when the first is asked for; a definition is decoded when it is
asked for itself, and what a field of it refers to when somebody steps there. So asking is cheap,
and a definition may contain itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import msgspec

from spinney.meta.schemas import Schema


@functools.cache
def resolve(name: str) -> Schema:
    """Return the schema of a definition: `PodSpec`, `events.k8s.io/Event`.

    Raises KeyError where there is none of that name.
    """
    node = msgspec.json.decode(_bodies()[name], type=Schema)
    return msgspec.structs.replace(_linked(node), core=name, type_name=name.rpartition("/")[2])


def names() -> tuple[str, ...]:
    """Return the names of all definitions, sorted."""
    return tuple(_bodies())


@functools.cache
def _bodies() -> Mapping[str, msgspec.Raw]:
    with open(f"{__file__.rpartition('/')[0]}/schemas.json", "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, msgspec.Raw])


class _Properties(Mapping[str, Schema]):
    """The properties of a definition, each linked when it is first asked for."""

    __slots__ = ("_linked", "_nodes")

    def __init__(self, nodes: Mapping[str, Schema]) -> None:
        self._nodes = nodes
        self._linked: dict[str, Schema] = {}

    def __getitem__(self, key: str) -> Schema:
        found = self._linked.get(key)
        if found is None:
            found = self._linked[key] = _linked(self._nodes[key])
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _linked(node: Schema) -> Schema:
    """Return a node with what it refers to, and with the name people call its type by."""
    if node.core:
        target = resolve(node.core)
        if not node.patch_strategy:
            return target
        return msgspec.structs.replace(target, patch_strategy=node.patch_strategy)
    if node.items is not None:
        items = _linked(node.items)
        return msgspec.structs.replace(node, items=items, type_name=f"[]{items.type_name}")
    if node.values is not None:
        values = _linked(node.values)
        name = f"map[string]{values.type_name}"
        return msgspec.structs.replace(node, values=values, type_name=name)
    properties = _Properties(node.properties) if node.properties else node.properties
    return msgspec.structs.replace(node, properties=properties, type_name=node.type)
