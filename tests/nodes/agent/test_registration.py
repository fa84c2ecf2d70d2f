"""The Node of a machine: there, right, and written only when it is not."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from spinney.api.core.node import Node
from spinney.engine.informer import Informer
from spinney.engine.metrics import NoMetrics
from spinney.meta import conditions, records
from spinney.meta.errors import Unavailable
from spinney.meta.references import Precondition, Ref
from spinney.nodes.agent import machines
from spinney.nodes.agent.machines import Hardware
from spinney.nodes.agent.registration import Registration
from spinney.nodes.agent.station import NODE
from spinney.nodes.line.loss import Loss
from spinney.store.reader import StoreReader, StoreSource
from spinney.testing.clock import START
from tests.nodes.agent.worlds import FOLLOWED, Ground, on_ground

REF = Ref(kind=NODE, namespace="", name="local")
HARDWARE = Hardware(capacity={"cpu": "4", "memory": "8Gi", "pods": "250"}, hostname="box")


class Registered:
    """A registration that runs."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    async def __aenter__(self) -> Registration:
        ground = self.ground
        informer = Informer(
            StoreSource(ground.world.store), FOLLOWED, ground.clock, ground.entropy, NoMetrics()
        )
        self.following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        made = Registration(
            "local", "127.0.0.1", HARDWARE, informer, ground.network, ground.clock, ground.entropy
        )
        self.running = asyncio.create_task(made.run())
        await made.wait_told()
        return made

    async def __aexit__(self, *_: object) -> None:
        self.running.cancel()
        self.following.cancel()
        await asyncio.gather(self.running, self.following, return_exceptions=True)


def node(ground: Ground) -> Node:
    """Return the Node as it is stored."""
    stored = ground.world.store.get(REF)
    assert stored is not None
    return stored.view(Node)


def readiness(ground: Ground) -> tuple[str, str]:
    """Return status and reason of the condition Ready."""
    found = conditions.find(node(ground).status.conditions, "Ready")
    assert found is not None
    return found.status, found.reason


def test_a_machine_is_told_once_and_never_at_rest() -> None:
    """With what it has, and the labels Kubernetes' schedulers know."""

    async def story(ground: Ground) -> None:
        async with Registered(ground):
            found = node(ground)
            assert found.metadata.labels["kubernetes.io/hostname"] == "local"
            assert found.status.allocatable == {"cpu": "4", "memory": "8Gi", "pods": "250"}
            assert readiness(ground) == ("True", "AgentReady")
            await ground.rest(3600)
            assert ground.network.calls == [("create", "local")]

    on_ground(story)


def test_what_others_wrote_on_it_stays_and_what_is_wrong_is_set_right() -> None:
    """Cordoned, labelled, and a label of ours changed; then deleted."""

    async def story(ground: Ground) -> None:
        async with Registered(ground):
            labels = {"mine": "yes", "kubernetes.io/arch": "wrong"}
            change = {"spec": {"unschedulable": True}, "metadata": {"labels": labels}}
            await ground.user.patch(REF, change, Precondition())
            await ground.rest()
            found = node(ground)
            assert found.spec.unschedulable
            assert found.metadata.labels["mine"] == "yes"
            assert found.metadata.labels["kubernetes.io/arch"] == "amd64"
            await ground.user.delete(
                REF, Precondition(), grace_seconds=None, propagation="Background"
            )
            await ground.rest()
            assert readiness(ground) == ("True", "AgentReady")

    on_ground(story)


def test_a_node_that_was_given_up_says_so_itself_once_it_is_back() -> None:
    """The control plane had lost the agent; the agent sets it right."""

    async def story(ground: Ground) -> None:
        async with Registered(ground):
            lost = machines.lost(node(ground), ground.clock.now())
            assert lost is not None
            await ground.user.patch(REF, {"status": lost}, Precondition(), "status")
            await ground.rest()
            assert readiness(ground) == ("True", "AgentReady")

    on_ground(story)


def test_a_node_that_ends_says_so() -> None:
    """Nothing is placed on it afterwards, until it is back."""

    async def story(ground: Ground) -> None:
        async with Registered(ground) as registration:
            await registration.end(timedelta(seconds=2))
            assert readiness(ground) == ("False", "AgentEnded")
            found = node(ground)
            again = machines.lost(found, ground.clock.now(), machines.ENDED)
            assert again is None
        async with Registered(ground):
            await ground.rest()
            assert readiness(ground) == ("True", "AgentReady")

    on_ground(story)


def test_an_api_that_fails_is_asked_again() -> None:
    """And the Node is there in the end."""

    async def story(ground: Ground) -> None:
        faults = [Unavailable("down"), TimeoutError()]
        ground.network.before = lambda *_: faults.pop() if faults else None
        async with Registered(ground):
            assert readiness(ground) == ("True", "AgentReady")

    on_ground(story)


def test_a_node_whose_agent_is_gone_for_long_says_that_nobody_knows() -> None:
    """Not for the moment it takes to start another; and not where it is back in time."""

    async def story(ground: Ground) -> None:
        async with Registered(ground):
            pass
        reader = StoreReader(ground.world.store, FOLLOWED)
        loss = Loss("local", reader, ground.network, ground.clock, ground.entropy)
        loss.is_gone()
        await ground.rest(4)
        loss.is_back()
        await ground.rest(10)
        assert readiness(ground)[0] == "True"
        faults = [Unavailable("down")]
        ground.network.before = lambda *_: faults.pop() if faults else None
        loss.is_gone()
        loss.is_gone()
        await ground.rest(6)
        assert readiness(ground) == ("Unknown", "NodeStatusUnknown")
        writes = len(ground.network.calls)
        await ground.rest(3600)
        assert len(ground.network.calls) == writes
        await loss.close()

    on_ground(story)


def test_what_is_told_reads_back_as_told() -> None:
    """Idempotent: a Node just written needs no write."""
    made = machines.document("n", "127.0.0.1", HARDWARE, machines.CONNECTED, START)
    found = records.decode(Node, made)
    wanted = machines.status(
        found, "n", "127.0.0.1", HARDWARE, machines.CONNECTED, START + timedelta(hours=1)
    )
    assert machines.is_told(found, wanted)
    assert machines.label_changes(found, HARDWARE) is None
