"""Names: plain joins, as Grove makes them.

Laws: where `collisions` finds nothing, no two objects of a kind, and no two pods' hostnames, have
one name, whatever the counts; and two that have one are always found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spinney.api import names
from spinney.api.names import Part
from spinney.meta.documents import Document
from spinney.meta.metadata import is_dns_label
from spinney.testing import build
from spinney.testing.build import changed
from tests.api.cases import said_of


@pytest.mark.rule("1.2")
def test_the_worked_example() -> None:
    """A set `svc` of one replica: `fe` by itself, group `pre` of `ld` and `wk`, three times."""
    pre = names.scaling_group("svc", 0, "pre")
    assert pre == "svc-0-pre"
    assert names.clique("svc", 0, "fe") == "svc-0-fe"
    assert names.grouped_clique(pre, 0, "ld") == "svc-0-pre-0-ld"
    assert names.grouped_clique(pre, 1, "wk") == "svc-0-pre-1-wk"
    assert names.base_podgang("svc", 0) == "svc-0"
    assert [names.scaled_podgang(pre, s) for s in (0, 1)] == ["svc-0-pre-0", "svc-0-pre-1"]
    assert names.headless_service("svc", 0) == "svc-0"
    assert names.headless_address("svc", 0, "ml") == "svc-0.ml.svc.cluster.local"
    assert names.service_account("svc") == "svc"
    assert names.role("svc") == "grove.io:pcs:svc"
    assert names.token_secret("svc") == "svc-ic-sat"
    assert names.compute_domain("svc", 0, "fabric") == "svc-0-fabric"
    assert names.claim_for_all(pre, "link") == "svc-0-pre-all-link"
    assert names.claim_for_replica(pre, 2, "link") == "svc-0-pre-2-link"
    assert names.model_route("chat", 7, 0) == "chat-7-0"


@pytest.mark.rule("2.5")
def test_a_pod_is_called_like_its_clique_with_its_index() -> None:
    assert names.pod("svc-0-pre-1-wk", 3) == "svc-0-pre-1-wk-3"
    assert names.hostname("svc-0-pre-1-wk-3") == "svc-0-pre-1-wk-3"


@pytest.mark.rule("2.5")
def test_a_hostname_holds_no_dots() -> None:
    """A name may, a DNS label may not; upstream such pods are never created."""
    assert names.hostname(names.pod(names.clique("svc.v2", 0, "fe.a"), 1)) == "svc-v2-0-fe-a-1"
    assert names.headless_service("svc.v2", 0) == "svc-v2-0"


@given(
    parts=st.lists(
        st.from_regex(r"[a-z0-9]([-a-z0-9]{0,12}[a-z0-9])?", fullmatch=True), min_size=3, max_size=3
    ),
    i=st.integers(0, 999),
    j=st.integers(0, 999),
    k=st.integers(0, 999),
)
@pytest.mark.rule("2.5")
@pytest.mark.law
def test_names_within_the_budget_make_hostnames(parts: list[str], i: int, j: int, k: int) -> None:
    """45 characters of the user's, and 18 for hyphens and three indexes of some digits."""
    set_name, group, clique = parts
    assert sum(map(len, parts)) <= names.NAME_BUDGET
    full = names.grouped_clique(names.scaling_group(set_name, i, group), j, clique)
    assert is_dns_label(names.hostname(names.pod(full, k)))


def test_the_longest_names_make_a_hostname() -> None:
    full = names.grouped_clique(names.scaling_group("s" * 15, 999, "g" * 15), 999, "c" * 15)
    assert is_dns_label(names.pod(full, 9999))


WORDS = st.sampled_from(
    (
        "a",
        "b",
        "a-0",
        "a-1",
        "0",
        "1",
        "0-a",
        "a-0-b",
        "a.0",
        "b-all-x",
        "all",
        "a-all",
        "1-0-a",
        "x",
    )
)
SCALED = {"minReplicas": 1, "maxReplicas": 3}


