"""Shared claims: the names of each level, who holds which, and that the two agree.

Laws: every claim a pod names is made by some level; every claim made is meant by an entry; the
claims of a level never meet.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.api.core.resourceclaims import ResourceClaim, ResourceClaimTemplate
from spinney.api.podcliqueset import PodCliqueSet
from spinney.decisions import places, sharing
from spinney.decisions.actions import Create, Delete
from spinney.decisions.making import claims
from spinney.decisions.making.claims import Claim
from spinney.decisions.sharing import Shared
from spinney.meta import records
from spinney.meta.documents import Document, Json, string_at, value_at, with_value
from spinney.meta.metadata import ObjectMeta
from spinney.testing import build

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC: Document = {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "d"}}]}}


def entry(name: str, scope: str, **more: Json) -> Document:
    return {"name": name, "scope": scope, **more}


def made(
    of_set: list[Json], of_group: list[Json], of_clique: list[Json], replicas: int = 2
) -> PodCliqueSet:
    """Return a set of a, and of b and c in group g of two copies, with entries at three levels."""
    builder = build.podcliqueset("s").with_replicas(replicas).with_clique("a", replicas=2)
    builder = builder.with_clique("b").with_clique("c").with_group("g", "b", "c", replicas=2)
    document = builder.with_("metadata.namespace", "space").admitted()
    template = value_at(document, ["spec", "template"])
    assert isinstance(template, dict)
    template = {**template, "resourceSharing": of_set}
    own: Json = [{"name": "own", "templateSpec": {"spec": SPEC}}]
    template["resourceClaimTemplates"] = own
    for field, at, entries in (
        ("cliques", 0, of_clique),
        ("podCliqueScalingGroups", 0, of_group),
    ):
        items = template[field]
        assert isinstance(items, list)
        first = items[at]
        assert isinstance(first, dict)
        template[field] = [{**first, "resourceSharing": entries}, *items[1:]]
    return records.decode(PodCliqueSet, with_value(document, ["spec", "template"], template))


def every_claim(set_: PodCliqueSet) -> dict[str, Claim]:
    """Return the claims of all levels, as each makes its own."""
    found = [*claims.of_set(set_)]
    for index in range(set_.spec.replicas):
        for group in places.layout(set_).group_places(index):
            found += claims.of_group(set_, group, group.config.replicas)
        for place in places.layout(set_).standalone_places(index):
            clique = places.clique_of(set_.spec.template, place.clique)
            assert clique is not None
            found += claims.of_clique(set_, place, clique.spec.replicas)
    assert len({claim.name for claim in found}) == len(found), "claims meet"
    return {claim.name: claim for claim in found}


def every_pod(set_: PodCliqueSet) -> dict[str, tuple[str, ...]]:
    """Return the claims each pod names."""
    found: dict[str, tuple[str, ...]] = {}
    for index in range(set_.spec.replicas):
        inside = [*places.layout(set_).standalone_places(index)]
        for group in places.layout(set_).group_places(index):
            inside += places.grouped_places(group, range(group.config.replicas))
        for place in inside:
            clique = places.clique_of(set_.spec.template, place.clique)
            assert clique is not None
            for pod in range(clique.spec.replicas):
                found[f"{place.name}-{pod}"] = claims.held_by(set_, place, pod)
    return found


@pytest.mark.parametrize(
    ("of_set", "of_group", "of_clique", "names"),
    [
        ([entry("own", "AllReplicas")], [], [], ["s-all-own"]),
        ([entry("own", "PerReplica")], [], [], ["s-0-own", "s-1-own"]),
        ([], [entry("own", "AllReplicas")], [], ["s-0-g-all-own", "s-1-g-all-own"]),
        (
            [],
            [entry("own", "PerReplica")],
            [],
            ["s-0-g-0-own", "s-0-g-1-own", "s-1-g-0-own", "s-1-g-1-own"],
        ),
        ([], [], [entry("own", "AllReplicas")], ["s-0-a-all-own", "s-1-a-all-own"]),
        (
            [],
            [],
            [entry("own", "PerReplica")],
            ["s-0-a-0-own", "s-0-a-1-own", "s-1-a-0-own", "s-1-a-1-own"],
        ),
    ],
)
def test_each_level_names_its_claims(
    of_set: list[Json], of_group: list[Json], of_clique: list[Json], names: list[str]
) -> None:
    assert sorted(every_claim(made(of_set, of_group, of_clique))) == names


def of(*names: str) -> Document:
    return {"childCliqueNames": [*names]}


@pytest.mark.parametrize(
    ("level", "item", "holders"),
    [
        ("set", entry("own", "AllReplicas"), "abc"),
        ("set", entry("own", "AllReplicas", filter=of("a")), "a"),
        ("set", entry("own", "AllReplicas", filter=of("b")), "b"),
        ("set", entry("own", "PerReplica", filter={"childScalingGroupNames": ["g"]}), "bc"),
        ("set", entry("own", "PerReplica", filter=of("g")), "bc"),
        (
            "set",
            entry("own", "PerReplica", filter={**of("a"), "childScalingGroupNames": ["c"]}),
            "ac",
        ),
        ("group", entry("own", "AllReplicas"), "bc"),
        ("group", entry("own", "PerReplica", filter=of("c")), "c"),
        ("clique", entry("own", "PerReplica"), "a"),
    ],
)
def test_filters_say_who_holds_a_claim(level: str, item: Document, holders: str) -> None:
    entries = {"set": [], "group": [], "clique": [], level: [item]}
    set_ = made(entries["set"], entries["group"], entries["clique"], replicas=1)  # type: ignore[arg-type]
    holding = {name.rsplit("-", 2)[1] for name, held in every_pod(set_).items() if held}
    assert holding == set(holders)


def test_a_pod_names_its_claims_from_the_widest_to_the_narrowest() -> None:
    both: list[Json] = [entry("x", "PerReplica"), entry("y", "AllReplicas")]
    set_ = made(both, both, both)
    pods = every_pod(set_)
    assert pods["s-1-g-0-b-0"] == ("s-all-y", "s-1-x", "s-1-g-all-y", "s-1-g-0-x")
    assert pods["s-0-a-1"] == ("s-all-y", "s-0-x", "s-0-a-all-y", "s-0-a-1-x")


FILTERS = st.sampled_from([{}, {"filter": of("a")}, {"filter": of("b", "c")}])
ENTRIES = st.lists(
    st.builds(
        lambda name, scope, more: entry(name, scope, **more),
        st.sampled_from(["own", "x", "y"]),
        st.sampled_from(["AllReplicas", "PerReplica"]),
        FILTERS,
    ),
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)


@pytest.mark.law
@given(ENTRIES, ENTRIES, ENTRIES, st.integers(0, 3))
def test_what_pods_name_is_made(
    of_set: list[Json], of_group: list[Json], of_clique: list[Json], replicas: int
) -> None:
    set_ = made(of_set, of_group, of_clique, replicas)
    there = every_claim(set_)
    for held in every_pod(set_).values():
        assert set(held) <= there.keys()
        assert len(set(held)) == len(held)
    for claim in there.values():
        assert claim.labels["app.kubernetes.io/component"] == "resource-claim"


# What a level does about its claims

OWNER = ObjectMeta(name="s", namespace="space", uid="uid-s")


def held(name: str, *, going: bool = False) -> ResourceClaim:
    metadata: Document = {"name": name, "namespace": "space", "uid": f"uid-{name}"}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return records.decode(ResourceClaim, {"metadata": metadata, "spec": SPEC})


def decided(set_: PodCliqueSet, shared: Shared) -> sharing.Sharing:
    return sharing.decide(
        tuple(claims.of_set(set_)), shared, set_.spec.template, groupkinds.SET, OWNER, NOW
    )


def test_missing_claims_are_made_and_needless_ones_go() -> None:
    set_ = made([entry("own", "PerReplica")], [], [])
    there = (held("s-1-own"), held("s-2-own"), held("s-3-own", going=True))
    found = decided(set_, Shared(claims=there))
    created = [a.document for a in found.actions if isinstance(a, Create)]
    assert [string_at(each, ["metadata", "name"]) for each in created] == ["s-0-own"]
    assert created[0]["spec"] == SPEC
    deleted = [a.target.name for a in found.actions if isinstance(a, Delete)]
    assert deleted == ["s-2-own"]
    assert not found.errors


def test_a_claim_whose_template_is_not_there_is_told_and_not_made() -> None:
    set_ = made([entry("gone", "AllReplicas", namespace="stock")], [], [])
    found = decided(set_, Shared())
    assert not found.actions
    (error,) = found.errors
    assert "stock/gone" in error.description
    template = records.decode(
        ResourceClaimTemplate,
        {"metadata": {"name": "gone", "namespace": "stock"}, "spec": {"spec": SPEC}},
    )
    (action,) = decided(set_, Shared(templates=(template,))).actions
    assert isinstance(action, Create)
    assert action.document["spec"] == SPEC
