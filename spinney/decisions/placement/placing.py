"""Placing: where the pods of a gang go."""

from __future__ import annotations

from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.outcomes import Placement, Refusal

STEPS_MAX = 20_000
"""How many steps the exact search takes before it gives up."""


def place(
    cluster: Cluster, gang: GangDemand, levels: tuple[str, ...], *, steps_max: int = STEPS_MAX
) -> Placement | Refusal:
    """Return where a gang's pods go, or why they go nowhere; the cluster is left as it was.

    `levels` are the node labels of the cluster's network, broadest first. Putting the bound pods
    into the cluster, and the placed ones, is the caller's.
    """
    raise NotImplementedError
