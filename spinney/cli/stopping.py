"""`spinney down`: ends the control plane of a data folder with its pods, and waits until it has."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from datetime import timedelta

from spinney.app import local_node
from spinney.app.datafolder import AgentFolder, DataFolder, Holder
from spinney.app.real import SystemClock
from spinney.cli import failing, folders, screen
from spinney.cli.screen import Screen
from spinney.ports import Clock

WAIT = timedelta(seconds=60)
"""Pods have their grace to end in it."""

PERIOD = timedelta(milliseconds=20)


def run(arguments: argparse.Namespace) -> int:
    """End it; returns 0 also where nothing was up."""
    folder = folders.data(arguments)
    output = screen.for_call(arguments)
    agent = AgentFolder(folder.root)
    if folder.holder() is None and agent.holder() is None:
        output.note(f"nothing is up under {folder.root}")
        return 0
    return asyncio.run(_stop(folder, agent, output, SystemClock(), is_now=arguments.now))


async def _stop(
    folder: DataFolder, agent: AgentFolder, output: Screen, clock: Clock, *, is_now: bool
) -> int:
    if folder.holder() is not None and not await _stop_world(folder, output, clock, is_now=is_now):
        return failing.NO
    left = await local_node.end_agent(agent, clock, timedelta() if is_now else local_node.GRACE)
    if left is not None:
        output.line(f"process {left} has ended, the agent, with all its pods")
    if (holder := agent.holder()) is not None:
        output.note(f"process {holder.pid}, the agent, has not ended: see {agent.agent_log}")
        return failing.NO
    return 0


async def _stop_world(folder: DataFolder, output: Screen, clock: Clock, *, is_now: bool) -> bool:
    """End the control plane, which ends its agent; returns whether it has."""
    give_up = clock.elapsed() + WAIT
    asked: int | None = None
    while clock.elapsed() < give_up:
        holder = folder.holder()
        if holder is None or (asked and holder.pid not in (0, asked)):
            output.line(f"process {asked} has ended" if asked else "it has ended")
            return True
        if asked is None and holder.pid:
            _ask(holder, is_now=is_now)
            asked = holder.pid
        await clock.sleep(PERIOD)
    output.note(
        f"process {asked} has not ended within {WAIT.seconds} s: see {folder.log}, "
        "or end it with --now"
    )
    return False


def _ask(holder: Holder, *, is_now: bool) -> None:
    """Ask a process to end: once to end well, twice to end at once."""
    try:
        os.kill(holder.pid, signal.SIGTERM)
        if is_now:
            os.kill(holder.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
