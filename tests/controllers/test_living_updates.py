"""Rolling updates in a living world: they end, whatever happens to controllers and lines."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.meta.documents import Document, list_at, object_at, string_at, with_value
from spinney.meta.references import Precondition, Ref
from tests.controllers.living import Life, live
from tests.controllers.test_living import Dying
from tests.decisions.shapes import Clique, Group, Small

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=1, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=2, min_available=1),),
)
SET = Ref(kind=groupkinds.SET, namespace="default", name="small")
MINUTE = timedelta(minutes=1)


def changed(document: Document, *cliques: str) -> Document:
    """Return a set with another image in some of its cliques."""
    spec = object_at(document, ["spec"])
    template = object_at(spec, ["template"])
    told = []
    for clique in list_at(template, ["cliques"]):
        text = json.dumps(clique)
        if not cliques or json.loads(text)["name"] in cliques:
            text = text.replace("main:1", "main:2")
        told.append(json.loads(text))
    return {**document, "spec": {**spec, "template": {**template, "cliques": told}}}


def images(life: Life) -> set[str]:
    found = set()
    for stored in life.store.list(groupkinds.POD, namespace="default"):
        for container in list_at(stored.document(), ["spec", "containers"]):
            assert isinstance(container, dict)
            found.add(string_at(container, ["image"]).rsplit(":", 1)[1])
    return found


def is_complete(life: Life) -> bool:
    status = object_at(life.document(groupkinds.SET, "small"), ["status"])
    progress = object_at(status, ["rollingUpdateProgress"])
    return (
        bool(progress.get("updateEndedAt"))
        and status.get("updatedReplicas") == SHAPE.replicas
        and status.get("availableReplicas") == SHAPE.replicas
        and life.names(groupkinds.POD) == SHAPE.pods()
    )


async def serves(life: Life, within: timedelta = MINUTE) -> None:
    await life.until(
        lambda: (
            life.names(groupkinds.POD) == SHAPE.pods()
            and life.is_available("small", SHAPE.replicas)
        ),
        within,
    )


@pytest.mark.rule("3.8")
@pytest.mark.rule("7.3")
def test_an_update_goes_through_without_any_poll_and_then_nothing_is_written() -> None:
    async def story(life: Life) -> None:
        async with life.running() as manager:
            await life.apply(SHAPE.document())
            await serves(life)
            await life.apply(changed(SHAPE.document()))
            await life.until(lambda: is_complete(life), timedelta(seconds=30))
            assert images(life) == {"2"}
            await life.nodes.wait_quiet()
            await manager.settle()
            version = life.store.version
            await life.clock.sleep(timedelta(minutes=20))
            assert life.store.version == version

    live(story)


@pytest.mark.rule("3.6")
@pytest.mark.parametrize("seed", range(4))
def test_an_update_goes_through_over_a_bad_line(seed: int) -> None:
    async def story(life: Life) -> None:
        async with life.lagging():
            await life.apply(SHAPE.document())
            await serves(life, 10 * MINUTE)
            await life.apply(changed(SHAPE.document(), "a", "c"))
            await life.until(lambda: is_complete(life), 30 * MINUTE)

    live(story, seed)


@pytest.mark.rule("3.6")
@pytest.mark.parametrize("seed", range(3))
def test_a_coherent_update_goes_through_over_a_bad_line(seed: int) -> None:
    def coherent(document: Document) -> Document:
        return with_value(document, ["spec", "updateStrategy"], {"type": "Coherent"})

    async def story(life: Life) -> None:
        async with life.lagging():
            await life.apply(coherent(SHAPE.document()))
            await serves(life, 10 * MINUTE)
            await life.apply(coherent(changed(SHAPE.document())))
            await life.until(lambda: is_complete(life), 30 * MINUTE)

    live(story, seed)


@pytest.mark.rule("7.1")
@pytest.mark.parametrize("writes", [1, 2, 3, 5, 8])
def test_controllers_killed_between_two_writes_of_an_update_go_on(writes: int) -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(SHAPE.document())
            await serves(life)
        await life.apply(changed(SHAPE.document()))
        for _ in range(40):
            writer = Dying(life, writes)
            async with life.running(writer=writer):
                await life.until(
                    lambda: writer.left < 0 or is_complete(life),  # noqa: B023
                    MINUTE,
                )
        async with life.running():
            await life.until(lambda: is_complete(life), MINUTE)
        assert images(life) == {"2"}

    live(story)


def test_an_undone_change_in_mid_update_leads_back() -> None:
    async def story(life: Life) -> None:
        async with life.running():
            await life.apply(SHAPE.document())
            await serves(life)
            await life.apply(changed(SHAPE.document()))
            await life.until(lambda: "2" in images(life), MINUTE)
            await life.apply(SHAPE.document())
            await life.until(lambda: images(life) == {"1"} and is_complete(life), MINUTE)
            merge: Document = {"spec": {"replicas": 3}}
            await life.user.patch(SET, merge, Precondition(), "scale")
            await life.until(lambda: life.is_available("small", 3), MINUTE)

    live(story)
