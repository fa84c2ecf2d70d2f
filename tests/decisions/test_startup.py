"""Start-up order: for whom each PodClique waits, as a table, and that an order can be kept.

Laws: a PodClique waits for members of its own gang alone, never for itself, and never in a circle.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.podcliqueset import PodCliqueSet
from spinney.decisions import places, sets, startup
from spinney.decisions.places import CliquePlace
from spinney.testing import build

KINDS = {
    "any": "CliqueStartupTypeAnyOrder",
    "in": "CliqueStartupTypeInOrder",
    "explicit": "CliqueStartupTypeExplicit",
}


def made(kind: str, **after: str) -> PodCliqueSet:
    """Return a set of a, then l and w in group g of three copies (floor 2), h alone in k, z."""
    builder = build.podcliqueset("s").with_template("cliqueStartupType", KINDS[kind])
    for name in ("a", "l", "w", "h", "z"):
        parents = tuple(after.get(name, "").split())
        builder = builder.with_clique(name, starts_after=parents)
    builder = builder.with_group("g", "l", "w", replicas=3, min_available=2)
    return builder.with_group("k", "h", replicas=2, min_available=1).record()


def every_place(set_: PodCliqueSet) -> dict[str, CliquePlace]:
    found = [*places.layout(set_).standalone_places(0)]
    for group in places.layout(set_).group_places(0):
        found += places.grouped_places(group, range(group.config.replicas))
    return {place.name: place for place in found}


def waits(set_: PodCliqueSet) -> dict[str, list[str]]:
    """Return for whom each waits that waits for anybody."""
    template = set_.spec.template
    found = {
        name: [*startup.starts_after(template, place)] for name, place in every_place(set_).items()
    }
    return {name: parents for name, parents in found.items() if parents}


def test_in_any_order_nobody_waits() -> None:
    set_ = made("any", z="a l")
    assert waits(set_) == {}
    assert not startup.has_order(set_.spec.template)


def test_in_order_each_waits_for_the_one_before() -> None:
    set_ = made("in")
    assert startup.has_order(set_.spec.template)
    assert waits(set_) == {
        # the base gang: copies 0 and 1 of g, copy 0 of k
        "s-0-g-0-l": ["s-0-a"],
        "s-0-g-1-l": ["s-0-a"],
        "s-0-g-0-w": ["s-0-g-0-l", "s-0-g-1-l"],
        "s-0-g-1-w": ["s-0-g-0-l", "s-0-g-1-l"],
        "s-0-k-0-h": ["s-0-g-0-w", "s-0-g-1-w"],
        "s-0-z": ["s-0-k-0-h"],
        # a scaled gang: its own copy alone; who comes after another group waits for nobody
        "s-0-g-2-w": ["s-0-g-2-l"],
    }


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ({}, {}),
        ({"z": "a"}, {"s-0-z": ["s-0-a"]}),
        ({"z": "a l h"}, {"s-0-z": ["s-0-a", "s-0-g-0-l", "s-0-g-1-l", "s-0-k-0-h"]}),
        # within a group: in the base gang for every copy there, in a scaled gang for its own
        (
            {"w": "l"},
            {
                "s-0-g-0-w": ["s-0-g-0-l", "s-0-g-1-l"],
                "s-0-g-1-w": ["s-0-g-0-l", "s-0-g-1-l"],
                "s-0-g-2-w": ["s-0-g-2-l"],
            },
        ),
        # outside its group: in the base gang alone
        (
            {"w": "a h"},
            {"s-0-g-0-w": ["s-0-a", "s-0-k-0-h"], "s-0-g-1-w": ["s-0-a", "s-0-k-0-h"]},
        ),
        ({"h": "a"}, {"s-0-k-0-h": ["s-0-a"]}),
    ],
)
def test_in_an_order_of_its_own_each_waits_for_whom_it_names(
    after: dict[str, str], wanted: dict[str, list[str]]
) -> None:
    assert waits(made("explicit", **after)) == wanted


NAMES = ("a", "l", "w", "h", "z")


@st.composite
def orders(draw: st.DrawFn) -> PodCliqueSet:
    """Return a set with an order, as admission lets it be: without a circle."""
    kind = draw(st.sampled_from(["in", "explicit"]))
    ranked = draw(st.permutations(NAMES))
    after: dict[str, str] = {}
    for at, name in enumerate(ranked):
        if at:
            chosen = draw(st.lists(st.sampled_from(ranked[:at]), unique=True, max_size=3))
            after[name] = " ".join(chosen)
    return made(kind, **(after if kind == "explicit" else {}))


@pytest.mark.law
@given(orders())
def test_an_order_can_be_kept(set_: PodCliqueSet) -> None:
    found = every_place(set_)
    waiting = waits(set_)
    for name, parents in waiting.items():
        assert len(set(parents)) == len(parents)
        assert name not in parents
        for parent in parents:
            assert found[parent].podgang == found[name].podgang
    started: set[str] = set()
    while len(started) < len(found):
        ready = {name for name in found if set(waiting.get(name, [])) <= started}
        assert ready > started, f"{sorted(found.keys() - started)} wait in a circle"
        started |= ready


@pytest.mark.law
@pytest.mark.rule("2.1")
@given(st.integers(0, 2), st.integers(1, 3), st.integers(0, 3))
def test_every_place_is_in_exactly_one_gang(index: int, least: int, more: int) -> None:
    """Base and scaled gangs together hold each PodClique of a replica once."""
    builder = build.podcliqueset("s").with_replicas(3).with_clique("a").with_clique("b")
    builder = builder.with_group("g", "b", replicas=least + more, min_available=least)
    set_ = builder.record()
    gangs = dict(sets.expected_gangs(set_, index, {}))
    assert len(gangs) == 1 + more
    members = [place.name for inside in gangs.values() for place in inside]
    wanted = [f"s-{index}-a", *(f"s-{index}-g-{copy}-b" for copy in range(least + more))]
    assert sorted(members) == sorted(wanted)
    for name, inside in gangs.items():
        assert {place.podgang for place in inside} == {name}
