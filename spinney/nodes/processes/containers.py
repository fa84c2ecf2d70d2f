"""One attempt of a container, from the moment its keeper is asked for to its end.

    STARTING ──started──► RUNNING ──ended──► ENDED
        └────────failed or gone──────────────►

What happens is learnt from the keeper's channel alone: its messages, and its closing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from spinney.meta.records import Record
from spinney.nodes.processes.channels import Channel
from spinney.nodes.processes.scribe import Writing
from spinney.nodes.processes.spawner.messages import Message
from spinney.ports import ContainerPlan, ContainerState, Sandbox

KEEPER_EXIT = "the process that watches over the container is gone"


class Failure(Record):
    """Why a program could not be started, as the keeper told it."""

    stage: str
    number: int
    subject: str
    text: str


class Container:
    """One attempt of a container that was asked for."""

    def __init__(self, sandbox: Sandbox, plan: ContainerPlan) -> None:
        """Begin; nothing runs yet."""
        self.sandbox = sandbox
        self.plan = plan
        self.state = ContainerState(
            pod_uid=sandbox.pod_uid, container=plan.name, attempt=plan.attempt
        )
        self.environment: Mapping[str, str] = {}
        self.gpus: tuple[int, ...] = ()
        self.groups: tuple[str, ...] = ()
        """The folders of its control groups."""

        self.processes_max = 0
        """How many processes its user may have, all in all; 0 where that is not held so."""

        self.writing: Writing | None = None
        self.channel: Channel | None = None
        self.started = asyncio.Event()
        """It runs, or it never will."""

        self.ended = asyncio.Event()
        """It is over: its processes are gone, its log is written, its end is told."""

        self.is_running = False
        self.was_killed = False
        self.notes: tuple[str, ...] = ()
        self.failure: Failure | None = None
        self.was_asked = False
        self._exec_count = 0
        self._execs: dict[int, asyncio.Future[Message]] = {}

    @property
    def key(self) -> tuple[str, str]:
        """Its pod and its name."""
        return self.sandbox.pod_uid, self.plan.name

    @property
    def keeper_id(self) -> int:
        """The process id of its keeper; 0 before it said anything."""
        return self.channel.process_id if self.channel is not None else 0

    async def follow(self, channel: Channel, on_started: Callable[[], None]) -> int | None:
        """Follow what the keeper says until it is gone; returns how the container ended.

        An exit code, a signal as a negative number, or None where nobody can say.
        """
        self.channel = channel
        code: int | None = None
        try:
            while (message := await channel.receive()) is not None:
                if "exec" in message:
                    self._tell_exec(message)
                elif "started" in message:
                    self.notes = tuple(cast(list[str], message["notes"]))
                    self.is_running = True
                    on_started()
                elif "failed" in message:
                    self.failure = failure(message)
                elif "ended" in message:
                    code = cast("int | None", message["ended"])
        finally:
            self.is_running = False
            channel.close()
            for waiting in self._execs.values():
                if not waiting.done():
                    waiting.set_result({"ended": None})
        return code

    def _tell_exec(self, message: Message) -> None:
        waiting = self._execs.pop(cast(int, message["exec"]), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def ask_to_end(self) -> None:
        """Send the stop signal to its main process, once."""
        if not self.was_asked:
            self.was_asked = True
            await self._send({"signal": self.plan.stop_signal})

    async def kill(self) -> None:
        """Have all of it killed."""
        self.was_killed = True
        await self._send({"kill": True})

    async def begin_exec(self, plan: int, descriptors: Sequence[int]) -> Exec:
        """Run a command beside it, from a plan in memory; the descriptors remain the caller's."""
        self._exec_count += 1
        number = self._exec_count
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._execs[number] = waiting
        try:
            if self.channel is None or not self.is_running:
                raise BrokenPipeError(KEEPER_EXIT)
            await self.channel.send({"exec": number}, (plan, *descriptors))
        except BaseException:
            self._execs.pop(number, None)
            raise
        return Exec(self, number, waiting)

    async def signal_exec(self, number: int, what: signal.Signals) -> None:
        """Send a signal to all processes of a command."""
        await self._send({"signal": int(what), "to": number})

    async def _send(self, message: Message) -> None:
        """Tell the keeper, if there is one still."""
        if self.channel is not None:
            with contextlib.suppress(OSError):
                await self.channel.send(message)


class Exec:
    """A command that runs beside a container."""

    def __init__(self, container: Container, number: int, waiting: asyncio.Future[Message]) -> None:
        """Wait for what the keeper will say of it."""
        self._container = container
        self._number = number
        self._waiting = waiting

    async def wait(self) -> int | Failure | None:
        """Return its exit code, a signal as a negative number, or why it could not be started.

        None where the container ended first, and the command with it.
        """
        message = await asyncio.shield(self._waiting)
        if "failed" in message:
            return failure(message)
        return cast("int | None", message["ended"])

    async def kill(self) -> None:
        """End it."""
        if not self._waiting.done():
            await self._container.signal_exec(self._number, signal.SIGKILL)


def failure(message: Message) -> Failure:
    """Return what a keeper says could not be done."""
    return Failure(
        stage=str(message["failed"]),
        number=cast(int, message.get("errno") or 0),
        subject=str(message.get("subject") or ""),
        text=str(message.get("text") or ""),
    )