@st.composite
def templates(draw: st.DrawFn) -> Document:
    """Draw a template with up to three cliques, two groups, and claims at every level."""
    cliques = draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    groups = draw(st.lists(WORDS, max_size=2, unique=True))
    members = {clique: draw(st.sampled_from((None, *groups))) for clique in cliques}

    def claims() -> list[Document]:
        shared = draw(st.lists(st.sampled_from(("x", "0-x", "all-x", "b")), max_size=1))
        scope = st.sampled_from(("AllReplicas", "PerReplica"))
        return [{"name": name, "scope": draw(scope)} for name in shared]

    return {
        "cliques": [
            {
                "name": name,
                "resourceSharing": claims(),
                "spec": {
                    "roleName": f"r{index}",
                    "replicas": 1,
                    "minAvailable": 1,
                    "podSpec": {"containers": [{"name": "main"}]},
                    **(
                        {"autoScalingConfig": SCALED}
                        if members[name] is None and draw(st.booleans())
                        else {}
                    ),
                },
            }
            for index, name in enumerate(cliques)
        ],
        "podCliqueScalingGroups": [
            {
                "name": name,
                "cliqueNames": [clique for clique in cliques if members[clique] == name],
                "resourceSharing": claims(),
                **({"scaleConfig": SCALED} if draw(st.booleans()) else {}),
            }
            for name in groups
            if name in members.values()
        ],
        "resourceSharing": claims(),
    }


Made = tuple[str, str, tuple[object, ...]]


def made_names(template: Document, count: int) -> Iterator[Made]:
    """Yield (sort, name, what it is) of all a set `s` makes, with so many replicas everywhere.

    Written from the table of names alone: it shares nothing with `collisions`.
    """
    cliques, groups = template["cliques"], template["podCliqueScalingGroups"]
    assert isinstance(cliques, list)
    assert isinstance(groups, list)
    grouped = {member for group in groups for member in group["cliqueNames"]}
    by_name = {clique["name"]: clique for clique in cliques}
    indexes = range(count)

    def claims(owner: str, entries: list[Document], who: tuple[object, ...]) -> Iterator[Made]:
        for entry in entries:
            if entry["scope"] == "AllReplicas":
                name = names.claim_for_all(owner, str(entry["name"]))
                yield "ResourceClaim", name, (*who, entry["name"], "all")
            else:
                for index in indexes:
                    name = names.claim_for_replica(owner, index, str(entry["name"]))
                    yield "ResourceClaim", name, (*who, entry["name"], index)

    def clique_of(full: str, clique: Document, who: tuple[object, ...]) -> Iterator[Made]:
        yield "PodClique", full, who
        for k in indexes:
            yield "hostname", names.hostname(names.pod(full, k)), (*who, k)
        yield from claims(full, clique["resourceSharing"], who)  # type: ignore[arg-type]
        if "autoScalingConfig" in clique["spec"]:  # type: ignore[operator]
            yield "HorizontalPodAutoscaler", full, who

    yield from claims("s", template["resourceSharing"], ("set",))  # type: ignore[arg-type]
    for i in indexes:
        for clique in cliques:
            if clique["name"] not in grouped:
                full = names.clique("s", i, clique["name"])
                yield from clique_of(full, clique, ("clique", i, clique["name"]))
        for group in groups:
            owner = names.scaling_group("s", i, group["name"])
            who = ("group", i, group["name"])
            yield "PodCliqueScalingGroup", owner, who
            yield from claims(owner, group["resourceSharing"], who)
            if "scaleConfig" in group:
                yield "HorizontalPodAutoscaler", owner, who
            for j, member in itertools.product(indexes, group["cliqueNames"]):
                full = names.grouped_clique(owner, j, member)
                yield from clique_of(full, by_name[member], (*who, j, member))


def twins(template: Document, count: int) -> list[Made]:
    seen: dict[tuple[str, str], tuple[object, ...]] = {}
    found: list[Made] = []
    for sort, name, who in made_names(template, count):
        if seen.setdefault((sort, name), who) != who:
            found.append((sort, name, who))
    return found


def collide(template: Document) -> list[str]:
    document = changed(build.podcliqueset("s").document(), {"spec.template": template})
    return [line for line in said_of(document) if "would share" in line]


