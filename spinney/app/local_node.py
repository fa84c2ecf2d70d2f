"""This machine as a node, as the control plane sees it: its agent, found or started, and the line.

Found before started: an agent that outlived its control plane is taken on with its pods. One that
dies is followed by another. While none is connected for a while, the Node says that nobody knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import spinney
from spinney.api.core.namespace import Namespace
from spinney.app.datafolder import AgentFolder, DataFolder, Holder
from spinney.engine.backoff import Backoff
from spinney.meta.errors import Conflict, SpinneyError
from spinney.nodes.agent import images
from spinney.nodes.line import calling
from spinney.nodes.line.calling import Line
from spinney.nodes.line.loss import Loss
from spinney.nodes.line.messages import Hello
from spinney.ports import Clock, Entropy, Identity, Reader, Writer

LOG = logging.getLogger("spinney.app")

NAME = "local"
USER = f"system:node:{NAME}"
KEEPER = Identity(user="system:spinney:nodes", manager="spinney-nodes")
"""Who tells that the agent is lost."""

READY_MAX = timedelta(seconds=30)
CONNECTED_MAX = timedelta(seconds=10)
"""How long coming up waits for the agent; without it, all else is there."""

GRACE = timedelta(seconds=10)
"""How long pods have to end when the world goes down."""

END_SLACK = timedelta(seconds=8)
AGAIN = Backoff(first=timedelta(milliseconds=50), longest=timedelta(seconds=10))
PERIOD = timedelta(milliseconds=20)

_BEGIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from spinney.app.agent import main; sys.exit(main())"
)
"""Has Python find this very package, whatever lies in the folder it is started in."""


class LocalNode:
    """The node of this machine."""

    def __init__(
        self, folder: DataFolder, reader: Reader, writer: Writer, clock: Clock, entropy: Entropy
    ) -> None:
        """Know where its agent is, or will be."""
        self._folder = AgentFolder(folder.root)
        self._settings = (folder.settings, Path.cwd() / images.FILE_NAME)
        self._reader = reader
        self._clock = clock
        self._entropy = entropy
        self.line = Line(NAME, self._folder.agent_socket, clock)
        self._connected = asyncio.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._supervising: asyncio.Task[None] | None = None
        self._loss = Loss(NAME, reader, writer, clock, entropy)
        self._failures = 0
        self._is_ending = False

    async def run(self) -> None:
        """Keep an agent connected. Cancelled, that goes on until `end`."""
        if self._supervising is None:
            self._supervising = asyncio.create_task(self._supervise(), name="agent")
        await asyncio.shield(self._supervising)

    async def wait_connected(self) -> None:
        """Wait until the agent is connected, but no longer than is good."""
        try:
            async with asyncio.timeout(CONNECTED_MAX / timedelta(seconds=1)):
                await self._connected.wait()
        except TimeoutError:
            LOG.warning("the agent is not connected yet", extra={"log": self._folder.agent_log})

    # Supervising

    async def _supervise(self) -> None:
        self._loss.is_gone()
        while True:
            try:
                await self.line.hold(self._world(), spinney.__version__, self._take)
            except Conflict as conflict:
                LOG.info("the agent is another world's and ends", extra={"reason": conflict})
                await self._wait_free(END_SLACK)
            except (OSError, SpinneyError) as error:
                LOG.debug("no agent is connected", extra={"reason": error})
            else:
                self._note_gone()
            self._connected.clear()
            if self._is_ending:
                return
            self._loss.is_gone()
            if self._folder.holder() is None and await self._start():
                continue
            self._failures += 1
            await self._clock.sleep(AGAIN.delay(self._failures, self._entropy))

    def _note_gone(self) -> None:
        if not self._is_ending:
            LOG.warning("the agent is gone", extra={"log": self._folder.agent_log})

    def _world(self) -> str:
        found = self._reader.get(Namespace, "", "kube-system")
        return "" if found is None else found.metadata.uid

    def _take(self, hello: Hello) -> None:
        self._failures = 0
        self._loss.is_back()
        self._connected.set()
        LOG.info("the agent is connected", extra={"agent": hello.process})

    async def _start(self) -> bool:
        """Start an agent; returns whether it listens."""
        reading, writing = os.pipe()
        self._spawn(writing)
        try:
            is_ready = await _heard(reading)
        finally:
            os.close(reading)
        if not is_ready:
            LOG.error("the agent did not start", extra={"log": self._folder.agent_log})
        return is_ready

    def _spawn(self, ready_to: int) -> None:
        """Make the process, in a session of its own: what ends this one does not end it."""
        if self._child is not None:
            self._child.poll()
        with self._folder.agent_log.open("ab") as log:
            os.fchmod(log.fileno(), 0o600)
            self._child = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c", _BEGIN),
                    os.fspath(Path(spinney.__file__).parents[1]),
                    *("--data", os.fspath(self._folder.root)),
                    *("--node", NAME),
                    *(word for file in self._settings for word in ("--settings", str(file))),
                    *("--ready-to", str(ready_to)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(ready_to,),
                start_new_session=True,
            )
        os.close(ready_to)

    # Ending

    async def end(self) -> None:
        """End the agent with its pods; returns when it is gone.

        Where this never ran, as where coming up failed, an agent there may be stays.
        """
        if self._supervising is None:
            return
        self._is_ending = True
        try:
            await end_agent(self._folder, self._clock, GRACE)
        finally:
            self._supervising.cancel()
            await asyncio.gather(self._supervising, return_exceptions=True)
            await self._loss.close()
            if self._child is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(timeout=1)
                self._child.returncode = self._child.returncode or 0

    async def _wait_free(self, most: timedelta) -> None:
        await _wait_gone(self._folder, self._clock, most)


async def end_agent(folder: AgentFolder, clock: Clock, grace: timedelta) -> int | None:
    """End the agent of a folder, by its line, else by a signal; returns which process it was.

    Its pods have the grace to end; keepers of containers end theirs where the agent is killed.
    """
    holder = folder.holder()
    if holder is None:
        return None
    try:
        async with asyncio.timeout((grace + END_SLACK) / timedelta(seconds=1)):
            await calling.leave(folder.agent_socket, grace // timedelta(seconds=1))
    except (OSError, SpinneyError):
        _signal(holder, signal.SIGTERM)
    if not await _wait_gone(folder, clock, END_SLACK):
        LOG.error("the agent does not end: it is killed", extra={"agent": holder.pid})
        _signal(holder, signal.SIGKILL)
        await _wait_gone(folder, clock, END_SLACK)
    return holder.pid


def _signal(holder: Holder, number: signal.Signals) -> None:
    if holder.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder.pid, number)


async def _wait_gone(folder: AgentFolder, clock: Clock, most: timedelta) -> bool:
    """Wait until nobody holds a folder as its agent; returns whether that came in time."""
    until = clock.elapsed() + most
    while folder.holder() is not None:
        if clock.elapsed() >= until:
            return False
        await clock.sleep(PERIOD)
    return True


async def _heard(descriptor: int) -> bool:
    """Wait for a byte; returns False at the end without one, or when it takes too long."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[bool] = loop.create_future()

    def look() -> None:
        if not heard.done():
            heard.set_result(bool(os.read(descriptor, 1)))

    loop.add_reader(descriptor, look)
    try:
        async with asyncio.timeout(READY_MAX / timedelta(seconds=1)):
            return await heard
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
