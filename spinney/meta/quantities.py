"""Quantities of Kubernetes (`500m`, `4Gi`) and values that are an integer or a percentage."""

from __future__ import annotations

from typing import TypeAlias

IntOrString: TypeAlias = "int | str"
"""An integer or a string such as `25%`."""


def parse_quantity(value: str | int) -> int:
    """Return a quantity."""
    raise ValueError(value)
