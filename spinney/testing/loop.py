"""An event loop whose time is virtual: waiting takes no time, and the same run twice is the same.

Nothing sleeps. Where asyncio would wait for the next timer, the time becomes that of the timer.
Where it would wait for ever, because no timer is set and nothing is ready, `Deadlock` is raised
with what each task waits for. Threads have no place here: what they would bring is not waited for.

    loop.run(main())          # an hour of back-off in a few milliseconds
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from spinney.meta.errors import SpinneyError

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

T = TypeVar("T")

_SECOND = 1_000_000_000
_RESOLUTION = time.get_clock_info("monotonic").resolution
"""By how much asyncio takes a timer for due before it is."""


class Deadlock(SpinneyError):
    """Nothing can happen any more, and the run is not over."""

    def __init__(self, tasks: tuple[str, ...]) -> None:
        """Tell of each task what it waits for."""
        super().__init__("nothing can happen any more; tasks:\n" + "\n".join(tasks))
        self.tasks = tasks


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time starts at 0 and moves only when nothing else can."""

    def __init__(self) -> None:
        """Start at 0."""
        self._virtual = _VirtualSelector(self)
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.nanoseconds / _SECOND

    @property
    def nanoseconds(self) -> int:
        """The virtual time, exactly."""
        return self._virtual.nanoseconds


class _VirtualSelector(selectors.BaseSelector):
    """Looks at real descriptors without waiting, and advances the clock where asyncio waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.nanoseconds = 0
        self._loop = loop
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock(tuple(sorted(map(_told, asyncio.all_tasks(self._loop)))))
        self._advance_to(self.nanoseconds / _SECOND + timeout)
        return []

    def _advance_to(self, due: float) -> None:
        """Move on until asyncio takes a timer for due, whatever floats make of late times."""
        self.nanoseconds = max(self.nanoseconds + 1, round(due * _SECOND))
        while self.nanoseconds / _SECOND + _RESOLUTION <= due:
            self.nanoseconds += 1

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: Any = None
    ) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


def _told(task: asyncio.Task[Any]) -> str:
    """Return a line on where a task waits."""
    frames = task.get_stack()
    if not frames:
        return f"  {task.get_name()}: nowhere"
    frame = frames[-1]
    code = frame.f_code
    return f"  {task.get_name()}: {code.co_qualname} at {code.co_filename}:{frame.f_lineno}"


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time; raises Deadlock where it has none."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
