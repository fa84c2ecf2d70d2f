"""Causes and trees.

Laws: totality (any mixture of objects, however broken, is told of, and ends in a root that has a
remedy); order blindness; what is well has no cause; bounded, however much is wrong.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, kinds
from spinney.decisions.causes import chains, trees
from spinney.decisions.causes.chains import CAUSES_MOST, SIBLINGS_MOST, Cause
from spinney.decisions.causes.scenes import Scene
from spinney.meta.documents import Document, string_at, with_value
from spinney.meta.references import GroupKind, Ref
from tests.decisions import situations
from tests.decisions.situations import SITUATIONS, Told
from tests.decisions.test_totality import VALUES, damaged, places

CHAT = Ref(kind=groupkinds.SET, namespace="default", name="chat")
NAMES = sorted(SITUATIONS)
MADE = {name: list(make().documents.values()) for name, make in SITUATIONS.items()}
NOW = situations.all_is_well().now
NOBODY = Ref(kind=GroupKind(group="example.com", kind="Toy"), namespace="default", name="ball")


def check(causes: tuple[Cause, ...]) -> None:
    """Check what holds of every chain."""
    assert causes
    assert causes[0].depth == 0
    assert len(causes) <= CAUSES_MOST
    for index, cause in enumerate(causes):
        following = causes[index + 1] if index + 1 < len(causes) else None
        is_leaf = following is None or following.depth <= cause.depth
        assert cause.sentence
        assert cause.reason
        assert following is None or 1 <= following.depth <= cause.depth + 1
        if is_leaf:
            assert cause.is_root or cause.is_repeated or cause.left_out
        if cause.is_root and not cause.is_well:
            assert cause.remedy
    assert chains.roots(causes)


def refs(documents: list[Document]) -> list[Ref]:
    scene = Scene(documents, NOW)
    all_kinds = (*SCENERY, GroupKind(group="", kind=""))
    return [
        Ref(
            kind=kind,
            namespace=string_at(document, ["metadata", "namespace"]),
            name=string_at(document, ["metadata", "name"]),
        )
        for kind in all_kinds
        for document in scene.of_kind(kind)
    ]


TIMES = st.sampled_from(["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "4m", "2562047h"])
SCENERY = (
    groupkinds.SET,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.POD,
    groupkinds.NODE,
)


@pytest.mark.law
@given(st.data(), st.sampled_from(NAMES))
def test_any_mixture_of_objects_is_told_of(data, name):
    documents = list(MADE[name])
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(documents) - 1))
        if data.draw(st.integers(0, 3)) == 0 and len(documents) > 1:
            del documents[at]
            continue
        found = sorted(places(documents[at]), key=str)
        where = data.draw(st.sampled_from(found))
        broken = damaged(documents[at], where, data.draw(st.one_of(VALUES, TIMES)))
        assert isinstance(broken, dict)
        documents[at] = broken
    unread = data.draw(st.sets(st.sampled_from(SCENERY), max_size=2))
    scene = Scene(
        [d for d in documents if kinds.group_kind_of(d) not in unread], NOW, unread=unread
    )
    for ref in (*refs(documents), CHAT, NOBODY):
        check(chains.chain(scene, ref))
        trees.tree(scene, ref)
    for ref in trees.roots(scene):
        trees.tree(scene, ref)


@pytest.mark.law
@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_the_order_of_objects_does_not_matter(name, chance: random.Random):
    shuffled = list(MADE[name])
    chance.shuffle(shuffled)
    one, other = Scene(MADE[name], NOW), Scene(shuffled, NOW)
    assert chains.chain(one, CHAT) == chains.chain(other, CHAT)
    assert trees.tree(one, CHAT) == trees.tree(other, CHAT)


def test_nothing_is_said_against_what_is_well():
    scene = situations.all_is_well().scene()
    for ref in refs(MADE["all-is-well"]):
        (cause,) = chains.chain(scene, ref)
        assert cause.is_well, cause
        assert not trees.pods_of(trees.tree(scene, ref))[:1] or all(
            pod.is_whole for pod in trees.pods_of(trees.tree(scene, ref))
        )


ROOTS = {
    "no-nodes": {"NoNodes"},
    "cordoned": {"Cordoned", "NodeStatusUnknown"},
    "too-small": {"Unschedulable"},
    "scaled-gang-pending": {"Unschedulable"},
    "no-scheduler": {"NoScheduler"},
    "gang-not-whole": {"Forbidden"},
    "crash-loop": {"CrashLoopBackOff"},
    "start-up-order": {"ProbeNotPassed", "NoScheduler"},
    "no-command": {"NoCommand", "NoScheduler"},
    "config-missing": {"CreateContainerConfigError"},
    "node-lost": {"NodeStatusUnknown"},
    "name-conflict": {"NameHeld"},
    "held-deletion": {"Deleting"},
    "pods-end": {"Deleting"},
    "topology-missing": {"NoScheduler", "ClusterTopologyNotFound"},
    "idle": {"Idle"},
    "nobody-looks": {"NotLookedAt"},
    "paused": {"Paused"},
    "breached": {"OOMKilled"},
}


ROUTER = Ref(kind=groupkinds.POD, namespace="default", name="chat-0-router-0")
ABOUT = {"pods-end": ROUTER}


@pytest.mark.parametrize("name", sorted(ROOTS))
@pytest.mark.rule("1.10")
def test_a_situation_ends_in_its_root(name):
    causes = chains.chain(SITUATIONS[name]().scene(), ABOUT.get(name, CHAT))
    check(causes)
    assert {cause.reason for cause in chains.roots(causes)} == ROOTS[name]


def test_every_situation_has_its_root():
    assert {*ROOTS, "all-is-well"} == set(SITUATIONS)


def test_pods_that_wait_for_each_other_end_in_a_sentence():
    world = situations.all_is_well()
    for name, other in (("router", "decode"), ("decode", "router")):
        waits: Document = {"spinney.dev/starts-after": f"chat-0-{other}=9"}
        for ref in list(world.pods()):
            if ref.name.startswith(f"chat-0-{name}"):
                world.status(ref.name, state={"waiting": {}}, started=False)
                world.put("Pod", ref.name, ["metadata", "annotations"], waits)
    world.settle()
    causes = chains.chain(world.scene(), CHAT)
    check(causes)
    assert "Circle" in {cause.reason for cause in causes}


def test_the_order_on_a_cluster_is_read_from_the_container_that_waits():
    world = situations.start_up_order()
    for ref in list(world.pods()):
        if "worker" in ref.name:
            document = world.documents[ref]
            parent = "chat-0-prefill-0-prefill-leader"
            waiter: Document = {"name": "grove-initc", "args": [f"--podcliques={parent}:1"]}
            document = with_value(document, ["metadata", "annotations"], {})
            world.documents[ref] = with_value(document, ["spec", "initContainers"], [waiter])
    worker = Ref(kind=groupkinds.POD, namespace="default", name="chat-0-prefill-0-prefill-worker-1")
    causes = chains.chain(world.scene(), worker)
    assert [cause.reason for cause in causes] == [
        "StartsLater",
        "NotReady",
        "ProbeNotPassed",
    ]


def test_what_may_not_be_read_is_not_said_to_be_missing():
    world = situations.no_nodes()
    scene = Scene(world.documents.values(), world.now, unread=(groupkinds.NODE,))
    causes = chains.chain(scene, CHAT)
    assert {cause.reason for cause in chains.roots(causes)} == {"NoScheduler"}


def many(count: int) -> Told:
    """Return a set of which each pod has a trouble of its own."""
    world = Told()
    world.node("node-1")
    made = situations.build.podcliqueset("chat").with_clique("server", replicas=count)
    world.apply(made.with_("metadata.namespace", "default").document())
    world.settle()
    world.run()
    for index in range(count):
        ended: Document = {"terminated": {"exitCode": 1, "message": f"fault {index}"}}
        world.status(f"chat-0-server-{index}", state=ended)
    world.settle()
    return world


def test_of_many_troubles_only_some_are_told():
    causes = chains.chain(many(30).scene(), CHAT)
    check(causes)
    assert len(causes) == 2 + SIBLINGS_MOST
    assert causes[1].left_out == 30 - SIBLINGS_MOST


def test_of_one_trouble_many_have_one_is_told():
    world = situations.breached()
    pods = [cause for cause in chains.chain(world.scene(), CHAT) if cause.about.kind.kind == "Pod"]
    assert [(cause.about.name, cause.alike) for cause in pods] == [
        ("chat-0-decode-0", ("chat-0-decode-1", "chat-0-decode-2"))
    ]
