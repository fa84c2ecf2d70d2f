"""Amounts of resources as whole numbers: processor time in thousandths, all else in units.

What is asked for is rounded up and what there is is rounded down, so a machine is never promised
more than it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from spinney.meta import quantities
from spinney.meta.documents import Json

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

Amounts: TypeAlias = tuple[tuple[str, int], ...]
"""How much of each resource, by name in order; nothing stands for none. Can be a key."""

_NANOS_OF_A_THOUSANDTH = 1_000_000
_BYTES = (MEMORY, EPHEMERAL_STORAGE)


def asked(value: Json, name: str) -> int:
    """Return what a quantity asks for of a resource, rounded up; what is no quantity asks nothing.

    Admission lets no such quantity in.
    """
    nanos = _nanos(value)
    return quantities.millis(nanos) if name == CPU else quantities.units(nanos)


def offered(value: Json, name: str) -> int:
    """Return what a quantity offers of a resource, rounded down."""
    return _nanos(value) // (_NANOS_OF_A_THOUSANDTH if name == CPU else quantities.NANO)


def _nanos(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return 0
    try:
        return quantities.parse_quantity(value)
    except ValueError:
        return 0


def amounts(values: Mapping[str, int]) -> Amounts:
    """Return amounts in the one form there is of them."""
    return tuple(sorted((name, value) for name, value in values.items() if value > 0))


def is_extended(name: str) -> bool:
    """Whether a resource is one that only some machines have, such as GPUs."""
    return "/" in name or name.startswith("hugepages-")


def spelled(name: str, value: int) -> str:
    """Return an amount as people write it: `500m`, `16Gi`, `8`."""
    if name == CPU:
        return quantities.format_quantity(value * _NANOS_OF_A_THOUSANDTH)
    family = "binary" if name in _BYTES or name.startswith("hugepages-") else "decimal"
    return quantities.format_quantity(value * quantities.NANO, family)