@given(template=templates())
@pytest.mark.rule("1.5")
@pytest.mark.law
def test_two_things_with_one_name_are_always_found(template: Document) -> None:
    """Also the other way: a set that is let in makes no two things of one name."""
    if twins(template, count=3):
        assert collide(template)
    if not collide(template):
        assert not twins(template, count=12)


def _clique(name: str) -> Part:
    return names.clique_part(name, "", f"cliques/{name}")


def _grouped(name: str, group: str) -> Part:
    return names.clique_part(name, group, f"cliques/{name}")


def _claim(name: str, *, per_replica: bool, of: Part | None = None) -> Part:
    return names.claim_part(of, name, per_replica=per_replica, owner=f"claims/{name}")


COLLIDING = [
    (_clique("pre-0-worker"), _grouped("worker", "pre"), "-0-pre-0-worker"),
    (_clique("pre-12-worker"), _grouped("worker", "pre"), "-0-pre-12-worker"),
    (_clique("a.b"), _clique("a-b"), "-0-a-b"),
    (_grouped("b", "a-1"), _grouped("0-b", "a"), "-0-a-1-0-b"),
    (
        _claim("a-all-x", per_replica=True),
        _claim("x", per_replica=False, of=_clique("a")),
        "-0-a-all-x",
    ),
    (
        names.autoscaler_part("a", "clique", "a"),
        names.autoscaler_part("a", "group", "b"),
        "-0-a",
    ),
    (
        _claim("x", per_replica=True, of=_clique("a")),
        names.group_claim_part("a", "x", per_replica=True, owner="c"),
        "-0-a-0-x",
    ),
]


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(("one", "other", "name"), COLLIDING)
def test_parts_that_meet(one: Part, other: Part, name: str) -> None:
    assert [meeting for _, _, meeting in names.collisions([one, other])] == [name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_clique("pre-01-worker"), _grouped("worker", "pre")),
        (_clique("pre--worker"), _grouped("worker", "pre")),
        (_clique("pre-0-worker"), _grouped("worker", "pr")),
        (_clique("a"), names.autoscaler_part("a", "group", "g")),
        (_clique("0"), _clique("00")),
        (_claim("x", per_replica=False), _claim("x", per_replica=True, of=_clique("all"))),
    ],
)
def test_parts_that_cannot_meet(one: Part, other: Part) -> None:
    """An index has no leading zeros, and objects of different kinds may have one name."""
    assert list(names.collisions([one, other])) == []


@given(words=st.lists(WORDS, min_size=2, max_size=6, unique=True))
@example(words=["a", "a.0", "a-0"])
@pytest.mark.law
def test_the_order_of_parts_does_not_matter(words: list[str]) -> None:
    parts = [_clique(word) for word in words]
    one = {frozenset((first.title, other.title)) for first, other, _ in names.collisions(parts)}
    turned = parts[::-1]
    assert one == {
        frozenset((first.title, other.title)) for first, other, _ in names.collisions(turned)
    }


def test_many_parts_that_nearly_meet_are_compared_at_once() -> None:
    """A manifest of 3 MiB holds that many; compared two by two they would take hours."""
    parts = [_clique(f"a-0-{index}") for index in range(10_000)]
    parts += [_claim(f"0-x-{index}", per_replica=True, of=_clique("a")) for index in range(10_000)]
    assert list(names.collisions(parts)) == []
    met = list(names.collisions([*parts, _grouped("7", "a")]))
    assert [(one.title, name) for one, _, name in met] == [('clique "a-0-7"', "-0-a-0-7")]


def test_a_part_that_meets_many_is_told_of_some() -> None:
    parts = [_grouped("w", "a"), *(_clique(f"a-{index}-w") for index in range(50))]
    met = list(names.collisions(parts[::-1]))
    assert len(met) == names.MEETINGS_TOLD_MAX
    assert len(list(names.collisions(parts))) == 50
    assert len(list(names.collisions([*parts, *parts]))) <= 51 * (names.MEETINGS_TOLD_MAX + 1)
