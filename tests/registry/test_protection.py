"""Rule 1.9: what Spinney made for a set is kept from edits by hand; and who may scale what."""

from __future__ import annotations

import pytest
from registry_worlds import (
    ANNA,
    CONTROLLERS,
    KUBELET,
    clique,
    group,
    object_of,
    pod,
    service,
    story,
)

from spinney.api.surroundings import NOTHING_KNOWN
from spinney.meta.errors import Forbidden, Invalid
from spinney.ports import Identity
from spinney.registry.checking import Checker
from spinney.registry.garbage import COLLECTOR
from spinney.registry.namespaces import KEEPER
from spinney.registry.requests import Request
from spinney.testing import build

EXEMPT = (CONTROLLERS, COLLECTOR, KEEPER, KUBELET)

LABELS = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "chat",
    "grove.io/podcliqueset-replica-index": "0",
}


def labelled(document):
    document["metadata"]["labels"] = dict(LABELS)
    return document


def podgang():
    groups = [{"name": "chat-0-a", "minReplicas": 1, "podReferences": []}]
    return object_of("scheduler.grove.io/v1alpha1", "PodGang", "child", spec={"podgroups": groups})


def autoscaler():
    spec = {
        "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "c"},
        "maxReplicas": 3,
    }
    return object_of("autoscaling/v2", "HorizontalPodAutoscaler", "child", spec=spec)


