"""A server in a process of its own, to be measured from another.

It says in one line of JSON where it listens, then answers each line it is sent with the CPU seconds
it has used, and ends when nothing more will be sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

from spinney.app import credentials, pki
from spinney.app.datafolder import DataFolder
from spinney.app.embedded import Options, open_embedded
from spinney.app.real import SystemClock, SystemEntropy
from spinney.meta.documents import Document
from spinney.ports import Identity

HOST = "127.0.0.1"
NAMESPACES = 10
START_SECONDS = 20

Stop = Callable[[], Awaitable[None]]


async def _serve_spinney(folder: Path) -> tuple[dict[str, Any], Stop]:
    """Serve as `spinney up` does, with namespaces, and an owner in each for the pods that come."""
    data = DataFolder(folder)
    embedded = await open_embedded(data, Options(port=0), SystemClock(), SystemEntropy())
    assert embedded.world is not None
    writer = embedded.world.writer(Identity(user="system:admin", manager="bench"))
    owners: list[str] = []
    for number in range(NAMESPACES):
        namespace: Document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": f"team-{number}"},
        }
        await writer.create(namespace)
        owner: Document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "owner", "namespace": f"team-{number}"},
        }
        owners.append((await writer.create(owner)).uid)
    keeping = asyncio.create_task(embedded.run())

    async def stop() -> None:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        await embedded.close()

    tokens = credentials.read(data.tokens)
    assert tokens is not None
    port = int(embedded.address.rpartition(":")[2])
    return {"port": port, "owners": owners, "token": tokens.admin}, stop


async def _serve_echo(folder: Path) -> tuple[dict[str, Any], Stop]:
    """Serve what aiohttp alone would: a body given back, or so many bytes as the path says."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            return web.Response(body=await request.read(), content_type="application/json")
        return web.Response(body=bytes(int(request.path.strip("/"))))

    server = web.Server(handle, access_log=None)
    loop = asyncio.get_running_loop()
    certificates = pki.prepare(DataFolder(folder).pki, (), SystemClock().now())
    tls = pki.server_context(certificates)
    listener = await loop.create_server(server, HOST, 0, ssl=tls, backlog=1024)

    async def stop() -> None:
        listener.close()
        await server.shutdown(1)
        await listener.wait_closed()

    return {"port": listener.sockets[0].getsockname()[1], "owners": [], "token": ""}, stop


async def serve(sort: str, folder: Path) -> None:
    """Serve until nothing more comes on the standard input."""
    told, stop = await (_serve_echo if sort == "echo" else _serve_spinney)(folder)
    print(json.dumps(told), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        used = os.times()
        print(json.dumps({"cpu": used.user + used.system}), flush=True)
    await stop()


class Running:
    """A server that runs in a process of its own."""

    def __init__(
        self, process: asyncio.subprocess.Process, told: dict[str, Any], tls: ssl.SSLContext
    ) -> None:
        """Know where it listens, how it is trusted, and the uids of what may own pods there."""
        self._process = process
        self.port: int = told["port"]
        self.owners: list[str] = told["owners"]
        self.token: str = told["token"]
        self.tls = tls

    async def cpu_seconds(self) -> float:
        """Return the CPU seconds the process has used, in all its threads."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"cpu\n")
        return float((await _told(self._process))["cpu"])

    async def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


@contextlib.asynccontextmanager
async def running(sort: str, folder: Path) -> AsyncIterator[Running]:
    """Run a server of a sort, `spinney` or `echo`, with its files in a folder."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.serving", sort, str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    async with asyncio.timeout(START_SECONDS):
        told = await _told(process)
    tls = ssl.create_default_context(cafile=str(DataFolder(folder).pki / "ca.crt"))
    server = Running(process, told, tls)
    try:
        yield server
    finally:
        await server.stop()


async def _told(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(await process.stdout.readline())
    return found


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], Path(sys.argv[2])))
