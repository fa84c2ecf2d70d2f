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


@asynccontextmanager
async def served(
    world: World, clock: Clock, user: str = "system:spinney:controllers"
) -> AsyncIterator[Transport]:
    """Serve a world, and give a way to it that is somebody's."""
    server = Server(world, Access([Grant(token=TOKEN, user=user)]), clock)
    host, port = await server.start("127.0.0.1", 0)
    transport = Transport(Connection(server=f"http://{host}:{port}", token=TOKEN), clock)
    try:
        yield transport
    finally:
        await transport.close()
        await server.stop()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a story in real time; what it leaves open is told now, not in a later test."""
    asyncio.run(main)
    gc.collect()
