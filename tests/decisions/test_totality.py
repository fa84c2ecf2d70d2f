"""Totality: whatever decodes is decided, whoever wrote it; and what is seen can be pasted back.

Objects of a living set are damaged at random, past all admission: fields dropped, emptied, of other
values and sizes. As long as they can be read at all, every look ends in a decision that keeps its
own rules, and that is the same when it is asked for again.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.api.kinds import KINDS
from spinney.controllers import (
    clustertopologybinding,
    horizontalpodautoscaler,
    podclique,
    podcliquescalinggroup,
    podcliqueset,
    podgang,
)
from spinney.decisions import autoscaling, cliques, gangs, groups, sets, topologies
from spinney.decisions.usage import PodUsage
from spinney.meta import records
from spinney.meta.documents import Document, Json, leaves, list_at, object_at, with_value
from spinney.meta.errors import DecodeError
from spinney.meta.records import Record
from spinney.meta.references import Ref
from spinney.testing import build
from tests.decisions.worlds import START, World

METRIC: Document = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}},
}
CLAIM: Document = {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "d"}}]}}
SHARED: list[Json] = [{"name": "own", "scope": "PerReplica"}]


class Measured:
    """Every pod is as busy as the next."""

    def usage(self, _pod_uid: str) -> PodUsage | None:
        return PodUsage(measured_at=START, containers={"main": {"cpu": 2_000_000_000}})


LOOKS = {
    groupkinds.SET: (podcliqueset.observe, sets.decide),
    groupkinds.SCALING_GROUP: (podcliquescalinggroup.observe, groups.decide),
    groupkinds.CLIQUE: (podclique.observe, cliques.decide),
    groupkinds.GANG: (podgang.observe, gangs.decide),
    groupkinds.TOPOLOGY: (clustertopologybinding.observe, topologies.decide),
    groupkinds.AUTOSCALER: (
        lambda reader, key, now: horizontalpodautoscaler.observe(reader, key, now, Measured()),
        autoscaling.decide,
    ),
}


def rich() -> World:
    """Return a world with a set that uses all there is, alive."""
    made = (
        build.podcliqueset("rich")
        .with_replicas(2)
        .with_clique("a", replicas=2, min_available=1)
        .with_clique("b", starts_after=("a",))
        .with_clique("c", replicas=2, min_available=1, starts_after=("b",))
        .with_group("g", "b", "c", replicas=2, min_available=1)
        .with_template("cliqueStartupType", "CliqueStartupTypeExplicit")
        .with_template(
            "topologyConstraint", {"topologyName": "racks", "pack": {"required": "rack"}}
        )
        .with_template("resourceClaimTemplates", [{"name": "own", "templateSpec": {"spec": CLAIM}}])
        .with_template("resourceSharing", SHARED)
        .with_("metadata.namespace", "default")
    )
    document = made.document()
    found = list_at(document, ["spec", "template", "cliques"])
    scaled: Document = {"maxReplicas": 4, "metrics": [METRIC]}
    found[0] = with_value(object_at(found[0], []), ["spec", "autoScalingConfig"], scaled)
    found[0] = with_value(found[0], ["resourceSharing"], SHARED)
    document = with_value(document, ["spec", "template", "cliques"], found)
    world = World()
    world.apply(build.clustertopologybinding().with_level("rack", "example.com/rack").document())
    world.apply(document)
    return world


def keys(world: World) -> list[Ref]:
    return sorted(ref for ref in world.documents if ref.kind in LOOKS)


def seen(world: World, key: Ref) -> Record | None:
    observe, _ = LOOKS[key.kind]
    found: Record | None = observe(world, key, world.now)  # type: ignore[operator]
    return found


def check_all(world: World) -> None:
    for key in keys(world):
        found = seen(world, key)
        if found is not None:
            _, decide = LOOKS[key.kind]
            decision = decide(found)  # type: ignore[operator]
            decision.check()
            assert decide(found) == decision  # type: ignore[operator]


WORDS = ("", "x", "0", "a-0", "2026-01-01T00:00:00Z", "True", "Failed", "Succeeded", "Unknown")
NUMBERS = (0, -1, 1, 3, 50)
OTHERS: tuple[Json, ...] = (None, True, False, [], {}, [{}], ["x"], {"x": "y"})
VALUES = st.sampled_from([*WORDS, *NUMBERS, *OTHERS])
GIVEN_BY_THE_SERVER = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def places(document: Document) -> Iterator[tuple[str | int, ...]]:
    """Yield every place of a document at which something may be damaged."""
    found: set[tuple[str | int, ...]] = set()
    for path, _ in leaves(document):
        found.update(path[:end] for end in range(1, len(path) + 1))
    for path in sorted(found, key=str):
        is_given = len(path) == 2 and path[0] == "metadata" and path[1] in GIVEN_BY_THE_SERVER
        if path[0] not in ("apiVersion", "kind") and path != ("metadata",) and not is_given:
            yield path


def damaged(value: Json, path: tuple[str | int, ...], by: Json) -> Json:
    """Return a value with something else at a path."""
    if not path:
        return by
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str):
        changed = {**value, step: damaged(value.get(step), rest, by)}
        return {k: v for k, v in changed.items() if v is not None}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return [damaged(below, rest, by) if i == step else below for i, below in enumerate(value)]
    return value


def damage(world: World, ref: Ref, path: tuple[str | int, ...], by: Json) -> bool:
    """Damage an object, unless it could not be read any more."""
    before = world.documents[ref]
    after = damaged(before, path, by)
    assert isinstance(after, dict)
    try:
        records.decode(KINDS[ref.kind].record, after)
    except DecodeError:
        return False
    world._put(ref, after)
    return True


def state(stage: int) -> World:
    """Return the rich world at some stage of its life."""
    world = rich()
    if stage == 0:
        world.settle()
    elif stage == 1:
        world.live()
    elif stage == 2:
        world.live()
        key = Ref(kind=groupkinds.SET, namespace="default", name="rich")
        world.change(key, ["spec", "replicas"], 1)
        group = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="rich-0-g")
        world.change(group, ["spec", "replicas"], 3)
        for each in world.subjects()[:9]:
            world.look(each)
    else:
        world.live()
        for pod in world.pods():
            world.say(pod, ready=False, phase="Failed")
        world.delete(Ref(kind=groupkinds.CLIQUE, namespace="default", name="rich-0-a"))
    return world


STATES = [state(stage) for stage in range(4)]


def copy(world: World) -> World:
    """Return a world that can be damaged without the other."""
    other = World()
    other.now, other.version = world.now, world.version
    other.documents = dict(world.documents)
    return other


@pytest.mark.law
@pytest.mark.rule("1.7")
@given(st.data())
def test_whatever_decodes_is_decided(data: st.DataObject) -> None:
    world = copy(STATES[data.draw(st.integers(0, 3), label="state")])
    for _ in range(data.draw(st.integers(1, 4), label="damages")):
        ref = data.draw(st.sampled_from(sorted(world.documents)), label="object")
        path = data.draw(st.sampled_from([*places(world.documents[ref])]), label="path")
        damage(world, ref, path, data.draw(VALUES, label="by"))
    check_all(world)


@pytest.mark.parametrize("stage", range(4))
def test_one_damage_anywhere_is_decided(stage: int) -> None:
    """Every place of every object that is looked at, dropped and emptied, one at a time."""
    world = copy(STATES[stage])
    kinds_done: set[str] = set()
    for ref in sorted(world.documents):
        if ref.kind.kind in kinds_done:
            continue
        kinds_done.add(ref.kind.kind)
        before = world.documents[ref]
        for path in places(before):
            for by in (None, "", 0, [], {}):
                if damage(world, ref, path, by):
                    check_all_of(world, ref)
                    world._put(ref, before)


def check_all_of(world: World, changed: Ref) -> None:
    """Look at the object itself, and at those most likely to look at it."""
    set_ = Ref(kind=groupkinds.SET, namespace="default", name="rich")
    gang = Ref(kind=groupkinds.GANG, namespace="default", name="rich-0")
    clique = Ref(kind=groupkinds.CLIQUE, namespace="default", name="rich-0-a")
    for key in {changed, set_, gang, clique}:
        if key.kind in LOOKS and key in world.documents:
            found = seen(world, key)
            if found is not None:
                LOOKS[key.kind][1](found).check()  # type: ignore[operator]


def named(value: object) -> Iterator[tuple[str, type]]:
    """Yield every sort of record in a value, by name."""
    if isinstance(value, msgspec.Struct):
        yield type(value).__name__, type(value)
        for field in value.__struct_fields__:
            yield from named(getattr(value, field))
    elif isinstance(value, dict):
        for below in value.values():
            yield from named(below)
    elif isinstance(value, (list, tuple)):
        for below in value:
            yield from named(below)


@pytest.mark.parametrize("stage", range(4))
def test_what_is_seen_can_be_pasted_back(stage: int) -> None:
    """A question of policy can be asked from what a log shows."""
    world = copy(STATES[stage])
    for key in keys(world):
        found = seen(world, key)
        assert found is not None
        names: dict[str, object] = {"datetime": datetime}
        for name, sort in named(found):
            assert names.setdefault(name, sort) is sort, f"two sorts of {name}"
        pasted = eval(repr(found), names)
        assert pasted == found
        decide = LOOKS[key.kind][1]
        assert decide(pasted) == decide(found)  # type: ignore[operator]
