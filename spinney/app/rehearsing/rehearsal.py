"""A rehearsal: the controllers of a world, run over a copy of its objects until nothing changes.

They are the very controllers, woken by the same wakes; only nodes are played. So what is rehearsed
is what will be, as long as pods get ready and nobody interferes. Order among things that do not
wait for each other, such as two cliques of one replica, is one of those that may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from spinney.app.rehearsing.nodes import Nodes
from spinney.app.rehearsing.objects import Moved, Objects, Refused
from spinney.controllers import catalog
from spinney.decisions.actions import Action, Decision
from spinney.engine.controller import Controller
from spinney.engine.wakes import Memory
from spinney.meta.documents import Document
from spinney.meta.references import Ref
from spinney.ports import Change

LOOKS_MAX = 500_000
"""After so many looks a rehearsal is given up."""

ROUNDS_MAX = 100_000

Watcher = Callable[[Ref, Action, Decision], None]


class Rehearsal:
    """A copy of a world, and its controllers."""

    def __init__(
        self,
        documents: Iterable[Document],
        now: datetime,
        *,
        before: Watcher = lambda _key, _action, _decision: None,
    ) -> None:
        """Copy objects; `before` is called just before each action."""
        self.objects = Objects(documents, now)
        self._before = before
        self._queue: dict[tuple[str, Ref], None] = {}
        self._wakes: dict[tuple[str, Ref], datetime] = {}
        controllers = catalog.controllers(self.objects)
        self._controllers: dict[str, Controller[Any]] = {each.name: each for each in controllers}
        self.nodes = Nodes(self.objects)
        self.refused: list[str] = []
        self.looks = 0
        for controller in controllers:
            self._listen(controller)

    def _listen(self, controller: Controller[Any]) -> None:
        """Have a controller look when something changes, and at everything first."""
        self.objects.on_change(controller.kind, partial(self._changed_itself, controller.name))
        for wake in controller.wakes:
            memory = Memory(wake, self.objects)
            memory.fill()
            self.objects.on_change(wake.kind, partial(self._changed, controller.name, memory))
        for ref in self.objects.of_kind(controller.kind):
            self._queue[controller.name, ref] = None

    def _changed_itself(self, name: str, ref: Ref, _change: Change) -> None:
        self._queue[name, ref] = None

    def _changed(self, name: str, memory: Memory[Any], ref: Ref, change: Change) -> None:
        kind = self._controllers[name].kind
        for key in memory.changed(ref, change):
            if key.kind == kind:
                self._queue[name, key] = None

    def change(self, document: Document) -> None:
        """Store an object as somebody changed it."""
        self.objects.put(document)

    def settle(self) -> None:
        """Look until no controller wants anything."""
        while self._queue and self.looks < LOOKS_MAX:
            name, key = next(iter(self._queue))
            del self._queue[name, key]
            self.looks += 1
            self._look(name, key)

    def _look(self, name: str, key: Ref) -> None:
        controller = self._controllers[name]
        self._wakes.pop((name, key), None)
        seen = controller.observe(self.objects, key, self.objects.now)
        if seen is None:
            return
        decision = controller.decide(seen)
        if decision.wake_after is not None:
            self._wakes[name, key] = self.objects.now + decision.wake_after
        if decision.intent is not None:
            self.objects.put_status(key, decision.intent)
            return
        for action in decision.actions:
            self._before(key, action, decision)
            try:
                self.objects.act(action)
            except Moved:
                self._queue[name, key] = None
                return
            except Refused as error:
                self.refused.append(f"{key}: {error}")
                return
        if decision.status is not None:
            self.objects.put_status(key, decision.status)

    def run(self, until: datetime) -> bool:
        """Let everything happen that would; returns False where it never came to rest.

        Time passes only where nothing else is left to happen, and not beyond `until`.
        """
        for _ in range(ROUNDS_MAX):
            self.settle()
            if self.looks >= LOOKS_MAX:
                return False
            ended = self.nodes.end()
            if self._queue:
                continue
            placed = self.nodes.place()
            if ended or placed or self._queue:
                continue
            if not self._pass_time(until):
                return True
        return False

    def _pass_time(self, until: datetime) -> bool:
        """Go on to when the next controller wants to look; returns whether there is such a time."""
        due = min(self._wakes.values(), default=None)
        if due is None or due > until:
            return False
        self.objects.now = max(due, self.objects.now + timedelta(seconds=1))
        for entry in [each for each, when in self._wakes.items() if when <= self.objects.now]:
            del self._wakes[entry]
            self._queue[entry] = None
        return True
