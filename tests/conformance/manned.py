"""A server whose pods run: the world of `spinney up`, with the machine of the server's tests.

Run as `python -m tests.conformance.manned FOLDER`; it prints a line when it answers, and ends on
SIGTERM. Pods whose `nodeName` is the machine's run there; everything else is as in any world.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import timedelta
from pathlib import Path

import yaml

from spinney.app import credentials, pki
from spinney.app.datafolder import DataFolder
from spinney.app.real import SystemClock, SystemEntropy
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.ports import Identity
from spinney.registry.world import open_world
from spinney.server.access import Access, Grant
from spinney.server.serving import Server
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from tests.server.machines import NODE, Keeper, Machine

MILLI, MEBI = 10**6, 2**20 * 10**9


class Measured(Machine):
    """A machine where every pod uses the same."""

    def usage(self, pod_uid):
        names = [name for uid, name in self.logs_of if uid == pod_uid]
        if not names:
            return None
        used = {"cpu": 12 * MILLI, "memory": 34 * MEBI}
        return PodUsage(measured_at=self.clock.now(), containers=dict.fromkeys(names, used))

    def node_usage(self, node):
        if node != self.node:
            return None
        used = {"cpu": 500 * MILLI, "memory": 512 * MEBI}
        return NodeUsage(measured_at=self.clock.now(), window=timedelta(seconds=15), values=used)


async def main(root: Path) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    folder = DataFolder(root)
    folder.make()
    certificates = pki.prepare(folder.pki, (), clock.now())
    tokens = credentials.prepare(folder.tokens, entropy)
    store = await Store.open(MemoryJournal(), clock)
    world = await open_world(store, clock, entropy)
    machine = Measured(clock)
    keeper = Keeper(world, machine, clock)
    keeper.attach()
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {
            "capacity": {"cpu": "4", "memory": "4Gi"},
            "allocatable": {"cpu": "4", "memory": "4Gi"},
        },
    }
    await world.writer(Identity(user="node", manager="node")).create(node)
    grants = (
        Grant(token=tokens.admin),
        Grant(token=tokens.read_only, user="reader", groups=(), read_only=True),
    )
    server = Server(world, Access(grants), clock, nodes=machine)
    _, port = await server.start("127.0.0.1", 0, pki.server_context(certificates))
    said = credentials.kubeconfig(f"https://127.0.0.1:{port}", certificates.authority, tokens.admin)
    folder.kubeconfig.write_text(yaml.safe_dump(said))
    running = asyncio.create_task(world.run())
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    await ended.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await keeper.close()
    await server.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
