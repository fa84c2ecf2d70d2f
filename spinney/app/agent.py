"""The process of an agent: runs the pods of this machine for the control plane of a data folder.

python -m spinney.app.agent --data DIR [--node NAME] [--settings FILE]… [--ready-to DESCRIPTOR]

It outlives the control plane: pods run on, and it goes on with the next one, which finds it by its
socket. It ends when it is told to over the line, by a signal, or by a control plane of another
world or version; whatever runs is ended before it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import spinney
from spinney.api.kinds import KINDS
from spinney.app import credentials, logs, loops
from spinney.app.datafolder import AgentFolder, DataFolder, Held, Holder, Lock
from spinney.app.real import SystemClock, SystemEntropy
from spinney.engine.informer import Informer
from spinney.engine.metrics import NoMetrics
from spinney.engine.recorder import EVENT, Recorder
from spinney.kube.kubeconfig import Connection
from spinney.kube.source import HttpSource
from spinney.kube.transport import Transport
from spinney.kube.writer import HttpWriter
from spinney.meta import quantities
from spinney.meta.errors import Conflict, Unavailable
from spinney.nodes.agent.agent import Agent
from spinney.nodes.agent.givens import Machine
from spinney.nodes.agent.images import Images
from spinney.nodes.agent.machines import Hardware
from spinney.nodes.agent.registration import Registration
from spinney.nodes.agent.station import CONFIG_MAP, NODE, POD, SECRET, Station
from spinney.nodes.line import serving
from spinney.nodes.line.gate import Gate, GatedSource, GatedWriter
from spinney.nodes.line.messages import Ask, Hello, Used
from spinney.nodes.line.serving import LineServer
from spinney.nodes.processes.runtime import ProcessRuntime
from spinney.ports import Clock, Entropy

LOG = logging.getLogger("spinney.app")

IP = "127.0.0.1"
PODS_MAX = 250
"""How many pods the machine takes."""

TELL_MAX = timedelta(seconds=4)
"""How long telling how all ended may take."""

GRACE = timedelta(seconds=10)
"""How long pods have to end when this process is told to by a signal."""

FOLLOWED = [KINDS[kind] for kind in (POD, CONFIG_MAP, SECRET, NODE)]
WRITTEN = [KINDS[kind] for kind in (POD, NODE, EVENT)]
HELD = 3
"""The exit code where another agent has the folder."""


class AgentProcess:
    """One agent, with its line. Fills `serving.Service`."""

    def __init__(
        self,
        folder: DataFolder,
        node: str,
        settings: Sequence[Path],
        runtime: ProcessRuntime,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """Put it together; nothing runs yet."""
        self.runtime = runtime
        self._folder = folder
        self._node = node
        self._clock = clock
        self._since = clock.now()
        self._world = ""
        self._gate = Gate()
        self._transports: set[Transport] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._done = asyncio.Event()
        self._leaving: asyncio.Task[None] | None = None
        self._leave_grace = timedelta()
        source, writer = GatedSource(self._gate), GatedWriter(self._gate)
        self._informer = Informer(source, FOLLOWED, clock, entropy, NoMetrics())
        hardware = _hardware(runtime)
        recorder = Recorder(self._informer, writer, clock, NoMetrics(), instance=node)
        machine = Machine(node=node, ip=IP, allocatable=hardware.capacity)
        self._agent = Agent(
            Station(
                machine,
                self._informer,
                writer,
                runtime,
                clock,
                entropy,
                recorder,
                Images(settings),
            )
        )
        self._registration = Registration(
            node, IP, hardware, self._informer, writer, clock, entropy
        )

    async def run(self) -> None:
        """Run pods until told to leave."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._informer.run(), name="informer"),
                group.create_task(self._keep(), name="agent"),
            ]
            await self._done.wait()
            for task in tasks:
                task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        for transport in self._transports:
            await transport.close()

    async def _keep(self) -> None:
        await self._informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._agent.run(), name="pods")
            await self._agent.wait_begun()
            group.create_task(self._registration.run(), name="node")

    # What the line asks for

    def hello(self) -> Hello:
        """Say who this is."""
        return Hello(
            node=self._node,
            process=os.getpid(),
            version=spinney.__version__,
            since=self._since,
            about=self.runtime.abilities.sentences(),
        )

    def held(self, ask: Ask) -> None:
        """Work for a control plane; raises Conflict where it is not the one served so far."""
        try:
            serving.refuse_other(ask, self._world, spinney.__version__)
        except Conflict as conflict:
            LOG.info("leaving", extra={"reason": conflict})
            self.leave_soon(timedelta())
            raise
        self._world = ask.world
        transport = Transport(self._connection(), self._clock)
        self._transports.add(transport)
        manager = "spinney-agent"
        self._gate.open(HttpSource(transport, FOLLOWED), HttpWriter(transport, WRITTEN, manager))
        LOG.info("connected", extra={"address": transport.connection.server})

    def _connection(self) -> Connection:
        holder = self._folder.holder()
        tokens = credentials.read(self._folder.tokens)
        if holder is None or not holder.address or tokens is None:
            raise Unavailable("the control plane has not told yet where it listens")
        authority = (self._folder.pki / "ca.crt").read_bytes()
        return Connection(
            server=holder.address,
            authority=authority,
            token=tokens.agent,
            origin=str(self._folder.root),
        )

    def let_go(self) -> None:
        """Wait for the next control plane."""
        self._gate.shut()
        LOG.info("waiting for a control plane")
        while self._transports:
            closing = asyncio.ensure_future(self._transports.pop().close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def measured(self) -> Used:
        """Return what pods and machine use."""
        return Used(pods=await self.runtime.usage(), node=await self.runtime.node_usage())

    async def leave(self, grace_seconds: int) -> None:
        """End all pods, and then this process."""
        self.leave_soon(timedelta(seconds=grace_seconds))
        assert self._leaving is not None
        await asyncio.shield(self._leaving)

    def leave_soon(self, grace: timedelta) -> None:
        """Begin to leave; a second time only a shorter grace changes anything."""
        if self._leaving is not None:
            if grace >= self._leave_grace:
                return
            self._leaving.cancel()
        self._leave_grace = grace
        self._leaving = asyncio.ensure_future(self._leave(grace))

    async def _leave(self, grace: timedelta) -> None:
        await self._agent.leave(grace)
        if self._gate.is_open and grace > timedelta():
            await self._tell_end()
        self._done.set()

    async def _tell_end(self) -> None:
        """Tell how all ended, as long as there is somebody to tell it to."""
        telling = [
            asyncio.ensure_future(self._tell_pods_and_node()),
            asyncio.ensure_future(self._gate.wait_shut()),
        ]
        seconds = TELL_MAX / timedelta(seconds=1)
        await asyncio.wait(telling, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in telling:
            task.cancel()
        await asyncio.gather(*telling, return_exceptions=True)

    async def _tell_pods_and_node(self) -> None:
        await asyncio.gather(self._agent.wait_told(), self._registration.end(TELL_MAX))


def _hardware(runtime: ProcessRuntime) -> Hardware:
    """Return what this machine has."""
    found = runtime.capacity()
    system = os.uname()
    return Hardware(
        capacity={
            "pods": str(PODS_MAX),
            **{
                name: quantities.format_quantity(
                    nanos, "decimal" if name == "cpu" or "/" in name else "binary"
                )
                for name, nanos in found.items()
            },
        },
        architecture=_ARCHITECTURES.get(system.machine, system.machine),
        kernel=system.release,
        system=system.sysname.lower(),
        image=f"{system.sysname} {system.release}",
        hostname=system.nodename,
    )


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386"}


async def _serve(arguments: argparse.Namespace, folder: AgentFolder) -> None:
    clock, entropy = SystemClock(), SystemEntropy()
    runtime = await ProcessRuntime.open(folder.pods, clock, entropy)
    try:
        await runtime.adopt()
        agent = AgentProcess(
            DataFolder(folder.root), arguments.node, arguments.settings, runtime, clock, entropy
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, agent.leave_soon, GRACE)
        async with LineServer(agent, clock).listening(folder.agent_socket):
            _tell_ready(arguments.ready_to)
            LOG.info("agent is up", extra={"node": arguments.node, "data": folder.root})
            await agent.run()
    finally:
        await runtime.close()
        LOG.info("agent is down", extra={"node": arguments.node})


def _tell_ready(descriptor: int | None) -> None:
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, b"1")
        os.close(descriptor)


def main(words: Sequence[str] | None = None) -> int:
    """Run an agent; returns the exit code."""
    parser = argparse.ArgumentParser(prog="spinney.app.agent")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--node", default="local")
    parser.add_argument("--settings", type=Path, action="append", default=[])
    parser.add_argument("--ready-to", type=int)
    arguments = parser.parse_args(words)
    os.umask(0o077)
    folder = AgentFolder(arguments.data)
    try:
        lock = Lock.take(
            folder,
            Holder(pid=os.getpid(), since=SystemClock().now(), version=spinney.__version__),
        )
    except Held:
        return HELD
    try:
        logs.begin(folder.agent_log)
        loops.run(_serve(arguments, folder))
    except OSError:
        LOG.exception("the agent cannot go on")
        return 1
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
