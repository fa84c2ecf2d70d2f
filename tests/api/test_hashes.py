"""Hashes: they move when pods have to be replaced, and never otherwise.

Laws: order of keys and empty values change nothing; a hash made by an older serialisation is still
known as this content's.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import hashes, kinds
from spinney.api.kinds import OUR_KINDS
from spinney.meta import hashing
from spinney.meta.documents import Document, Json, list_at, object_at
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api import samples

pytestmark = pytest.mark.rule("1.8")

DOCUMENT = (
    build.podcliqueset("chat")
    .with_clique("router", replicas=2)
    .with_clique("worker", replicas=3)
    .with_group("decode", "worker", replicas=2)
    .admitted()
)
C = "cliques"
POD = "cliques[0].spec.podSpec"


def template_of(document: Document) -> Document:
    kind = str(document["kind"])
    inner = ["spec", "template"] if kind == "PodCliqueSet" else ["spec", "template", "spec"]
    return object_at(document, inner)


TEMPLATE = template_of(DOCUMENT)


def generation(template: Document) -> str:
    return hashes.generation_hash(template)


@pytest.mark.parametrize(
    "change",
    [
        {f"{C}[0].labels": {"a": "b"}},
        {f"{C}[1].annotations": {"a": "b"}},
        {f"{POD}.containers[0].image": "example/main:2"},
        {f"{POD}.containers[0].env": [{"name": "A", "value": "0"}]},
        {f"{POD}.containers[1]": {"name": "sidecar"}},
        {f"{POD}.hostNetwork": False},
        {f"{POD}.terminationGracePeriodSeconds": 0},
        {f"{POD}.schedulerName": "volcano"},
        {f"{POD}.aFieldOfNextYear": 1},
        {"priorityClassName": "high"},
        {f"{C}[1]": ABSENT},
    ],
)
def test_it_moves_with_what_pods_are_made_of(change: dict[str, Json]) -> None:
    assert generation(changed(TEMPLATE, change)) != generation(TEMPLATE)


def test_it_moves_with_the_order_of_cliques_and_of_containers() -> None:
    cliques = TEMPLATE["cliques"]
    assert isinstance(cliques, list)
    other = changed(TEMPLATE, {f"{C}[1].spec.podSpec.containers[0].image": "example/other:1"})
    turned = {**other, "cliques": other["cliques"][::-1]}  # type: ignore[index]
    assert generation(turned) != generation(other)
    two = changed(TEMPLATE, {f"{POD}.containers": [{"name": "a"}, {"name": "b"}]})
    assert generation(changed(TEMPLATE, {f"{POD}.containers": [{"name": "b"}, {"name": "a"}]})) != (
        generation(two)
    )


@pytest.mark.parametrize(
    "change",
    [
        {f"{C}[0].spec.replicas": 9},
        {f"{C}[0].spec.minAvailable": 1},
        {f"{C}[0].spec.roleName": "other"},
        {f"{C}[0].spec.startsAfter": ["worker"]},
        {f"{C}[0].spec.autoScalingConfig": {"maxReplicas": 9}},
        {f"{C}[0].topologyConstraint": {"topologyName": "a", "pack": {"required": "rack"}}},
        {f"{C}[0].resourceSharing": [{"name": "a", "scope": "PerReplica"}]},
        {f"{C}[0].name": "renamed"},
        {"terminationDelay": "4h"},
        {"cliqueStartupType": "CliqueStartupTypeInOrder"},
        {"headlessServiceConfig": {"publishNotReadyAddresses": False}},
        {"topologyConstraint": {"topologyName": "a", "pack": {"required": "rack"}}},
        {"resourceSharing": [{"name": "a", "scope": "PerReplica"}]},
        {"podCliqueScalingGroups": ABSENT},
        {"podCliqueScalingGroups[0].replicas": 7},
        {"podCliqueScalingGroups[0].scaleConfig": {"maxReplicas": 7}},
        {"podCliqueScalingGroups[0].annotations": {"a": "b"}},
        {f"{POD}.priorityClassName": "the-sets-counts"},
        {f"{C}[0].labels": {}},
        {f"{POD}.volumes": []},
        {f"{POD}.nodeName": ""},
        {"priorityClassName": ""},
    ],
)
def test_it_stays_with_everything_else(change: dict[str, Json]) -> None:
    assert generation(changed(TEMPLATE, change)) == generation(TEMPLATE)


def test_a_cliques_hash_is_its_own() -> None:
    """Only what changed rolls: the other clique's hash stays where it was."""

    def both(template: Document) -> list[str]:
        cliques = template["cliques"]
        assert isinstance(cliques, list)
        return [
            hashes.pod_template_hash(template, clique)
            for clique in cliques
            if isinstance(clique, dict)
        ]

    new = changed(TEMPLATE, {f"{POD}.containers[0].image": "example/main:2"})
    before, after = both(TEMPLATE), both(new)
    assert before[0] != after[0]
    assert before[1] == after[1]
    assert both(changed(TEMPLATE, {f"{C}[0].spec.replicas": 9})) == before
    high = both(changed(TEMPLATE, {"priorityClassName": "high"}))
    assert not set(high) & set(before)
    # A set of one clique has a generation hash of its own all the same.
    assert generation(TEMPLATE) not in before


