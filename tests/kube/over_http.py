"""A world behind its own server on loopback, and what reads and writes it from outside."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from spinney.kube.kubeconfig import Connection
from spinney.kube.transport import Transport
from spinney.ports import Clock
from spinney.registry.world import World
from spinney.server.access import Access, Grant
from spinney.server.serving import Server

TOKEN = "controllers-token"
USER = "system:spinney:controllers"
HOST = "127.0.0.1"


class Front:
    """The server before a world; it can go away and come back where it was."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._server: Server | None = None
        self.port = 0

    async def come(self) -> None:
        access = Access([Grant(token=TOKEN, user=USER)])
        self._server = Server(self._world, access, self._clock)
        _, self.port = await self._server.start(HOST, self.port)

    async def go(self) -> None:
        if self._server is not None:
            await self._server.stop()
            self._server = None

    def transport(self) -> Transport:
        """Return a way to it, for the controllers."""
        connection = Connection(server=f"http://{HOST}:{self.port}", token=TOKEN)
        return Transport(connection, self._clock)


@asynccontextmanager
async def fronted(world: World, clock: Clock) -> AsyncIterator[Front]:
    """Serve a world."""
    front = Front(world, clock)
    await front.come()
    try:
        yield front
    finally:
        await front.go()


@asynccontextmanager
async def served(world: World, clock: Clock) -> AsyncIterator[Transport]:
    """Serve a world, and give a way to it."""
    async with fronted(world, clock) as front:
        transport = front.transport()
        try:
            yield transport
        finally:
            await transport.close()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a story in real time; what it leaves open is told now, not in a later test."""
    asyncio.run(main)
    gc.collect()