CHILDREN = {
    "podcliques": (lambda: clique("child"), {"spec": {"podSpec": {"priority": 3}}}),
    "podcliquescalinggroups": (lambda: group("child"), {"spec": {"replicas": 4}}),
    "podgangs": (podgang, {"spec": {"priorityClassName": "high"}}),
    "horizontalpodautoscalers": (autoscaler, {"spec": {"maxReplicas": 9}}),
    "services": (lambda: service("child"), {"spec": {"selector": {"app": "other"}}}),
    "serviceaccounts": (
        lambda: object_of("v1", "ServiceAccount", "child"),
        {"automountServiceAccountToken": False},
    ),
    "secrets": (lambda: object_of("v1", "Secret", "child"), {"stringData": {"a": "b"}}),
    "roles": (
        lambda: object_of("rbac.authorization.k8s.io/v1", "Role", "child", rules=[]),
        {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    ),
    "rolebindings": (
        lambda: object_of(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            "child",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            subjects=[],
        ),
        {"subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}]},
    ),
}
REFUSAL = 'made and kept by PodCliqueSet "chat"'


async def with_set(world, **annotations):
    document = build.podcliqueset("chat").with_clique("a").document()
    document["metadata"]["annotations"] = annotations
    await world.create(document)


@pytest.mark.rule("1.9")
@pytest.mark.parametrize("word", CHILDREN)
@story
async def test_a_child_is_neither_edited_nor_deleted_by_hand(world, word):
    make, edit = CHILDREN[word]
    await with_set(world)
    await world.create(labelled(make()), who=CONTROLLERS)
    edits = (
        edit,
        {"metadata": {"labels": {"grove.io/podcliqueset-replica-index": "1"}}},
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
        {"metadata": {"labels": {"grove.io/new": "x"}}},
    )
    for change in edits:
        with pytest.raises(Forbidden) as refused:
            await world.patch(word, "child", change)
        assert REFUSAL in refused.value.message
    with pytest.raises(Forbidden, match="made and kept by PodCliqueSet"):
        await world.delete(word, "child")
    with pytest.raises(Forbidden):
        await world.patch(word, "child", {"metadata": {"labels": None}})


@pytest.mark.rule("1.9")
@pytest.mark.parametrize("word", CHILDREN)
@story
async def test_what_is_nobodys_business_may_be_edited(world, word):
    make, _ = CHILDREN[word]
    await with_set(world)
    await world.create(labelled(make()), who=CONTROLLERS)
    change = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}
    await world.patch(word, "child", change)


@pytest.mark.rule("1.9")
@pytest.mark.parametrize("word", ["podcliques", "podcliquescalinggroups", "podgangs"])
@story
async def test_nobody_else_makes_a_child(world, word):
    make, _ = CHILDREN[word]
    await with_set(world)
    with pytest.raises(Forbidden, match="made and kept by PodCliqueSet"):
        await world.create(labelled(make()))
    await world.create(make())


@pytest.mark.rule("1.9")
@pytest.mark.parametrize("who", EXEMPT, ids=lambda who: who.user)
@story
async def test_those_who_keep_the_children_may(world, who):
    make, edit = CHILDREN["podcliquescalinggroups"]
    await with_set(world)
    await world.create(labelled(make()), who=who)
    await world.patch("podcliquescalinggroups", "child", edit, who=who)
    await world.delete("podcliquescalinggroups", "child", who=who)


@pytest.mark.rule("1.9")
@story
async def test_more_may_be_exempt_by_configuration(world):
    ops = Identity(user="system:serviceaccount:ops:gitops", manager="ops")
    await with_set(world)
    stored = (await world.create(labelled(clique("child")), who=CONTROLLERS)).document
    kind = world.kind("podcliques")
    checker = Checker(world.store, NOTHING_KNOWN, frozenset({ops.user}))
    checker.refuse_protected(kind, Request(who=ops), stored, None)
    with pytest.raises(Forbidden):
        checker.refuse_protected(kind, Request(who=ANNA), stored, None)


@pytest.mark.rule("1.9")
@story
async def test_a_set_may_give_its_protection_up(world):
    await with_set(world, **{"grove.io/disable-managed-resource-protection": "true"})
    await world.create(labelled(clique("child")))
    await world.patch("podcliques", "child", {"spec": {"replicas": 4}})
    await world.delete("podcliques", "child")


@pytest.mark.rule("1.9")
@story
async def test_without_a_set_there_is_nothing_to_protect(world):
    await world.create(labelled(clique("child")))
    await world.delete("podcliques", "child")


@pytest.mark.rule("1.9")
@story
async def test_of_pods_the_labels_and_the_gate_are_protected_and_deletion_is_free(world):
    await with_set(world)
    gated = {"schedulingGates": [{"name": "grove.io/podgang-pending-creation"}, {"name": "my/own"}]}
    made = labelled(pod("child", spec=gated))
    made["metadata"]["labels"]["app"] = "web"
    await world.create(made, who=CONTROLLERS)
    for change in (
        {"metadata": {"labels": {"grove.io/podcliqueset-replica-index": "1"}}},
        {"spec": {"schedulingGates": [{"name": "my/own"}]}},
    ):
        with pytest.raises(Forbidden, match="made and kept by PodCliqueSet"):
            await world.patch("pods", "child", change)
    free = {
        "metadata": {"labels": {"app": "other"}},
        "spec": {"schedulingGates": [{"name": "grove.io/podgang-pending-creation"}]},
    }
    await world.patch("pods", "child", free)
    await world.delete("pods", "child")
    assert not world.has("pods", "child")


@pytest.mark.rule("1.9")
@story
async def test_an_update_and_an_apply_are_edits_too(world):
    await with_set(world)
    stored = (await world.create(labelled(clique("child")), who=CONTROLLERS)).document
    edited = {**stored, "spec": {**stored["spec"], "replicas": 4}}
    with pytest.raises(Forbidden):
        await world.update(edited)
    with pytest.raises(Forbidden):
        await world.apply(labelled(clique("child", replicas=4)), force=True)


@pytest.mark.rule("1.9")
@story
async def test_scale_and_status_are_open(world):
    await with_set(world)
    await world.create(labelled(clique("child")), who=CONTROLLERS)
    scale = await world.scale("podcliques", "child", 5)
    assert scale.document["spec"]["replicas"] == 5
    assert scale.document["kind"] == "Scale"
    await world.patch("podcliques", "child", {"status": {"replicas": 1}}, subresource="status")


# Scaling


@pytest.mark.rule("2.7")
@pytest.mark.parametrize(
    ("word", "make", "replicas", "may"),
    [
        ("podcliques", clique, 0, False),
        ("podcliques", clique, 1, False),
        ("podcliques", clique, 2, True),
        ("podcliquescalinggroups", group, 0, True),
        ("podcliquescalinggroups", group, 1, False),
        ("podcliquescalinggroups", group, 2, True),
    ],
)
@story
async def test_scale_keeps_to_the_floor(world, word, make, replicas, may):
    await world.create(make("c", replicas=3, least=2))
    if may:
        await world.scale(word, "c", replicas)
        assert world.get(word, "c")["spec"]["replicas"] == replicas
        return
    with pytest.raises(Invalid) as refused:
        await world.scale(word, "c", replicas)
    assert refused.value.details["causes"][0]["field"] == "spec.replicas"
    assert world.get(word, "c")["spec"]["replicas"] == 3


@pytest.mark.rule("5.8")
@pytest.mark.parametrize(
    ("word", "make"), [("podcliques", clique), ("podcliquescalinggroups", group)]
)
@story
async def test_a_training_workload_has_a_fixed_size(world, word, make):
    training = build.podcliqueset("chat").with_clique("a", replicas=2).for_training()
    await world.create(training.document())
    await world.create(make("child", root="chat"), who=CONTROLLERS)
    with pytest.raises(Invalid, match="a Training workload has a fixed size"):
        await world.scale(word, "child", 4)
    with pytest.raises(Invalid) as refused:
        await world.scale("podcliquesets", "chat", 4)
    assert refused.value.details["causes"][0]["field"] == "spec.replicas"
    with pytest.raises(Invalid):
        await world.patch(word, "child", {"spec": {"replicas": 4}}, who=CONTROLLERS)


@story
async def test_a_scale_tells_and_checks(world):
    await world.create(clique("c"))
    await world.status("podcliques", "c", {"replicas": 2, "hpaPodSelector": "a=b"})
    scale = (await world.scale("podcliques", "c", 3)).document
    assert scale["status"] == {"replicas": 2, "selector": "a=b"}
    assert scale["apiVersion"] == "autoscaling/v1"
    with pytest.raises(Invalid) as refused:
        await world.scale("podcliques", "c", -1)
    assert "spec.replicas: Invalid value: -1" in refused.value.message


@pytest.mark.rule("1.10")
@story
async def test_a_change_that_reaches_nothing_is_warned_of(world):
    document = build.podcliqueset("chat").with_clique("a", replicas=2).document()
    await world.create(document)
    path = "/spec/template/cliques/0/spec/replicas"
    outcome = await world.patch(
        "podcliquesets",
        "chat",
        [{"op": "replace", "path": path, "value": 3}],
        type="application/json-patch+json",
    )
    assert any("scale" in warning for warning in outcome.warnings)


@story
async def test_a_binding_that_is_there_is_known_to_the_rules(world):
    levels = build.clustertopologybinding("racks").with_level("rack", "example.com/rack")
    made = build.podcliqueset("chat").with_clique("a")
    made = made.with_template(
        "topologyConstraint", {"topologyName": "racks", "pack": {"required": "shelf"}}
    )
    await world.create(levels.document())
    with pytest.raises(Invalid, match="shelf"):
        await world.create(made.document())
