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
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from spinney.meta.documents import Document
from spinney.ports import Identity
from spinney.registry.world import open_world
from spinney.server import collecting
from spinney.server.access import Access, Grant
from spinney.server.serving import Server
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Store
from spinney.testing.entropy import SeededEntropy

HOST = "127.0.0.1"
TOKEN = "bench"
NAMESPACES = 10
START_SECONDS = 20

Stop = Callable[[], Awaitable[None]]


class RealClock:
    """Real time."""

    def now(self) -> datetime:
        """Return the wall time."""
        return datetime.now(UTC)

    def elapsed(self) -> timedelta:
        """Return monotonic time."""
        return timedelta(microseconds=asyncio.get_running_loop().time() * 1e6)

    async def sleep(self, duration: timedelta) -> None:
        """Wait."""
        await asyncio.sleep(duration.total_seconds())


class RealEntropy(SeededEntropy):
    """Uids as chance gives them."""

    def uid(self) -> str:
        """Return a random uid."""
        return str(uuid.uuid4())


def write_certificate(folder: Path) -> None:
    """Write a certificate for this machine, and its key, into a folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(secret)
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def _tls(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


async def _serve_spinney(folder: Path) -> tuple[int, list[str], Stop]:
    """Serve a world with namespaces, and an owner in each for the pods that come."""
    clock = RealClock()
    store = await Store.open(SqliteJournal(folder / "data"), clock)
    world = await open_world(store, clock, RealEntropy(1))
    writer = world.writer(Identity(user="system:admin", manager="bench"))
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
    keeping = asyncio.create_task(world.run())
    collecting.collect_seldom()
    server = Server(world, Access([Grant(token=TOKEN)]), clock)
    _, port = await server.start(HOST, 0, _tls(folder))

    async def stop() -> None:
        await server.stop()
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        await store.close()

    return port, owners, stop


async def _serve_echo(folder: Path) -> tuple[int, list[str], Stop]:
    """Serve what aiohttp alone would: a body given back, or so many bytes as the path says."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST":
            return web.Response(body=await request.read(), content_type="application/json")
        return web.Response(body=bytes(int(request.path.strip("/"))))

    server = web.Server(handle, access_log=None)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(server, HOST, 0, ssl=_tls(folder), backlog=1024)

    async def stop() -> None:
        listener.close()
        await server.shutdown(1)
        await listener.wait_closed()

    return listener.sockets[0].getsockname()[1], [], stop


async def serve(sort: str, folder: Path) -> None:
    """Serve until nothing more comes on the standard input."""
    port, owners, stop = await (_serve_echo if sort == "echo" else _serve_spinney)(folder)
    print(json.dumps({"port": port, "owners": owners}), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        used = os.times()
        print(json.dumps({"cpu": used.user + used.system}), flush=True)
    await stop()


class Running:
    """A server that runs in a process of its own."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        port: int,
        owners: Sequence[str],
        tls: ssl.SSLContext,
    ) -> None:
        """Know where it listens, how it is trusted, and the uids of what may own pods there."""
        self._process = process
        self.port = port
        self.owners = owners
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
    write_certificate(folder)
    tls = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    tls.check_hostname = False
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.serving", sort, str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    async with asyncio.timeout(START_SECONDS):
        told = await _told(process)
    server = Running(process, told["port"], told["owners"], tls)
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
