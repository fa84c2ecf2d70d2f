"""Where a simulated store calls its journal: no thread, so every run of a seed is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import timedelta
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class InlineExecutor(Executor):
    """Calls at once, where it is asked."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function, and return what became of it."""
        done: Future[T] = Future()
        _settle(done, lambda: fn(*args, **kwargs))
        return done


class SlowExecutor(Executor):
    """Calls after a time on the loop, as a disk that takes its time: one call after the other."""

    def __init__(self, latency: Callable[[], timedelta]) -> None:
        """Take as long as `latency` says, each time anew."""
        self._loop = asyncio.get_running_loop()
        self._latency = latency
        self._free_at = 0.0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function called later; what it returns becomes known then."""
        done: Future[T] = Future()
        begins = max(self._free_at, self._loop.time())
        self._free_at = begins + self._latency().total_seconds()
        self._loop.call_at(self._free_at, _settle, done, lambda: fn(*args, **kwargs))
        return done


def _settle(done: Future[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
        done.set_exception(error)
    else:
        done.set_result(result)
