"""The process of an embedded world: its loop, its signals, its end.

The first Ctrl-C, SIGTERM or SIGHUP lets open requests end; the second ends the process at once,
which loses nothing that was acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

from spinney.app import embedded, logs, loops
from spinney.app.datafolder import DataFolder
from spinney.app.embedded import Embedded, Options
from spinney.app.real import SystemClock, SystemEntropy

LOG = logging.getLogger("spinney.app")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends it well; of these, one that is ignored (nohup) stays ignored."""


def serve(
    folder: DataFolder,
    options: Options,
    on_up: Callable[[Embedded], None],
    on_stopping: Callable[[], None],
) -> int:
    """Serve the world of a data folder until a signal ends it; returns the exit code.

    Raises what `open_embedded` does. `on_up` is called when it is ready.
    """
    os.umask(0o077)
    folder.make()
    with folder.explained():
        logs.begin(folder.log)
    return loops.run(_serve(folder, options, on_up, on_stopping))


async def _serve(
    folder: DataFolder,
    options: Options,
    on_up: Callable[[Embedded], None],
    on_stopping: Callable[[], None],
) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            continue
        loop.add_signal_handler(number, _stop, number, stopping)
    world = await embedded.open_embedded(folder, options, SystemClock(), SystemEntropy())
    keeping = loop.create_task(world.run(), name="keeping")
    waiting = loop.create_task(stopping.wait(), name="waiting")
    becoming = loop.create_task(world.wait_ready(), name="becoming ready")
    try:
        await asyncio.wait((keeping, waiting, becoming), return_when=asyncio.FIRST_COMPLETED)
        if becoming.done():
            on_up(world)
            await asyncio.wait((keeping, waiting), return_when=asyncio.FIRST_COMPLETED)
        on_stopping()
    finally:
        failure = keeping.exception() if keeping.done() else None
        for task in (keeping, waiting, becoming):
            task.cancel()
        await asyncio.gather(keeping, waiting, becoming, return_exceptions=True)
        await world.close()
    if failure is not None:
        LOG.error("a keeper of the world failed", exc_info=failure)
        raise failure
    return 0


def _stop(number: int, stopping: asyncio.Event) -> None:
    if stopping.is_set():
        os._exit(128 + number)
    stopping.set()
