"""The nodes of an embedded world, and who places pods on them, put together.

scheduler   gives gangs their nodes
local       this machine, through its agent, which is a process of its own
fleet       simulated nodes, in this process
roster      all nodes there are, as the server and the autoscalers ask them
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from spinney.app import local_node
from spinney.app.datafolder import DataFolder
from spinney.app.local_node import LocalNode
from spinney.engine.metrics import Metrics
from spinney.nodes.fleet.fleet import Fleet
from spinney.nodes.fleet.shapes import Nodes
from spinney.nodes.roster import Roster
from spinney.ports import Clock, Entropy, Identity, Reader
from spinney.registry.world import World
from spinney.scheduler.scheduler import Scheduler

FLEET = Identity(
    user="system:node:simulated", groups=("system:nodes",), manager="spinney-simulated-nodes"
)
"""Who simulated nodes write as."""

SCHEDULER = Identity(user="system:spinney:scheduler", manager="spinney-scheduler")
"""Who the scheduler writes as."""


class Grounds:
    """Where the pods of a world are placed and run."""

    def __init__(
        self,
        nodes: Nodes,
        folder: DataFolder,
        world: World,
        reader: Reader,
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
    ) -> None:
        """Have the nodes a world was asked for; nothing is done before it runs.

        Without any there is no scheduler either: who brings nodes brings it along.
        """
        self.scheduler: Scheduler | None = None
        if nodes.are_any:
            writer = world.writer(SCHEDULER)
            self.scheduler = Scheduler(reader, writer, clock, entropy, metrics=metrics)
        self.fleet = Fleet(nodes.shapes, reader, world.writer(FLEET), clock, entropy)
        self.roster = Roster(self.fleet)
        self.local: LocalNode | None = None
        if nodes.local:
            keeper = world.writer(local_node.KEEPER)
            self.local = LocalNode(folder, reader, keeper, clock, entropy)
            self.roster.add(self.local.line)

    @property
    def checks(self) -> Mapping[str, Callable[[], str]]:
        """What `/readyz` asks: each says why it cannot be relied on yet, "" where it can."""
        return {"simulated-nodes": self._fleet_fault, "scheduler": self._scheduler_fault}

    def _fleet_fault(self) -> str:
        return "" if self.fleet.is_ready else "simulated nodes are not all there yet"

    def _scheduler_fault(self) -> str:
        if self.scheduler is None or self.scheduler.ready:
            return ""
        return "the scheduler has not looked at everything yet"

    async def run(self) -> None:
        """Place pods and run them, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.fleet.run(), name="simulated nodes")
            if self.scheduler is not None:
                group.create_task(self.scheduler.run(), name="scheduler")
            if self.local is not None:
                group.create_task(self.local.run(), name="local node")

    async def wait_ready(self) -> None:
        """Wait until everything here can be relied on."""
        await self.fleet.wait_ready()
        if self.scheduler is not None:
            await self.scheduler.wait_ready()
        if self.local is not None:
            await self.local.wait_connected()

    async def end(self) -> None:
        """End what outlives this process."""
        if self.local is not None:
            await self.local.end()
