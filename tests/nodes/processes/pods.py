"""Pods, plans and runtimes of tests: real processes, in a folder of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from typing import NamedTuple

from spinney.api.core.pod import Pod, PodSpec
from spinney.app.real import SystemClock, SystemEntropy
from spinney.meta.metadata import ObjectMeta
from spinney.nodes.processes.runtime import ProcessRuntime
from spinney.nodes.processes.settings import Settings
from spinney.nodes.processes.spawning import Isolation
from spinney.ports import ContainerPlan, LogOptions
from spinney.testing.clock import ManualClock

OUTER = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "HOME": "/"}


class Tier(NamedTuple):
    """One way of containing processes."""

    isolation: Isolation
    own_user: bool
    control_groups: bool

    @property
    def name(self):
        parts = [self.isolation.name.lower()]
        parts += ["own-user"] * self.own_user + ["groups"] * self.control_groups
        return "-".join(parts)

    @property
    def has_pids(self):
        return self.isolation is Isolation.PROCESSES_AND_MOUNTS


POSSIBLE = [
    Tier(Isolation.PROCESSES_AND_MOUNTS, False, True),
    Tier(Isolation.PROCESSES_AND_MOUNTS, False, False),
    Tier(Isolation.PROCESSES_AND_MOUNTS, True, False),
    Tier(Isolation.MOUNTS, True, False),
    Tier(Isolation.NOTHING, False, True),
    Tier(Isolation.NOTHING, False, False),
]
LOWEST = Tier(Isolation.NOTHING, False, False)


def pod(name="web-0", uid="", namespace="default", **spec):
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid or f"uid-{name}"),
        spec=PodSpec(**spec),
    )


@contextlib.asynccontextmanager
async def runtime_of(folder, tier=LOWEST, clock=None, **settings):
    opened = await ProcessRuntime.open(
        folder,
        clock or SystemClock(),
        SystemEntropy(),
        Settings(**{"gpus": (), **tier._asdict(), **settings}),
        OUTER,
    )
    listener = opened.events()
    seen = Seen(listener)
    try:
        yield opened, seen
    finally:
        await opened.close()
        await seen.close()


class Seen:
    """What was told of containers."""

    def __init__(self, listener):
        self.states = []
        self._changed = asyncio.Condition()
        self._task = asyncio.ensure_future(self._follow(listener))

    async def _follow(self, listener):
        async for state in listener:
            async with self._changed:
                self.states.append(state)
                self._changed.notify_all()

    async def until(self, is_it):
        async with self._changed:
            await self._changed.wait_for(lambda: any(map(is_it, self.states)))
        return next(filter(is_it, self.states))

    async def end(self, container="main", attempt=0):
        return await self.until(
            lambda state: (
                (state.container, state.attempt) == (container, attempt)
                and state.ended_at is not None
            )
        )

    async def close(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def plan(*command, attempt=0, name="main", **more):
    return ContainerPlan(name=name, attempt=attempt, command=command, **more)


def shell(script, **more):
    return plan("/bin/sh", "-c", script, **more)


async def log_of(runtime, uid="uid-web-0", container="main", **options):
    chunks = [chunk async for chunk in runtime.logs(uid, container, LogOptions(**options))]
    return b"".join(chunks)


async def said(runtime, what, uid="uid-web-0", container="main"):
    """Wait until a container has printed something; returns all it printed."""
    heard = b""
    log = runtime.logs(uid, container, LogOptions(follow=True))
    async for chunk in log:
        heard += chunk
        if what in heard:
            break
    await log.aclose()
    assert what in heard
    return heard


def run(work):
    return asyncio.run(work)


def wait_gone(descriptor):
    """Wait until a process, opened by its descriptor, is gone; it must be within ten seconds."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(10_000), "it lives"
    os.close(descriptor)


class Watched:
    """A way for processes of a test to be known to live: each holds the end of a pipe open."""

    def __init__(self, folder):
        self.path = folder / "alive"
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    async def gone(self):
        """Wait until nobody holds it."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)

        def wait():
            while True:
                assert poll.poll(10_000), "somebody lives"
                with contextlib.suppress(BlockingIOError):
                    if not os.read(self._descriptor, 65536):
                        return

        await asyncio.to_thread(wait)
        os.close(self._descriptor)


class ObservedClock(ManualClock):
    """A clock moved by hand that says when somebody waits for it."""

    def __init__(self):
        super().__init__()
        self.slept = asyncio.Event()

    async def sleep(self, duration):
        self.slept.set()
        await super().sleep(duration)
