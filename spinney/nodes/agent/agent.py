"""The agent: keeps all pods of its node, over the ports alone.

agent = Agent(station)
await agent.run()          # until cancelled; `leave` ends what runs first

What changes comes from the reader, what becomes of containers from the runtime; each goes to the
keeper of the pod it is about. A pod waits for one of its name to be gone from here.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from spinney.api import labels
from spinney.api.core.pod import Pod
from spinney.engine import logs
from spinney.meta.errors import DecodeError
from spinney.meta.references import Ref
from spinney.nodes.agent import hosts
from spinney.nodes.agent import instructions as said
from spinney.nodes.agent.keeper import Keeper
from spinney.nodes.agent.station import CONFIG_MAP, POD, SECRET, Station
from spinney.ports import Change, ContainerState

LOST_AGAIN: Final = timedelta(seconds=1)
"""How long to wait before a keeper that failed by a bug of ours begins anew."""

LEAVE_SLACK: Final = timedelta(seconds=4)
"""How much longer than its grace it may take to end all pods."""

_log = logs.logger("agent")


class Agent:
    """Keeps the pods of one node."""

    def __init__(self, station: Station) -> None:
        """Keep the pods of a station's node; nothing is done before it runs."""
        self._station = station
        self._keepers: dict[str, Keeper] = {}
        self._by_ref: dict[Ref, Keeper] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._known: dict[str, list[ContainerState]] = {}
        self._early: list[ContainerState] | None = []
        self._names_bell = asyncio.Event()
        self._is_leaving = False
        self._is_begun = asyncio.Event()
        self.failure_count = 0
        """How often a keeper failed by a bug of ours."""

    # Beginning

    async def run(self) -> None:
        """Keep pods, until cancelled. The reader must be synced."""
        hearing = asyncio.create_task(self._hear(), name="containers")
        try:
            await self._begin()
            self._is_begun.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._station.recorder.run(), name="events")
                group.create_task(self._keep_names(), name="names")
                await hearing
        finally:
            hearing.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(hearing, *self._tasks, return_exceptions=True)

    async def _begin(self) -> None:
        """Learn what an agent before this one left, and take up the pods there are."""
        for state in await self._station.runtime.adopt():
            self._known.setdefault(state.pod_uid, []).append(state)
        reader = self._station.reader
        reader.on_change(POD, self._pod_changed)
        reader.on_change(CONFIG_MAP, self._settings_changed)
        reader.on_change(SECRET, self._settings_changed)
        for pod in reader.list(Pod, by=("node", self._station.machine.node)):
            self._see(pod)
        early, self._early = self._early or [], None
        for state in early:
            self._became(state)
        await self._forget_unknown()

    async def _forget_unknown(self) -> None:
        """Take off the node what belongs to pods that are stored no more."""
        for uid in [uid for uid in self._known if uid not in self._keepers]:
            del self._known[uid]
            await self._station.runtime.remove(uid)

    async def wait_begun(self) -> None:
        """Wait until every pod there was at the start has its keeper."""
        await self._is_begun.wait()

    # What happens

    async def _hear(self) -> None:
        async for state in self._station.runtime.events():
            if self._early is not None:
                self._early.append(state)
            else:
                self._became(state)

    def _became(self, state: ContainerState) -> None:
        keeper = self._keepers.get(state.pod_uid)
        if keeper is not None:
            keeper.give(said.Became(state=state))

    def _pod_changed(self, ref: Ref, change: Change) -> None:
        if change is Change.BOOKMARK:
            return
        keeper = self._by_ref.get(ref)
        try:
            pod = self._station.reader.get(Pod, ref.namespace, ref.name)
        except DecodeError as error:
            said_of = logs.fields(object=ref, why=error)
            _log.error("a pod cannot be read", extra=said_of)
            return
        if keeper is not None and (pod is None or pod.metadata.uid != keeper.uid):
            keeper.gone()
        elif pod is not None and pod.spec.node_name == self._station.machine.node:
            self._see(pod)
        if pod is not None and (clique := pod.metadata.labels.get(labels.PODCLIQUE)):
            self._clique_changed(ref.namespace, clique)
        self._names_bell.set()

    def _clique_changed(self, namespace: str, clique: str) -> None:
        """Look again at who starts after a clique one of whose pods changed."""
        for keeper in self._keepers.values():
            if keeper.ref.namespace == namespace and keeper.waits_for(clique):
                keeper.see(keeper.pod)

    def _settings_changed(self, ref: Ref, change: Change) -> None:
        if change in (Change.BOOKMARK, Change.DELETED):
            return
        for keeper in self._keepers.values():
            if keeper.ref.namespace == ref.namespace:
                keeper.settings_changed(ref.kind.kind, ref.name)

    def _see(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        keeper = self._keepers.get(uid)
        if keeper is None:
            ref = Ref(kind=POD, namespace=pod.metadata.namespace, name=pod.metadata.name)
            if self._is_leaving or ref in self._by_ref:
                return
            keeper = Keeper(pod, self._station, self._known.pop(uid, ()))
            self._keepers[uid] = self._by_ref[ref] = keeper
            task = asyncio.get_running_loop().create_task(self._keep(keeper), name=f"pod {ref}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        keeper.see(pod)

    async def _keep(self, keeper: Keeper) -> None:
        """Keep a pod to its end; a bug of ours costs it a moment, and no other pod anything."""
        try:
            await keeper.run()
        except Exception:  # noqa: BLE001 - one pod must not take the others with it
            self.failure_count += 1
            _log.exception("a pod is kept anew", extra=logs.fields(object=keeper.ref))
            await self._station.clock.sleep(LOST_AGAIN)
            for state in await self._station.runtime.adopt():
                if state.pod_uid == keeper.uid:
                    self._known.setdefault(keeper.uid, []).append(state)
        finally:
            self._keepers.pop(keeper.uid, None)
            self._by_ref.pop(keeper.ref, None)
        self._names_bell.set()
        self._look_again(keeper.ref)

    def _look_again(self, ref: Ref) -> None:
        """See whether a pod of that name waits for the one before it to be gone."""
        pod = self._station.reader.get(Pod, ref.namespace, ref.name)
        if pod is not None and pod.spec.node_name == self._station.machine.node:
            self._see(pod)

    # Names

    async def _keep_names(self) -> None:
        """Have pods resolve the names of headless services, whenever pods come and go."""
        told: dict[str, tuple[str, ...]] | None = None
        while True:
            self._names_bell.clear()
            there = self._station.reader.list(Pod, by=("node", self._station.machine.node))
            names = hosts.names(there)
            if names != told:
                try:
                    await self._station.runtime.set_hosts(names)
                    told = names
                except OSError as error:
                    _log.error("names could not be told", extra=logs.fields(why=error))
            await self._names_bell.wait()

    # Ending

    async def leave(self, grace_max: timedelta) -> None:
        """End all that runs, each with its own grace but no longer than this.

        Called again with less, less it is. Returns when that is done, or when it would take too
        long: what then runs is the runtime's to end.
        """
        self._is_leaving = True
        most = grace_max // timedelta(seconds=1)
        keepers = tuple(self._keepers.values())
        for keeper in keepers:
            given = keeper.pod.spec.termination_grace_period_seconds
            grace = most if given is None else min(most, given)
            keeper.give(said.Leave(grace_seconds=grace))
        try:
            async with asyncio.timeout((grace_max + LEAVE_SLACK) / timedelta(seconds=1)):
                await asyncio.gather(*(keeper.wait_idle() for keeper in keepers))
        except TimeoutError:
            _log.warning("not all pods ended in time")

    async def wait_told(self) -> None:
        """Wait until the stored status of every pod is what is true."""
        await asyncio.gather(*(keeper.telling.wait_told() for keeper in self._keepers.values()))
