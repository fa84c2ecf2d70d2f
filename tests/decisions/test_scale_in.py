"""Which pods of a PodClique leave when it is scaled in: the table, and two laws."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod
from spinney.decisions import cliques, pods
from spinney.decisions.cliques import Observation
from spinney.decisions.places import CliquePlace
from spinney.testing import build
from tests.decisions.pieces import CURRENT, LETTERS, NOW, OUTDATED, ago, clique, pod

SET = build.podcliqueset("set").with_clique("it").record()
PLACE = CliquePlace(
    name="it",
    set_name="set",
    set_replica_index=0,
    clique="it",
    podgang="set-0",
    base_podgang="set-0",
)


def leaving(found: list[Pod], replicas: int, chosen: tuple[str, ...] = ()) -> list[str]:
    """Return which pods are chosen to leave."""
    owner = clique(replicas=replicas, least=1)
    status = msgspec.structs.replace(owner.status, leaving_pods=chosen)
    owner = msgspec.structs.replace(owner, status=status)
    ordered = tuple(sorted(found, key=lambda each: each.metadata.name))
    seen = Observation(now=NOW, clique=owner, set_=SET, place=PLACE, pods=ordered)
    decision = cliques.decide(seen)
    if decision.intent is None:
        return [*chosen]
    kept = decision.intent.get("leavingPods", [])
    assert isinstance(kept, list)
    assert not decision.actions
    return [str(name) for name in kept]


# each pair: who goes first, who stays
PAIRS = {
    "without a node before with one": (pod("P", 0), pod("S", 1)),
    "gated before placed": (pod("G", 0), pod("S", 1)),
    "without a node though older": (pod("P", 0, created=ago(9)), pod("R", 1)),
    "Unknown before Running": (pod("U", 0), pod("S", 1)),
    "Failed like Pending, before Unknown": (pod("F", 0), pod("U", 1)),
    "Succeeded like Pending, before Running": (pod("D", 0), pod("R", 1)),
    "not ready before ready": (pod("S", 0), pod("R", 1)),
    "not ready though current": (pod("N", 0), pod("R", 1, template_hash=OUTDATED)),
    "outdated before current": (pod("R", 0, template_hash=OUTDATED), pod("R", 1)),
    "outdated though older": (
        pod("R", 0, template_hash=OUTDATED, created=ago(9)),
        pod("R", 1),
    ),
    "newer before older": (pod("R", 0), pod("R", 1, created=ago(9))),
    "without a creation time first": (pod("R", 0, created=None), pod("R", 1)),
    "of equal ones the higher index": (pod("R", 1), pod("R", 0)),
    "by number, not by letters": (pod("R", 10), pod("R", 9)),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS.keys())
def test_who_leaves_first(first: Pod, second: Pod) -> None:
    assert leaving([first, second], 1) == [first.metadata.name]
    assert leaving([second, first], 1) == [first.metadata.name]


def test_who_is_going_already_is_no_candidate() -> None:
    """Three pods, one of which ends: two are wanted, so none has to leave."""
    found = [pod("T", 0), pod("R", 1), pod("R", 2)]
    assert leaving(found, 2) == []
    assert leaving(found, 1) == ["it-2"]


def test_who_was_chosen_stays_chosen() -> None:
    """A pod that became unhealthy after the choice does not change it."""
    found = [pod("S", 0), pod("R", 1), pod("R", 2)]
    assert leaving(found, 2, ("it-2",)) == ["it-2"]
    assert leaving(found, 1, ("it-2",)) == ["it-0", "it-2"]


def test_a_scale_in_taken_back_lets_everybody_stay() -> None:
    assert leaving([pod("R", 0), pod("R", 1)], 2, ("it-1",)) == []


FOUND = st.lists(
    st.tuples(
        st.sampled_from([letter for letter in LETTERS if letter != "T"]),
        st.sampled_from([CURRENT, OUTDATED]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
).map(
    lambda told: [
        pod(letter, index, template_hash=stamp, created=ago(age))
        for index, (letter, stamp, age) in enumerate(told)
    ]
)


@pytest.mark.law
@given(FOUND, st.integers(0, 8), st.integers())
def test_a_healthy_pod_never_leaves_before_an_unhealthy_one(
    found: list[Pod], replicas: int, seed: int
) -> None:
    """And exactly the excess leaves, in whatever order pods are listed."""
    gone = leaving(found, replicas)
    assert len(gone) == max(0, len(found) - replicas)
    shuffled = random.Random(seed).sample(found, len(found))
    assert leaving(shuffled, replicas) == gone
    staying = [each for each in found if each.metadata.name not in gone]
    if any(pods.is_ready(each) for each in found if each.metadata.name in gone):
        assert all(pods.is_ready(each) for each in staying)
