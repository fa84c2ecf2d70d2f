"""Shapes: what `--nodes` asks for, from its text to the simulated nodes it means.

sim:COUNT[,KEY=VALUE]…

cpu=64 memory=1Ti nvidia.com/gpu=8 pods=110   what each node has
name=gpu                                      its nodes are gpu-0, gpu-1, …
topology=zone:2/rack:4                        2 zones of 4 racks each
start=200ms ready=1s stop=100ms               how long a pod takes to run, to be ready, to end
failures=0.01                                 what share of starts fails
label.KEY=VALUE  taint=KEY[=VALUE]:EFFECT     what each node carries
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import NoReturn

import msgspec

from spinney.api.core.node import EFFECTS
from spinney.meta import durations, metadata, quantities
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record

COUNT_MAX = 100_000
"""How many nodes one shape may have."""

MILLION = 1_000_000

CAPACITY: Mapping[str, str] = MappingProxyType(
    {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "1Ti", "pods": "110"}
)
"""What a node has where its shape says nothing."""

LEVEL_KEYS: Mapping[str, str] = {
    "region": "topology.kubernetes.io/region",
    "zone": "topology.kubernetes.io/zone",
}
"""The labels of levels that have one in Kubernetes."""

LEVEL_PREFIX = "topology.spinney.dev/"
"""What the label of any other level begins with."""

_LEVEL = re.compile(r"([^:]+):([0-9]{1,6})(?:/|\Z)")
_RATE = re.compile(r"([01])(?:\.([0-9]{1,6}))?|([0-9]{1,3})(?:\.([0-9]{1,4}))?%")
_TIMES = ("start", "ready", "stop")


class BadShape(SpinneyError):
    """The user: `--nodes` says something that cannot be; tells what, and what can."""


class Level(Record):
    """One level of a topology."""

    key: str
    """The label of the nodes."""

    word: str
    """What its domains are called: `zone` for `zone-0`."""

    count: int
    """How many domains of this level lie in one of the level above."""


class NodeTaint(Record):
    """A taint each node has from the start."""

    key: str
    effect: str
    value: str = ""


class Shape(Record):
    """Some nodes that are all alike."""

    count: int
    name: str = "sim"
    capacity: Mapping[str, str] = CAPACITY
    topology: tuple[Level, ...] = ()
    labels: Mapping[str, str] = {}
    taints: tuple[NodeTaint, ...] = ()
    start: timedelta = timedelta()
    ready: timedelta = timedelta()
    stop: timedelta = timedelta()
    failures_per_million: int = 0
    """How many of a million starts fail."""

    def node_names(self) -> Iterator[str]:
        """Yield the names of its nodes, in order."""
        for index in range(self.count):
            yield f"{self.name}-{index}"

    def domains(self, node_index: int) -> Mapping[str, str]:
        """Return the topology labels of a node: neighbours share domains, all are equally full."""
        leaves = 1
        for level in self.topology:
            leaves *= level.count
        leaf = node_index * leaves // self.count
        found: dict[str, str] = {}
        path = ""
        for level in self.topology:
            leaves //= level.count
            here, leaf = divmod(leaf, leaves)
            path = f"{path}-{level.word}-{here}" if path else f"{level.word}-{here}"
            found[level.key] = path
        return found


class Nodes(Record):
    """Which nodes a world has."""

    local: bool = False
    """Whether this machine is one."""

    shapes: tuple[Shape, ...] = ()
    texts: tuple[str, ...] = ()
    """The same as it is typed."""

    @property
    def are_any(self) -> bool:
        """Whether there are any; where not, pods are kept and shown, and nothing acts on them."""
        return self.local or bool(self.shapes)


def parse(texts: Sequence[str]) -> Nodes:
    """Return what `--nodes` means, given any number of times; raises BadShape."""
    texts = tuple(dict.fromkeys(texts)) or ("local",)
    if "none" in texts and len(texts) > 1:
        raise BadShape("--nodes none: says that there are no nodes, so no other --nodes may stand")
    shapes: list[Shape] = []
    for text in texts:
        if text in ("local", "none"):
            continue
        shape = parse_shape(text)
        if any(shape.name == other.name for other in shapes):
            raise BadShape(
                f'--nodes {text}: other simulated nodes are named "{shape.name}" too: '
                "give these a name of their own, such as name=gpu"
            )
        shapes.append(shape)
    return Nodes(local="local" in texts, shapes=tuple(shapes), texts=texts)


def parse_shape(text: str) -> Shape:
    """Return what one `sim:…` means; raises BadShape."""
    head, *pairs = text.split(",")
    word, colon, count = head.partition(":")
    if word != "sim" or not colon:
        raise BadShape(
            f"--nodes {text}: must be local, none, or sim:COUNT[,KEY=VALUE]…, "
            "such as sim:100,cpu=64"
        )
    reading = _Reading(text)
    if not (count.isascii() and count.isdigit() and 0 < int(count[:7]) <= COUNT_MAX):
        reading.refuse(f'"{count}" must be a number of nodes from 1 to {COUNT_MAX}, as in sim:100')
    for pair in pairs:
        reading.take(pair)
    return msgspec.structs.replace(reading.shape, count=int(count))


class _Reading:
    """Reads the pairs of one shape."""

    def __init__(self, text: str) -> None:
        self.shape = Shape(count=0)
        self._text = text
        self._seen: set[str] = set()

    def refuse(self, why: str) -> NoReturn:
        raise BadShape(f"--nodes {self._text}: {why}")

    def take(self, pair: str) -> None:
        key, equals, value = pair.partition("=")
        if not equals or not key or not value:
            self.refuse(f'"{pair}" must be KEY=VALUE, such as cpu=64')
        if key in self._seen and key != "taint":
            self.refuse(f"{key} stands twice")
        self._seen.add(key)
        if key == "name":
            self._take_name(value)
        elif key == "topology":
            self._set(topology=self._levels(value))
        elif key == "failures":
            self._set(failures_per_million=self._per_million(value))
        elif key == "taint":
            self._set(taints=(*self.shape.taints, self._taint(value)))
        elif key in _TIMES:
            self._set(**{key: self._duration(key, value)})
        elif key.startswith("label."):
            self._take_label(key.removeprefix("label."), value)
        else:
            self._take_capacity(key, value)

    def _set(self, **fields: object) -> None:
        self.shape = msgspec.structs.replace(self.shape, **fields)

    def _take_name(self, value: str) -> None:
        if fault := metadata.dns_label_fault(value):
            self.refuse(f'name "{value}": {fault}')
        self._set(name=value)

    def _take_label(self, key: str, value: str) -> None:
        fault = metadata.qualified_name_fault(key) or metadata.label_value_fault(value)
        if fault:
            self.refuse(f'label "{key}={value}": {fault}')
        self._set(labels={**self.shape.labels, key: value})

    def _take_capacity(self, key: str, value: str) -> None:
        if key not in CAPACITY and "/" not in key:
            known = ", ".join((*CAPACITY, "name", "topology", "failures", "taint", *_TIMES))
            self.refuse(
                f'"{key}" is not known: must be one of {known}, label.KEY, or the full name of '
                "another resource, such as nvidia.com/gpu"
            )
        if fault := metadata.qualified_name_fault(key):
            self.refuse(f'resource "{key}": {fault}')
        try:
            nanos = quantities.parse_quantity(value)
        except ValueError as error:
            self.refuse(f'{key} "{value}": {error}')
        is_whole = "/" in key or key == "pods"
        if nanos < 0 or (is_whole and nanos % quantities.NANO):
            wanted = "a whole number" if is_whole else "an amount"
            self.refuse(f'{key} "{value}": must be {wanted} that is not negative')
        self._set(capacity={**self.shape.capacity, key: quantities.canonical(value)})

    def _levels(self, value: str) -> tuple[Level, ...]:
        found: list[Level] = []
        position = 0
        for match in _LEVEL.finditer(value):
            if match.start() != position or int(match[2]) == 0:
                break
            position = match.end()
            found.append(self._level(match[1], int(match[2])))
        if position != len(value) or not found or value.endswith("/"):
            self.refuse(
                f'topology "{value}": must be levels from the widest to the narrowest with how '
                "many domains each has within the one above, such as zone:2/rack:4"
            )
        if len({level.key for level in found}) != len(found):
            self.refuse(f'topology "{value}": a level stands twice')
        return tuple(found)

    def _level(self, word: str, count: int) -> Level:
        if word == "host":
            self.refuse("topology: host is no level to be given: each node is a host of its own")
        key = LEVEL_KEYS.get(word, word if "/" in word else f"{LEVEL_PREFIX}{word}")
        name = word.rpartition("/")[2]
        if fault := metadata.qualified_name_fault(key) or metadata.dns_label_fault(name):
            self.refuse(f'topology level "{word}": {fault}')
        return Level(key=key, word=name, count=count)

    def _per_million(self, value: str) -> int:
        match = _RATE.fullmatch(value)
        rate = MILLION + 1
        if match is not None and match[1] is not None:
            rate = int(match[1]) * MILLION + int((match[2] or "0").ljust(6, "0"))
        elif match is not None:
            rate = int(match[3]) * 10_000 + int((match[4] or "0").ljust(4, "0"))
        if rate > MILLION:
            self.refuse(f'failures "{value}": must be a share from 0 to 1, such as 0.01 or 1%')
        return rate

    def _duration(self, key: str, value: str) -> timedelta:
        try:
            found = durations.parse_duration(value)
        except ValueError as error:
            self.refuse(f'{key} "{value}": {error}')
        if found < timedelta():
            self.refuse(f'{key} "{value}": must not be negative')
        return found

    def _taint(self, value: str) -> NodeTaint:
        pair, _, effect = value.rpartition(":")
        key, _, word = pair.partition("=")
        fault = metadata.qualified_name_fault(key) or metadata.label_value_fault(word)
        if effect not in EFFECTS or fault:
            wanted = ", ".join(EFFECTS)
            self.refuse(
                f'taint "{value}": must be KEY:EFFECT or KEY=VALUE:EFFECT with one of the effects '
                f"{wanted}{': ' + fault if fault else ''}"
            )
        return NodeTaint(key=key, effect=effect, value=word)
