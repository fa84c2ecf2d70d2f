"""The nodes of an embedded world, and who places pods on them, put together.

fleet       simulated nodes, in this process
roster      all nodes there are, as the server and the autoscalers ask them
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from spinney.nodes.fleet.fleet import Fleet
from spinney.nodes.fleet.shapes import Nodes
from spinney.nodes.roster import Roster
from spinney.ports import Clock, Entropy, Identity, Reader
from spinney.registry.world import World

FLEET = Identity(
    user="system:node:simulated", groups=("system:nodes",), manager="spinney-simulated-nodes"
)
"""Who simulated nodes write as."""


class Grounds:
    """Where the pods of a world are placed and run."""

    def __init__(
        self, nodes: Nodes, world: World, reader: Reader, clock: Clock, entropy: Entropy
    ) -> None:
        """Have the nodes a world was asked for; nothing is done before it runs."""
        self.fleet = Fleet(nodes.shapes, reader, world.writer(FLEET), clock, entropy)
        self.roster = Roster(self.fleet)

    @property
    def checks(self) -> Mapping[str, Callable[[], str]]:
        """What `/readyz` asks: each says why it cannot be relied on yet, "" where it can."""
        return {"simulated-nodes": self._fleet_fault}

    def _fleet_fault(self) -> str:
        return "" if self.fleet.is_ready else "simulated nodes are not all there yet"

    async def run(self) -> None:
        """Place pods and run them, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.fleet.run(), name="simulated nodes")

    async def wait_ready(self) -> None:
        """Wait until everything here can be relied on."""
        await self.fleet.wait_ready()
