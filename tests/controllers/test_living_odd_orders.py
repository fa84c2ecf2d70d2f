"""What happens in odd orders in a living world: whoever is concerned is woken."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spinney.api import groupkinds
from spinney.meta.documents import Document, list_at, object_at, string_at, value_at
from spinney.meta.errors import Forbidden
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Writer, Written
from tests.controllers.living import CONTROLLERS, Life, live
from tests.controllers.test_living import MINUTE, WHOLE, comes_to_be
from tests.decisions.shapes import Clique, Small

SOON = timedelta(seconds=2)
SET = Ref(kind=groupkinds.SET, namespace="default", name="small")


def test_labels_of_a_set_are_carried_to_its_gangs_when_they_change() -> None:
    async def story(life: Life) -> None:
        async with life.running() as manager:
            await life.apply(WHOLE.document())
            await comes_to_be(life)
            await life.nodes.wait_quiet()
            await manager.settle()
            merge: Document = {"metadata": {"labels": {"team": "red"}, "annotations": {"x": "y"}}}
            await life.user.patch(SET, merge, Precondition(), "")

            def carried() -> bool:
                found = [
                    object_at(life.document(groupkinds.GANG, name), ["metadata"])
                    for name in WHOLE.gangs()
                ]
                return all(
                    object_at(each, ["labels"]).get("team") == "red"
                    and object_at(each, ["annotations"]).get("x") == "y"
                    for each in found
                )

            await life.until(carried, SOON)

    live(story)


SERVICE_ACCOUNT: Document = {"apiVersion": "v1", "kind": "ServiceAccount"}
ROLE: Document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []}
SERVICE: Document = {
    "apiVersion": "v1",
    "kind": "Service",
    "spec": {"ports": [{"port": 80}], "selector": {"app": "other"}},
}
GANG: Document = {
    "apiVersion": "scheduler.grove.io/v1alpha1",
    "kind": "PodGang",
    "spec": {"podgroups": []},
}
SECRET: Document = {"apiVersion": "v1", "kind": "Secret"}


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("kind", "document", "name"),
    [
        (groupkinds.SERVICE_ACCOUNT, SERVICE_ACCOUNT, "my-small"),
        (groupkinds.ROLE, ROLE, "grove.io:pcs:my-small"),
        (groupkinds.SERVICE, SERVICE, "my-small-1"),
        (groupkinds.GANG, GANG, "my-small-0-g-1"),
    ],
)
def test_a_set_is_woken_when_a_name_it_needs_is_free(
    kind: GroupKind, document: Document, name: str
) -> None:
    async def story(life: Life) -> None:
        metadata: Document = {"name": name, "namespace": "default"}
        held = (await life.user.create({**document, "metadata": metadata})).ref
        async with life.running() as manager:
            await life.apply(WHOLE.document("my-small"))
            await life.until(lambda: "NameConflict" in status(life, "my-small"), SOON)
            await life.nodes.wait_quiet()
            await manager.settle()
            await life.user.delete(held, Precondition(), grace_seconds=0, propagation="Background")
            await life.until(lambda: "NameConflict" not in status(life, "my-small"), SOON)
            await life.until(lambda: life.is_available("my-small", 2), SOON)
            assert life.names(kind).count(name) == 1

    live(story)


def status(life: Life, set_name: str) -> str:
    return str(value_at(life.document(groupkinds.SET, set_name), ["status"]) or "")


@pytest.mark.rule("1.5")
def test_of_two_sets_whose_names_meet_the_second_is_woken_when_the_first_goes() -> None:
    """Set `small` has a clique `1-x`, set `small-0` a clique `x`: both need `small-0-1-x`."""
    first = Small(replicas=1, cliques=(Clique(name="1-x", replicas=1, min_available=1),))
    second = Small(replicas=2, cliques=(Clique(name="x", replicas=1, min_available=1),))

    async def story(life: Life) -> None:
        async with life.running() as manager:
            await life.apply(first.document("small"))
            await life.until(lambda: life.is_available("small", 1), SOON)
            await life.apply(second.document("small-0"))
            await life.until(lambda: "NameConflict" in status(life, "small-0"), SOON)
            await life.nodes.wait_quiet()
            await manager.settle()
            await life.user.delete(
                SET, Precondition(), grace_seconds=None, propagation="Background"
            )
            await life.until(lambda: life.is_available("small-0", 2), SOON)
            assert "NameConflict" not in status(life, "small-0")
            assert life.names(groupkinds.POD) == second.pods("small-0")

    live(story)


class Refusing:
    """A writer to a server that refuses some pods, as a quota would."""

    def __init__(self, writer: Writer, refused: set[str]) -> None:
        self._writer = writer
        self._refused = refused

    def __getattr__(self, name: str) -> object:
        return getattr(self._writer, name)

    async def create(self, document: Document) -> Written:
        if string_at(document, ["metadata", "name"]) in self._refused:
            raise Forbidden("exceeded quota")
        return await self._writer.create(document)


@pytest.mark.rule("1.10")
def test_a_status_stays_true_while_something_is_refused() -> None:
    shape = Small(replicas=1, cliques=(Clique(name="c", replicas=2, min_available=2),))
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")

    def says(life: Life, ready: int, breached: str) -> bool:
        told = object_at(life.document(groupkinds.CLIQUE, "small-0-c"), ["status"])
        conditions = {
            string_at(each, ["type"]): string_at(each, ["status"])
            for each in list_at(told, ["conditions"])
        }
        return (
            told.get("readyReplicas") == ready
            and conditions["MinAvailableBreached"] == breached
            and conditions.get("Stalled") == "True"
        )

    async def story(life: Life) -> None:
        refused = {"small-0-c-3"}
        writer = Refusing(life.world.writer(CONTROLLERS), refused)
        async with life.running(writer=writer):
            await life.apply(shape.document())
            await comes_to_be(life, shape)
            await life.scale(clique, 4)
            await life.until(lambda: says(life, 3, "False"), MINUTE)
            life.nodes.is_up = False
            for name in ("small-0-c-0", "small-0-c-1"):
                pod = Ref(kind=groupkinds.POD, namespace="default", name=name)
                refused.add(name)
                await life.user.delete(
                    pod, Precondition(), grace_seconds=0, propagation="Background"
                )
            await life.until(lambda: says(life, 1, "True"), MINUTE)
            refused.clear()
            life.nodes.is_up = True
            await life.until(lambda: len(life.names(groupkinds.POD)) == 4, timedelta(minutes=10))

    live(story)
