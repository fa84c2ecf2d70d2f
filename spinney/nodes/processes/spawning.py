"""The agent's side of the spawner: starting it, and asking it for keepers.

The spawner is a second, small Python process because forking is what costs: a keeper is a fork of
it, and the agent is ten times its size. It is started without site packages and imports nothing of
Spinney but `spawner/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import socket
import subprocess
import sys
from pathlib import Path

from spinney.meta.errors import SpinneyError
from spinney.nodes.processes.channels import Channel
from spinney.nodes.processes.spawner import messages
from spinney.nodes.processes.spawner.plans import Plan

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from spinney.nodes.processes.spawner import main; "
    "main.main(int(sys.argv[2]), own_user=sys.argv[3] == 'user', own_pids=sys.argv[4] == 'pids')"
)
_ROOT = Path(__file__).parents[3]


class Isolation(enum.Enum):
    """Which namespaces containers get."""

    PROCESSES_AND_MOUNTS = "processes and mounts"
    MOUNTS = "mounts"
    NOTHING = "nothing"


class SpawnerFailed(SpinneyError):
    """The spawner cannot work as it was asked to; says why."""


class Spawner:
    """A spawner that runs."""

    def __init__(self, isolation: Isolation, channel: Channel, *, own_user: bool) -> None:
        """Own the channel to it."""
        self.isolation = isolation
        self.own_user = own_user
        self._channel = channel
        self.process_id = channel.process_id

    @classmethod
    async def start(cls, isolation: Isolation, *, own_user: bool) -> Spawner:
        """Start one; raises SpawnerFailed where the machine does not give what is asked for.

        `own_user` asks for a user namespace: who is not root needs one for any other.
        """
        own_user = own_user and isolation is not Isolation.NOTHING
        own_pids = isolation is Isolation.PROCESSES_AND_MOUNTS
        channel, theirs = Channel.pair()
        try:
            process = await asyncio.to_thread(_run, theirs, own_user=own_user, own_pids=own_pids)
            theirs.close()
            told = await channel.receive()
            await asyncio.to_thread(_forget, process, is_over=own_pids or not told)
            if not told or "failed" in told:
                why = told["failed"] if told else f"it ended with {process.returncode}"
                raise SpawnerFailed(f"no namespaces for {isolation.value}: {why}")
        except BaseException:
            channel.close()
            raise
        return cls(isolation, channel, own_user=own_user)

    async def fork(self, plan: Plan, output: int, errors: int) -> Channel:
        """Have a keeper forked for a plan; returns the channel to it. Raises OSError."""
        channel, theirs = Channel.pair()
        holder = -1
        try:
            holder = messages.write_plan({**plan})
            await self._channel.send({"fork": True}, (holder, theirs.fileno(), output, errors))
        except BaseException:
            channel.close()
            raise
        finally:
            theirs.close()
            if holder >= 0:
                os.close(holder)
        return channel

    def close(self) -> None:
        """Have it end. Keepers stay until their own channels are closed, or are ended with it."""
        self._channel.close()


class LastingSpawner:
    """A spawner that is started anew where it was killed."""

    def __init__(self, spawner: Spawner) -> None:
        """Begin with one that runs."""
        self._first = spawner
        self._spawner: Spawner | None = spawner
        self._respawning = asyncio.Lock()

    @property
    def process_id(self) -> int:
        """The process id of the one that runs; 0 where none does."""
        return self._spawner.process_id if self._spawner is not None else 0

    async def fork(self, plan: Plan, output: int, errors: int) -> Channel:
        """Have a keeper forked; raises OSError, SpawnerFailed."""
        for _ in range(2):
            spawner = await self._running()
            try:
                return await spawner.fork(plan, output, errors)
            except OSError:
                if self._spawner is spawner:
                    self.close()
        raise SpawnerFailed("the process that starts containers ended twice")

    async def _running(self) -> Spawner:
        async with self._respawning:
            if self._spawner is None:
                first = self._first
                self._spawner = await Spawner.start(first.isolation, own_user=first.own_user)
            return self._spawner

    def close(self) -> None:
        """Have it end."""
        if self._spawner is not None:
            self._spawner.close()
            self._spawner = None


def _run(theirs: socket.socket, *, own_user: bool, own_pids: bool) -> subprocess.Popen[bytes]:
    descriptor = theirs.fileno()
    return subprocess.Popen(
        [
            sys.executable,
            *("-I", "-S", "-c", _PROGRAM, str(_ROOT), str(descriptor)),
            "user" if own_user else "",
            "pids" if own_pids else "",
        ],
        pass_fds=(descriptor,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


_RUNNING: list[subprocess.Popen[bytes]] = []
"""Spawners that are children of ours: reaped when the next one is started."""


def _forget(process: subprocess.Popen[bytes], *, is_over: bool) -> None:
    """Reap what was started: at once where the spawner itself is a child of it."""
    if is_over:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    else:
        _RUNNING.append(process)
    _RUNNING[:] = [each for each in _RUNNING if each.poll() is None]
