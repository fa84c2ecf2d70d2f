"""Gang termination in a living world: on time, once, whatever happens to the controllers."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from spinney.api import groupkinds
from spinney.meta.documents import Document, is_object, list_at, object_at, string_at
from spinney.meta.references import Precondition, Ref
from spinney.meta.times import parse_time
from tests.controllers.living import NODES, Life, live
from tests.decisions.shapes import Clique, Group, Small

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=2, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=3, min_available=2),),
)
DELAY = timedelta(seconds=90)
MINUTE = timedelta(minutes=1)
LATE_MOST = timedelta(seconds=2)
FAR = timedelta(minutes=10)


def manifest() -> Document:
    document = SHAPE.document()
    spec = object_at(document, ["spec"])
    template = {**object_at(spec, ["template"]), "terminationDelay": "90s"}
    return {**document, "spec": {**spec, "template": template}}


def uids(life: Life) -> dict[str, str]:
    return {stored.ref.name: stored.uid for stored in life.store.list(groupkinds.CLIQUE)}


async def serves(life: Life, within: timedelta = MINUTE) -> None:
    await life.until(
        lambda: (
            life.names(groupkinds.POD) == SHAPE.pods()
            and life.is_available("small", SHAPE.replicas)
            and all(is_ready(life, name) for name in SHAPE.pods())
        ),
        within,
    )


def is_ready(life: Life, pod: str) -> bool:
    found = list_at(life.document(groupkinds.POD, pod), ["status", "conditions"])
    return any(
        is_object(each) and each == {**each, "type": "Ready", "status": "True"} for each in found
    )


async def say(life: Life, pod: str, *, ready: bool) -> None:
    """Report of a pod that it is ready, or not."""
    writer = life.world.writer(NODES)
    told: list[Document] = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True" if ready else "False"},
    ]
    merge: Document = {"status": {"phase": "Running", "conditions": [*told]}}
    ref = Ref(kind=groupkinds.POD, namespace="default", name=pod)
    await writer.patch(ref, merge, Precondition(), "status")


def breach_of(life: Life, clique: str) -> datetime | None:
    """Return since when a PodClique says that too few of its pods are ready."""
    for said in list_at(life.document(groupkinds.CLIQUE, clique), ["status", "conditions"]):
        if is_object(said) and (said["type"], said["status"]) == ("MinAvailableBreached", "True"):
            return parse_time(string_at(said, ["lastTransitionTime"]))
    return None


async def breached(life: Life, clique: str, within: timedelta = MINUTE) -> datetime:
    await life.until(lambda: breach_of(life, clique) is not None, within)
    since = breach_of(life, clique)
    assert since is not None
    return since


def changed(life: Life, before: dict[str, str]) -> set[str]:
    after = uids(life)
    return {name for name in before if after.get(name) != before[name]}


COPY = {"small-0-g-1-a", "small-0-g-1-b"}


@pytest.mark.rule("4.2")
@pytest.mark.rule("7.3")
def test_a_broken_copy_falls_on_time_is_rebuilt_and_the_world_rests() -> None:
    async def story(life: Life) -> None:
        async with life.running() as manager:
            await life.apply(manifest())
            await serves(life)
            before = uids(life)
            await say(life, "small-0-g-1-a-0", ready=False)
            since = await breached(life, "small-0-g-1-a")
            version = life.store.version
            await life.clock.sleep(DELAY - timedelta(seconds=3))
            assert life.store.version == version, "a countdown writes nothing"
            await life.until(lambda: changed(life, before) == COPY, timedelta(seconds=10))
            assert timedelta() <= life.clock.now() - (since + DELAY) <= LATE_MOST
            await serves(life)
            assert changed(life, before) == COPY
            await life.nodes.wait_quiet()
            await manager.settle()
            await life.rest()
            version = life.store.version
            await life.clock.sleep(FAR)
            assert life.store.version == version
            said = [
                string_at(stored.document(), ["reason"])
                for stored in life.store.list(groupkinds.EVENT)
            ]
            for reason in ("MinAvailableBreached", "GangTerminated", "GangRebuilt"):
                assert reason in said

    live(story)


@pytest.mark.rule("4.4")
@pytest.mark.parametrize("seed", range(3))
def test_a_replica_falls_as_a_whole_over_a_bad_line_and_no_other_does(seed: int) -> None:
    async def story(life: Life) -> None:
        async with life.lagging():
            await life.apply(manifest())
            await serves(life, FAR)
            before = uids(life)
            await say(life, "small-1-c-0", ready=False)
            await say(life, "small-1-c-1", ready=False)
            since = await breached(life, "small-1-c", FAR)
            whole = {name for name in before if name.startswith("small-1-")}
            await life.until(lambda: changed(life, before) == whole, FAR)
            assert life.clock.now() >= since + DELAY
            await serves(life, FAR)
            assert changed(life, before) == whole

    live(story, seed)


@pytest.mark.rule("4.1")
@pytest.mark.rule("7.1")
def test_a_countdown_goes_on_from_what_is_stored_when_controllers_begin_anew() -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(manifest())
            await serves(life)
            before = uids(life)
            await say(life, "small-0-g-1-b-0", ready=False)
            since = await breached(life, "small-0-g-1-b")
            await life.clock.sleep(timedelta(seconds=30))
        await life.clock.sleep(timedelta(seconds=30))
        async with life.running():
            await life.until(lambda: changed(life, before) == COPY, MINUTE)
            assert timedelta() <= life.clock.now() - (since + DELAY) <= LATE_MOST
            await serves(life)

    live(story)


@pytest.mark.rule("4.1")
def test_what_recovers_in_time_stays() -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(manifest())
            await serves(life)
            before = uids(life)
            await say(life, "small-0-g-1-b-0", ready=False)
            await breached(life, "small-0-g-1-b")
            await life.clock.sleep(DELAY - timedelta(seconds=5))
            await say(life, "small-0-g-1-b-0", ready=True)
            await life.clock.sleep(FAR)
            assert changed(life, before) == set()

    live(story)
