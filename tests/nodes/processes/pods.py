"""Pods, plans and runtimes of tests: real processes, in a folder of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

from spinney.api.core.pod import Pod, PodSpec
from spinney.app.real import SystemClock, SystemEntropy
from spinney.meta.metadata import ObjectMeta
from spinney.nodes.processes.runtime import ProcessRuntime
from spinney.nodes.processes.settings import Settings
from spinney.nodes.processes.spawning import Isolation
from spinney.ports import ContainerPlan, LogOptions

OUTER = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "HOME": "/"}

ALL = list(Isolation)


def pod(name="web-0", uid="", namespace="default", **spec):
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=uid or f"uid-{name}"),
        spec=PodSpec(**spec),
    )


@contextlib.asynccontextmanager
async def runtime_of(folder, isolation=None, clock=None, **settings):
    opened = await ProcessRuntime.open(
        folder,
        clock or SystemClock(),
        SystemEntropy(),
        Settings(isolation=isolation, **settings),
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
