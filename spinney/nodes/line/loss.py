"""Loss: a node whose agent is gone for a while says that nobody knows of it.

For a while, as an agent that died is followed by another within seconds. The agent itself sets its
Node right when it is back.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from spinney.api.core.node import Node
from spinney.engine import logs
from spinney.engine.verdicts import Refusal
from spinney.meta.references import Precondition, Ref
from spinney.nodes.agent import machines
from spinney.nodes.agent.station import NODE
from spinney.nodes.agent.telling import AGAIN
from spinney.ports import Clock, Entropy, Reader, Writer

LOST_AFTER: Final = timedelta(seconds=5)
"""How long the line may be gone before the Node says so: an agent is started again sooner."""

_log = logs.logger("line")


class Loss:
    """Watches over one node for whoever holds its line."""

    def __init__(
        self, node: str, reader: Reader, writer: Writer, clock: Clock, entropy: Entropy
    ) -> None:
        """Take the agent for there."""
        self._node = node
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._telling: asyncio.Task[None] | None = None

    def is_gone(self) -> None:
        """Take note that the agent is not there."""
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell(), name=f"loss of {self._node}")

    def is_back(self) -> None:
        """Take note that the agent is there."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None

    async def close(self) -> None:
        """Watch no more."""
        telling, self._telling = self._telling, None
        if telling is not None:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self) -> None:
        await self._clock.sleep(LOST_AFTER)
        ref = Ref(kind=NODE, namespace="", name=self._node)
        failures = 0
        while (node := self._reader.get(Node, "", self._node)) is not None:
            told = machines.lost(node, self._clock.now())
            if told is None:
                return
            only_if = Precondition(
                uid=node.metadata.uid, resource_version=node.metadata.resource_version
            )
            try:
                await self._writer.patch(ref, {"status": told}, only_if, "status")
            except Refusal as error:
                failures += 1
                _log.warning("a lost node could not be told of", extra=logs.fields(why=error))
                await self._clock.sleep(AGAIN.delay(failures, self._entropy))
            else:
                _log.warning("a node is lost", extra=logs.fields(object=ref))
                return
