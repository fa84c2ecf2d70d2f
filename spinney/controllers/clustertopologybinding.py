"""The ClusterTopologyBinding controller: looks at one binding, and at what back ends have of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.decisions.topologies import Backend, Observation
from spinney.meta.references import Ref
from spinney.ports import Reader

Backends: TypeAlias = Callable[[Reader, ClusterTopologyBinding], tuple[Backend, ...]]
"""Finds the back ends of an installation with what each has for a binding, sorted by name."""


def none_outside(_reader: Reader, _binding: ClusterTopologyBinding) -> tuple[Backend, ...]:
    """Find no back ends: our own scheduler reads the binding itself."""
    return ()


def observe(
    reader: Reader, key: Ref, now: datetime, backends: Backends = none_outside
) -> Observation | None:
    """Return what is to be seen of one binding; None where it is gone."""
    binding = reader.get(ClusterTopologyBinding, key.namespace, key.name)
    if binding is None:
        return None
    return Observation(now=now, binding=binding, backends=backends(reader, binding))
