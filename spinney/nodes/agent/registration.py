"""Registration: keeps the Node object of this machine what the machine is.

It is written when it is not there, or says something else: never at rest.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from spinney.api.core.node import Node
from spinney.engine import logs
from spinney.engine.verdicts import Refusal
from spinney.meta.references import Precondition, Ref
from spinney.nodes.agent import machines
from spinney.nodes.agent.machines import Hardware, Readiness
from spinney.nodes.agent.station import NODE
from spinney.nodes.agent.telling import AGAIN
from spinney.ports import Change, Clock, Entropy, Reader, Writer

_log = logs.logger("agent")


class Registration:
    """Keeps one Node."""

    def __init__(
        self,
        name: str,
        ip: str,
        hardware: Hardware,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """Keep the Node of a name; nothing is done before it runs."""
        self._name = name
        self._ip = ip
        self._hardware = hardware
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._entropy = entropy
        self._readiness: Readiness = machines.CONNECTED
        self._bell = asyncio.Event()
        self._told = asyncio.Event()
        self._failures = 0
        self._seen_from = 0

    async def run(self) -> None:
        """Keep it, until cancelled."""
        self._reader.on_change(NODE, self._changed)
        while True:
            self._bell.clear()
            try:
                await self._look()
            except Refusal as error:
                self._failures += 1
                _log.info("the node is told of again", extra=logs.fields(why=error))
                await self._clock.sleep(AGAIN.delay(self._failures, self._entropy))
                continue
            self._failures = 0
            await self._bell.wait()

    def _changed(self, ref: Ref, change: Change) -> None:
        if ref.name == self._name or change is Change.BOOKMARK:
            self._bell.set()

    async def wait_told(self) -> None:
        """Wait until the Node is there and ready."""
        await self._told.wait()

    async def end(self, within: timedelta) -> None:
        """Tell that the node ends."""
        self._told.clear()
        self._readiness = machines.ENDED
        self._bell.set()
        try:
            async with asyncio.timeout(within / timedelta(seconds=1)):
                await self._told.wait()
        except TimeoutError:
            _log.warning("the end of the node could not be told")

    async def _look(self) -> None:
        node = self._reader.get(Node, "", self._name)
        now = self._clock.now()
        said = self._hardware, self._readiness, now
        if node is None:
            if self._seen_from and self._reader.seen(NODE) < self._seen_from:
                return
            written = await self._writer.create(machines.document(self._name, self._ip, *said))
            self._seen_from = int(written.resource_version)
            self._told.set()
            return
        if int(node.metadata.resource_version or 0) < self._seen_from:
            return
        ref = Ref(kind=NODE, namespace="", name=self._name)
        only_if = Precondition(uid=node.metadata.uid)
        if (labels := machines.label_changes(node, self._hardware)) is not None:
            await self._writer.patch(ref, labels, only_if)
        wanted = machines.status(node, self._name, self._ip, *said)
        if not machines.is_told(node, wanted):
            written = await self._writer.patch(ref, {"status": wanted}, only_if, "status")
            self._seen_from = int(written.resource_version)
        self._told.set()