def test_admission_twice_gives_the_same_hash() -> None:
    for document in samples.of_kind("PodCliqueSet"):
        once, _ = kinds.admit(OUR_KINDS[kinds.group_kind_of(document)], document)
        twice, _ = kinds.admit(OUR_KINDS[kinds.group_kind_of(document)], once)
        assert generation(template_of(once)) == generation(template_of(twice))


TEMPLATES = tuple(
    template_of(document)
    for kind in ("PodCliqueSet", "ModelDeployment", "ModelRoute")
    for document in samples.of_kind(kind, admitted=True)
)


def turned(value: Json) -> Json:
    """Return a value with the keys of every object in another order, and empty ones added."""
    if isinstance(value, dict):
        entries = [(key, turned(below)) for key, below in value.items()]
        return {"zzz": None, **dict(entries[::-1]), "aaa": []}
    if isinstance(value, list):
        return [turned(item) for item in value]
    return value


@given(template=st.sampled_from(TEMPLATES).flatmap(samples.mutated))
@pytest.mark.law
def test_order_of_keys_and_empty_values_change_nothing(template: Document) -> None:
    other = turned(template)
    assert isinstance(other, dict)
    assert generation(other) == generation(template)


@given(template=st.sampled_from(TEMPLATES).flatmap(samples.mutated))
@pytest.mark.law
def test_any_template_has_a_hash_fit_for_a_label(template: Document) -> None:
    stored = generation(template)
    assert len(stored) == 16
    assert hashes.is_generation_hash(stored, template)
    for clique in list_at(template, ["cliques"]):
        if isinstance(clique, dict):
            own = hashes.pod_template_hash(template, clique)
            assert hashes.is_pod_template_hash(own, template, clique)


def _next_serialiser(value: Json) -> bytes:
    return b"another form of " + hashing.SERIALISERS[1](value)


def test_a_new_serialisation_re_stamps_and_never_rolls() -> None:
    """What was stored before is still this template's, and only this template's."""
    both = {**hashing.SERIALISERS, 2: _next_serialiser}
    stored = hashes.generation_hash(TEMPLATE)
    new = hashing.content_hash(hashes.generation(TEMPLATE), 2, both)
    assert new != stored
    content = hashes.generation(TEMPLATE)
    assert hashing.is_hash_of(stored, content, both)
    assert hashing.is_hash_of(new, content, both)
    other = hashes.generation(changed(TEMPLATE, {"priorityClassName": "high"}))
    assert not hashing.is_hash_of(stored, other, both)
    assert not hashing.is_hash_of(new, other, both)


def test_a_hash_of_nobodys_is_no_hash_of_a_template() -> None:
    for stored in ("", "7f9c6d", "9" + "b" * 15):
        assert not hashes.is_generation_hash(stored, TEMPLATE)
